"""A provider that breaks the stream grammar at run time: the error says at which event."""

from __future__ import annotations

import pytest

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    MessageEvent,
    ProviderContractError,
    ReasoningDelta,
    TextDelta,
    ToolCall,
)
from lighter_core.testing import FakeProvider

HEAD = [TextDelta("a"), ReasoningDelta("b")]
TWO = [ToolCall("c1", "t"), ToolCall("c1", "t")]


@pytest.mark.parametrize(
    ("tail", "number", "said"),
    [
        ([], 3, "ended its stream without a complete message"),
        (["noise"], 3, "yielded a str; yield TextDelta"),
        ([TextDelta(None)], 3, "yielded a TextDelta whose text is NoneType"),  # type: ignore[arg-type]
        ([MessageEvent(None)], 3, "gave NoneType instead of an AssistantMessage"),  # type: ignore[arg-type]
        (
            [MessageEvent(AssistantMessage(tool_calls=TWO))],
            3,
            "gave two tool calls with one id",
        ),
        (
            [MessageEvent(AssistantMessage("ab")), TextDelta("c")],
            4,
            "yielded a TextDelta after its message",
        ),
        ([MessageEvent(AssistantMessage("ab"))] * 2, 4, "the message must come last"),
    ],
)
async def test_the_number_of_the_event_is_named(
    tail: list, number: int, said: str
) -> None:
    """In the message and as `event_number`, with all that came before it counted."""
    provider = FakeProvider([[*HEAD, *tail]])
    *_, response = [event async for event in Agent(provider).stream("go")]
    assert isinstance(response, AgentResponse)
    error = response.error
    assert isinstance(error, ProviderContractError)
    assert error.event_number == number
    assert f"provider 'fake', event {number} of its stream: " in error.message
    assert said in error.message
    assert provider.closed_streams == 1


class Awaited(FakeProvider):
    """Returns its stream from a coroutine, as many a client library does."""

    async def stream(self, request):
        return super().stream(request)


class Listing(FakeProvider):
    """Returns all events at once."""

    def stream(self, request):
        return [MessageEvent(AssistantMessage("all"))]


@pytest.mark.parametrize(
    ("kind", "given"), [(Awaited, "a coroutine"), (Listing, "a list")]
)
async def test_a_stream_that_is_none_is_told(kind, given: str) -> None:
    """No TypeError of the interpreter, and no coroutine that is never awaited."""
    *_, response = [event async for event in Agent(kind(["x"])).stream("go")]
    assert isinstance(response.error, ProviderContractError)
    assert response.error.event_number == 1
    assert f"stream() gave {given}: write it as an async generator" in str(
        response.error
    )
