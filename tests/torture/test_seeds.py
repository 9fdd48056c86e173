"""The test of the tests: each harness finds the fault that is put in for it."""

# ruff: noqa: PT012

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.leak_guard import Leak, LeakGuard
from support.replies import STREAMS
from support.wire import wired

import lighter_core.adapters._exchange as exchange
from lighter_core import Agent, FunctionTool, ToolCall
from lighter_core._state import RunState
from lighter_core.testing import FakeProvider, Turn

from . import seeds
from .cuts import chunk, cut
from .exits import exit_once
from .loops import Plan, Script, check_script, fail_at, play
from .scenarios import Watch, interrupt, script, tools_of

WITH_CALL = next(s for s in STREAMS if s.interface.name == "claude" and s.calls == 1)
TEXT = next(s for s in STREAMS if s.interface.name == "openai" and s.calls == 0)


@pytest.mark.parametrize(
    ("seed", "complaint"),
    [
        (seeds.KeepsHalf, "a completed run differs"),
        (seeds.RunsHalfACall, "differs|a tool ran"),
        (seeds.ForeignError, "ConnectionError"),
        (seeds.Hangs, "TimeoutError"),
    ],
)
async def test_T1_finds_it(seed: Any, complaint: str) -> None:
    """A reply that breaks and is believed, renamed or waited for."""
    # Some place behind the first piece of the call's arguments.
    place = WITH_CALL.body.index(b"input_json_delta") + 400
    async with wired(WITH_CALL.interface) as (provider, wire):
        assert await cut(provider, wire, WITH_CALL, [place]) == 2
        with pytest.raises(AssertionError, match=complaint):
            await cut(seed(provider), wire, WITH_CALL, [place], seconds=0.5)


@pytest.mark.parametrize(
    "seed",
    [
        seeds.LosesTheLastByte,
        seeds.DecodesPieces,
        seeds.SplitsAtSeparators,
        seeds.ForgetsCR,
    ],
)
async def test_T2_finds_it(seed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A splitter that is wrong at cuts, characters, separators or line ends."""
    async with wired(TEXT.interface) as (provider, wire):
        monkeypatch.setattr(exchange, "EventStreamSplitter", seed)
        with pytest.raises((AssertionError, StopAsyncIteration)):
            await chunk(provider, wire, TEXT, 2, (b"\n", b"\r"))


def seeded(seed: Any) -> Any:
    """The plain scenario with a provider that has a fault."""

    @asynccontextmanager
    async def scenario(watch: Watch) -> Any:
        yield Agent(seed(FakeProvider(script())), tools=tools_of(watch))

    return scenario


async def test_T3_finds_a_swallowed_cancellation() -> None:
    """Somewhere among the suspensions of a run."""
    make = seeded(seeds.SwallowsCancellation)
    with pytest.raises(AssertionError, match="swallowed"):
        for at in range(4):
            await interrupt("run", at, "cancel", make)


async def test_T3_finds_a_task_that_is_left() -> None:
    """With and without an interruption."""
    make = seeded(seeds.LeavesATask)
    try:
        for at in (None, 1):
            with pytest.raises(Leak, match="task"):
                await interrupt("run", at, "cancel", make)
    finally:
        for task in seeds.LeavesATask.kept:
            task.cancel()
        await asyncio.gather(*seeds.LeavesATask.kept, return_exceptions=True)
        seeds.LeavesATask.kept.clear()


async def test_T3_finds_a_tool_that_runs_on() -> None:
    """A tool whose work goes on in a task when the tool is cancelled."""
    kept: list[asyncio.Task[Any]] = []

    @asynccontextmanager
    async def scenario(watch: Watch) -> Any:
        from lighter_core import tool

        @tool
        async def detached() -> str:
            """Work elsewhere."""

            async def work() -> None:
                watch.inside += 1
                await asyncio.sleep(0.05)
                watch.inside -= 1

            kept.append(asyncio.create_task(work()))
            await asyncio.sleep(0.01)
            return "x"

        turns = [Turn(tool_calls=[ToolCall("1", "detached", "")]), "end"]
        yield Agent(FakeProvider(turns), tools=[detached])

    with pytest.raises(AssertionError, match="runs on"):
        for at in range(4):
            await interrupt("run", at, "cancel", scenario)
    await asyncio.gather(*kept)


async def test_T4_finds_a_stream_that_stays_open() -> None:
    """A provider whose clean-up leaves a task."""

    def make() -> Any:
        provider = seeds.LeavesATask(FakeProvider(script()))

        async def check() -> None: ...

        return Agent(provider, tools=tools_of(Watch())), check

    with pytest.raises(Leak):
        await exit_once(make, "break", "same task", 1)
    for task in seeds.LeavesATask.kept:
        task.cancel()
    await asyncio.gather(*seeds.LeavesATask.kept, return_exceptions=True)
    seeds.LeavesATask.kept.clear()


@pytest.mark.parametrize("what", ["task", "warning", "report", "file", "thread"])
async def test_the_guard_finds_leaks_of_every_kind(what: str, tmp_path: Any) -> None:
    """B4: it is no guard otherwise."""
    import threading
    import warnings

    kept: list[Any] = []
    stop = threading.Event()
    with pytest.raises(Leak):
        async with LeakGuard():
            if what == "task":
                kept.append(asyncio.create_task(asyncio.sleep(30)))
            elif what == "warning":
                warnings.warn("odd", ResourceWarning, stacklevel=1)
            elif what == "report":
                loop = asyncio.get_running_loop()
                loop.call_exception_handler({"message": "odd"})
            elif what == "file":
                kept.append((tmp_path / "x").open("w"))
            else:
                kept.append(threading.Thread(target=stop.wait))
                kept[0].start()
    stop.set()
    for each in kept:
        if isinstance(each, asyncio.Task):
            each.cancel()
        elif isinstance(each, threading.Thread):
            each.join()
        else:
            each.close()


PLAIN = Script(
    (
        Plan(
            (("1", "act", '{"how": "text"}'), ("2", "act", '{"how": "value"}')),
            "t",
            "no",
        ),
    ),
    "before_agent",
    "",
    1,
)


async def both(around: Any = lambda each: each) -> None:
    ran = [await play(PLAIN, way, around) for way in ("run", "stream")]
    check_script(PLAIN, *ran)


async def test_T5_finds_a_reply_that_differs() -> None:
    """Run and stream say other things."""
    await both()
    with pytest.raises(AssertionError, match="other"):
        await both(seeds.OtherWhole)


async def test_T5_finds_a_call_that_runs_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop executes each call again."""
    whole = FunctionTool.answer

    async def twice(self: Any, *args: Any, **options: Any) -> Any:
        await whole(self, *args, **options)
        return await whole(self, *args, **options)

    monkeypatch.setattr(FunctionTool, "answer", twice)
    with pytest.raises(AssertionError, match="executed twice"):
        await both()


async def test_T5_finds_a_lost_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result is dropped when its call failed."""
    add = RunState.add_result

    def lose(self: Any, message: Any, *args: Any) -> None:
        add(self, message, *args)
        if message.is_error:
            self._new.remove(message)

    monkeypatch.setattr(RunState, "add_result", lose)
    with pytest.raises(AssertionError):
        await both()


def test_T7_finds_a_failure_that_is_swallowed() -> None:
    """The provider's own errors become an empty reply."""
    places = fail_at(-1, None, "run").places
    at = places.index("provider")
    with pytest.raises(AssertionError):
        fail_at(at, ValueError("no"), "run", seeds.SwallowsErrors)
    with pytest.raises(AssertionError):
        fail_at(at, asyncio.CancelledError(), "run", seeds.SwallowsCancellation)
