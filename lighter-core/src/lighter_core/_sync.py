"""The door from synchronous code: one private event loop on a thread of its own.

`asyncio.run` once per call would close the loop under the SDK clients' connections.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["run_sync"]

_T = TypeVar("_T")

_CANCEL_WAIT = 5.0  # seconds that a cancelled call may take to clean up
_EXIT_WAIT = 1.0  # seconds that pending calls get when the interpreter leaves


class _Door:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(
            target=self._serve, name="lighter-loop", daemon=True
        )
        self.thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                self.loop.run_forever()
            except (KeyboardInterrupt, SystemExit) as error:
                # One call's affair: it was handed to that call's caller.
                _release(error.__traceback__)
                continue
            return

    def close(self) -> None:
        if not self.thread.is_alive():
            return
        done = threading.Event()

        def start() -> None:
            task = self.loop.create_task(_wind_down())
            task.add_done_callback(lambda _: done.set())

        self.loop.call_soon_threadsafe(start)
        done.wait(2 * _EXIT_WAIT)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_EXIT_WAIT)
        if not self.thread.is_alive():
            self.loop.close()


def _release(trace: TracebackType | None) -> None:
    """Empty the event loop's own frames in a traceback; they hold the failed task.

    The task holds the error, the error its traceback: only the collector would end that.
    """
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").startswith("asyncio."):
            with suppress(RuntimeError):  # it still runs
                trace.tb_frame.clear()
        trace = trace.tb_next


async def _wind_down() -> None:
    me = asyncio.current_task()
    pending = [task for task in asyncio.all_tasks() if task is not me]
    for task in pending:
        task.cancel()
    if pending:
        await asyncio.wait(pending, timeout=_EXIT_WAIT)
    await asyncio.get_running_loop().shutdown_asyncgens()


_lock = threading.Lock()
_door: _Door | None = None


def _open_door() -> _Door:
    global _door  # noqa: PLW0603 - one per process, by design
    with _lock:
        if _door is None:
            _door = _Door()
            atexit.register(_door.close)
        return _door


def _after_fork() -> None:
    # The child has neither the thread nor, usably, the loop: leave both alone.
    global _lock, _door  # noqa: PLW0603
    _lock = threading.Lock()
    if _door is not None:
        atexit.unregister(_door.close)
    _door = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run_sync(main: Callable[[], Coroutine[Any, Any, _T]], *, instead: str) -> _T:
    """Run a coroutine on the private loop and wait for its result.

    It sees the caller's context variables. Ctrl-C cancels it and is raised again once
    it has cleaned up, after at most 5 seconds.

    Args:
        main: Makes the coroutine; called on the private loop's thread.
        instead: What to call in asynchronous code, for the error message.

    Raises:
        RuntimeError: When called on the private loop's own thread, where waiting would
            wait for itself.
    """
    door = _open_door()
    if threading.current_thread() is door.thread:
        raise RuntimeError(
            "this code already runs on Lighter's private event loop, where a"
            f" synchronous call would wait for itself: use `{instead}` instead"
        )
    context = contextvars.copy_context()
    done = threading.Event()
    tasks: list[asyncio.Task[_T]] = []

    async def call() -> _T:
        return await main()

    def start() -> None:
        task = door.loop.create_task(call(), context=context)
        tasks.append(task)
        task.add_done_callback(lambda _: done.set())

    try:
        door.loop.call_soon_threadsafe(start)
        done.wait()
    except BaseException:
        door.loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
        done.wait(_CANCEL_WAIT)
        raise
    try:
        return tasks[0].result()
    finally:
        tasks.clear()  # an error's traceback holds this frame
