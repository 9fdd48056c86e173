"""Which of an event loop's clients takes the next request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress

from ._connection import SDKClient

__all__ = ["Lane", "Lanes"]

_WIDTH = 8
_MOST = 1000  # connections of one client of the SDKs, when nothing else is said
_IDLE_SECONDS = 5.0  # how long the SDKs keep a connection that nobody uses
_closing: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly only


class Lane:
    """A client, and how many requests it has under way."""

    __slots__ = ("client", "idle_since", "taken")

    def __init__(self, client: SDKClient) -> None:
        self.client = client
        self.taken = 0
        self.idle_since = 0.0


class Lanes:
    """Spreads the requests of a loop over clients with few connections each.

    httpcore2 looks at every connection of a pool when a request begins and again when it
    ends, and asks the system about each idle one: with 200 requests at a time that took
    half of all CPU. So a client gets 8 at a time, and what is more goes to the next
    one; no more are under way at once than one client of the SDKs has connections.

    Args:
        make: Makes a client; called at once for the first one.
        close: Closes a client.
        spread: Whether there may be more than one client.
    """

    def __init__(
        self,
        make: Callable[[], SDKClient],
        close: Callable[[SDKClient], Awaitable[None]],
        *,
        spread: bool,
    ) -> None:
        self._make = make
        self._close = close
        self._lanes = [Lane(make())]
        self._free = asyncio.Semaphore(_MOST) if spread else None

    async def take(self, seconds: float | None) -> Lane:
        """Return a client for one request; hand it to `give` when that has ended.

        Args:
            seconds: How long to wait while as many as may be are under way.

        Raises:
            TimeoutError: When none ended until then.
            Exception: Whatever making a client raises.
        """
        if self._free is None:
            return self._lanes[0]
        if self._free.locked():
            async with asyncio.timeout(seconds):
                await self._free.acquire()
        else:
            await self._free.acquire()  # without a pause
        try:
            lane = self._roomy()
        except BaseException:
            self._free.release()
            raise
        lane.taken += 1
        self._drop_idle()
        return lane

    def _roomy(self) -> Lane:
        for lane in self._lanes:  # the first ones first: the last ones become idle
            if lane.taken < _WIDTH:
                return lane
        self._lanes.append(Lane(self._make()))
        return self._lanes[-1]

    def _drop_idle(self) -> None:
        """Close the last client when nobody has used it for a while."""
        last = self._lanes[-1]
        if not last.taken and time.monotonic() - last.idle_since > _IDLE_SECONDS:
            self._lanes.pop()
            task = asyncio.create_task(self._end(last))
            _closing.add(task)
            task.add_done_callback(_closing.discard)

    async def _end(self, lane: Lane) -> None:
        with suppress(Exception):  # connections that are gone cannot be closed better
            await self._close(lane.client)

    def give(self, lane: Lane) -> None:
        """Take a client back: the request is over, and its connection free or closed."""
        if self._free is None:
            return
        lane.taken -= 1
        lane.idle_since = time.monotonic()
        self._free.release()

    async def aclose(self) -> None:
        """Close the clients.

        Raises:
            Exception: Whatever closing one raises, when all have been closed.
        """
        async with AsyncExitStack() as stack:
            for lane in self._lanes:
                stack.push_async_callback(self._close, lane.client)
