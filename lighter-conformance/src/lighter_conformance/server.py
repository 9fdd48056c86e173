"""A service on 127.0.0.1 that says what a check wants: HTTP/1.1, no vendor's rules.

It runs on a thread and a loop of its own, so that providers can be tried on any loop.
Each check has a lane, a path prefix with requests and answers of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import struct
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from socket import SO_LINGER, SOL_SOCKET
from typing import Literal, TypeVar, cast

__all__ = ["Answer", "HTTPRequest", "Lane", "Server", "shared_server"]

T = TypeVar("T")
EVENT_STREAM: Mapping[str, str] = {"content-type": "text/event-stream"}
JSON_BODY: Mapping[str, str] = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class HTTPRequest:
    """A request as it arrived.

    Attributes:
        path: The path, below the lane's prefix.
        headers: The headers, names in lower case.
        body: The body.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        """The body, which must be a JSON object."""
        value: object = json.loads(self.body)
        if not isinstance(value, dict):
            raise TypeError(f"the body is no JSON object: {self.body[:80]!r}")
        return cast("dict[str, object]", value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One response.

    Attributes:
        pieces: The body, piece by piece as it is written.
        status: The HTTP status.
        headers: The headers; framing is added.
        end: How it ends: `"complete"`; `"cut"` closes before the framing is complete;
            `"reset"` does so with RST; `"stall"` then says nothing more.
        silent: End it in that way before anything is written.
        gate: Wait for it before the last piece.
    """

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: JSON_BODY)
    end: Literal["complete", "cut", "reset", "stall"] = "complete"
    silent: bool = False
    gate: threading.Event | None = None


class Lane:
    """The requests and answers of one check."""

    def __init__(self, server: Server, prefix: str) -> None:
        self._server = server
        self.prefix = prefix
        self.requests: list[HTTPRequest] = []
        self.open = 0
        self.answer: Callable[[HTTPRequest], Answer] = lambda _: Answer(status=500)

    @property
    def url(self) -> str:
        """The URL of the lane."""
        return f"http://127.0.0.1:{self._server.port}{self.prefix}"

    async def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds; tell whether it came to that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():  # noqa: ASYNC110 - another thread changes it
                    await asyncio.sleep(0.005)
        return condition()


class Server:
    """The server; start it with `start`."""

    def __init__(self) -> None:
        self.port = 0
        self._lanes: dict[str, Lane] = {}
        self._numbers = count(1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="lighter-conformance", daemon=True
        )
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start it."""
        self._thread.start()
        self.port = self._do(self._listen())

    def stop(self) -> None:
        """Stop it."""
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def lane(self) -> Lane:
        """Open a lane."""
        lane = Lane(self, f"/lane{next(self._numbers)}")
        self._lanes[lane.prefix] = lane
        return lane

    def leave(self, lane: Lane) -> None:
        """Close a lane."""
        self._lanes.pop(lane.prefix, None)

    def _do(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _close(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._tasks.add(task)
        lanes: set[Lane] = set()
        try:
            while await self._one(reader, writer, lanes):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            for lane in lanes:
                lane.open -= 1
            self._tasks.discard(task)
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _one(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        lanes: set[Lane],
    ) -> bool:
        """Serve one request; tell whether the connection may go on."""
        head = await reader.readuntil(b"\r\n\r\n")
        line, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        path = line.split(" ")[1]
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (each.partition(":") for each in rest)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        lane = self._lanes.get("/" + path.split("/")[1])
        if lane is None:
            return False
        if lane not in lanes:
            lanes.add(lane)
            lane.open += 1
        request = HTTPRequest(path.removeprefix(lane.prefix), headers, body)
        lane.requests.append(request)
        answer = lane.answer(request)
        gone = asyncio.ensure_future(_until_gone(reader))
        work = asyncio.ensure_future(_write(answer, writer))
        try:
            await asyncio.wait({gone, work}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return False
            work.result()
            return answer.end == "complete" and not gone.done()
        finally:
            for each in (gone, work):
                each.cancel()
            await asyncio.gather(gone, work, return_exceptions=True)


async def _write(answer: Answer, writer: asyncio.StreamWriter) -> None:
    if answer.silent:
        await _end(answer, writer)
        return
    lines = [f"HTTP/1.1 {answer.status} Answer"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    lines += ["transfer-encoding: chunked", "", ""]
    writer.write("\r\n".join(lines).encode("latin-1"))
    last = len(answer.pieces) - 1
    for number, piece in enumerate(answer.pieces):
        if number == last and answer.gate is not None:
            while not answer.gate.is_set():  # noqa: ASYNC110 - set on another thread
                await asyncio.sleep(0.005)
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if number % 64 == 0:
            await writer.drain()
    if answer.end == "complete":
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    await _end(answer, writer)


async def _end(answer: Answer, writer: asyncio.StreamWriter) -> None:
    if answer.end == "stall":
        await asyncio.Event().wait()
    if answer.end == "reset":
        sock = writer.get_extra_info("socket")
        sock.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


async def _until_gone(reader: asyncio.StreamReader) -> None:
    # Reading would swallow the first byte of the connection's next request.
    while not reader.at_eof() and reader.exception() is None:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


_shared: list[Server] = []


def shared_server() -> Server:
    """Return the server of the process; it ends with the process."""
    if not _shared:
        server = Server()
        server.start()
        atexit.register(server.stop)
        _shared.append(server)
    return _shared[0]
