"""A run as a stream: deltas, tool events, one response."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings

import pytest

from lighter_core import (
    AfterModelHook,
    Agent,
    AgentResponse,
    AssistantMessage,
    MessageEvent,
    ModelError,
    ProviderContractError,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    ToolMessage,
    tool,
)
from lighter_core.testing import FakeProvider, Pause, Turn

CALL = ToolCall("c1", "add", '{"a":19,"b":23}')


@tool
def add(a: int, b: int) -> int:
    """Calculate the sum of two numbers."""
    return a + b


async def read(agent: Agent, text: str = "x") -> list[object]:
    return [event async for event in agent.stream(text)]


async def test_stream_yields_deltas_then_one_response() -> None:
    """Text arrives in pieces, the response comes last, and once."""
    events = await read(Agent(FakeProvider([Turn(text="Pagecount", pieces=3)])))
    assert events[:-1] == [TextDelta("Pag"), TextDelta("eco"), TextDelta("unt")]
    last = events[-1]
    assert isinstance(last, AgentResponse)
    assert last.status == "completed"
    assert last.text == "Pagecount"


async def test_reasoning_arrives_as_deltas_of_its_own() -> None:
    """Where the provider gives reasoning it is streamed too."""
    events = await read(Agent(FakeProvider([Turn(text="ab", reasoning="hmm, yes")])))
    reasoning = [e.text for e in events if isinstance(e, ReasoningDelta)]
    assert "".join(reasoning) == "hmm, yes"
    assert len(reasoning) == 2
    assert isinstance(events[-1], AgentResponse)
    assert events[-1].messages[0].reasoning == "hmm, yes"  # type: ignore[union-attr]


async def test_events_can_be_told_apart_by_type() -> None:
    """Each event has its `type`."""
    provider = FakeProvider([Turn(text="a", reasoning="r", tool_calls=[CALL]), "b"])
    events = await read(Agent(provider, tools=[add]))
    assert [e.type for e in events] == [  # type: ignore[attr-defined]
        "reasoning_delta",
        "text_delta",
        "tool_call_started",
        "tool_call_finished",
        "text_delta",
        "response",
    ]


async def test_provider_message_event_is_not_forwarded() -> None:
    """Complete messages are in the response only."""
    provider = FakeProvider([Turn(text="a", tool_calls=[CALL]), "b"])
    events = await read(Agent(provider, tools=[add]))
    assert not any(isinstance(e, MessageEvent) for e in events)
    assert isinstance(events[-1], AgentResponse)
    assert [m.role for m in events[-1].messages] == ["assistant", "tool", "assistant"]


async def test_tool_events_carry_call_and_result() -> None:
    """Started before the tool runs, finished with its message."""
    provider = FakeProvider([Turn(tool_calls=[CALL]), "b"])
    events = await read(Agent(provider, tools=[add]))
    result = ToolMessage(call_id="c1", tool_name="add", tool_output="42")
    assert events[0] == ToolCallStarted(CALL)
    assert events[1] == ToolCallFinished(CALL, result)


async def test_deltas_of_all_rounds_arrive_in_order() -> None:
    """With tools, text comes from several replies."""
    provider = FakeProvider([Turn(text="Let me see. ", tool_calls=[CALL]), "It is 42."])
    events = await read(Agent(provider, tools=[add]))
    text = "".join(e.text for e in events if isinstance(e, TextDelta))
    assert text == "Let me see. It is 42."


async def test_text_is_forwarded_while_the_reply_is_still_being_made() -> None:
    """A delta is seen before the provider goes on."""
    go_on = asyncio.Event()
    script = [
        TextDelta("first"),
        Pause(until=go_on),
        TextDelta(" second"),
        MessageEvent(AssistantMessage("first second")),
    ]
    async with Agent(FakeProvider([script])).stream("x") as stream:
        assert await anext(stream) == TextDelta("first")
        go_on.set()
        assert await anext(stream) == TextDelta(" second")
        assert isinstance(await anext(stream), AgentResponse)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


async def test_empty_deltas_are_not_shown() -> None:
    """They would say nothing."""
    script = [
        TextDelta(""),
        ReasoningDelta(""),
        TextDelta("a"),
        MessageEvent(AssistantMessage("a")),
    ]
    events = await read(Agent(FakeProvider([script])))
    assert [e.type for e in events] == ["text_delta", "response"]  # type: ignore[attr-defined]


async def test_nothing_runs_before_the_first_event_is_asked_for() -> None:
    """Neither the call nor entering the block starts anything."""
    provider = FakeProvider(["x"])
    stream = Agent(provider).stream("x")
    async with stream:
        await asyncio.sleep(0)
        assert provider.requests == []
        await anext(stream)
        assert len(provider.requests) == 1


async def test_a_stream_that_is_never_read_warns_of_nothing() -> None:
    """It may be dropped."""
    provider = FakeProvider(["x"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Agent(provider).stream("x")
        gc.collect()
        await asyncio.sleep(0)
    assert provider.requests == []


async def test_interrupted_stream_keeps_completed_messages_without_partial_text() -> (
    None
):
    """The response is failed, has the first round, and not the half reply."""
    error = ModelError("cut", "network_error")
    provider = FakeProvider(
        [Turn(tool_calls=[CALL]), [TextDelta("half a "), error]],
    )
    events = await read(Agent(provider, tools=[add]))
    last = events[-1]
    assert TextDelta("half a ") in events
    assert isinstance(last, AgentResponse)
    assert last.status == "failed"
    assert last.error is error
    assert [m.role for m in last.messages] == ["assistant", "tool"]


async def test_failure_in_the_first_round_is_still_one_response() -> None:
    """A stream that fails at once yields only the failed response."""
    error = ModelError("down", "server_error")
    events = await read(Agent(FakeProvider([error])))
    assert events == [AgentResponse(status="failed", messages=[], error=error)]


@pytest.mark.parametrize(
    ("script", "number"),
    [
        ([TextDelta("a")], 2),
        ([], 1),
        ([MessageEvent(AssistantMessage("a")), MessageEvent(AssistantMessage("b"))], 2),
        ([MessageEvent(AssistantMessage("a")), TextDelta("b")], 2),
        ([TextDelta("a"), "noise"], 2),
    ],
    ids=["no message", "nothing", "two messages", "delta after message", "unknown"],
)
async def test_agent_holds_a_provider_to_the_stream_grammar(
    script: list[object], number: int
) -> None:
    """Deltas, then exactly one message; else a `bad_response` that says where."""
    provider = FakeProvider([script])  # type: ignore[list-item]
    last = (await read(Agent(provider)))[-1]
    assert isinstance(last, AgentResponse)
    assert last.status == "failed"
    assert isinstance(last.error, ProviderContractError)
    assert last.error.code == "bad_response"
    assert last.error.event_number == number
    assert last.messages == []


async def test_break_at_a_tool_starts_neither_the_tool_nor_a_model_call() -> None:
    """Leaving at `ToolCallStarted` means that the tool never runs."""
    ran: list[str] = []

    @tool(thread=False)
    def act() -> str:
        """Have an effect."""
        ran.append("ran")
        return "ok"

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "act")]), "never"])
    async with Agent(provider, tools=[act]).stream("x") as stream:
        async for event in stream:
            if isinstance(event, ToolCallStarted):
                break
        await asyncio.sleep(0)
    assert ran == []
    assert len(provider.requests) == 1
    assert [m.role for m in stream.messages] == ["assistant", "tool"]
    assert stream.messages[1].is_error  # type: ignore[union-attr]


async def test_break_after_a_tool_makes_no_further_model_call() -> None:
    """Leaving at `ToolCallFinished` ends the run there."""
    provider = FakeProvider([Turn(tool_calls=[CALL]), "never"])
    async with Agent(provider, tools=[add]).stream("x") as stream:
        async for event in stream:
            if isinstance(event, ToolCallFinished):
                break
        for _ in range(5):
            await asyncio.sleep(0)
    assert len(provider.requests) == 1
    assert stream.messages[1].tool_output == "42"  # type: ignore[union-attr]


async def test_leaving_the_block_closes_the_providers_stream() -> None:
    """The request in flight ends; no response is given."""
    never = asyncio.Event()
    provider = FakeProvider([[TextDelta("a"), Pause(until=never)]])
    seen: list[object] = []
    async with Agent(provider).stream("x") as stream:
        async for event in stream:
            seen.append(event)
            break
    assert seen == [TextDelta("a")]
    assert provider.closed_streams == 1
    assert stream.messages == []
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_closed_stream_starts_nothing() -> None:
    """Closed before its first event, it stays without any."""
    provider = FakeProvider(["never"])
    stream = Agent(provider).stream("x")
    await stream.aclose()
    await stream.aclose()
    assert [event async for event in stream] == []
    assert provider.requests == []


async def test_a_bare_break_ends_the_request_when_the_stream_goes() -> None:
    """Without the block, the run ends with the stream object."""
    never = asyncio.Event()
    provider = FakeProvider([[TextDelta("a"), Pause(until=never)]])
    agent = Agent(provider)

    async def first() -> object:
        async for event in agent.stream("x"):
            return event
        return None

    assert await first() == TextDelta("a")
    gc.collect()
    for _ in range(10):
        await asyncio.sleep(0)
    assert provider.closed_streams == 1


async def test_stopping_does_not_stop_a_tool_thread_that_runs() -> None:
    """Threads cannot be stopped; the call is closed as interrupted all the same."""
    started, release = threading.Event(), threading.Event()
    finished = threading.Event()

    @tool
    def slow() -> str:
        """Take long."""
        started.set()
        release.wait(10)
        finished.set()
        return "late"

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "slow")]), "never"])
    stream = Agent(provider, tools=[slow]).stream("x")
    assert isinstance(await anext(stream), ToolCallStarted)
    pending = asyncio.ensure_future(anext(stream))
    assert await asyncio.to_thread(started.wait, 10)
    pending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending
    assert not finished.is_set()
    release.set()
    assert await asyncio.to_thread(finished.wait, 10)
    assert stream.messages[1].is_error  # type: ignore[union-attr]
    assert len(provider.requests) == 1


async def test_after_model_hook_may_make_the_message_differ_from_the_deltas() -> None:
    """Deltas were shown already; the final message is the hook's."""
    hook = AfterModelHook(
        hook_name="upper",
        hook_function=lambda message: AssistantMessage(message.content.upper()),
    )
    events = await read(Agent(FakeProvider(["quiet"]), hooks=[hook]))
    text = "".join(e.text for e in events if isinstance(e, TextDelta))
    assert text == "quiet"
    assert isinstance(events[-1], AgentResponse)
    assert events[-1].text == "QUIET"


async def test_stream_can_be_read_by_one_consumer_only() -> None:
    """A second one is told so."""
    never = asyncio.Event()
    async with Agent(FakeProvider([[Pause(until=never)]])).stream("x") as stream:
        first = asyncio.ensure_future(anext(stream))
        for _ in range(3):
            await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="has one"):
            await anext(stream)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first


def test_synchronous_stream_stops_with_its_block() -> None:
    """`break` inside `with` ends the run."""
    provider = FakeProvider([Turn(tool_calls=[CALL]), "never"])
    with Agent(provider, tools=[add]).stream_sync("x") as stream:
        for event in stream:
            if isinstance(event, ToolCallStarted):
                break
    assert len(provider.requests) == 1
    assert [m.role for m in stream.messages] == ["assistant", "tool"]
