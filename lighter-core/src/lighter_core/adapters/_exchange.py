"""One request and its reply: errors mapped, durations logged, connection released."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Protocol, cast, runtime_checkable

from .._closing import Owned
from .._redact import redact
from .._sse import EventStreamSplitter
from ..errors import ModelError
from ..events import MessageEvent, ProviderStreamEvent, ReasoningDelta, TextDelta
from ..messages import AssistantMessage
from ._faults import Service, bad_response, drop_frames, redact_chain, short
from ._raw import as_object, fast_load
from ._sender import Reply, Sender

__all__ = ["Codec", "Decoder", "Exchange", "LateDecoder"]

_LATE_SECONDS = 2.0
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class Decoder(Protocol):
    """Turns the events of one streamed reply into Lighter's."""

    @property
    def message(self) -> AssistantMessage | None:
        """The reply, once the service has said that it is complete."""
        ...

    @property
    def ignored(self) -> int:
        """How many events were ignored."""
        ...

    def feed(self, data: bytes) -> list[ProviderStreamEvent]:
        """Take the data of one event; return what it brings.

        Raises:
            ModelError: For an error event, a reply that failed, and wrong shapes.
        """
        ...

    def ended_early(self) -> ModelError:
        """Return the error for a stream that ended without saying how."""
        ...


@runtime_checkable
class LateDecoder(Decoder, Protocol):
    """A decoder of replies after whose end more may follow, such as the usage.

    Once the reply is complete, what follows is waited for no longer than two seconds,
    and a connection that breaks breaks nothing.
    """

    @property
    def finished(self) -> bool:
        """Whether the service has said that the reply is complete."""
        ...

    def finish(self) -> list[ProviderStreamEvent]:
        """Set `message`, since nothing more comes; return what is still to be shown.

        Raises:
            ModelError: When the service has not said that the reply is complete.
        """
        ...


class Codec(Protocol):
    """What a vendor's replies and errors mean."""

    @property
    def service(self) -> Service:
        """Whom requests are for."""
        ...

    def error_of(self, error: Exception) -> ModelError:
        """Return the error for an exception of the SDK or the transport."""
        ...

    def error_in_reply(self, error: Mapping[str, object]) -> ModelError:
        """Return the error for one that stands in a reply with status 200."""
        ...

    def decode_body(self, body: bytes) -> AssistantMessage:
        """Return the message of a reply that came whole.

        Raises:
            ModelError: For a reply that failed, is incomplete or is none at all.
        """
        ...

    def decoder(self) -> Decoder:
        """Make a decoder for one streamed reply."""
        ...


class Exchange:
    """A reply whose failures are `ModelError`s that name the request.

    Open one with `Exchange.open`. `events` releases the connection by itself, as far as
    it is iterated; after `message` call `aclose`.
    """

    def __init__(
        self, reply: Reply, codec: Codec, secrets: tuple[str, ...], started: float
    ) -> None:
        self.sent = b""  # the request's body
        self._reply = reply
        self._codec = codec
        self._secrets = secrets
        self._started = started
        self._outcome = "left early"
        self._ignored = 0

    @classmethod
    async def open(
        cls,
        sender: Sender,
        body: bytes,
        codec: Codec,
        *,
        stream: bool,
        secrets: tuple[str, ...],
    ) -> Exchange:
        """Send a request.

        Raises:
            ModelError: When no reply with a good status comes.
        """
        started = time.perf_counter()
        service = codec.service
        _debug("request to %s begins", service, lighter_bytes=len(body))
        try:
            reply = await sender.post(body, stream=stream)
        except ImportError as err:
            raise ModelError(
                f"the SDK of {service.label} cannot be imported: {err}; install"
                f" it with: pip install {sender.sdk}",
                "unknown",
                provider=service.name,
            ) from err
        except Exception as err:
            error = _error_of(err, codec, secrets)
            _debug(
                "request to %s failed",
                service,
                lighter_code=error.code,
                lighter_status=error.http_status,
                lighter_request_id=error.request_id,
                lighter_seconds=time.perf_counter() - started,
            )
            raise error from err
        exchange = cls(reply, codec, secrets, started)
        exchange.sent = body
        return exchange

    async def message(self) -> AssistantMessage:
        """Return the message of a reply that comes whole."""
        try:
            body = await self._reply.read_all()
        except Exception as err:
            raise self._broken(err) from err
        return self._whole(body)

    def _whole(
        self, body: bytes, otherwise: ModelError | None = None
    ) -> AssistantMessage:
        """Return the message of a body.

        Raises:
            ModelError: What the body reports, else what to say `otherwise`.
        """
        try:
            message = self._codec.decode_body(body)
        except ModelError as err:
            error = err
            if err.code == "bad_response" and not err.response_status:
                error = self._reported(body) or otherwise or err
            raise self._complete(error) from error.__cause__
        self._outcome = "complete"
        return message

    def _reported(self, body: bytes) -> ModelError | None:
        """Return the error that stands as `error` in a body, if any."""
        reported = (_object_in(body) or {}).get("error")
        if isinstance(reported, str) and reported:
            reported = {"message": reported}
        error = as_object(reported)
        return None if error is None else self._codec.error_in_reply(error)

    def events(self) -> Owned[ProviderStreamEvent]:
        """Yield what a streamed reply brings, then one `MessageEvent`.

        The connection is released before the message is yielded, and when the generator
        is closed. A server that answers with one whole message in place of a stream is
        understood, except by the Messages API: its texts come as one delta each.

        Raises:
            ModelError: For a reply that failed, is incomplete or is no event stream.
        """
        return Owned(self._events())

    async def _events(self) -> AsyncGenerator[ProviderStreamEvent, None]:
        decoder = self._codec.decoder()
        splitter = EventStreamSplitter()
        whole: AssistantMessage | None = None
        try:
            begin = await self._begin()
            if not self._is_event_stream(begin):
                whole = await self._instead(begin)
            while whole is None and decoder.message is None:
                chunk = begin or await self._read(decoder)
                begin = b""
                events = _last(splitter) if chunk is None else splitter.feed(chunk)
                for data in events:
                    for event in self._decode(decoder, data):
                        yield event
                    if decoder.message is not None:
                        break
                if chunk is None and decoder.message is None:
                    for event in self._finish(decoder):
                        yield event
            await self._reply.drain()
        finally:
            self._ignored = decoder.ignored
            await self.aclose()
        if whole is not None and whole.reasoning:
            yield ReasoningDelta(whole.reasoning)
        if whole is not None and whole.content:
            yield TextDelta(whole.content)
        yield MessageEvent(cast("AssistantMessage", whole or decoder.message))

    async def aclose(self) -> None:
        """Release the connection."""
        try:
            await self._reply.aclose()
        finally:
            _debug(
                f"reply from %s: {self._outcome}",
                self._codec.service,
                lighter_status=self._reply.status,
                lighter_request_id=self._reply.request_id,
                lighter_seconds=time.perf_counter() - self._started,
                lighter_ignored_events=self._ignored,
            )

    @property
    def _kind(self) -> str:
        return self._reply.content_type.partition(";")[0].strip().lower()

    async def _begin(self) -> bytes:
        """Return as much of a reply's begin as tells whether it is an event stream.

        Nothing of one that says what it is.
        """
        begin = b""
        try:
            while self._kind != "text/event-stream" and (
                not begin.startswith(_FIELDS)
                and any(each.startswith(begin) for each in (_BOM, *_FIELDS))
            ):
                piece = await self._reply.read()
                if piece is None:
                    break
                begin = (begin + piece).lstrip().removeprefix(_BOM).lstrip()
        except Exception as err:
            raise self._broken(err) from err
        return begin

    def _is_event_stream(self, begin: bytes) -> bool:
        if self._kind == "text/event-stream" or begin.startswith(_FIELDS):
            return True
        return not self._kind and not begin.startswith(b"{")

    async def _instead(self, begin: bytes) -> AssistantMessage:
        """Return the message that came in place of a stream.

        Raises:
            ModelError: When there is none; what came decides which.
        """
        whole = begin.startswith(b"{")
        try:
            if whole:
                body = await self._reply.read_value(begin, _is_object)
            else:
                body = await self._reply.read_some(begin)
        except Exception as err:
            raise self._broken(err) from err
        kind = self._kind or "of no named type"
        what = f"it is {kind} instead of an event stream and begins with"
        words = short(body[:60].decode("utf-8", "replace"))
        error = bad_response(self._codec.service, f"{what} {words!r}")
        if not whole or not _is_object(body):
            raise self._complete(error)
        return self._whole(body, error)

    async def _read(self, decoder: Decoder) -> bytes | None:
        if isinstance(decoder, LateDecoder) and decoder.finished:
            with suppress(Exception):
                async with asyncio.timeout(_LATE_SECONDS):
                    return await self._reply.read()
            return None
        try:
            return await self._reply.read()
        except Exception as err:
            raise self._broken(err) from err

    def _decode(self, decoder: Decoder, data: bytes) -> list[ProviderStreamEvent]:
        try:
            events = decoder.feed(data)
        except ModelError as err:
            self._complete(err)
            raise
        if decoder.message is not None:
            self._outcome = "complete"
        return events

    def _finish(self, decoder: Decoder) -> list[ProviderStreamEvent]:
        if not isinstance(decoder, LateDecoder):
            raise self._complete(decoder.ended_early())
        try:
            events = decoder.finish()
        except ModelError as err:
            self._complete(err)
            raise
        self._outcome = "complete"
        return events

    def _broken(self, error: Exception) -> ModelError:
        return self._complete(_error_of(error, self._codec, self._secrets))

    def _complete(self, error: ModelError) -> ModelError:
        """Add to an error what only the exchange knows; take secrets out of its text."""
        self._outcome = f"failed with {error.code}"
        error.request_id = error.request_id or self._reply.request_id
        return _redacted(error, self._secrets)


def _object_in(body: bytes) -> dict[str, object] | None:
    with suppress(ValueError):
        return as_object(fast_load()(body))
    return None


def _is_object(body: bytes) -> bool:
    return _object_in(body) is not None


def _last(splitter: EventStreamSplitter) -> list[bytes]:
    """Return the event that the stream's end completed, unless it was cut inside it."""
    whole: list[bytes] = []
    for data in splitter.finish():
        with suppress(ValueError):
            if data.strip() != b"[DONE]":
                fast_load()(data)
            whole.append(data)
    return whole


def _error_of(error: Exception, codec: Codec, secrets: tuple[str, ...]) -> ModelError:
    redact_chain(error, *secrets)
    log = logging.getLogger(f"lighter.{codec.service.name}")
    log.debug("the request failed inside the SDK:", exc_info=error)
    drop_frames(error)
    return _redacted(codec.error_of(error), secrets)


def _redacted(error: ModelError, secrets: tuple[str, ...]) -> ModelError:
    error.message = redact(error.message, *secrets)
    error.args = (error.message,)
    return error


def _debug(text: str, service: Service, **fields: object) -> None:
    log = logging.getLogger(f"lighter.{service.name}")
    if log.isEnabledFor(logging.DEBUG):
        extra = {
            "lighter_provider": service.name,
            "lighter_model": service.model,
            "lighter_endpoint": service.endpoint,
            **fields,
        }
        log.debug(text, service.endpoint, extra=extra)
