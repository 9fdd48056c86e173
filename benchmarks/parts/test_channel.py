"""The channel between a run and the consumer of its stream: 5,000 deltas."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from lighter_core import TextDelta
from lighter_core._channel import Channel

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

DELTAS = 5000


@pytest.mark.benchmark(group="hand over 5,000 deltas")
@pytest.mark.parametrize("pause", [False, True], ids=["at once", "one at a time"])
def test_hand_over(benchmark: BenchmarkFixture, *, pause: bool) -> None:
    """All that are there at once, or each with a change of tasks, as from a network."""
    events = [TextDelta(str(each)) for each in range(DELTAS)]

    async def produce(channel: Channel) -> None:
        for event in events:
            if channel.emit(event):
                await channel.room()
            if pause:
                await asyncio.sleep(0)
        channel.close()

    async def hand_over() -> int:
        channel, seen = Channel(), 0
        task = asyncio.create_task(produce(channel))
        while True:
            while channel.take() is not None:
                seen += 1
            if channel.closed:
                break
            await channel.wait()
        await task
        return seen

    with asyncio.Runner() as loop:
        assert benchmark(lambda: loop.run(hand_over())) == DELTAS
