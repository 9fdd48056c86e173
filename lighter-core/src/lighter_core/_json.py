"""Strict JSON: what Lighter writes is valid JSON in valid UTF-8."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NoReturn

__all__ = [
    "TextJoiner",
    "clean_text",
    "dump_json",
    "encode_json",
    "encode_text",
    "escape_surrogates",
    "load_json",
]


def clean_text(text: str) -> str:
    """Replace lone surrogates by U+FFFD and join halves of a pair; else the same text.

    Lone surrogates cannot be encoded as UTF-8: both vendor SDKs fail on them before
    anything is sent.
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raw = text.encode("utf-16-le", "surrogatepass")
        return raw.decode("utf-16-le", "replace")
    return text


class TextJoiner:
    """Joins text that arrives in pieces and may be cut inside a surrogate pair.

    A service may write one emoji as two JSON escapes and cut the event between them;
    each half alone cannot be shown. A half at the end of a piece waits for the next.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return the text that is complete so far; it may be empty."""
        if not self._held and piece.isascii():
            return piece  # nearly always
        if self._held:
            piece, self._held = self._held + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._held = piece[:-1], piece[-1]
        return clean_text(piece)

    def finish(self) -> str:
        """Return what was held back, as U+FFFD."""
        rest, self._held = self._held, ""
        return clean_text(rest)


@lru_cache(maxsize=16)  # making one costs more than it takes to write a short text
def _encoder(default: Callable[[object], object] | None) -> Callable[[object], str]:
    return json.JSONEncoder(
        ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=default
    ).encode


def dump_json(
    value: object, *, default: Callable[[object], object] | None = None
) -> str:
    """Return compact JSON text.

    Raises:
        ValueError: For NaN, infinities and circular references.
        TypeError: For values without a JSON form, unless `default` gives one.
    """
    return _encoder(default)(value)


_SURROGATE = re.compile("[\ud800-\udfff]")


def escape_surrogates(text: str) -> str:
    """Return JSON text with lone surrogates as escapes, which UTF-8 can hold."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def encode_json(value: object) -> bytes:
    """Return compact JSON as UTF-8; lone surrogates become U+FFFD.

    This is the one place where request bodies lose what UTF-8 cannot hold.
    """
    return encode_text(dump_json(value))


def encode_text(text: str) -> bytes:
    """Return text as UTF-8; lone surrogates become U+FFFD."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return clean_text(text).encode("utf-8")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def load_json(text: str | bytes) -> object:
    """Parse JSON strictly.

    Raises:
        ValueError: For anything that is not JSON, the tokens NaN and Infinity, nesting
            that is too deep and numbers that are too long.
    """
    if not isinstance(text, str):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    if text.startswith("\ufeff"):
        raise ValueError("the JSON begins with a byte order mark")
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
