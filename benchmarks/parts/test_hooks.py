"""The chain of hooks: 1,000 passes through `before_model`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from lighter_core import BeforeModelHook, ModelRequest, RunContext, UserMessage
from lighter_core._chain import HookChain

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

PASSES = 1000


@pytest.mark.benchmark(group="1,000 passes through the hooks of an event")
@pytest.mark.parametrize("number", [0, 1, 3])
def test_chain(benchmark: BenchmarkFixture, number: int) -> None:
    """With no hook, as in most runs, and with some that look on."""
    seen = 0

    async def look(request: ModelRequest, run: RunContext[object]) -> None:  # noqa: ARG001
        nonlocal seen
        seen += 1

    chain = HookChain(
        [
            BeforeModelHook(hook_name=f"look_{each}", hook_function=look)
            for each in range(number)
        ]
    )
    request, run = ModelRequest([UserMessage("Hello.")]), RunContext[object]()

    async def passes() -> None:
        for _ in range(PASSES):
            if chain.has("before_model"):
                await chain.run("before_model", request, run)

    with asyncio.Runner() as loop:
        before = seen
        benchmark(lambda: loop.run(passes()))
    assert (seen - before) % PASSES == 0
    assert bool(seen) is bool(number)
