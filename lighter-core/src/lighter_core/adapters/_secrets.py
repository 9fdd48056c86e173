"""Keeping keys out of everything that can be reached from an exception."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

from .._redact import redact

__all__ = ["Secrets", "clear_locals", "drop_frames"]

_ErrorT = TypeVar("_ErrorT", bound=BaseException)
_DEEPEST = 50
_SENT = {"headers", "proxy_auth"}
_FRAMING = {"content-encoding", "content-length", "transfer-encoding"}


class Secrets:
    """Texts that must not show; its own text does not show them either.

    Tools that render a traceback with the local variables of each frame show what stands
    in them: hold keys in one of these.

    Args:
        values: The texts; `None` and empty ones are left out.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Iterable[str | None] = ()) -> None:
        # The longest first: one may be a part of another.
        found = sorted({each for each in values if each}, key=len, reverse=True)
        self._values = tuple(found)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._values)} hidden)"

    def text(self, text: str) -> str:
        """Return a text without the secrets, and without user and query of its URLs."""
        return redact(text, *self._values)

    def clean(self, value: object, depth: int = _DEEPEST) -> object:
        """Return a value without the secrets, inside lists, dicts and bytes too.

        Requests and replies of the transport become new ones: without the headers that
        were sent, which hold the key, and with what the service said, cleaned. What lies
        too deep is left out.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            text = self.text(value.decode("utf-8", "surrogateescape"))
            return text.encode("utf-8", "surrogateescape")
        if isinstance(value, list | tuple | Mapping):
            return self._inside(value, depth) if depth else "[left out]"
        return self._exchanged(value)

    def _inside(self, value: Any, depth: int) -> object:
        if isinstance(value, Mapping):
            entries = cast("Mapping[object, object]", value).items()
            return {self.clean(k, 1): self.clean(e, depth - 1) for k, e in entries}
        if hasattr(value, "_replace"):
            return self._named(value, depth)
        found = [self.clean(e, depth - 1) for e in cast("Iterable[object]", value)]
        return tuple(found) if isinstance(value, tuple) else found

    def _named(self, value: Any, depth: int) -> object:
        """Return a named tuple of its type: aiohttp's errors make their text from it."""
        found = {
            name: None if name in _SENT else self.clean(each, depth - 1)
            for name, each in value._asdict().items()
        }
        return value._replace(**found)

    def _exchanged(self, value: object) -> object:
        if type(value).__name__ == "URL":  # every library has its own
            return self.text(str(value))
        if hasattr(value, "status_code") and hasattr(value, "headers"):
            return self._reply(value)
        if hasattr(value, "method") and hasattr(value, "headers"):
            return self._request(value)
        return value

    def _request(self, request: Any) -> object:
        return type(request)(request.method, self.text(str(request.url)))

    def _reply(self, reply: Any) -> object:
        content, request = b"", None
        with suppress(RuntimeError):  # it was not read
            content = reply.content
        with suppress(RuntimeError):  # it answers no request
            request = self._request(reply.request)
        headers = cast("Mapping[str, str]", reply.headers)
        return type(reply)(
            reply.status_code,
            headers={k: self.text(v) for k, v in headers.items() if k not in _FRAMING},
            content=self.clean(content),
            request=request,
        )

    def scrub(self, error: _ErrorT) -> _ErrorT:
        """Clean an exception and all that it came from; return it.

        Arguments, attributes and notes are replaced, so that neither a traceback nor a
        look at the SDK's exception shows a secret.
        """
        for each in _chain(error):
            if isinstance(each, UnicodeDecodeError):  # it holds the bytes
                each.object = b""
                each.args = (each.encoding, b"", each.start, each.end, each.reason)
            each.args = cast("tuple[object, ...]", self.clean(each.args))
            attributes = vars(each)
            for name, value in attributes.items():
                attributes[name] = self.clean(value)
        return error


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", each).exceptions


def drop_frames(error: BaseException) -> None:
    """Take the frames out of the exceptions in the chain, for a short traceback.

    They lie inside the SDK and its transport, where no application finds its fault.
    What was raised and why stays.
    """
    for each in _chain(error):
        each.__traceback__ = None


def clear_locals(error: _ErrorT) -> _ErrorT:
    """Empty the frames that the exceptions in the chain have left; return the error.

    Lines stay, so a traceback says where; the bytes of a reply do not stay.
    """
    for each in _chain(error):
        traceback.clear_frames(each.__traceback__)
    return error
