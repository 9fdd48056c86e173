"""The SDK: its client per event loop, one request, one reply read byte by byte.

This module and `_errors.py` are the only ones that import the SDK, and only inside
functions: importing it takes seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from lighter_core.adapters import ClientPool, import_sdk

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

__all__ = ["Clients", "Reply"]

_DRAIN_SECONDS = 0.1
_LOOK_BYTES = 65_536
_LOOK_SECONDS = 2.0
_MARGIN_SECONDS = 0.5
_closing: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly only


class _Poster(Protocol):
    """`AsyncOpenAI.post` as it is used here; its overloads do not know this use."""

    def __call__(
        self,
        path: str,
        *,
        cast_to: type[httpx2.Response],
        content: bytes,
        options: Mapping[str, object],
        stream: bool,
    ) -> Coroutine[object, object, httpx2.Response]: ...


class Clients:
    """Sends requests with the running loop's own client, or with one that was given."""

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str,
        timeout: float | httpx2.Timeout | None,
        max_retries: int | None,
        given: AsyncOpenAI | None,
    ) -> None:
        self._api_key = api_key
        self._base_url = base_url
        self._timeout = timeout
        self._max_retries = max_retries
        self._given = given
        self._pool: ClientPool[AsyncOpenAI] = ClientPool(self.make, _close)

    def make(self) -> AsyncOpenAI:
        """Make a client for the running loop."""
        import openai

        # The SDK's own transport schedules its closing from __del__, on a loop that
        # may be another one by then; this one is closed by the pool alone.
        # It would also write the request's path behind the query of a base URL.
        parts = urlsplit(self._base_url)
        return openai.AsyncOpenAI(
            api_key=self._api_key,
            base_url=urlunsplit(parts._replace(query="", fragment="")),
            default_query=dict(parse_qsl(parts.query)) or None,
            http_client=openai.DefaultAsyncHttpxClient(),
        )

    async def post(self, body: bytes, *, stream: bool) -> Reply:
        """Send a body; return the reply, whose status is good and whose bytes wait.

        A timeout in seconds also bounds the wait for the reply's begin, retries and
        their pauses included: without that, a dead service takes several timeouts.
        """
        await import_sdk("openai")
        import httpx2

        client = self._given or await self._pool.get()
        accept = "text/event-stream" if stream else "application/json"
        options: dict[str, object] = {
            "headers": {"Content-Type": "application/json", "Accept": accept}
        }
        if self._timeout is not None:
            options["timeout"] = self._timeout
        if self._max_retries is not None:
            options["max_retries"] = self._max_retries
        bound = None
        if isinstance(self._timeout, int | float):
            bound = self._timeout + _MARGIN_SECONDS
        send = cast("_Poster", client.post)
        async with asyncio.timeout(bound):
            response = await send(
                "/responses",
                cast_to=httpx2.Response,
                content=body,
                options=options,
                stream=True,
            )
        return Reply(response)

    async def aclose(self) -> None:
        """Close the clients that were made here; never one that was given."""
        await self._pool.aclose()


async def _close(client: AsyncOpenAI) -> None:
    await client.close()


class Reply:
    """A reply whose bytes are read one piece after the other.

    Always end with `aclose`: it gives the connection back, or closes it.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._pieces = response.aiter_bytes()
        self.status = response.status_code
        self.request_id = response.headers.get("x-request-id")
        self.content_type = response.headers.get("content-type", "")

    async def read(self) -> bytes | None:
        """Return the next piece, `None` at the end.

        Raises:
            Exception: Whatever the transport raises.
        """
        return await anext(self._pieces, None)

    async def read_all(self) -> bytes:
        """Return all that follows."""
        return b"".join([piece async for piece in self._pieces])

    async def read_some(self) -> bytes:
        """Return the begin of what follows: enough to tell what it is."""
        pieces: list[bytes] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                async for piece in self._pieces:
                    pieces.append(piece)
                    if sum(map(len, pieces)) >= _LOOK_BYTES:
                        break
        return b"".join(pieces)

    async def drain(self) -> None:
        """Read to the end if it comes at once: only then the connection is used again.

        Nothing that happens here matters any more: the reply is complete.
        """
        with suppress(Exception):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self._pieces:
                    pass

    async def aclose(self) -> None:
        """Release the connection, also when the caller is cancelled meanwhile."""
        task = asyncio.create_task(self._finish())
        _closing.add(task)
        task.add_done_callback(_closing.discard)
        await asyncio.shield(task)

    async def _finish(self) -> None:
        with suppress(Exception):  # a connection that is gone cannot be closed better
            await self._pieces.aclose()
        with suppress(Exception):
            await self._response.aclose()
