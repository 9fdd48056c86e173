"""The bounded channel between a run and the consumer of its stream.

The producer appends and goes on; it waits only when 64 events are unread, and at a
barrier until the consumer has read everything and asks for more. A `break` therefore
lets nothing start that the consumer did not ask for.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from .results import AgentStreamEvent

__all__ = ["Channel", "Sink", "teller"]

_FULL = 64
_ROOM = 32


class Sink(Protocol):
    """Where a run's events go."""

    def emit(self, event: AgentStreamEvent) -> bool:
        """Take an event; return whether the producer must wait for `room()` now."""
        ...

    def offer(self, event: AgentStreamEvent) -> None:
        """Take an event if there is room, else leave it out."""
        ...

    async def room(self) -> None:
        """Wait until there is room again."""
        ...

    async def barrier(self) -> None:
        """Wait until the consumer has read everything and asks for more."""
        ...


class Channel:
    """Producers, one consumer, one event loop."""

    __slots__ = ("_buffer", "_closed", "_parked", "_waiter", "_wants_room")

    def __init__(self) -> None:
        self._buffer: deque[AgentStreamEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None  # of the consumer
        # Of the producers: a run, and agents that are its tools at the same time.
        self._parked: set[asyncio.Future[None]] = set()
        self._wants_room = 0
        self._closed = False

    # The producer's side.

    def emit(self, event: AgentStreamEvent) -> bool:
        """Take an event; return whether the producer must wait for `room()` now."""
        if self._closed:
            return True
        buffer, waiter = self._buffer, self._waiter
        buffer.append(event)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        return len(buffer) >= _FULL

    def offer(self, event: AgentStreamEvent) -> None:
        """Take an event if there is room, else leave it out."""
        if not self._closed and len(self._buffer) < _FULL:
            self.emit(event)

    async def room(self) -> None:
        """Wait until there is room again.

        Raises:
            CancelledError: When the consumer has closed the channel.
        """
        self._wants_room += 1
        try:
            while self._closed or len(self._buffer) >= _ROOM:
                await self._park()
        finally:
            self._wants_room -= 1

    async def barrier(self) -> None:
        """Wait until the consumer has read everything and asks for more.

        An empty channel is not enough: the consumer may have left after its last event.

        Raises:
            CancelledError: When the consumer has closed the channel.
        """
        while self._buffer or self._waiter is None or self._waiter.done():
            await self._park()

    def close(self) -> None:
        """Say that no event comes any more, or that none is wanted."""
        self._closed = True
        self._wake_consumer()
        self._wake_producer()

    async def _park(self) -> None:
        if self._closed:  # a cancellation that something swallowed must not be lost
            raise asyncio.CancelledError("the stream was closed")
        parked = asyncio.get_running_loop().create_future()
        self._parked.add(parked)
        try:
            await parked
        finally:
            self._parked.discard(parked)

    # The consumer's side.

    def take(self) -> Any:
        """Return an unread event, or `None` when there is none now.

        Which output the last one has, only the stream knows.
        """
        buffer = self._buffer
        if not buffer:
            return None
        event = buffer.popleft()
        if self._wants_room and len(buffer) < _ROOM:
            self._wake_producer()
        return event

    @property
    def waiting(self) -> bool:
        """Whether a consumer waits for an event and none is on its way yet."""
        return self._waiter is not None and not self._waiter.done()

    @property
    def occupied(self) -> bool:
        """Whether a consumer is inside `wait`, perhaps woken already."""
        return self._waiter is not None

    @property
    def closed(self) -> bool:
        """Whether either side has closed the channel."""
        return self._closed

    async def wait(self) -> None:
        """Wait until there is an event or the end; lets a barrier pass."""
        if self._buffer or self._closed:
            return
        self._waiter = asyncio.get_running_loop().create_future()
        self._wake_producer()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake_producer(self) -> None:
        for parked in self._parked:
            if not parked.done():
                parked.set_result(None)

    def _wake_consumer(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def teller(sink: Sink) -> Callable[[AgentStreamEvent], None]:
    """Return what hands events to the sink from any thread, as far as there is room."""
    loop, home = asyncio.get_running_loop(), threading.get_ident()

    def tell(event: AgentStreamEvent) -> None:
        if threading.get_ident() == home:
            sink.offer(event)
            return
        with suppress(RuntimeError):  # the loop is closed: nobody reads any more
            loop.call_soon_threadsafe(sink.offer, event)

    return tell
