"""A tool: its schema, and 100 calls of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import pytest

from lighter_core import Tool, ToolCall, tool

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

CALLS = 100


async def search(
    query: str, limit: int = 10, order: Literal["newest", "best"] = "best"
) -> list[str]:
    """Search the books of the store.

    Args:
        query: Words of the title.
        limit: How many books at most.
        order: Which come first.
    """
    return [query, order][:limit]


def add_up(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def add_up_async(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.benchmark(group="make a tool of a function")
def test_schema(benchmark: BenchmarkFixture) -> None:
    """Signature, docstring, schema, validator."""
    made = benchmark(lambda: tool(search).get_spec())
    properties = made.parameters["properties"]
    assert isinstance(properties, dict) and properties.keys() == {
        "query",
        "limit",
        "order",
    }


@pytest.mark.benchmark(group="100 calls of a tool")
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: tool(add_up_async), id="async"),
        pytest.param(lambda: tool(add_up, thread=False), id="sync, thread=False"),
        pytest.param(lambda: tool(add_up), id="sync, worker thread"),
    ],
)
def test_call(benchmark: BenchmarkFixture, make: Callable[[], Tool]) -> None:
    """Arguments read and checked, the function called, its result written."""
    used = make()
    calls = [
        ToolCall(f"call_{each}", used.name, json.dumps({"a": each, "b": each}))
        for each in range(CALLS)
    ]

    async def answers() -> int:
        total = 0
        for call in calls:
            total += int((await used.answer(call, None)).tool_output)
        return total

    with asyncio.Runner() as loop:
        assert benchmark(lambda: loop.run(answers())) == CALLS * (CALLS - 1)
