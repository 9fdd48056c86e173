"""Waiting for what has happened: a fixed time is too short on a busy machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

__all__ = ["timeout_once", "until"]

_PAUSE_SECONDS = 0.002


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until the condition holds; fail after the seconds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - any condition, no event
            await asyncio.sleep(_PAUSE_SECONDS)


@asynccontextmanager
async def timeout_once(condition: Callable[[], object]) -> AsyncIterator[None]:
    """Let an `asyncio.timeout` be over as soon as the condition holds."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:

        async def watch() -> None:
            await until(condition)
            limit.reschedule(loop.time())

        task = loop.create_task(watch())
        try:
            yield
        finally:
            task.cancel()
