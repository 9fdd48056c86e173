"""A scripted HTTP/1.1 server on 127.0.0.1; it knows nothing of any vendor.

```python
async with Loopback() as server:
    server.script(Answer(body=b"{}"), Answer(status=500))
    ...  # talk to server.url
    assert server.requests[0].json == {...}
```

The n-th request gets the n-th answer; the last one is repeated. `route` gives a path
prefix answers of its own.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Literal, Self

from .waiting import until

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}
JSON_TYPE = {"content-type": "application/json"}


@dataclass(frozen=True)
class Answer:
    """One response.

    Attributes:
        status: The HTTP status.
        headers: Headers; framing is added.
        body: The body, or the pieces that are written one by one.
        delay: Seconds before the status line.
        gap: Seconds before each piece.
        end: How it ends: `"complete"`; `"cut"` closes the socket before the framing is
            complete; `"reset"` does so with RST; `"stall"` writes the pieces and then
            nothing, for as long as the client waits.
        chunked: Chunked framing; else `content-length`.
        before_headers: End it in that way before anything is written.
        before_piece: Called with the number of each piece before it is written.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Sequence[bytes] = b""
    delay: float = 0.0
    gap: float = 0.0
    end: Literal["complete", "cut", "reset", "stall"] = "complete"
    chunked: bool = True
    before_headers: bool = False
    before_piece: Callable[[int], object] | None = None

    @property
    def pieces(self) -> list[bytes]:
        """The body's pieces, none of them empty."""
        parts = [self.body] if isinstance(self.body, bytes) else list(self.body)
        return [part for part in parts if part]


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


class Loopback:
    """The server; use it with `async with`."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._context = context
        self.requests: list[Request] = []
        self.connections = 0  # ever opened
        self.open = 0  # open now
        self._answers: list[Answer] = [Answer()]
        self._routes: dict[str, list[Answer]] = {}
        self._counts: dict[str, int] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def script(self, *answers: Answer) -> None:
        """Set the answers and forget how many were given."""
        self._answers = list(answers)
        self._counts.pop("", None)

    def route(self, prefix: str, answers: Iterable[Answer]) -> None:
        """Set the answers for all paths below a prefix."""
        self._routes[prefix] = list(answers)
        self._counts.pop(prefix, None)

    @property
    def port(self) -> int:
        """The port."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        """The URL without a path."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, ssl=self._context
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def until(self, condition: Callable[[], bool], seconds: float = 5.0) -> None:
        """Wait until the condition holds; fail after the seconds."""
        await until(condition, seconds)

    async def until_open(self, number: int) -> None:
        """Wait until at most so many connections are open."""
        await self.until(lambda: self.open <= number)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open += 1
        number = self.connections
        try:
            while await self._one(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> bool:
        """Serve one request; tell whether the connection may go on."""
        head = await reader.readuntil(b"\r\n\r\n")
        line, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, path, _ = line.split(" ")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (each.partition(":") for each in rest)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(Request(method, path, headers, body, number))
        answer = self._next(path)
        gone = asyncio.ensure_future(_until_gone(reader))
        work = asyncio.ensure_future(self._write(answer, writer))
        try:
            await asyncio.wait({gone, work}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return False
            work.result()
            if answer.end != "complete" or gone.done():
                return False
        finally:
            for each in (gone, work):
                each.cancel()
            await asyncio.gather(gone, work, return_exceptions=True)
        return True

    def _next(self, path: str) -> Answer:
        prefix = next((p for p in self._routes if path.startswith(p)), "")
        answers = self._routes.get(prefix, self._answers)
        index = self._counts.get(prefix, 0)
        self._counts[prefix] = index + 1
        return answers[min(index, len(answers) - 1)]

    async def _write(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(answer.delay)
        if answer.before_headers:
            await self._end(answer, writer)
            return
        lines = [f"HTTP/1.1 {answer.status} Answer"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        size = sum(map(len, answer.pieces))
        cut = answer.end != "complete"
        lines.append(
            "transfer-encoding: chunked"
            if answer.chunked
            else f"content-length: {size + (1 if cut else 0)}"
        )
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        for number, piece in enumerate(answer.pieces):
            if answer.before_piece is not None:
                answer.before_piece(number)
            if answer.gap:
                await asyncio.sleep(answer.gap)
            framed = b"%x\r\n%s\r\n" % (len(piece), piece) if answer.chunked else piece
            writer.write(framed)
            if answer.gap or number % 64 == 0:
                await writer.drain()
        if not cut and answer.chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        if cut:
            await self._end(answer, writer)

    @staticmethod
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


def cut_randomly(body: bytes, seed: int, most: int = 400) -> list[bytes]:
    """Cut bytes at seeded random places; one-byte pieces are among the pieces."""
    chance = random.Random(seed)
    pieces: list[bytes] = []
    position = 0
    while position < len(body):
        size = chance.choice([1, 1, 2, 7, chance.randint(1, most)])
        pieces.append(body[position : position + size])
        position += size
    return pieces


def bytewise(body: bytes) -> list[bytes]:
    """Cut bytes into pieces of one byte."""
    return [body[index : index + 1] for index in range(len(body))]
