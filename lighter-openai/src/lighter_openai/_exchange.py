"""One request and its reply: errors mapped, durations logged, connection released."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from lighter_core import ModelError
from lighter_core.adapters import redact

from ._decode import decode_body
from ._dialect import Target, as_object
from ._errors import bad_response, error_in_reply, error_of, short
from ._raw import fast_load

if TYPE_CHECKING:
    from lighter_core import AssistantMessage, ProviderStreamEvent

    from ._client import Clients, Reply
    from ._stream import StreamDecoder

__all__ = ["Exchange"]

_log = logging.getLogger("lighter.openai")


class Exchange:
    """A reply whose failures are `ModelError`s that name the request.

    Open one with `Exchange.open`, always end with `aclose`.
    """

    def __init__(self, reply: Reply, target: Target, secrets: tuple[str, ...]) -> None:
        self.ignored = 0
        self._reply = reply
        self._target = target
        self._secrets = secrets
        self._started = time.perf_counter()
        self._outcome = "left early"

    @classmethod
    async def open(
        cls,
        clients: Clients,
        body: bytes,
        *,
        stream: bool,
        target: Target,
        secrets: tuple[str, ...],
    ) -> Exchange:
        """Send a request.

        Raises:
            ModelError: When no reply with a good status comes.
        """
        started = time.perf_counter()
        _debug("request to %s begins", target, lighter_bytes=len(body))
        try:
            reply = await clients.post(body, stream=stream)
        except ImportError as err:
            raise ModelError(
                f"the SDK of {target.dialect.label} cannot be imported: {err}; install"
                " it with: pip install openai",
                "unknown",
                provider=target.dialect.name,
            ) from err
        except Exception as err:
            error = error_of(err, target, *secrets)
            _debug(
                "request to %s failed",
                target,
                lighter_code=error.code,
                lighter_status=error.http_status,
                lighter_request_id=error.request_id,
                lighter_seconds=time.perf_counter() - started,
            )
            raise error from err
        exchange = cls(reply, target, secrets)
        exchange._started = started
        return exchange

    async def message(self) -> AssistantMessage:
        """Return the message of a reply that comes whole."""
        try:
            body = await self._reply.read_all()
        except Exception as err:
            raise self._broken(err) from err
        try:
            message = decode_body(body, self._target)
        except ModelError as err:
            self._complete(err)
            raise
        self._outcome = "complete"
        return message

    async def need_event_stream(self) -> None:
        """Refuse a reply of another kind; what it says decides how.

        Raises:
            ModelError: The error that a JSON body reports, else `bad_response`.
        """
        kind = self._reply.content_type.partition(";")[0].strip().lower()
        if kind in {"", "text/event-stream"}:
            return
        try:
            body = await self._reply.read_some()
        except Exception as err:
            raise self._broken(err) from err
        try:
            value = as_object(fast_load()(body)) or {}
        except ValueError:
            value = {}
        reported = as_object(value.get("error"))
        if reported is not None:
            error = error_in_reply(self._target, reported, response_status=None)
        else:
            begin = short(body[:60].decode("utf-8", "replace"))
            what = f"it is {kind} instead of an event stream"
            error = bad_response(self._target, f"{what} and begins with {begin!r}")
        raise self._complete(error)

    async def read(self) -> bytes | None:
        """Return the next bytes of the reply, `None` at its end."""
        try:
            return await self._reply.read()
        except Exception as err:
            raise self._broken(err) from err

    def decode(self, decoder: StreamDecoder, data: bytes) -> list[ProviderStreamEvent]:
        """Give the decoder the data of an event."""
        try:
            events = decoder.feed(data)
        except ModelError as err:
            self._complete(err)
            raise
        if decoder.message is not None:
            self._outcome = "complete"
        return events

    def ended_early(self, decoder: StreamDecoder) -> ModelError:
        """Return the error for a stream that ended without saying how."""
        return self._complete(decoder.ended_early())

    async def drain(self) -> None:
        """Read to the end if it comes at once."""
        await self._reply.drain()

    async def aclose(self) -> None:
        """Release the connection."""
        try:
            await self._reply.aclose()
        finally:
            _debug(
                f"reply from %s: {self._outcome}",
                self._target,
                lighter_status=self._reply.status,
                lighter_request_id=self._reply.request_id,
                lighter_seconds=time.perf_counter() - self._started,
                lighter_ignored_events=self.ignored,
            )

    def _broken(self, error: Exception) -> ModelError:
        return self._complete(error_of(error, self._target, *self._secrets))

    def _complete(self, error: ModelError) -> ModelError:
        """Add to an error what only the exchange knows; take secrets out of its text."""
        self._outcome = f"failed with {error.code}"
        error.request_id = error.request_id or self._reply.request_id
        error.message = redact(error.message, *self._secrets)
        error.args = (error.message,)
        return error


def _debug(text: str, target: Target, **fields: object) -> None:
    if _log.isEnabledFor(logging.DEBUG):
        extra = {
            "lighter_provider": target.dialect.name,
            "lighter_model": target.model,
            "lighter_endpoint": target.endpoint,
            **fields,
        }
        _log.debug(text, target.endpoint, extra=extra)
