"""T1, T2: replies cut at every byte, and in every kind of pieces."""

from __future__ import annotations

import os

import pytest
from support.interfaces import AIOHTTP, Interface
from support.loopback import EVENT_STREAM, Answer, Loopback
from support.replies import STREAMS, Stream
from support.torture import FULL, Results, sample, size
from support.wire import Wire, wired

from .cuts import chunk, cut, structural

each = pytest.mark.parametrize(
    "stream", STREAMS, ids=lambda s: f"{s.interface.name}: {s.name}"
)


STRIDE = int(os.environ.get("LIGHTER_STRIDE", "1"))  # of the offsets, for less time
ENDS = (b"\n", b"\r\n", b"\r")


@each
async def test_T1_a_reply_cut_at_any_byte(stream: Stream, results: Results) -> None:
    """R1: the whole message or an error; no tool runs on part of its arguments."""
    offsets = list(range(0, len(stream.body) + 1, STRIDE))
    if not FULL:
        near = sample(structural(stream.body), 5)
        last = range(len(stream.body) - 5, len(stream.body) + 1)
        offsets = sorted({*near, *last, *sample(offsets, 5)})
    async with wired(stream.interface) as (provider, wire):
        cases = await cut(provider, wire, stream, offsets)
        assert wire.open == 0
    results.add(
        "T1",
        f"replies of {stream.interface.name} cut or reset at a byte",
        cases,
        "0 hangs, 0 half messages, 0 early tools, 0 other codes",
        f"one byte in {STRIDE}" if FULL and STRIDE > 1 else "",
    )


class Served:
    """Plays what a wire would over sockets; what is cut is also framed so."""

    def __init__(self, server: Loopback, whole: bytes) -> None:
        self.server, self.whole = server, whole

    def script(self, first: Wire, last: Wire) -> None:
        """Set the responses."""
        cut = "complete" if first.body == self.whole else "cut"
        self.server.script(
            Answer(
                headers=EVENT_STREAM,
                body=first.body,
                end="reset" if first.error else cut,
            ),
            Answer(headers=EVENT_STREAM, body=last.body),
        )


@pytest.mark.parametrize("interface", AIOHTTP, ids=lambda each: each.id)
async def test_T1_a_reply_cut_over_sockets(
    interface: Interface, results: Results
) -> None:
    """R1: the transport that brings exceptions of its own."""
    stream = next(
        s for s in STREAMS if s.interface.name == interface.name and s.calls == 1
    )
    length = len(stream.body)
    offsets = sorted({0, 1, length - 1, length, *sample(structural(stream.body), 12)})
    async with Loopback() as server:
        provider = interface.provider(
            api_key="sk-test", model_id="test", base_url=server.url, max_retries=0
        )
        cases = await cut(provider, Served(server, stream.body), stream, offsets)
        await provider.aclose()
        await server.until_open(0)
    results.add(
        "T1",
        f"replies of {interface.id} cut or reset at a byte, over sockets",
        cases,
        "0 hangs, 0 half messages, 0 early tools, 0 other codes",
    )


@each
async def test_T2_a_reply_in_any_pieces(stream: Stream, results: Results) -> None:
    """R2: pieces and line ends change nothing."""
    number = STREAMS.index(stream)
    ends = ENDS if FULL else ENDS[number % 3 : number % 3 + 1]
    async with wired(stream.interface) as (provider, wire):
        cases = await chunk(provider, wire, stream, size(3, 500), ends)
    results.add(
        "T2",
        f"replies of {stream.interface.name} in pieces, three line ends",
        cases,
        "0 differences",
    )
