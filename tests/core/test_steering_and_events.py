"""What a user interface sees of a run, and what it can say while the run goes on."""

from __future__ import annotations

import asyncio
import threading

import pytest
from pydantic import BaseModel

from lighter_core import (
    Agent,
    AgentResponse,
    AgentStreamEvent,
    AssistantMessage,
    LimitNear,
    Message,
    MessageAdded,
    ModelError,
    RunContext,
    RunLimits,
    TextDelta,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    ToolMessage,
    ToolProgress,
    TurnEnded,
    TurnStarted,
    Usage,
    UsageUpdated,
    UserMessage,
    check_history,
    tool,
)
from lighter_core.testing import FakeProvider, Pause, Turn

pytestmark = pytest.mark.usefixtures("no_leaks")


def calling(*names: str, usage: Usage | None = None) -> Turn:
    return Turn(
        tool_calls=[ToolCall(f"c{n}", name, "{}") for n, name in enumerate(names, 1)],
        usage=usage,
    )


@tool
async def work(run: RunContext[None]) -> str:
    """Work in two steps."""
    run.progress("half")
    await asyncio.sleep(0)
    run.progress({"done": 2, "of": 2})
    return "done"


# Events.


async def test_all_events_tell_of_turns_tools_and_tokens_in_order() -> None:
    provider = FakeProvider(
        [
            calling("work", usage=Usage(10, 1)),
            Turn(text="ok", pieces=1, usage=Usage(20, 2)),
        ]
    )
    agent = Agent(provider, tools=[work], limits=RunLimits(model_calls=2))
    async with agent.stream("go", all_events=True) as stream:
        events = [event async for event in stream]
    call = ToolCall("c1", "work", "{}")
    result = ToolMessage(call_id="c1", tool_name="work", tool_output='"done"')
    *shown, last = events
    assert isinstance(last, AgentResponse)
    first, second = (m for m in last.messages if isinstance(m, AssistantMessage))
    assert shown == [
        TurnStarted(1),
        UsageUpdated(Usage(10, 1)),
        ToolCallStarted(call),
        ToolProgress("c1", "work", "half"),
        ToolProgress("c1", "work", {"done": 2, "of": 2}),
        ToolCallFinished(call, result),
        TurnEnded(1, first),
        TurnStarted(2),
        TextDelta("ok"),
        UsageUpdated(Usage(30, 3)),
        LimitNear("model_calls", 2, 2),
        TurnEnded(2, second),
    ]


async def test_without_the_option_a_stream_is_as_it_was() -> None:
    provider = FakeProvider([calling("plain", usage=Usage(10, 1)), "ok"])

    @tool
    def plain() -> None:
        """Work."""

    async with Agent(provider, tools=[plain]).stream("go") as stream:
        kinds = [type(event) async for event in stream]
    assert kinds == [
        ToolCallStarted,
        ToolCallFinished,
        TextDelta,
        TextDelta,
        AgentResponse,
    ]


def test_the_synchronous_stream_has_them_too() -> None:
    with Agent(FakeProvider(["ok"])).stream_sync("go", all_events=True) as stream:
        kinds = [type(event) for event in stream]
    assert kinds == [TurnStarted, TextDelta, TextDelta, TurnEnded, AgentResponse]


async def test_each_limit_is_told_once() -> None:
    turns = [calling("work", usage=Usage(30, 0)) for _ in range(4)]
    provider = FakeProvider([*turns, "ok"])
    limits = RunLimits(model_calls=5, tool_calls=5, total_tokens=125, seconds=60)
    async with Agent(provider, tools=[work], limits=limits).stream(
        "go", all_events=True
    ) as stream:
        near = [e async for e in stream if isinstance(e, LimitNear)]
    assert [(e.limit, e.used, e.value) for e in near] == [
        ("model_calls", 4, 5),
        ("tool_calls", 4, 5),
        ("total_tokens", 120, 125),
    ]


async def test_progress_from_a_thread_arrives_before_the_end() -> None:
    @tool
    def threaded(run: RunContext[None]) -> str:
        """Tell from a worker thread."""
        run.progress(threading.get_ident() != home)
        return "done"

    home = threading.get_ident()
    provider = FakeProvider([calling("threaded"), "ok"])
    async with Agent(provider, tools=[threaded]).stream("go") as stream:
        events = [event async for event in stream]
    told = [e.value for e in events if isinstance(e, ToolProgress)]
    assert told == [True]
    kinds = [type(event) for event in events]
    assert kinds.index(ToolProgress) < kinds.index(ToolCallFinished)


async def test_much_progress_does_not_pile_up() -> None:
    @tool
    async def chatty(run: RunContext[None]) -> str:
        """Tell too much."""
        for number in range(10_000):
            run.progress(number)
        return "done"

    provider = FakeProvider([calling("chatty"), "ok"])
    async with Agent(provider, tools=[chatty]).stream("go") as stream:
        events = [event async for event in stream]
    told = [e.value for e in events if isinstance(e, ToolProgress)]
    assert told == list(range(len(told)))
    assert 0 < len(told) <= 64
    assert events[-1].type == "response"


async def test_progress_without_a_stream_is_nothing() -> None:
    response = await Agent(FakeProvider([calling("work"), "ok"]), tools=[work]).run("x")
    assert response.status == "completed"
    with pytest.raises(RuntimeError, match="inside a tool"):
        RunContext[None]().progress("x")


async def test_a_tool_knows_its_name() -> None:
    seen: list[str | None] = []

    @tool(name="renamed")
    async def look(run: RunContext[None]) -> None:
        """Look."""
        seen.append(run.tool_name)

    await Agent(FakeProvider([calling("renamed"), "ok"]), tools=[look]).run("x")
    assert seen == ["renamed"]


# Steering.


async def test_steering_comes_before_the_next_model_call() -> None:
    provider = FakeProvider([calling("work", "work"), "ok"])
    agent = Agent(provider, tools=[work])
    events: list[AgentStreamEvent] = []
    async with agent.stream("go") as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event, ToolCallStarted) and event.call.call_id == "c1":
                stream.steer("But be quick.")
    assert MessageAdded(UserMessage("But be quick.")) in events
    last = events[-1]
    assert isinstance(last, AgentResponse)
    assert [m.role for m in last.messages] == [
        *("assistant", "tool", "tool"),
        *("user", "assistant"),
    ]
    assert check_history(last.messages) == []
    assert provider.requests[1].messages[-1] == UserMessage("But be quick.")


async def test_steering_while_the_last_reply_comes_is_not_lost() -> None:
    provider = FakeProvider([[*[TextDelta("a")] * 2, Pause(0.01), *_end("aa")], "b"])
    async with Agent(provider).stream("go") as stream:
        async for event in stream:
            if event == TextDelta("a") and len(provider.requests) == 1:
                stream.steer("And b?")
                break
        rest = [event async for event in stream]
    assert isinstance(rest[-1], AgentResponse)
    assert [m.content for m in rest[-1].messages if not isinstance(m, ToolMessage)] == [
        "aa",
        "And b?",
        "b",
    ]


def _end(text: str) -> list[object]:
    from lighter_core import MessageEvent

    return [MessageEvent(AssistantMessage(text))]


async def test_follow_ups_wait_for_the_end_and_get_an_answer_each() -> None:
    provider = FakeProvider([calling("work"), "first", "second", "third"])
    agent = Agent(provider, tools=[work])
    async with agent.stream("go") as stream:
        assert isinstance(await anext(stream), ToolCallStarted)
        stream.follow_up("And then?")
        stream.follow_up(UserMessage("And last?"))
        events = [event async for event in stream]
    last = events[-1]
    assert isinstance(last, AgentResponse)
    assert [m.role for m in last.messages] == [
        *("assistant", "tool", "assistant"),
        *("user", "assistant", "user", "assistant"),
    ]
    assert last.text == "third"
    assert stream.undelivered == []


async def test_a_run_that_has_ended_takes_nothing() -> None:
    stream = Agent(FakeProvider(["ok"])).stream("go")
    async for _ in stream:
        pass
    for say in (stream.steer, stream.follow_up):
        with pytest.raises(RuntimeError, match="has ended"):
            say("late")
    with pytest.raises(TypeError, match="str or a UserMessage, got int"):
        stream.steer(1)  # type: ignore[arg-type]


async def test_what_a_failed_run_did_not_read_is_still_there() -> None:
    provider = FakeProvider([[TextDelta("a"), ModelError("down", "server_error")]])
    async with Agent(provider).stream("go") as stream:
        assert await anext(stream) == TextDelta("a")
        stream.steer("one")
        stream.follow_up("two")
        rest = [event async for event in stream]
    assert isinstance(rest[-1], AgentResponse)
    assert rest[-1].messages == []
    assert stream.undelivered == [UserMessage("one"), UserMessage("two")]


async def test_handles_are_steered_from_other_threads() -> None:
    started, steered = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait to be steered."""
        started.set()
        await steered.wait()
        return "done"

    provider = FakeProvider([calling("wait"), "ok", "more"])
    handle = Agent(provider, tools=[wait]).start("go")
    await started.wait()
    await asyncio.to_thread(handle.steer, "quick")
    await asyncio.to_thread(handle.follow_up, "and more")
    steered.set()
    response = await handle
    assert [m.content for m in response.messages if isinstance(m, UserMessage)] == [
        "quick",
        "and more",
    ]
    assert response.text == "more"
    assert handle.undelivered == []


async def test_the_output_is_read_from_the_last_answer() -> None:
    class Sum(BaseModel):
        """A sum."""

        value: int

    provider = FakeProvider([calling("work"), "not yet", '{"value": 42}'])
    agent = Agent(provider, tools=[work])
    async with agent.stream("go", output=Sum) as stream:
        assert isinstance(await anext(stream), ToolCallStarted)
        stream.follow_up("As a sum, please.")
        events = [event async for event in stream]
    last = events[-1]
    assert isinstance(last, AgentResponse)
    assert last.output == Sum(value=42)


async def test_steering_counts_as_input_of_the_next_run() -> None:
    """The new messages can be appended and go on as a valid history."""
    provider = FakeProvider([calling("work"), "ok", "again"])
    agent = Agent(provider, tools=[work])
    history: list[Message] = [UserMessage("go")]
    async with agent.stream(history) as stream:
        async for event in stream:
            if isinstance(event, ToolCallStarted):
                stream.steer("quick")
    history += stream.messages
    assert check_history(history) == []
    assert (await agent.run([*history, UserMessage("x")])).text == "again"
