"""Event streams as they arrive: cut anywhere, late, broken, with strange events."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Sequence
from contextlib import aclosing

from lighter_core import MessageEvent, ProviderStreamEvent, ReasoningDelta, TextDelta
from lighter_core.testing import Turn

from .._bench import (
    USAGE,
    Bench,
    ask,
    events_of,
    failing,
    failures,
    need_code,
    streamed,
    streaming,
)
from .._registry import check, expect
from ..server import EVENT_STREAM, Answer
from ..wires import UNFINISHED

__all__: list[str] = []

_TURN = Turn(text="naïve 日本語 🧑‍🚀 text", usage=USAGE, pieces=4)


async def _play(bench: Bench, pieces: Sequence[bytes]) -> list[ProviderStreamEvent]:
    return await events_of(bench.same_provider(streaming(pieces)), ask("Hi."))


def _summary(events: Sequence[ProviderStreamEvent]) -> tuple[str, str, list[object]]:
    """Return what must not depend on how the bytes were cut."""
    text = "".join(e.text for e in events if isinstance(e, TextDelta))
    thought = "".join(e.text for e in events if isinstance(e, ReasoningDelta))
    return text, thought, [e for e in events if isinstance(e, MessageEvent)]


async def _same(
    bench: Bench, what: str, pieces: Sequence[bytes], turn: Turn = _TURN
) -> None:
    wanted = _summary(await _play(bench, bench.wire.stream(turn)))
    found = _summary(await _play(bench, pieces))
    expect(found == wanted, f"{what}\n{found}\ninstead of\n{wanted}")


@check("streams", "http")
async def pieces_of_one_byte(bench: Bench) -> None:
    """A stream that arrives byte by byte gives the same events: characters and line ends
    may be cut anywhere.
    """
    turn = Turn(text="naïve 日本", usage=USAGE, pieces=2)
    body = b"".join(bench.wire.stream(turn))
    pieces = [body[at : at + 1] for at in range(len(body))]
    await _same(bench, "byte by byte", pieces, turn)


@check("streams", "http")
async def pieces_of_any_size(bench: Bench) -> None:
    """A stream that arrives in pieces of any size gives the same events, also in one."""
    body = b"".join(bench.wire.stream(_TURN))
    await _same(bench, "in one piece", [body])
    for seed in range(3):
        places = sorted(random.Random(seed).sample(range(1, len(body)), 12))  # noqa: S311
        cuts = zip([0, *places], [*places, len(body)], strict=True)
        await _same(bench, f"cut at {places}", [body[a:b] for a, b in cuts])


@check("streams", "http")
async def line_ends_of_either_kind(bench: Bench) -> None:
    """Lines of an event stream may end with CR LF."""
    events = bench.wire.stream(_TURN)
    await _same(bench, "CR LF", [each.replace(b"\n", b"\r\n") for each in events])


@check("streams", "http")
async def comments_are_ignored(bench: Bench) -> None:
    """Comments and blank lines, which services send to keep a connection open, mean
    nothing.
    """
    pieces = [b"\n\n"]
    for each in bench.wire.stream(_TURN):
        pieces += [b": keep-alive\n\n", each]
    await _same(bench, "with comments", pieces)


@check("streams", "http")
async def unknown_events_are_ignored(bench: Bench) -> None:
    """Events of a kind that is not known yet are ignored: services add them without
    notice.
    """
    first, *rest = bench.wire.stream(_TURN)
    stranger = bench.wire.stranger()
    await _same(
        bench, "with unknown events", [first, stranger, rest[0], stranger, *rest[1:]]
    )


@check("streams", "http")
async def stream_that_ends_early(bench: Bench) -> None:
    """A stream that ends before the service says that the reply is complete raises
    `bad_response` or `network_error`, wherever that is: a part is never passed off as the
    reply.
    """
    events = bench.wire.stream(_TURN)
    for count in range(len(events) - bench.wire.ending):
        await _breaks(bench, f"{count} of {len(events)} events", events[:count])


@check("streams", "http")
async def stream_cut_inside_an_event(bench: Bench) -> None:
    """A stream that ends inside an event raises, too."""
    events = bench.wire.stream(_TURN)
    count = max(1, len(events) // 2)
    half = events[count][: len(events[count]) // 2]
    await _breaks(bench, "half an event", [*events[:count], half])


async def _breaks(bench: Bench, what: str, pieces: Sequence[bytes]) -> None:
    provider = bench.same_provider(streaming(pieces))
    error = await failing(what, streamed(provider, ask("Hi.")))
    need_code(what, error, "bad_response", "network_error")


@check("streams", "http")
async def connection_that_breaks(bench: Bench) -> None:
    """A connection that breaks in the middle of a reply is a `network_error`, for whole
    replies as for streams.
    """
    for end in ("cut", "reset"):
        events = bench.wire.stream(_TURN)[:3]
        broken = Answer(pieces=events, headers=EVENT_STREAM, end=end)
        error = await failing(end, streamed(bench.provider(broken), ask("Hi.")))
        need_code(f"stream, {end}", error, "network_error")
        whole = Answer(pieces=[bench.wire.whole(_TURN)[:20]], end=end)
        error = await failing(end, bench.provider(whole).invoke(ask("Hi.")))
        need_code(f"invoke, {end}", error, "network_error")


@check("streams", "http")
async def error_inside_a_stream(bench: Bench) -> None:
    """An error that the service reports inside a stream raises `ModelError` with its
    words; no message is yielded.
    """
    events = bench.wire.stream(_TURN)[:3]
    pieces = [*events, bench.wire.failing("words-of-the-service")]
    provider = bench.provider(streaming(pieces))
    error = await failing("stream", streamed(provider, ask("Hi.")))
    expect("words-of-the-service" in error.message, f"{error.message!r}")


@check("streams", "http")
async def unfinished_generation(bench: Bench) -> None:
    """A reply that ran out of tokens raises `bad_response` whose `response_status` is the
    service's word; it is never returned as a reply.
    """
    turn = Turn(text="Half a sen", usage=USAGE, stop_reason=UNFINISHED)
    for way, error in await failures(bench.provider(turn), ask("Hi.")):
        need_code(way, error, "bad_response")
        expect(error.response_status, f"{way}: no response_status: {error!r}")


@check("streams", "http")
async def deltas_come_at_once(bench: Bench) -> None:
    """Deltas are yielded as they arrive, and are not held back until the end."""
    gate = threading.Event()
    events = bench.wire.stream(_TURN)
    pieces = [b"".join(events[:-3]), b"".join(events[-3:])]
    answer = Answer(pieces=pieces, headers=EVENT_STREAM, gate=gate)
    provider = bench.provider(answer)
    try:
        async with (
            asyncio.timeout(bench.patience),
            aclosing(provider.stream(ask("Hi."))) as stream,
        ):
            first = await anext(stream)
            expect(isinstance(first, TextDelta), f"the first event is {first!r}")
            gate.set()
            async for _ in stream:
                pass
    except TimeoutError:
        late = (
            f"no delta within {bench.patience} s, although most of the reply was sent"
        )
        expect(gate.is_set(), late)
    finally:
        gate.set()
