"""The decoders of each interface: whole replies, and 2,000 text deltas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.parts.interfaces import INTERFACES, body, codec, events
from lighter_core import TextDelta

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

DELTAS = 2000


@pytest.mark.benchmark(group="decode a reply that comes whole")
@pytest.mark.parametrize("kind", ["text", "tools"])
@pytest.mark.parametrize("interface", INTERFACES)
def test_decode_whole(benchmark: BenchmarkFixture, interface: str, kind: str) -> None:
    """A short text, or a tool call."""
    read, given = codec(interface).decode_body, body(interface, kind, 1)
    message = benchmark(lambda: read(given))
    assert bool(message.tool_calls) is (kind == "tools")
    assert message.native_intact


@pytest.mark.benchmark(group="decode 2,000 streamed deltas")
@pytest.mark.parametrize("interface", INTERFACES)
def test_decode_stream(benchmark: BenchmarkFixture, interface: str) -> None:
    """From the data of each event to Lighter's events and the whole message."""
    made, given = codec(interface), events(interface, DELTAS)

    def decode() -> int:
        decoder = made.decoder()
        return sum(
            type(event) is TextDelta for data in given for event in decoder.feed(data)
        )

    assert benchmark(decode) == DELTAS
