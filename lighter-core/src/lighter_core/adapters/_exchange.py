"""One request and its reply: errors mapped, durations logged, connection released."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar, cast

from .._closing import Owned
from .._json import clean_text
from .._sse import EventStreamSplitter
from ..errors import ModelError
from ..events import (
    MessageEvent,
    ProviderStreamEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from ..messages import AssistantMessage
from ._codec import Codec, Decoder, LateDecoder
from ._faults import (
    Service,
    bad_response,
    code_for_status,
    fault_error,
    short,
    unsendable,
)
from ._opening import Opening, last_events, object_in
from ._raw import as_object
from ._retries import fault_inside
from ._secrets import Secrets, clear_locals, drop_frames
from ._sender import Reply, Sender

__all__ = ["Exchange", "unsent"]

_LATE_SECONDS = 2.0
_ResultT = TypeVar("_ResultT")


class Exchange:
    """A reply whose failures are `ModelError`s that name the request.

    Open one with `Exchange.open`. `events` releases the connection by itself, as far as
    it is iterated; after `message` call `aclose`.

    A fault of the codec is a `bad_response` too, with the exception as its cause: no
    reply, whatever it holds, ends in another error. Errors leave with the values of the
    local variables in the codec's frames taken out: they hold the bytes of the reply.
    """

    def __init__(
        self, reply: Reply, codec: Codec, secrets: Secrets, started: float
    ) -> None:
        self.sent = b""  # the request's body
        self._reply = reply
        self._request_id = secrets.text(reply.request_id) if reply.request_id else None
        self._codec = codec
        self._secrets = secrets
        self._started = started
        self._outcome = "left early"
        self._ignored = 0
        self._begin = b""  # of a stream: what was read while it was looked at
        self._failed: ModelError | None = None  # to be raised behind what came first

    @classmethod
    async def open(
        cls,
        sender: Sender,
        body: bytes,
        codec: Codec,
        *,
        stream: bool,
        secrets: Secrets,
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
        except Exception as err:
            error = unsent(err, sender, codec, secrets)
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
        """Return the message of a reply that comes whole.

        Raises:
            ModelError: For a reply that failed, is incomplete or is none at all.
        """
        outcome = self._whole(await self._read(self._reply.read_all()))
        if isinstance(outcome, ModelError):
            raise clear_locals(outcome)
        return outcome

    def events(self) -> Owned[ProviderStreamEvent]:
        """Yield what a streamed reply brings, then one `MessageEvent`.

        The connection is released before the message is yielded, and when the generator
        is closed. A server that answers with one whole message in place of a stream is
        understood: its texts and its calls' arguments come as one delta each.

        Raises:
            ModelError: For a reply that failed, is incomplete or is no event stream.
        """
        return Owned(self._events())

    async def _events(self) -> AsyncGenerator[ProviderStreamEvent, None]:
        decoder = self._codec.decoder()
        late = decoder if isinstance(decoder, LateDecoder) else None  # asked once: slow
        splitter = EventStreamSplitter()
        opening = Opening(self._reply)
        whole: AssistantMessage | None = None
        try:
            if not await self._read(opening.is_event_stream()):
                whole = await self._instead(opening)
            self._begin = opening.take()
            # Each delta passes here: what it can do without is left out.
            while whole is None and decoder.message is None:
                for event in await self._next(splitter, decoder, late):
                    yield event
            self._outcome = "complete"
            await self._reply.drain()
        except ModelError as err:
            clear_locals(err)
            raise
        finally:
            self._ignored = decoder.ignored
            await self.aclose()
        for event in _parts_of(whole):
            yield event
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
                lighter_request_id=self._request_id,
                lighter_seconds=time.perf_counter() - self._started,
                lighter_ignored_events=self._ignored,
            )

    async def _instead(self, opening: Opening) -> AssistantMessage:
        """Return the message that came in place of a stream.

        Raises:
            ModelError: When there is none; what came decides which.
        """
        outcome = self._replaced(opening, await self._read(opening.instead()))
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    def _replaced(self, opening: Opening, body: bytes) -> AssistantMessage | ModelError:
        error = bad_response(self._codec.service, opening.words(body))
        if object_in(body) is None:
            return self._complete(error)
        return self._whole(body, error)

    def _whole(
        self, body: bytes, otherwise: ModelError | None = None
    ) -> AssistantMessage | ModelError:
        """Return the message of a body; else what it reports, else `otherwise`."""
        try:
            message = self._decoded(self._codec.decode_body, body)
            self._outcome = "complete"
        except ModelError as err:
            if err.code != "bad_response" or err.response_status:
                return err
            reported = as_object(_error_in(body))
            if reported is None:
                return self._complete(otherwise or err)
            try:
                return self._complete(
                    self._decoded(self._codec.error_in_reply, reported)
                )
            except ModelError as unexpected:
                return unexpected
        return message

    async def _next(
        self,
        splitter: EventStreamSplitter,
        decoder: Decoder,
        late: LateDecoder | None,
    ) -> list[ProviderStreamEvent]:
        """Return what the next piece of the stream brings.

        Raises:
            ModelError: For every failure; one behind events comes at the next call.
        """
        if self._failed is not None:
            raise self._failed
        piece, self._begin = self._begin, b""
        if not piece:
            try:
                if late is not None and late.finished:
                    piece = await self._late_piece()
                else:
                    piece = await self._reply.next_piece()
            except StopAsyncIteration:
                return self._at_end(splitter, decoder, late)
            except Exception as err:
                error = _error_of(err, self._codec, self._secrets)
                raise self._complete(error) from err
        return self._found(splitter.feed(piece), decoder)

    async def _late_piece(self) -> bytes:
        """Return a piece behind the end of the reply; nothing that fails is missed."""
        with suppress(Exception):
            async with asyncio.timeout(_LATE_SECONDS):
                return await self._reply.next_piece()
        raise StopAsyncIteration

    def _found(
        self, datas: Iterable[bytes], decoder: Decoder
    ) -> list[ProviderStreamEvent]:
        found: list[ProviderStreamEvent] = []
        try:
            for data in datas:
                found += decoder.feed(data)
                if decoder.message is not None:
                    break
        except Exception as err:  # noqa: BLE001 - a declared border: no reply ends in another error
            error = self._fault(err)
            if not found:
                raise error from error.__cause__
            self._failed = error
        return found

    def _at_end(
        self,
        splitter: EventStreamSplitter,
        decoder: Decoder,
        late: LateDecoder | None,
    ) -> list[ProviderStreamEvent]:
        """Return what the end of the stream completes.

        Raises:
            ModelError: When the reply is not complete even so.
        """
        found = self._found(last_events(splitter), decoder)
        if decoder.message is not None or self._failed is not None:
            return found
        if late is not None:
            return found + self._decoded(late.finish)
        self._failed = self._complete(decoder.ended_early())
        return found

    async def _read(self, step: Awaitable[_ResultT]) -> _ResultT:
        try:
            return await step
        except Exception as err:
            error = _error_of(err, self._codec, self._secrets)
            raise self._complete(error) from err

    def _decoded(self, decode: Callable[..., _ResultT], *arguments: object) -> _ResultT:
        """Return what a function of the codec returns.

        Raises:
            ModelError: Whatever it raises, as one.
        """
        try:
            return decode(*arguments)
        except Exception as err:  # noqa: BLE001 - the same border
            error = self._fault(err)
            raise error from error.__cause__

    def _fault(self, error: Exception) -> ModelError:
        """Return what a function of the codec raised, as an error of the model."""
        if isinstance(error, ModelError):
            return self._complete(error)
        what = (
            f"Lighter failed to read it ({type(error).__name__}: {short(str(error))})"
        )
        advice = "a fault of the adapter: please report it"
        found = bad_response(self._codec.service, f"{what}, {advice}")
        found.__cause__ = error
        return self._complete(found)

    def _complete(self, error: ModelError) -> ModelError:
        """Add to an error what only the exchange knows; take secrets out of it."""
        self._outcome = f"failed with {error.code}"
        error.request_id = error.request_id or self._request_id
        return _readable(error, self._secrets)


def _parts_of(whole: AssistantMessage | None) -> Iterator[ProviderStreamEvent]:
    """Yield the deltas of a message that came in place of a stream."""
    if whole is None:
        return
    if whole.reasoning:
        yield ReasoningDelta(whole.reasoning)
    if whole.content:
        yield TextDelta(whole.content)
    for call in whole.tool_calls:
        if call.arguments:
            yield ToolCallDelta(call.call_id, call.tool_name, call.arguments)


def _error_in(body: bytes) -> object:
    """Return what stands as `error` in a body; a text as an object with a message."""
    reported = (object_in(body) or {}).get("error")
    if isinstance(reported, str) and reported:
        return {"message": reported}
    return reported


def unsent(
    error: Exception, sender: Sender, codec: Codec, secrets: Secrets
) -> ModelError:
    """Return the error for a request that no reply came to, or that was not sent."""
    found = unsendable(error, codec.service, sender.sdk)
    return found or _error_of(error, codec, secrets, sending=True)


def _error_of(
    error: Exception, codec: Codec, secrets: Secrets, *, sending: bool = False
) -> ModelError:
    secrets.scrub(error)
    log = logging.getLogger(f"lighter.{codec.service.name}")
    if log.isEnabledFor(logging.DEBUG):
        # As a text: some handlers show the variables of an exception's frames.
        text = secrets.text(_traceback_of(error))
        log.debug("the request failed inside the SDK:\n%s", text)
    drop_frames(error)
    fault = fault_inside(error) if sending else None
    if fault is not None:
        return _readable(fault_error(fault, codec.service), secrets)
    return _readable(_mapped(error, codec), secrets)


def _traceback_of(error: Exception) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001 - CPython 3.11 parses the lines, and may fail at it
        return "".join(traceback.format_exception_only(error))


def _readable(error: ModelError, secrets: Secrets) -> ModelError:
    """Take secrets out, and halves of surrogate pairs: no log could write them."""
    fields = vars(secrets.scrub(error))
    for name, value in fields.items():
        if isinstance(value, str):
            fields[name] = clean_text(value)
    error.args = (error.message,)
    return error


def _mapped(error: Exception, codec: Codec) -> ModelError:
    try:
        return codec.error_of(error)
    except Exception as err:  # noqa: BLE001 - it must not hide the fault of the service
        service, status = codec.service, getattr(error, "status_code", None)
        what = f"{type(error).__name__}, then {type(err).__name__} in the adapter"
        return ModelError(
            f"the request to {service.label} at {service.endpoint} failed ({what})",
            code_for_status(status) if isinstance(status, int) else "unknown",
            http_status=status if isinstance(status, int) else None,
            provider=service.name,
        )


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
