"""The loopback server on a loop and a thread of its own."""

from __future__ import annotations

import asyncio
import ssl
import threading

from .loopback import Loopback


class ServerThread:
    """A server on a loop of its own, for clients on several other loops."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.context = context

    def __enter__(self) -> Loopback:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = Loopback(self.context)
        self._run(self.server.__aenter__())
        return self.server

    def _run(self, work) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(10)

    def __exit__(self, *_: object) -> None:
        self._run(self.server.until_open(0))
        self._run(self.server.__aexit__())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
