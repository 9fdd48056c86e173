"""The mock service, a process of its own: `python -m benchmarks.compare.service`.

Prints its port and serves until its standard input ends. The model's name says what to
answer, the number of tool results in the request says which turn it is; nothing else of
a request is read, and each reply is rendered once.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator

from .replies import Protocol, answer, streamed, whole
from .work import QUESTION, add_up

_MODEL = re.compile(rb'"model"\s*:\s*"(text|tools|stream|paced|history)-(\d+)"')
_STREAM = re.compile(rb'"stream"\s*:\s*true')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_PATHS: dict[bytes, tuple[Protocol, bytes]] = {
    b"/v1/responses": ("responses", b'"function_call_output"'),
    b"/v1/chat/completions": ("chat", b'"tool_call_id"'),
    b"/v1/messages": ("messages", b'"tool_result"'),
    # For a client that tells the model of calls and results in plain text.
    b"/told/v1/chat/completions": ("told", rb"Calling tools:\n"),
}
_QUESTION = QUESTION.encode()
_PAUSE = 0.001  # seconds between two events of a paced stream


class Connection(asyncio.Protocol):
    """One connection: requests one after the other."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self._held += data
        while True:
            end = self._held.find(b"\r\n\r\n")
            if end < 0:
                return
            found = _LENGTH.search(self._held, 0, end)
            size = end + 4 + (int(found[1]) if found else 0)
            if len(self._held) < size:
                return
            head, body = self._held[:end], self._held[end + 4 : size]
            self._held = self._held[size:]
            self._answer(head.split(b" ", 2)[1].split(b"?")[0], body)

    def _answer(self, path: bytes, body: bytes) -> None:
        assert self._transport is not None
        model = _MODEL.search(body)
        if path not in _PATHS or model is None:
            self._refuse(b"no such path or model")
            return
        protocol, result = _PATHS[path]
        kind, number = model[1].decode(), int(model[2])
        # A history has results too; they are no turns.
        turn = body.count(result) if kind == "tools" else 0
        if kind == "history" and body.count(_QUESTION) != number // 4 + 1:
            self._refuse(b"the history is not whole")
            return
        if turn and b"%d" % add_up(turn - 1, turn - 1) not in body:
            self._refuse(b"the result of the last call is missing or wrong")
        elif not _STREAM.search(body):
            self._transport.write(whole(protocol, kind, number, turn))
        else:
            parts = streamed(protocol, kind, number, turn)
            if kind == "paced":
                self._pace(iter(parts))
            else:
                self._transport.write(b"".join(parts))

    def _pace(self, parts: Iterator[bytes]) -> None:
        assert self._transport is not None
        part = next(parts, None)
        if part is not None and not self._transport.is_closing():
            self._transport.write(part)
            asyncio.get_running_loop().call_later(_PAUSE, self._pace, parts)

    def _refuse(self, why: bytes) -> None:
        assert self._transport is not None
        body = (
            b'{"type":"error","error":{"type":"invalid_request_error","message":"%b"}}'
        )
        self._transport.write(answer(body % why, "400 Bad Request"))


async def main() -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
