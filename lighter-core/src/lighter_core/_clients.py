"""One SDK client per running event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

__all__ = ["ClientPool", "import_sdk"]

_ClientT = TypeVar("_ClientT")

_import_lock = threading.Lock()
_imported: set[str] = set()


async def import_sdk(module: str) -> None:
    """Import a vendor's SDK on a worker thread, once for the process.

    Imports take seconds; on the loop's thread they would stop every other task. One
    lock for all, and the package's top level only: parts of one SDK imported from
    several threads at once deadlock. The own flag matters: a name is in `sys.modules`
    while its module is still half imported.
    """
    if module in _imported:
        return
    from importlib import import_module

    from ._threads import call_in_thread

    def work() -> None:
        with _import_lock:
            import_module(module)
            _imported.add(module)

    await call_in_thread(work)


class ClientPool(Generic[_ClientT]):
    """Keeps one client per running event loop, made at the first request there.

    A client's connections belong to the loop that opened them. The client of a loop is
    closed when that loop shuts its async generators down, as `asyncio.run` does, or by
    `aclose`. (A WeakKeyDictionary would keep every loop alive through its client's
    sockets.)

    Args:
        make: Makes a client; runs on the loop that will use it.
        close: Closes a client.
    """

    def __init__(
        self,
        make: Callable[[], _ClientT],
        close: Callable[[_ClientT], Awaitable[None]],
    ) -> None:
        self._make = make
        self._close = close
        self._lock = threading.Lock()
        self._clients: dict[
            asyncio.AbstractEventLoop, tuple[_ClientT, AsyncGenerator[_ClientT, None]]
        ] = {}

    def known(self) -> _ClientT | None:
        """Return the running loop's client if it has one."""
        found = self._clients.get(asyncio.get_running_loop())
        return None if found is None else found[0]

    async def get(self) -> _ClientT:
        """Return the running loop's client."""
        loop = asyncio.get_running_loop()
        known = self._clients.get(loop)
        if known is not None:
            return known[0]
        # Started here, so that this loop's shutdown_asyncgens() ends it.
        anchor = self._anchor(loop)
        client = await anchor.__anext__()
        with self._lock:
            for other in [each for each in self._clients if each.is_closed()]:
                del self._clients[other]
            self._clients[loop] = (client, anchor)
        return client

    async def _anchor(
        self, loop: asyncio.AbstractEventLoop
    ) -> AsyncGenerator[_ClientT, None]:
        client = self._make()
        try:
            yield client
        finally:
            with self._lock:
                self._clients.pop(loop, None)
            await self._close(client)

    async def aclose(self) -> None:
        """Close every client; those of other running loops are closed there."""
        here = asyncio.get_running_loop()
        with self._lock:
            entries = list(self._clients.items())
        for loop, (_, anchor) in entries:
            if loop is here:
                await anchor.aclose()
            elif loop.is_running():  # else its shutdown closes them
                with suppress(RuntimeError):  # it closed in this moment
                    asyncio.run_coroutine_threadsafe(_finish(anchor), loop)
        with self._lock:
            for loop in [each for each in self._clients if each.is_closed()]:
                del self._clients[loop]


async def _finish(anchor: AsyncGenerator[_ClientT, None]) -> None:
    await anchor.aclose()
