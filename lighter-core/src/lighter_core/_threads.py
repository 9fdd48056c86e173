"""Worker threads for synchronous tools.

They are Lighter's own: tools on the event loop's default executor deadlock when a
dozen of them call `run_sync`, and one that hangs delays the interpreter's exit.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

__all__ = ["call_in_thread"]

_T = TypeVar("_T")
_Report = Callable[[], None]
_Job = Callable[[], _Report]

_IDLE_SECONDS = 30.0


class _Worker(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="lighter-tool", daemon=True)
        self.jobs: SimpleQueue[_Job] = SimpleQueue()

    def run(self) -> None:
        from queue import Empty

        while True:
            try:
                job = self.jobs.get(timeout=_IDLE_SECONDS)
            except Empty:
                with _lock:
                    if self in _idle:
                        _idle.remove(self)
                        return
                continue  # a job is on its way
            report = job()
            del job
            with _lock:  # before the report: its reader may have the next job ready
                _idle.append(self)
            report()
            del report  # hold no result while idle


_lock = threading.Lock()
_idle: deque[_Worker] = deque()


def _after_fork() -> None:
    global _lock, _idle  # noqa: PLW0603 - the child has none of the threads
    _lock = threading.Lock()
    _idle = deque[_Worker]()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _submit(job: _Job) -> None:
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        worker = _Worker()
        worker.start()
    worker.jobs.put(job)


async def call_in_thread(function: Callable[[], _T]) -> _T:
    """Call a function on a worker thread, with the caller's context variables.

    What the function sets in context variables stays inside. When the caller is
    cancelled, the thread goes on to the function's end: threads cannot be stopped.

    Raises:
        BaseException: Whatever the function raises; `StopIteration`, which cannot leave
            a coroutine, as a RuntimeError.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    context = contextvars.copy_context()
    outcomes: list[tuple[bool, object]] = []  # emptied when read: see below

    def deliver() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def job() -> _Report:
        try:
            outcomes.append((True, context.run(function)))
        except StopIteration as error:
            stopped = RuntimeError("StopIteration")
            stopped.__cause__ = error
            outcomes.append((False, stopped))
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            outcomes.append((False, error))
        return report

    def report() -> None:
        try:
            loop.call_soon_threadsafe(deliver)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    _submit(job)
    await waiter
    ok, value = outcomes.pop()
    try:
        if ok:
            return value  # type: ignore[return-value]
        raise value  # type: ignore[misc]
    finally:
        del value  # an error's traceback holds this frame
