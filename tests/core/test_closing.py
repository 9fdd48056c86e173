"""Generators inside generators: who closes them, also when the event loop ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap

import pytest
from support.waiting import until

from lighter_core import Model, ModelRequest, TextDelta, UserMessage
from lighter_core.adapters import Owned
from lighter_core.testing import FakeProvider, Pause

HELD = """
import asyncio
from lighter_core import Model, ModelRequest, TextDelta, UserMessage
from lighter_core.adapters import Owned

closed = []

async def innermost():
    try:
        while True:
            await asyncio.sleep(0)
            yield TextDelta("x")
    finally:
        await asyncio.sleep(0.01)
        closed.append("innermost")

class Provider:
    name = "nested"

    async def invoke(self, request):
        raise NotImplementedError

    async def stream(self, request):
        inner = Owned(innermost())
        try:
            async for event in inner:
                yield event
        finally:
            await inner.aclose()
            closed.append("provider")

held = []

async def main():
    stream = Model(Provider()).stream(ModelRequest([UserMessage("x")]))
    held.append(stream)
    async for _ in stream:
        break

asyncio.run(main())
print(closed)
"""


def test_a_held_stream_is_closed_in_order_when_the_loop_ends() -> None:
    """KF-052: from the inside out, and nothing is said on stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(HELD)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.strip() == "['innermost', 'provider']"


async def counted(steps: list[str]):
    try:
        for number in range(3):
            await asyncio.sleep(0)
            yield number
    finally:
        steps.append("closed")


async def test_an_owned_generator_gives_the_same_values() -> None:
    """The first step, which is special, included."""
    assert [value async for value in Owned(counted([]))] == [0, 1, 2]


async def test_an_owned_generator_without_values_just_ends() -> None:
    """Its first step is its last."""

    async def nothing():
        return
        yield

    assert [value async for value in Owned(nothing())] == []


@pytest.mark.parametrize("waits", [True, False])
async def test_errors_of_the_first_step_arrive(waits: bool) -> None:
    """Before and after it has waited for something."""

    async def failing():
        if waits:
            await asyncio.sleep(0)
        raise KeyError("x")
        yield

    with pytest.raises(KeyError):
        await anext(Owned(failing()))


async def test_cancelling_the_first_step_reaches_the_generator() -> None:
    """It can clean up, and the cancellation goes on."""
    steps: list[str] = []

    async def waiting():
        steps.append("begun")
        try:
            await asyncio.sleep(10)
            yield 1
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned")

    async def consume() -> None:
        await anext(Owned(waiting()))

    task = asyncio.create_task(consume())
    await until(lambda: steps)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["begun", "cleaned"]


async def test_the_first_step_may_have_a_default() -> None:
    """Also when it waits more than once."""

    async def waiting():
        for _ in range(3):
            await asyncio.sleep(0)
        yield 7

    owned = Owned(waiting())
    assert await anext(owned, None) == 7
    assert await anext(owned, None) is None


async def test_a_timeout_inside_the_first_step_works() -> None:
    """The step runs in the consumer's own task."""

    async def slow():
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        except TimeoutError:
            yield "late"

    assert await anext(Owned(slow())) == "late"


async def test_closing_an_owned_generator_runs_its_clean_up() -> None:
    """Started or not, once or twice."""
    steps: list[str] = []
    owned = Owned(counted(steps))
    await anext(owned)
    await owned.aclose()
    await owned.aclose()
    assert steps == ["closed"]
    await Owned(counted(steps)).aclose()


async def test_the_hooks_of_the_loop_are_back_after_the_first_step() -> None:
    """Other generators are known to the loop as ever."""
    before = sys.get_asyncgen_hooks()
    await anext(Owned(counted([])))
    assert sys.get_asyncgen_hooks() == before


async def test_leaving_a_model_stream_early_closes_the_provider_at_once() -> None:
    """`aclose()` returns when the provider's clean-up is over."""
    provider = FakeProvider([[TextDelta("a"), Pause(10)]])
    stream = Model(provider).stream(ModelRequest([UserMessage("x")]))
    assert await anext(stream) == TextDelta("a")
    await stream.aclose()
    assert provider.closed_streams == 1
