"""What must be the same after a scenario as before it."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["Leak", "LeakGuard"]


class Leak(AssertionError):
    """Something was left behind."""


def _fds() -> int:
    try:
        return len(list(Path("/proc/self/fd").iterdir()))
    except OSError:  # another system
        return 0


def _of_a_server(task: asyncio.Task[Any]) -> bool:
    """Whether it serves a connection that a client's pool may keep."""
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and code.co_filename.endswith("loopback.py")


class LeakGuard:
    """Compares tasks, threads, open files and reports before and after a block.

    Args:
        fds: Whether open files are compared; exact only when nothing else opens any.
        threads: Whether threads are compared, but for idle workers of Lighter and of the loop.

    Raises:
        Leak: At the end of the block.
    """

    def __init__(self, *, fds: bool = True, threads: bool = True) -> None:
        self._with_fds, self._with_threads = fds, threads
        self.reports: list[str] = []

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._old_handler = self._loop.get_exception_handler()
        self._loop.set_exception_handler(
            lambda _, context: self.reports.append(f"loop: {context}")
        )
        self._old_hook = sys.unraisablehook
        sys.unraisablehook = lambda report: self.reports.append(
            f"unraisable: {report.exc_value!r} in {report.object!r}"
        )
        self._catcher = warnings.catch_warnings(record=True)
        self._warned = self._catcher.__enter__()
        warnings.simplefilter("always")
        self._tasks = asyncio.all_tasks()
        self._threads = self._others()
        self._fds = _fds()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        left: list[str] = []
        try:
            for _ in range(200):
                left = self._left()
                if not left:
                    break
                await asyncio.sleep(0.005)
            gc.collect(1)
            await asyncio.sleep(0)
        finally:
            self._catcher.__exit__(None, None, None)
            sys.unraisablehook = self._old_hook
            self._loop.set_exception_handler(self._old_handler)
        left += self.reports + [f"warning: {each.message}" for each in self._warned]
        if left and error is None:
            raise Leak("; ".join(left))

    def _others(self) -> set[Any]:
        # A loop's own executor lives as long as the loop does.
        known = ("lighter-", "asyncio_")
        return {t for t in threading.enumerate() if not t.name.startswith(known)}

    def _left(self) -> list[str]:
        tasks = asyncio.all_tasks() - self._tasks - {asyncio.current_task()}
        left = [f"task {each!r}" for each in tasks if not _of_a_server(each)]
        if self._with_threads:
            left += [f"thread {t.name}" for t in self._others() - self._threads]
        if self._with_fds and (more := _fds() - self._fds) > 0:
            left.append(f"{more} open files")
        return left
