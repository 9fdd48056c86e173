"""A loaded model and its requests, from any number of event loops."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

from lighter_core.adapters import encode_json, load_json
from lighter_core.errors import ModelError

from ._errors import chunk_error, map_failure
from ._native import ChatServer, Settings
from ._threads import NativeThread

__all__ = ["Call", "Engine"]

logger = logging.getLogger("lighter.local")


class Engine:
    """One loaded model. At most `parallel` requests run in it; others wait their turn.

    They wait here, not in the library, since a request that waits there cannot be
    cancelled.
    """

    def __init__(
        self, server: ChatServer, *, knows_tools: bool, settings: Settings
    ) -> None:
        self.knows_tools = knows_tools
        self.settings = settings
        self._server: ChatServer | None = server
        self._lock = threading.Lock()
        self._running: set[Call] = set()
        self._waiting: deque[Call] = deque()

    def chat(self, body: Mapping[str, object]) -> Call:
        """Return a streamed chat request, to be entered with `async with`."""
        return Call(self, body)

    def submit(self, call: Call) -> None:
        """Start a call, or let it wait for its turn."""
        with self._lock:
            if self._server is None:
                raise ModelError(
                    "the local model was closed", "aborted", provider="local"
                )
            if len(self._running) >= self.settings.parallel:
                self._waiting.append(call)
                return
            self._running.add(call)
        self._start(call)

    def _start(self, call: Call) -> None:
        try:
            call.thread.start()
        except ModelError:
            self.finished(call)
            raise

    def withdraw(self, call: Call) -> bool:
        """Take a call out of the queue; tell whether it was still there."""
        with self._lock:
            if call not in self._waiting:
                return False
            self._waiting.remove(call)
            return True

    def finished(self, call: Call) -> None:
        """Note that a call's thread is about to end, and start the next."""
        with self._lock:
            self._running.discard(call)
            following = self._waiting.popleft() if self._waiting else None
            if following is not None:
                self._running.add(following)
        if following is not None:
            try:
                self._start(following)
            except ModelError as error:
                following.fail(error)

    def run(self, call: Call) -> None:
        """Run a call in the library. Only on the call's own thread."""
        server = self._server
        if server is None:
            raise ModelError("the local model was closed", "aborted", provider="local")
        # Through JSON text: what UTF-8 cannot hold is a parse error in the library.
        body = load_json(encode_json(call.body))
        server.handle_chat_completions(body, call.take)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    def close(self) -> None:
        """End all requests and unload the model. Blocks until that is done."""
        with self._lock:
            running, waiting = list(self._running), list(self._waiting)
            self._waiting.clear()
        for call in running:
            call.thread.leave.set()
        for call in waiting:
            call.fail(
                ModelError("the local model was closed", "aborted", provider="local")
            )
        for call in running:
            call.thread.join()
        with self._lock:
            self._server = None


class Call:
    """One request: an iterator over its chunks, on the loop that entered it.

    Leaving the block ends the request and waits for its thread. No async generator: the
    end of an event loop closes all generators at once, also those that stand inside
    each other, which they do not survive.
    """

    def __init__(self, engine: Engine, body: Mapping[str, object]) -> None:
        self.body = body
        self.failure: BaseException | None = None
        self.thread = NativeThread(self._work, name="lighter-local")
        # Bounded by the request's token limit: at most one chunk for each token.
        self._chunks: asyncio.Queue[Mapping[str, object] | None] = asyncio.Queue()
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._engine.submit(self)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.thread.leave.set()
        if not self._engine.withdraw(self):
            await self._over.wait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Mapping[str, object]:
        item = await self._chunks.get()
        if item is not None:
            return item
        if self.failure is not None:
            raise map_failure(self.failure) from self.failure
        raise StopAsyncIteration

    def take(self, chunk: object) -> bool:
        """Take a chunk on the native thread; True ends the request.

        It never raises: the library prints exceptions of callbacks and goes on.
        """
        if self.thread.leave.is_set():
            return True
        error = chunk_error(chunk)
        if error is not None:
            self.failure = error
            return True
        if not isinstance(chunk, dict) or "prompt_progress" in chunk:
            return False  # sent so that a request can end while its prompt is read
        return not self._tell(chunk)  # pyright: ignore[reportUnknownArgumentType]

    def _tell(self, item: Mapping[str, object] | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._chunks.put_nowait, item)
        except RuntimeError:
            return False  # the loop is closed: nobody reads any more
        return True

    def _work(self) -> None:
        try:
            self._engine.run(self)
        except BaseException as error:  # noqa: BLE001 - raised again on the loop
            self.failure = error
        self._engine.finished(self)
        self._conclude()

    def fail(self, error: ModelError) -> None:
        """End a call that never started."""
        self.failure = error
        self._conclude()

    def _conclude(self) -> None:
        if self.failure is None and self.thread.leave.is_set():
            self.failure = ModelError(
                "the local model was closed", "aborted", provider="local"
            )
        self._tell(None)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._over.set)
