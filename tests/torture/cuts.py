"""T1 and T2: replies that end anywhere, and replies that come in any pieces."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx2
from support.loopback import bytewise, cut_randomly
from support.replies import FINAL, Stream
from support.wire import Wire, WireTransport

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    ModelError,
    ReasoningDelta,
    RunContext,
    TextDelta,
    tool,
)

ALLOWED = {"network_error", "bad_response"}


@dataclass(frozen=True)
class Outcome:
    """What became of a run over one stream."""

    status: str
    code: str | None
    messages: tuple[Any, ...]
    ran: tuple[tuple[str, int], ...]
    text: str
    reasoning: str


@tool
async def note(text: str, n: int, run: RunContext[list[tuple[str, int]]]) -> str:
    """Write a note."""
    run.deps.append((text, n))
    return "noted"


async def run_over(
    provider: Any,
    wire: WireTransport,
    stream: Stream,
    first: Wire,
    seconds: float = 10,
) -> Outcome:
    """Let an agent read one reply, then the one that ends the conversation."""
    ran: list[tuple[str, int]] = []
    wire.script(first, Wire(FINAL[stream.interface.name]))
    agent = Agent(provider, tools=[note])
    text, reasoning, response = "", "", None
    async with asyncio.timeout(seconds):
        async for event in agent.stream("go", deps=ran):
            if isinstance(event, TextDelta):
                text += event.text
            elif isinstance(event, ReasoningDelta):
                reasoning += event.text
            elif isinstance(event, AgentResponse):
                response = event
    assert response is not None, "the stream ended without a response"
    error = response.error
    assert error is None or isinstance(error, ModelError), repr(error)
    return Outcome(
        response.status,
        None if error is None else error.code,
        tuple(response.messages),
        tuple(ran),
        text,
        reasoning,
    )


def check_cut(found: Outcome, whole: Outcome) -> None:
    """R1: the whole reply, or an error of an allowed code and nothing else."""
    if found.status == "completed":
        assert _without_usage(found) == _without_usage(whole), (
            "a completed run differs from the whole reply"
        )
        return
    assert found.code in ALLOWED, f"code {found.code}"
    assert found.ran == (), f"a tool ran on a broken reply: {found.ran}"
    assert found.messages == (), "part of a reply became a message"
    assert whole.text.startswith(found.text), "deltas that the reply does not have"


def _without_usage(outcome: Outcome) -> Outcome:
    """Chat services send the usage behind the end; a reply without it is whole."""
    messages = tuple(
        replace(m, usage=None) if isinstance(m, AssistantMessage) else m
        for m in outcome.messages
    )
    return replace(outcome, messages=messages)


def structural(body: bytes) -> list[int]:
    """Offsets within 3 bytes of where events begin and end."""
    places = {m.start() for m in re.finditer(rb"\r?\n\r?\n|data:|event:", body)}
    near = {p + d for p in places for d in range(-3, 4)}
    return sorted(p for p in near if 0 <= p <= len(body))


async def cut(
    provider: Any,
    wire: WireTransport,
    stream: Stream,
    offsets: list[int],
    seconds: float = 10,
) -> int:
    """End the reply behind each offset, quietly and with a reset; count the cases."""
    whole = await run_over(provider, wire, stream, Wire(stream.body))
    check_whole(whole, stream)
    for offset in offsets:
        for error in (None, httpx2.ReadError("reset")):
            first = Wire(stream.body[:offset], error=error)
            try:
                found = await run_over(provider, wire, stream, first, seconds)
                check_cut(found, whole)
            except (AssertionError, TimeoutError) as wrong:
                kind = "reset" if error else "cut"
                raise AssertionError(
                    f"{stream.interface.name}, {stream.name}: {kind} at byte {offset}"
                    f" of {len(stream.body)}: {wrong!r}"
                ) from wrong
    return 2 * len(offsets)


def check_whole(whole: Outcome, stream: Stream) -> None:
    """The reference itself is right."""
    assert whole.status == "completed", whole
    assert whole.ran == (("a ✓ 🦊 \n b", 12),) * stream.calls
    replies = [m for m in whole.messages if isinstance(m, AssistantMessage)]
    assert len(replies) == (2 if stream.calls else 1)


def splits(body: bytes, seed: int, most: int) -> Iterator[list[bytes]]:
    """One byte at a time; every cut in two where it may matter; and random ones."""
    yield bytewise(body)
    zones = [m.start() for m in re.finditer(rb"[\x80-\xff\r\n\\]", body)]
    places = sorted({p + d for p in zones for d in (0, 1)} - {0, len(body)})
    chance = random.Random(seed)
    if len(places) > most:
        places = sorted(chance.sample(places, most))
    for place in places:
        yield [body[:place], body[place:]]
    for number in range(most):
        yield cut_randomly(body, seed + number)


async def chunk(
    provider: Any,
    wire: WireTransport,
    stream: Stream,
    most: int,
    ends: Sequence[bytes],
) -> int:
    """Deliver the reply in pieces of all kinds, with each line end; count the cases."""
    whole = await run_over(provider, wire, stream, Wire(stream.body))
    check_whole(whole, stream)
    count = 0
    plain = stream.body.replace(b"\r\n", b"\n")
    for end in ends:
        body = plain.replace(b"\n", end)
        for pieces in splits(body, 7, most):
            count += 1
            found = await run_over(provider, wire, stream, Wire(pieces))
            assert found == whole, (
                f"{stream.interface.name}, {stream.name}: another result in pieces"
                f" {[len(p) for p in pieces][:20]}, line end {end!r}: {found}"
            )
    return count
