"""How often a delta is copied on its way, counted in bytes, since time says little here.

A delta of 20,000 characters is so large that what else is allocated does not count: bytes
divided by its length are copies. Each bound lies between what is there now and one copy
more, and each has a test in which one copy more, put there on purpose, is noticed.
"""

from __future__ import annotations

import json
import statistics
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.interfaces import ASK, INTERFACES, Interface
from support.large_deltas import argument_events, text_events
from support.wire import Wire, wired

from lighter_core import (
    Agent,
    AssistantMessage,
    MessageEvent,
    ModelRequest,
    ProviderStreamEvent,
    TextDelta,
    ToolCallDelta,
)
from lighter_core.adapters import EventStreamSplitter

SIZE = 20_000
DELTAS = 40
FRAGMENTS = 4_000
JOINED = 8 * FRAGMENTS  # characters of all of them
each = pytest.mark.parametrize("interface", INTERFACES, ids=lambda each: each.name)


class Copies:
    """What deltas cost, in copies of one delta."""

    def __init__(self) -> None:
        self.kept: list[float] = []
        self.most: list[float] = []

    @contextmanager
    def of_one(self) -> Iterator[None]:
        """Measure what one delta costs."""
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        yield
        after, peak = tracemalloc.get_traced_memory()
        self.kept.append((after - before) / SIZE)
        self.most.append((peak - before) / SIZE)

    def within(self, *, kept: float, most: float) -> bool:
        """Whether the usual delta stays within the bounds; a list grows by jumps."""
        return (
            statistics.median(self.kept) < kept and statistics.median(self.most) < most
        )

    def __repr__(self) -> str:
        kept, most = statistics.median(self.kept), statistics.median(self.most)
        return f"{kept:.2f} copies kept, {most:.2f} at the same time"


@contextmanager
def tracing() -> Iterator[None]:
    """Trace memory, as briefly as possible: it slows all that allocates."""
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def texts() -> list[str]:
    return [f"{number:04}" * (SIZE // 4) for number in range(DELTAS)]


def fragments() -> list[str]:
    """The arguments `{"text": ...}` cut to the size of a delta."""
    whole = json.dumps({"text": "0123" * (SIZE // 4 * DELTAS)})
    whole = whole[: SIZE * DELTAS - 2] + '"}'
    return [whole[at : at + SIZE] for at in range(0, len(whole), SIZE)]


def decoded(interface: Interface, kind: str, feed: Callable[..., Any]) -> Copies:
    """Take a reply with the provider's decoder, its events thrown away at once."""
    events = (
        text_events(interface.name, texts())
        if kind == "text"
        else argument_events(interface.name, "note", fragments())
    )
    delta = TextDelta if kind == "text" else ToolCallDelta
    provider = interface.provider(
        api_key="key", model_id="test", base_url="http://127.0.0.1:9"
    )
    codec, found = provider._codec(ASK), Copies()
    codec.decoder().feed(events[0])  # what is loaded and made once
    decoder = codec.decoder()
    with tracing():
        for data in events:
            one = Copies()
            with one.of_one():
                shown = any(type(event) is delta for event in feed(decoder, data))
            if shown and len(data) > SIZE:
                found.kept += one.kept
                found.most += one.most
    if decoder.message is None:
        decoder.finish()
    message = decoder.message
    assert message is not None
    written = message.content or message.tool_calls[0].arguments
    assert len(written) == SIZE * DELTAS
    # The first delta of a call may come with its name, the last with the end.
    assert DELTAS - 2 <= len(found.kept) <= DELTAS
    return found


@each
@pytest.mark.parametrize("kind", ["text", "arguments"])
def test_a_decoder_makes_and_keeps_one_copy_of_a_delta(
    interface: Interface, kind: str
) -> None:
    """The text itself, which the event and the decoder share."""
    found = decoded(interface, kind, lambda decoder, data: decoder.feed(data))
    assert found.within(kept=1.5, most=1.5), found


@each
def test_a_copy_too_many_in_a_decoder_is_noticed(interface: Interface) -> None:
    """The bounds above are no wider than one copy, kept or not."""
    hoard: list[bytes] = []

    def keeping(decoder: Any, data: bytes) -> Any:
        hoard.append(bytes(bytearray(data)))
        return decoder.feed(data)

    def passing(decoder: Any, data: bytes) -> Any:
        copy = bytes(bytearray(data))
        events = decoder.feed(data)
        assert copy
        return events

    assert not decoded(interface, "text", keeping).within(kept=1.5, most=9)
    assert not decoded(interface, "text", passing).within(kept=9, most=1.5)


def late(interface: Interface, kind: str, feed: Callable[..., Any]) -> float:
    """Bytes that a small delta takes when thousands came before it."""
    pieces = [f"{number:08}" for number in range(FRAGMENTS)]
    if kind == "text":
        events = text_events(interface.name, pieces)
    else:
        pieces[:2], pieces[-1] = ['{"text":', '"1234567'], '123456"}'
        events = argument_events(interface.name, "note", pieces)
    delta = TextDelta if kind == "text" else ToolCallDelta
    provider = interface.provider(
        api_key="key", model_id="test", base_url="http://127.0.0.1:9"
    )
    decoder, most = provider._codec(ASK).decoder(), []
    with tracing():
        for data in events:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            shown = any(type(event) is delta for event in feed(decoder, data))
            if shown:
                most.append(tracemalloc.get_traced_memory()[1] - before)
    assert len(most) >= FRAGMENTS - 2
    return statistics.median(most[-FRAGMENTS // 4 :])


@each
@pytest.mark.parametrize("kind", ["text", "arguments"])
def test_a_small_delta_costs_the_same_late_in_a_long_reply(
    interface: Interface, kind: str
) -> None:
    """KF-107: what came before is not joined again: that would be quadratic."""
    assert late(interface, kind, lambda decoder, data: decoder.feed(data)) < JOINED / 8


def test_joining_at_each_delta_is_noticed() -> None:
    """As a reader does that keeps the text so far."""
    text = ""

    def joining(decoder: Any, data: bytes) -> Any:
        nonlocal text
        events = decoder.feed(data)
        text = "".join([text, *[getattr(event, "text", "") for event in events]])
        return events

    assert late(INTERFACES[0], "text", joining) > JOINED / 2


async def streamed(interface: Interface) -> Copies:
    """Take a reply from the agent, each delta as the network brings it."""
    events = text_events(interface.name, texts())
    body = [b"data: %b\n\n" % data for data in events]
    async with wired(interface) as (provider, wire):
        wire.script(Wire(body, slow=True))
        agent = Agent(provider)
        assert len((await drained(agent)).text) == SIZE * DELTAS  # the SDK is loaded
        with tracing():
            return await consumed(agent)


async def drained(agent: Agent) -> Any:
    """Take a stream to its end, its response."""
    async with agent.stream("Tell.") as stream:
        *_, response = [event async for event in stream]
    return response


async def consumed(agent: Agent) -> Copies:
    """Take a stream of deltas, keeping none."""
    found = Copies()
    async with agent.stream("Tell.") as stream:
        current, _ = tracemalloc.get_traced_memory()
        async for event in stream:
            if type(event) is not TextDelta:
                continue
            assert len(event.text) == SIZE
            del event
            before = current
            current, peak = tracemalloc.get_traced_memory()
            found.kept.append((current - before) / SIZE)
            found.most.append((peak - before) / SIZE)
            tracemalloc.reset_peak()
    assert len(found.kept) == DELTAS
    return found


@each
async def test_a_delta_on_its_way_from_the_wire_to_the_consumer_is_kept_once(
    interface: Interface,
) -> None:
    """Two copies at a time: the line of the event stream and the text."""
    found = await streamed(interface)
    assert found.within(kept=1.5, most=2.5), found


async def test_a_copy_too_many_behind_the_splitter_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bound of the whole way is no wider than one copy."""
    feed = EventStreamSplitter.feed
    copies: list[bytes] = []

    def copying(splitter: EventStreamSplitter, chunk: bytes) -> list[bytes]:
        events = feed(splitter, chunk)
        copies[:] = [bytes(bytearray(data)) for data in events]
        return events

    monkeypatch.setattr(EventStreamSplitter, "feed", copying)
    assert not (await streamed(INTERFACES[0])).within(kept=1.5, most=2.5)


class Script:
    """A provider of deltas that are there already."""

    name = "script"

    def __init__(self) -> None:
        self.events = [TextDelta(text) for text in texts()]

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        raise NotImplementedError

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        for event in self.events:
            yield event
        yield MessageEvent(AssistantMessage("done"))


async def test_the_agent_copies_no_delta() -> None:
    """It hands on what the provider gives: nothing is made, little is kept."""
    agent = Agent(Script())
    await drained(agent)
    with tracing():
        found = await consumed(agent)
    assert found.within(kept=0.5, most=0.5), found
