"""Sending bytes with a vendor's SDK, and its reply read piece by piece."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol, cast
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from .._clients import ClientPool, import_sdk
from .._closing import Owned
from ._connection import Connection, SDKClient
from ._lanes import Lanes
from ._retries import pause_before_retry
from ._transport import Transport, load_certificates, make_transport

if TYPE_CHECKING:
    import httpx2

__all__ = ["Reply", "Sender", "split_query"]

_DRAIN_SECONDS = 0.1
_LOOK_BYTES = 65_536
_LOOK_SECONDS = 2.0
_SDK_RETRIES = 2  # what the SDKs do when nothing else is said
_MARGIN_SECONDS = 0.5
_POOL_SECONDS = 600.0  # how long the SDKs wait for a free connection
_closing: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly only


class _Poster(Protocol):
    """`post` as it is used here; the overloads of the SDKs do not know this use."""

    def __call__(
        self,
        path: str,
        *,
        cast_to: type[httpx2.Response],
        content: bytes,
        options: Mapping[str, object],
        stream: bool,
    ) -> Coroutine[object, object, httpx2.Response]: ...


def split_query(base_url: str) -> tuple[str, dict[str, str] | None]:
    """Return a base URL without its query, and the query's fields.

    The SDKs would write a request's path behind the query.
    """
    parts = urlsplit(base_url)
    url = urlunsplit(parts._replace(query="", fragment=""))
    return url, dict(parse_qsl(parts.query)) or None


class Sender(ABC):
    """Sends requests with the running loop's own client, or with one that was given.

    The SDK is one of those that Stainless generates: its client has `post`,
    `with_options` and `max_retries`, its module an `APIConnectionError`, and errors with
    an HTTP status have the `response`.

    Args:
        connection: How the service is reached. Its client and transport are used as they
            are and never closed here.
    """

    sdk: ClassVar[str]
    """The SDK's module, and the name to install it by."""
    path: ClassVar[str]
    """Where requests go, below the base URL."""
    request_id_header: ClassVar[str] = "x-request-id"

    def __init__(self, connection: Connection) -> None:
        self.headers: Mapping[str, str] = dict(connection.extra_headers or {})
        self.http_client = connection.http_client
        self._transport: Transport = connection.transport or "httpx2"
        self._address = self.path  # as the SDK's `post` takes it
        self._timeout = connection.timeout
        # A transport's own timeout bounds each of its steps, and nothing as a whole.
        bound = isinstance(self._timeout, int | float)
        self._seconds = float(cast("float", self._timeout)) if bound else None
        self._wait = cast("float | None", getattr(self._timeout, "pool", _POOL_SECONDS))
        self._max_retries = connection.max_retries
        client = connection.client
        # Headers of one request are in the DEBUG log of some SDKs, a client's are not.
        if client is not None and self.headers:
            client = client.with_options(default_headers=dict(self.headers))
        self._given = client
        self._fixed: Lanes | None = None
        if client is not None:
            self._fixed = Lanes(lambda: client, self._close, spread=False)
        self._pool: ClientPool[Lanes] = ClientPool(self._lanes, Lanes.aclose)

    @abstractmethod
    def make(self) -> SDKClient:
        """Make a client for the running loop; the SDK is imported by then.

        Pass `headers` as its default headers, and what `transport()` returns.
        """

    def below(self, base_url: str) -> str:
        """Return where requests go, for clients of our own.

        The SDKs join base URL and path for each request, which takes 5 to 7 % of it.
        """
        url, _ = split_query(base_url)
        return f"{url.removesuffix('/')}{self.path}"

    def transport(self) -> httpx2.AsyncClient:
        """Return the transport for a client: the given one, else one of the SDK's own."""
        return self.http_client or make_transport(self.sdk, self._transport)

    @property
    def max_retries(self) -> int:
        """How often a failed request is repeated."""
        if self._max_retries is not None:
            return self._max_retries
        return _SDK_RETRIES if self._given is None else self._given.max_retries

    async def post(self, body: bytes, *, stream: bool) -> Reply:
        """Send a body; return the reply, whose status is good and whose bytes wait.

        What the SDK would send again is sent again here, by the same rules, before a
        reply begins and never after. A timeout in seconds also bounds the wait for the
        reply's begin, repetitions and their pauses included: without that, a dead
        service takes several timeouts. A pause that does not fit is not begun; the
        refusal is raised instead.

        Raises:
            Exception: Whatever the SDK raises at last; `TimeoutError` at the bound.
        """
        lanes = self._pool.known() or await self._clients()
        if self._seconds is None:
            return await self._attempts(lanes, body, stream=stream)
        async with asyncio.timeout(self._seconds + _MARGIN_SECONDS):
            return await self._attempts(lanes, body, stream=stream)

    async def warm_up(self) -> None:
        """Import the SDK and make the running loop's client, as the first request does.

        The import and the certificates are loaded on a worker thread; nothing is sent.

        Raises:
            Exception: Whatever importing the SDK or making its client raises.
        """
        await self._clients()

    def _lanes(self) -> Lanes:
        spread = self.http_client is None and self._transport == "httpx2"
        return Lanes(self.make, self._close, spread=spread)

    async def _clients(self) -> Lanes:
        await import_sdk(self.sdk)
        if self._fixed is not None:
            return self._fixed
        if self.http_client is None:
            await load_certificates()
        return await self._pool.get()

    async def _attempts(self, lanes: Lanes, body: bytes, *, stream: bool) -> Reply:
        started = asyncio.get_running_loop().time()
        taken = 0
        while True:
            try:
                return await self._attempt(lanes, body, taken, stream=stream)
            except Exception as err:
                pause = pause_before_retry(err, self.sdk, taken)
                if pause is None or taken >= self.max_retries:
                    raise
                spent = asyncio.get_running_loop().time() - started
                if self._seconds is not None and spent + pause >= self._seconds:
                    raise
            taken += 1
            await asyncio.sleep(pause)

    async def _attempt(
        self, lanes: Lanes, body: bytes, taken: int, *, stream: bool
    ) -> Reply:
        import httpx2

        options = self._options(stream=stream)
        if taken:  # as the SDKs count them
            headers = cast("dict[str, object]", options["headers"])
            options["headers"] = {**headers, "x-stainless-retry-count": str(taken)}
        lane = await lanes.take(self._wait)
        try:
            # The SDK would copy a mark for "not given" with `deepcopy` each time.
            options.setdefault("timeout", lane.client.timeout)
            response = await cast("_Poster", lane.client.post)(
                self._address,
                cast_to=httpx2.Response,
                content=body,
                options=options,
                stream=True,
            )
        except BaseException:
            lanes.give(lane)
            raise
        return Reply(response, self.request_id_header, partial(lanes.give, lane))

    def _options(self, *, stream: bool) -> dict[str, object]:
        accept = "text/event-stream" if stream else "application/json"
        headers: dict[str, str] = {}
        if self._given is not None:
            headers = {"Content-Type": "application/json", "Accept": accept}
        elif stream:  # a client of our own says the rest by itself
            headers = {"Accept": accept}
        options: dict[str, object] = {"headers": headers, "max_retries": 0}
        if self._timeout is not None:
            options["timeout"] = self._timeout
        return options

    async def aclose(self) -> None:
        """Close the clients that were made here; never one that was given."""
        await self._pool.aclose()

    async def _close(self, client: SDKClient) -> None:
        if self.http_client is None:  # else closing would close the given transport
            await client.close()


class Reply:
    """A reply whose bytes are read one piece after the other.

    Always end with `aclose`: it gives the connection back, or closes it.

    Args:
        response: Whose bytes wait.
        request_id_header: Where the service names the request.
        released: Called once when the connection is given back or closed.
    """

    def __init__(
        self,
        response: httpx2.Response,
        request_id_header: str,
        released: Callable[[], None] | None = None,
    ) -> None:
        self._released = released
        headers = response.headers
        self._response = response
        # What is not encoded needs no decoder, which costs about as much as reading;
        # what a transport has read already cannot be had raw.
        self._plain = (
            not response.is_stream_consumed
            and headers.get("content-encoding", "identity") == "identity"
        )
        self._pieces = Owned(
            response.aiter_raw() if self._plain else response.aiter_bytes()
        )
        self.status = response.status_code
        self.request_id = headers.get(request_id_header)
        self.content_type = headers.get("content-type", "")

    def next_piece(self) -> Awaitable[bytes]:
        """Return the next piece; the quick way, for a loop over all of them.

        Raises:
            StopAsyncIteration: At the end.
            Exception: Whatever the transport raises.
        """
        return self._pieces.__anext__()

    async def read(self) -> bytes | None:
        """Return the next piece, `None` at the end.

        Raises:
            Exception: Whatever the transport raises.
        """
        return await anext(self._pieces, None)

    async def read_all(self) -> bytes:
        """Return all that follows."""
        return b"".join([piece async for piece in self._pieces])

    async def read_value(
        self, begin: bytes, complete: Callable[[bytes], bool]
    ) -> bytes:
        """Return the begin with all that follows.

        When nothing comes for a while, what has come is enough if it is complete.
        """
        pieces = [begin]
        while True:
            step = asyncio.ensure_future(self.read())
            try:
                await asyncio.wait({step}, timeout=_LOOK_SECONDS)
                if not step.done() and complete(b"".join(pieces)):
                    return b"".join(pieces)
                piece = await step
            finally:
                step.cancel()
            if piece is None:
                return b"".join(pieces)
            pieces.append(piece)

    async def read_some(self, begin: bytes) -> bytes:
        """Return the begin with some of what follows: enough to tell what it is."""
        pieces = [begin]
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
        if self._plain and self._response.is_closed:
            self._release()  # its iterator has ended, and given the connection back
            return
        task = asyncio.create_task(self._finish())
        _closing.add(task)
        task.add_done_callback(_closing.discard)
        await asyncio.shield(task)

    async def _finish(self) -> None:
        with suppress(Exception):  # a connection that is gone cannot be closed better
            await self._pieces.aclose()
        with suppress(Exception):
            await self._response.aclose()
        self._release()

    def _release(self) -> None:
        released, self._released = self._released, None
        if released is not None:
            released()
