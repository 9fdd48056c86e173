"""What a reply to a request for a stream is: an event stream, or something else."""

from __future__ import annotations

from contextlib import suppress

from .._sse import EventStreamSplitter
from ._faults import short
from ._raw import as_object, fast_load
from ._sender import Reply

__all__ = ["Opening", "last_events", "object_in"]

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class Opening:
    """A reply that is looked at before it is read.

    The content type alone does not tell: servers and gateways send event streams under
    any, and whole replies in their place.
    """

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._begin = b""
        self._kind = reply.content_type.partition(";")[0].strip().lower()

    async def is_event_stream(self) -> bool:
        """Read as much as tells; nothing of a reply that says what it is."""
        while self._kind != "text/event-stream" and (
            not self._begin.startswith(_FIELDS)
            and any(each.startswith(self._begin) for each in (_BOM, *_FIELDS))
        ):
            piece = await self._reply.read()
            if piece is None:
                break
            self._begin = (self._begin + piece).lstrip().removeprefix(_BOM).lstrip()
        if self._kind == "text/event-stream" or self._begin.startswith(_FIELDS):
            return True
        return not self._kind and not self._begin.startswith(b"{")

    def take(self) -> bytes:
        """Return what was read while the reply was looked at."""
        begin, self._begin = self._begin, b""
        return begin

    async def instead(self) -> bytes:
        """Return the whole object that came in place of a stream, else some of it."""
        if self._begin.startswith(b"{"):
            return await self._reply.read_value(
                self._begin, lambda body: object_in(body) is not None
            )
        return await self._reply.read_some(self._begin)

    def words(self, body: bytes) -> str:
        """Return what is said of a body that is no event stream."""
        begin = short(body[:60].decode("utf-8", "replace"))
        kind = self._kind or "of no named type"
        return f"it is {kind} instead of an event stream and begins with {begin!r}"


def object_in(body: bytes) -> dict[str, object] | None:
    """Return the JSON object that a body is, if it is one."""
    with suppress(ValueError):
        return as_object(fast_load()(body))
    return None


def last_events(splitter: EventStreamSplitter) -> list[bytes]:
    """Return the event that the stream's end completed, unless it was cut inside it."""
    whole: list[bytes] = []
    for data in splitter.finish():
        with suppress(ValueError):
            if data.strip() != b"[DONE]":
                fast_load()(data)
            whole.append(data)
    return whole
