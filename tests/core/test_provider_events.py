"""What a provider may show besides text: call fragments, hosted tools, notes."""

from __future__ import annotations

import logging

from lighter_core import (
    Agent,
    AssistantMessage,
    HostedToolItem,
    MessageEvent,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    tool,
)
from lighter_core.adapters import note
from lighter_core.testing import FakeProvider


@tool
def add(a: int, b: int) -> int:
    """Calculate a sum."""
    return a + b


async def test_fragments_and_hosted_items_reach_the_consumer_in_order() -> None:
    """They come before the call starts and change nothing of the run."""
    call = ToolCall("c1", "add", '{"a":1,"b":2}')
    shown = [
        HostedToolItem("web_search_call", '{"type":"web_search_call"}'),
        ToolCallDelta("c1", "add", '{"a":1,'),
        ToolCallDelta("c1", "add", '"b":2}'),
    ]
    script = [[*shown, MessageEvent(AssistantMessage(tool_calls=[call]))], "3"]
    events = [
        event async for event in Agent(FakeProvider(script), tools=[add]).stream("x")
    ]
    assert events[:3] == shown
    assert isinstance(events[3], ToolCallStarted)
    response = await Agent(FakeProvider(script), tools=[add]).run("x")
    assert events[-1].messages == response.messages


class Noting(FakeProvider):
    """Says something on each call, as an adapter that cannot replay would."""

    async def invoke(self, request):
        note("reasoning of another provider was left out", provider=self.name)
        return await super().invoke(request)

    async def stream(self, request):
        note("reasoning of another provider was left out", provider=self.name)
        async for event in super().stream(request):
            yield event


async def test_notes_of_a_provider_are_in_the_response_once(caplog) -> None:
    """One entry and one record at WARNING, however many calls the run makes."""
    call = ToolCall("c1", "add", '{"a":1,"b":2}')
    script = [AssistantMessage(tool_calls=[call]), "3"]
    with caplog.at_level(logging.DEBUG, logger="lighter"):
        response = await Agent(Noting(script), tools=[add]).run("x")
    assert response.notes == ["reasoning of another provider was left out"]
    records = [record for record in caplog.records if record.name == "lighter.notes"]
    assert [record.levelname for record in records] == ["WARNING"]
    async with Agent(Noting(script), tools=[add]).stream("x") as stream:
        events = [event async for event in stream]
    assert events[-1].notes == response.notes


async def test_a_note_outside_a_run_is_logged_only(caplog) -> None:
    """A provider called directly has no response to write into."""
    with caplog.at_level(logging.WARNING, logger="lighter"):
        note("left out", provider="fake")
    assert [record.message for record in caplog.records] == ["left out"]
