"""Threads for calls that block, a fixed number for each store, for authors of stores."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ..errors import SessionError

__all__ = ["Workers"]

T = TypeVar("T")

_forking = threading.Lock()


def _after_fork() -> None:
    global _forking  # noqa: PLW0603 - the parent's may be held by a thread it has not
    _forking = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Workers:
    """Runs jobs on threads of its own, for callers on any event loop or thread.

    A job that has begun goes on to its end when its caller is cancelled; one that waits
    for its turn is dropped. A forked child gets threads of its own.

    Args:
        name: What the threads are called.
        count: How many there are at most.
        forked: Called in a child of `fork`, before its first job: what the parent opened
            must be left alone.
    """

    def __init__(self, name: str, count: int, forked: Callable[[], None]) -> None:
        self._name = name
        self._count = count
        self._forked = forked
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._pid = os.getpid()
        self._closed = False

    async def run(self, job: Callable[[], T]) -> T:
        """Run a job and return its result.

        Raises:
            SessionError: `closed`, after `close`.
            Exception: Whatever the job raises.
        """
        self._notice_fork()
        with self._lock:
            if self._closed:
                raise SessionError(
                    f"{self._name} is closed: make a new store", code="closed"
                )
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._count, self._name)
            try:
                waiting = self._pool.submit(job)
            except RuntimeError as error:  # there are no new threads at the very end
                raise SessionError(
                    f"{self._name} cannot work: the interpreter is ending",
                    code="closed",
                ) from error
        return await asyncio.wrap_future(waiting)

    def close(self, last: Callable[[], None]) -> None:
        """Wait until all jobs are done, then do the last one; nothing at a second call.

        A single thread does the last one too: what it opened may be bound to it.
        """
        self._notice_fork()
        with self._lock:
            closed, self._closed = self._closed, True
            pool, self._pool = self._pool, None
        if closed:
            return
        if pool is None:
            last()
        elif self._count == 1:
            with pool:
                pool.submit(last).result()
        else:
            pool.shutdown()
            last()

    def _notice_fork(self) -> None:
        if self._pid == os.getpid():
            return
        with _forking:
            if self._pid != os.getpid():
                self._lock = threading.Lock()  # in the parent somebody may hold it
                self._pool = None
                self._forked()
                self._pid = os.getpid()
