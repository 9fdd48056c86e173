"""Storing a run's messages as they are completed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Protocol

from .messages import Message

__all__ = ["Journal", "Keeper"]

logger: logging.Logger = logging.getLogger("lighter.run")

_WAIT = 10.0  # seconds that a cancelled run waits for the end of a write


class Keeper(Protocol):
    """Where a journal's messages go."""

    async def load(self) -> list[Message]:
        """Return what was said before the run."""
        ...

    async def begin(self, given: Sequence[Message]) -> None:
        """Store what the run was given."""
        ...

    async def add(self, messages: Sequence[Message]) -> None:
        """Store further messages, all or none."""
        ...


class Journal:
    """Hands a run's messages to a keeper: each one once, in order.

    A cancellation does not tear a write apart: the run waits for its end, since what was
    stored must be known before more is stored.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._stored = 0
        self._stopped = True  # nothing can be added before the input is stored
        self._turn = asyncio.Lock()  # tools that run side by side finish side by side

    async def load(self) -> list[Message]:
        """Return what was said before the run."""
        return await self._keeper.load()

    async def begin(self, given: Sequence[Message]) -> None:
        """Store what the run was given."""
        await self._write(self._keeper.begin(given), 0)

    def go_on(self, stored: int) -> None:
        """Go on behind the new messages that are stored already."""
        self._stored = stored
        self._stopped = False

    async def save(self, messages: Sequence[Message]) -> None:
        """Store those of the run's new messages that are not stored yet.

        Nothing is stored after a write that failed: it has failed the run.
        """
        async with self._turn:
            fresh = messages[self._stored :]
            if fresh and not self._stopped:
                await self._write(self._keeper.add(fresh), len(fresh))

    async def end(self, messages: Sequence[Message]) -> None:
        """Store the rest at the end of a run; a failure is logged, not raised.

        What is missing after one are the results that close open calls: whoever loads
        the messages next closes them again.
        """
        try:
            await self.save(messages)
        except Exception as error:  # noqa: BLE001 - the run's own outcome is told
            logger.warning("the last messages of a run were not stored: %s", error)

    async def _write(self, write: Awaitable[None], count: int) -> None:
        """Wait for a write and note whether it was done; after a failure no more follow."""
        self._stopped = True
        task = asyncio.ensure_future(write)

        def note(done: asyncio.Future[None]) -> None:
            if not done.cancelled() and done.exception() is None:
                self._stored += count
                self._stopped = False

        task.add_done_callback(note)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task], timeout=_WAIT)
            raise
