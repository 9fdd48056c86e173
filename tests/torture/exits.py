"""T4: a stream that its consumer leaves, in every style, behind every event."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
from support.leak_guard import LeakGuard

from lighter_core import (
    Agent,
    AgentStream,
    UserMessage,
    check_history,
)

WAYS = ("break", "aclose", "drop", "cancel", "timeout")
STYLES = (
    "same task",
    "task per step",
    "other task closes",
    "task group",
    "anyio scope",
)


async def read(stream: AgentStream[Any], most: int) -> int:
    """Read so many events, in this task."""
    for number in range(most):
        if await anext(stream, None) is None:
            return number
    return most


async def read_by_tasks(stream: AgentStream[Any], most: int) -> int:
    """Read so many events, each in a task of its own."""
    for number in range(most):
        if await asyncio.create_task(_one(stream)) is None:
            return number
    return most


async def _one(stream: AgentStream[Any]) -> Any:
    return await anext(stream, None)


async def _for_ever(stream: AgentStream[Any]) -> None:
    # An event that never comes, or comes at once: then wait for the interruption.
    await anext(stream, None)
    await asyncio.Event().wait()


async def leave(stream: AgentStream[Any], way: str, style: str, k: int) -> None:
    """Read k events in a style, then leave in a way."""
    reader = read_by_tasks if style == "task per step" else read
    if style == "task group":
        async with asyncio.TaskGroup() as group:
            group.create_task(reader(stream, k))
    elif style == "anyio scope":
        with anyio.fail_after(30):
            await reader(stream, k)
    else:
        await reader(stream, k)
    if way == "break":
        if style == "other task closes":
            await asyncio.create_task(stream.aclose())
        else:
            async with stream:
                pass
    elif way == "aclose":
        if style == "other task closes":
            waiting = asyncio.create_task(_one(stream))
            await asyncio.sleep(0)
            await stream.aclose()
            await waiting
        else:
            await stream.aclose()
            await stream.aclose()
    elif way == "cancel":
        task = asyncio.create_task(_for_ever(stream))
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await stream.aclose()
    elif way == "timeout":
        if style == "anyio scope":
            with anyio.move_on_after(0.001):
                await _for_ever(stream)
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.001):
                    await _for_ever(stream)
        await stream.aclose()


async def exit_once(
    make: Callable[[], tuple[Agent, Callable[[], Awaitable[None]]]],
    way: str,
    style: str,
    k: int,
) -> None:
    """One combination; fails when anything is left, or is no history."""
    async with LeakGuard(fds=False):
        agent, check = make()
        stream = agent.stream("go")
        await leave(stream, way, style, k)
        if way == "drop":
            state = stream._state
            del stream
            gc.collect(0)
            await asyncio.sleep(0)
            messages = state.messages()
        else:
            messages = stream.messages
            assert await anext(stream, None) is None, "an event after the end"
        problems = check_history([UserMessage("go"), *messages])
        assert problems == [], f"not a history: {problems}"
        await check()
