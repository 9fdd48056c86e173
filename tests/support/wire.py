"""A transport inside the process, for the SDKs' own clients: bytes, faults, no sockets.

```python
async with wired(interface) as (provider, wire):
    wire.script(Wire(body[:100], error=httpx2.ReadError("gone")))
```
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from .interfaces import Interface
from .loopback import EVENT_STREAM

__all__ = ["Wire", "WireTransport", "wired"]


@dataclass(frozen=True)
class Wire:
    """One response.

    Attributes:
        body: The body, or its pieces.
        error: Raised behind the last piece, in place of the end.
        refused: Raised in place of the response.
        status: The HTTP status.
        headers: The headers.
        slow: Whether the client waits once for the response and once for each piece.
    """

    body: bytes | Sequence[bytes] = b""
    error: Exception | None = None
    refused: Exception | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(EVENT_STREAM))
    slow: bool = False


class _Body(httpx2.AsyncByteStream):
    def __init__(self, wire: Wire, transport: WireTransport) -> None:
        self._wire, self._transport = wire, transport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = self._wire.body
        for piece in [body] if isinstance(body, bytes) else body:
            if self._wire.slow:
                await asyncio.sleep(0)
            if piece:
                yield piece
        if self._wire.error is not None:
            raise self._wire.error

    async def aclose(self) -> None:
        self._transport.open -= 1


class WireTransport(httpx2.AsyncBaseTransport):
    """The n-th request gets the n-th response; the last one is repeated."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.open = 0
        self._script: list[Wire] = [Wire()]

    def script(self, *responses: Wire) -> None:
        """Set the responses; forget the requests."""
        self._script = list(responses)
        self.requests.clear()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer."""
        self.requests.append(await request.aread())
        number = min(len(self.requests), len(self._script)) - 1
        wire = self._script[number]
        if wire.slow:
            await asyncio.sleep(0)
        if wire.refused is not None:
            raise wire.refused
        self.open += 1
        return httpx2.Response(
            wire.status, headers=wire.headers, stream=_Body(wire, self)
        )


@asynccontextmanager
async def wired(
    interface: Interface, **options: Any
) -> AsyncIterator[tuple[Any, WireTransport]]:
    """A provider of an interface on a transport of its own."""
    transport = WireTransport()
    async with httpx2.AsyncClient(transport=transport) as client:
        provider = interface.provider(
            **{
                "api_key": "sk-test-0123",
                "model_id": "test",
                "base_url": "http://127.0.0.1:9",
                "max_retries": 0,
                "http_client": client,
                **options,
            }
        )
        yield provider, transport
        await provider.aclose()
