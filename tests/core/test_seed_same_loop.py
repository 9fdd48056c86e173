"""`run` and `stream` are one loop: the same script gives the same messages."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.torture import examples

from lighter_core import (
    AfterAgentHook,
    AfterModelHook,
    Agent,
    AgentResponse,
    AssistantMessage,
    Message,
    ModelError,
    ReasoningDelta,
    RunLimits,
    TextDelta,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    ToolMessage,
    Usage,
    UserMessage,
    check_history,
    tool,
)
from lighter_core.testing import FakeProvider, Turn


@tool(thread=False)
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


@tool
async def fail(n: int) -> int:
    """Fail for odd numbers."""
    if n % 2:
        raise ValueError(f"{n} is odd")
    return n


TOOLS = [double, fail]
NAMES = st.sampled_from(["double", "fail", "unknown"])
ARGUMENTS = st.sampled_from(['{"n":1}', '{"n":2}', '{"n":"x"}', "{", "", "null"])
TEXT = st.text(max_size=12)


@st.composite
def turns(draw: st.DrawFn) -> Any:
    """One reply, or a failure of the service."""
    if draw(st.integers(0, 9)) == 0:
        return ModelError("down", "server_error")
    count = draw(st.integers(0, 3))
    calls = [ToolCall(f"c{n}", draw(NAMES), draw(ARGUMENTS)) for n in range(count)]
    return Turn(
        text=draw(TEXT),
        reasoning=draw(st.none() | TEXT),
        tool_calls=calls,
        usage=draw(st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9))),
        pieces=draw(st.integers(1, 4)),
    )


SCRIPTS = st.lists(turns(), max_size=5)
HISTORIES: st.SearchStrategy[list[Message]] = st.lists(
    st.sampled_from(
        [
            UserMessage("u"),
            AssistantMessage("a"),
            AssistantMessage(tool_calls=[ToolCall("h", "double", "{}")]),
            ToolMessage(call_id="h", tool_name="double", tool_output="0"),
        ]
    ),
    max_size=6,
)


def hooks() -> list[object]:
    def shout(message: AssistantMessage) -> AssistantMessage | None:
        if message.tool_calls:
            return None
        return AssistantMessage(message.content + "!", usage=message.usage)

    def sign(messages: Any) -> list[Message]:
        return [*messages, AssistantMessage("signed")]

    return [
        AfterModelHook(hook_name="shout", hook_function=shout),
        AfterAgentHook(hook_name="sign", hook_function=sign),
    ]


def same(first: AgentResponse, second: AgentResponse) -> None:
    """Compare two responses; errors of the script's end are made anew in each."""
    assert first.status == second.status
    assert first.messages == second.messages
    assert first.usage == second.usage
    assert first.stop_reason == second.stop_reason
    assert first.notes == second.notes
    assert type(first.error) is type(second.error)
    assert str(first.error) == str(second.error)


@settings(max_examples=examples(60), deadline=None)
@given(script=SCRIPTS, history=HISTORIES, hooked=st.booleans())
def test_run_and_stream_give_the_same_response(
    script: list[Any], history: list[Message], hooked: bool
) -> None:
    """Also `start`; the providers see the same requests, histories stay valid."""

    async def all_ways() -> None:
        providers = [FakeProvider(script) for _ in range(3)]
        agents = [
            Agent(
                provider,
                tools=TOOLS,
                hooks=hooks() if hooked else [],
                limits=RunLimits(model_calls=4),
            )
            for provider in providers
        ]
        before = list(history)
        ran = await agents[0].run(history)
        events = [event async for event in agents[1].stream(history)]
        started = await agents[2].start(history)
        streamed = events[-1]
        assert isinstance(streamed, AgentResponse)
        same(ran, streamed)
        same(ran, started)
        assert providers[0].requests == providers[1].requests == providers[2].requests
        assert history == before
        assert check_history(ran.messages) == []
        assert sum(isinstance(each, AgentResponse) for each in events) == 1

    asyncio.run(all_ways())


@settings(max_examples=examples(40), deadline=None)
@given(script=SCRIPTS)
def test_events_of_a_stream_agree_with_its_response(script: list[Any]) -> None:
    """Deltas joined are the texts, tool events are the calls and their results."""

    async def once() -> None:
        agent = Agent(FakeProvider(script), tools=TOOLS)
        events = [event async for event in agent.stream("x")]
        response = events[-1]
        assert isinstance(response, AgentResponse)
        replies = [m for m in response.messages if isinstance(m, AssistantMessage)]
        text = "".join(e.text for e in events if isinstance(e, TextDelta))
        assert text == "".join(m.content for m in replies)
        reasoning = "".join(e.text for e in events if isinstance(e, ReasoningDelta))
        assert reasoning == "".join(m.reasoning or "" for m in replies)
        started = [e.call for e in events if isinstance(e, ToolCallStarted)]
        assert started == [call for m in replies for call in m.tool_calls]
        finished = [e for e in events if isinstance(e, ToolCallFinished)]
        assert [e.call for e in finished] == started
        results = [m for m in response.messages if isinstance(m, ToolMessage)]
        assert [e.message for e in finished] == results

    asyncio.run(once())


@settings(max_examples=examples(40), deadline=None)
@given(script=SCRIPTS, stop=st.integers(0, 12))
def test_a_stream_left_anywhere_leaves_a_valid_history(
    script: list[Any], stop: int
) -> None:
    """What it shows is a beginning of what the whole run would have made."""

    async def once() -> None:
        agent = Agent(FakeProvider(script), tools=TOOLS)
        async with agent.stream("x") as stream:
            number = 0
            async for _ in stream:
                if number == stop:
                    break
                number += 1
        left = stream.messages
        assert check_history(left) == []
        whole = (await Agent(FakeProvider(script), tools=TOOLS).run("x")).messages
        done = [
            each
            for each in left
            if not (each.role == "tool" and each.tool_output.startswith("interrupted"))
        ]
        assert done == whole[: len(done)]

    asyncio.run(once())
