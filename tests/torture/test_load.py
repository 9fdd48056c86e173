"""T12 and T13: many runs at once, and many runs in a row."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.torture import FULL, Results, size

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    RunContext,
    TextDelta,
    ToolCall,
    hookimpl,
    tool,
)

_WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who")
_TURNS = 3


class Marked:
    """Answers each run with the run's own marker, in three turns.

    Args:
        gate: What the first turn of each run waits for.
    """

    name = "marked"
    capabilities: frozenset[str] = frozenset()

    def __init__(self, gate: asyncio.Event | None = None) -> None:
        self.gate, self.live = gate, 0

    def _reply(self, request: ModelRequest) -> AssistantMessage:
        mark = next(m.content for m in request.messages if m.role == "user")
        turn = sum(m.role == "assistant" for m in request.messages) + 1
        if turn == _TURNS:
            return AssistantMessage(f"{mark} end")
        call = ToolCall(f"{mark}-{turn}", "echo", f'{{"text": "{mark}"}}')
        return AssistantMessage(f"{mark} {turn}", tool_calls=[call])

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        self.live += 1
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0)
        return self._reply(request)

    async def stream(self, request: ModelRequest) -> Any:
        reply = await self.invoke(request)
        yield TextDelta(reply.content)
        yield MessageEvent(reply)


@tool
async def echo(text: str, run: RunContext[Any]) -> str:
    """Give the text back."""
    await asyncio.sleep(0)
    assert text == _WHO.get()
    assert str(run.call_id).startswith(f"{text}-")
    return text


class Checks:
    """A hook that knows whose run it is in."""

    @hookimpl
    async def before_model(self, request: ModelRequest) -> None:
        marks = {m.content for m in request.messages if m.role == "user"}
        assert marks == {_WHO.get()}


async def one(agent: Agent, number: int) -> None:
    """One run, by run or by stream; everything in it has its own marker."""
    mark = f"m{number}"
    _WHO.set(mark)
    if number % 2:
        response = await agent.run(mark)
    else:
        async with agent.stream(mark) as stream:
            events = [event async for event in stream]
        assert isinstance(events[-1], AgentResponse)
        response = events[-1]
    assert response.status == "completed", response.error
    texts = [m.content for m in response.messages if m.role == "assistant"]
    assert texts == [f"{mark} 1", f"{mark} 2", f"{mark} end"], "cross-talk"
    outputs = [m.tool_output for m in response.messages if m.role == "tool"]
    assert outputs == [f'"{mark}"'] * 2, "cross-talk"


def rss() -> int:
    """Bytes of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def many(agent: Agent, provider: Marked, count: int) -> dict[str, float]:
    """Start all, hold them in their first call, let them go."""
    gaps = [0.0]

    async def heartbeat() -> None:
        # Of the loop: how long until it came round again, in time of the processor.
        while True:
            began = time.process_time()
            await asyncio.sleep(0.001)
            gaps.append(time.process_time() - began)

    before = rss()
    began = time.process_time()
    tasks = [asyncio.create_task(one(agent, number)) for number in range(count)]
    while provider.live < count:  # noqa: ASYNC110 - a count, no event
        await asyncio.sleep(0.01)
    held = rss()
    beat = asyncio.create_task(heartbeat())
    assert provider.gate is not None
    provider.gate.set()
    await asyncio.gather(*tasks)
    beat.cancel()
    return {
        "seconds": time.process_time() - began,
        "kilobytes": (held - before) / count / 1024,
        "gap": max(gaps),
    }


async def test_T12_many_runs_at_once(results: Results) -> None:
    """R8: no cross-talk; time and memory grow with their number only."""
    count = size(500, 10_000)
    provider = Marked(asyncio.Event())
    agent = Agent(provider, tools=[echo], hooks=[Checks()])
    found = await many(agent, provider, count)
    results.add(
        "T12",
        f"{count:,} runs of {_TURNS} turns at once, one agent",
        count,
        f"0 cross-talk; {found['seconds']:.1f} s of one core,"
        f" {found['kilobytes']:.1f} KB for each live run,"
        f" longest gap of the loop {found['gap'] * 1000:.0f} ms of one core",
    )
    if FULL:  # a few hundred runs are less than what the allocator takes at once
        assert found["seconds"] < 30
        assert found["kilobytes"] < 30


async def test_T12_finds_cross_talk() -> None:
    """A provider that keeps the marker on itself."""

    class Shared(Marked):
        def _reply(self, request: ModelRequest) -> AssistantMessage:
            reply = super()._reply(request)
            last, self.last = getattr(self, "last", reply), reply
            return last

    provider = Shared(asyncio.Event())
    with pytest.raises(AssertionError):
        await many(Agent(provider, tools=[echo], hooks=[Checks()]), provider, 20)


class Sometimes(Marked):
    """Fails every fifth run, in its second turn."""

    def _reply(self, request: ModelRequest) -> AssistantMessage:
        reply = super()._reply(request)
        mark = next(m.content for m in request.messages if m.role == "user")
        if int(mark[1:]) % 5 == 0 and reply.content.endswith(" 2"):
            raise ModelError("down", "server_error")
        return reply


async def soak(agent: Agent, count: int, start: int = 0) -> None:
    """Runs in a row: by run, by stream, left early, cancelled, failing."""
    for number in range(start, start + count):
        mark = f"m{number}"
        _WHO.set(mark)
        if number % 4 == 0:
            await agent.run(mark)
        elif number % 4 == 1:
            async for _ in agent.stream(mark):
                pass
        elif number % 4 == 2:
            async with agent.stream(mark) as stream:
                async for _ in stream:
                    break
        else:
            handle = agent.start(mark)
            await asyncio.sleep(0)
            if number % 8 == 3:
                handle.cancel()
            await asyncio.wait([asyncio.ensure_future(_end(handle))])


async def _end(handle: Any) -> None:
    with suppress(asyncio.CancelledError):
        await handle


def counts() -> dict[str, int]:
    """What must not grow."""
    import logging

    return {
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "handlers": sum(
            len(each.handlers)
            for each in logging.Logger.manager.loggerDict.values()
            if isinstance(each, logging.Logger)
        ),
    }


async def growth(
    agent: Agent, warm: int, count: int
) -> tuple[int, dict[str, int], int]:
    """Return by how much memory, the other counts and live objects have grown."""
    await soak(agent, warm)
    gc.collect()
    before, memory, objects = counts(), rss(), len(gc.get_objects())
    await soak(agent, count, warm)
    gc.collect()
    after = counts()
    grown = {name: after[name] - before[name] for name in before}
    return rss() - memory, grown, len(gc.get_objects()) - objects


async def test_T13_soak(results: Results) -> None:
    """R9: nothing grows."""
    count = size(600, 20_000)
    agent = Agent(Sometimes(), tools=[echo], hooks=[Checks()])
    memory, grown, objects = await growth(agent, size(200, 2_000), count)
    results.add(
        "T13",
        f"{count:,} runs in a row, some failing, left or cancelled",
        count,
        f"memory {memory / 2**20:+.1f} MB, live objects {objects:+d},"
        f" tasks, threads, files, handlers +{max(grown.values())}",
    )
    assert max(grown.values()) <= 0, grown
    assert objects < 200
    assert memory < 5 * 2**20


async def test_T13_finds_growth() -> None:
    """A hook that keeps every request."""
    kept: list[Any] = []

    class Keeps:
        @hookimpl
        def before_model(self, request: ModelRequest) -> None:
            kept.append(request)

    agent = Agent(Sometimes(), tools=[echo], hooks=[Keeps()])
    _, _, objects = await growth(agent, 20, 200)
    assert objects >= 200
