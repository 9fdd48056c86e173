"""The splitter of event streams: 2,000 text deltas of the Responses interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.compare.replies import streamed
from lighter_core.adapters import EventStreamSplitter

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

DELTAS = 2000


@pytest.mark.benchmark(group="splitter, 2,000 deltas")
@pytest.mark.parametrize("size", [100, 1400, 65536])
def test_split(benchmark: BenchmarkFixture, size: int) -> None:
    """In pieces of so many bytes."""
    parts = streamed("responses", "stream", DELTAS, 0)[1:-1]
    stream = b"".join(part.split(b"\r\n", 1)[1].removesuffix(b"\r\n") for part in parts)
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]

    def split() -> int:
        splitter = EventStreamSplitter()
        return sum(len(splitter.feed(piece)) for piece in pieces)

    assert benchmark(split) == len(parts)
