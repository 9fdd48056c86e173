"""Waiting for what has happened: a fixed time is too short on a busy machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

__all__ = ["timeout_once", "until"]

_PAUSE_SECONDS = 0.002


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until the condition holds; fail after the seconds."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - any condition, no event
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:  # which a test may well expect
        raise AssertionError(f"it did not happen within {seconds:g} s") from None


@asynccontextmanager
async def timeout_once(condition: Callable[[], object]) -> AsyncIterator[None]:
    """Let an `asyncio.timeout` be over as soon as the condition holds."""
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(None)

    async def watch() -> None:
        try:
            await until(condition)
        except AssertionError:
            limit.reschedule(loop.time())
            raise
        limit.reschedule(loop.time())

    task: asyncio.Task[None] | None = None
    try:
        async with limit:
            task = loop.create_task(watch())
            yield
    finally:
        if task is not None:
            task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
            if isinstance(ended, AssertionError):
                raise ended  # a failure goes before the timeout
