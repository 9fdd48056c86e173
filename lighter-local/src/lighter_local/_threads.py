"""Threads that are inside native code, and how they end.

The interpreter must not be left while one of them is inside the library: a daemon
thread that comes back to a finalised interpreter aborts the process (exit status 134
or 139). So each has a flag that its callback obeys, and all are joined at exit.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from lighter_core.errors import ModelError

__all__ = ["NativeThread", "run_in_thread"]

_T = TypeVar("_T")

_lock = threading.Lock()
_alive: set[NativeThread] = set()
_exiting = False


class NativeThread(threading.Thread):
    """A thread for one piece of work inside the native library.

    Attributes:
        leave: Set it to ask the work to end; native callbacks look at it.
    """

    def __init__(self, work: Callable[[], None], *, name: str) -> None:
        # A daemon, since the interpreter joins others before any exit handler could
        # ask them to leave.
        super().__init__(name=name, daemon=True)
        self.leave = threading.Event()
        self._work = work

    def start(self) -> None:
        """Start it.

        Raises:
            ModelError: `aborted` when the interpreter is about to exit.
        """
        with _lock:
            refused = _exiting
            if not refused:
                _alive.add(self)
        try:
            if not refused:
                super().start()
        except RuntimeError:  # what Python 3.12 says of new threads at shutdown
            refused = True
            with _lock:
                _alive.discard(self)
        if refused:
            raise ModelError(
                "the interpreter is exiting: the local model does not start any more",
                "aborted",
                provider="local",
            )

    def run(self) -> None:
        """Do the work; it handles its own exceptions."""
        try:
            self._work()
        finally:
            del self._work
            with _lock:
                _alive.discard(self)


async def run_in_thread(function: Callable[[], _T]) -> _T:
    """Run a blocking Python function on a thread that no exit waits for.

    Raises:
        Exception: Whatever the function raises.
    """
    future: Future[_T] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            future.set_exception(error)

    threading.Thread(target=work, name="lighter-local-find", daemon=True).start()
    return await asyncio.wrap_future(future)


def _leave_all() -> None:
    global _exiting  # noqa: PLW0603 - one process, one exit
    with _lock:
        _exiting = True
        threads = list(_alive)
    for thread in threads:
        thread.leave.set()
    for thread in threads:
        thread.join()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - the child has none of the threads
    _lock = threading.Lock()
    _alive.clear()


atexit.register(_leave_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
