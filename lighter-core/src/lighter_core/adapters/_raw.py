"""JSON text cut out of JSON text.

Items are sent back with the bytes that the service chose. Parsing and writing again
would change numbers such as `1e400` and merge duplicate keys, so the text of a value is
cut out, never rebuilt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from .._json import load_json

__all__ = [
    "Member",
    "ShapeError",
    "as_list",
    "as_object",
    "elements",
    "fast_load",
    "integer_in",
    "is_empty",
    "member_elements",
    "member_text",
    "members",
]

_BRACKET = re.compile(r"[ \t\n\r]*([\[{])[ \t\n\r]*")
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_SIGN = re.compile(r"[ \t\n\r]*([,\]}])[ \t\n\r]*")
_PLAIN_MEMBER = re.compile(  # nearly all: a key and a value that hold no others
    r'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*'
    r'("[^"\\\x00-\x1f]*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null)'
    r"[ \t\n\r]*([,}])[ \t\n\r]*",
    re.ASCII,
)
_DECODER = json.JSONDecoder()
_SHORT = 20  # nearly no event is


class ShapeError(Exception):
    """The JSON is not shaped as the interface documents it; says what is wrong."""


# `cast` would be a call of its own, and these run several times for each event.


def as_object(value: object) -> dict[str, object] | None:
    """Return a decoded JSON object, or `None` for any other value."""
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def as_list(value: object) -> list[object] | None:
    """Return a decoded JSON array, or `None` for any other value."""
    return value if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]


def integer_in(value: object, *keys: str) -> int:
    """Return the first of an object's members that is an integer, 0 without one."""
    fields = as_object(value)
    if fields is not None:
        for key in keys:
            number = fields.get(key)
            if isinstance(number, int) and not isinstance(number, bool):
                return number
    return 0


class Member(NamedTuple):
    """One member of a JSON object."""

    key: str
    value: object
    text: str  # of the value
    whole: str  # key, colon and value


def _value_at(text: str, position: int) -> tuple[object, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _open(text: str, bracket: str, start: int = 0) -> int:
    """Step behind the opening bracket and the space there."""
    found = _BRACKET.match(text, start)
    if found is None or found[1] != bracket:
        raise ValueError(f"expected {bracket!r} at the begin")
    return found.end()


def _next(text: str, position: int, closing: str) -> tuple[int, bool]:
    """Step over a comma, or over the closing bracket; tell whether it was the end."""
    found = _SIGN.match(text, position)
    if found is None or found[1] not in {",", closing}:
        raise ValueError(f"expected ',' or {closing!r} at character {position}")
    return found.end(), found[1] == closing


def _member(text: str, start: int) -> tuple[str, object, int, int]:
    """Return a member's key and value, and where the value begins and ends."""
    key, position = _value_at(text, start)
    colon = _COLON.match(text, position)
    if not isinstance(key, str) or colon is None:
        raise ValueError(f"expected a key and ':' at character {position}")
    value, end = _value_at(text, colon.end())
    return key, value, colon.end(), end


def members(text: str, parsed: Mapping[str, object] | None = None) -> list[Member]:
    """Return the members of the object that the text holds, duplicates included.

    Args:
        text: The object.
        parsed: The object that was read from the text already, if it was: plain values
            are taken from it, so duplicates have the value of the last.

    Raises:
        ValueError: When the text is no JSON object.
    """
    known: Mapping[str, object] = {} if parsed is None else parsed
    found: list[Member] = []
    position = _open(text, "{")
    ended = text.startswith("}", position)
    while not ended:
        plain = _PLAIN_MEMBER.match(text, position)
        if plain is not None and plain[1] in known:
            key, written, sign = plain.groups()
            whole = text[position : plain.end(2)]
            found.append(Member(key, known[key], written, whole))
            position, ended = plain.end(), sign == "}"
            continue
        key, value, begin, end = _member(text, position)
        found.append(Member(key, value, text[begin:end], text[position:end]))
        position, ended = _next(text, end, "}")
    return found


def member_text(text: str, key: str, parsed: Mapping[str, object] | None = None) -> str:
    """Return the JSON text of one member of an object; the last one counts.

    A missing one is `null`.

    Args:
        text: The object.
        key: The member's name; without escapes, as in JSON text.
        parsed: The object that was read from the text already, if it was: the member
            is found sooner then.

    Raises:
        ValueError: When the text is no JSON object.
    """
    start = _only(text, key, parsed)
    if start is not None:
        return text[start : _value_at(text, start)[1]]
    found = "null"
    position = _open(text, "{")
    ended = text.startswith("}", position)
    while not ended:
        plain = _PLAIN_MEMBER.match(text, position)
        if plain is not None:
            known, value, sign = plain.groups()
            position, ended = plain.end(), sign == "}"
        else:
            known, _, begin, end = _member(text, position)
            value = text[begin:end]
            position, ended = _next(text, end, "}")
        if known == key:
            found = value
    return found


def _only(text: str, key: str, parsed: Mapping[str, object] | None) -> int | None:
    """Return where the value of a member begins that is there, and no other of its name.

    `None` when that cannot be told so easily: inner objects may have such a member too,
    and a name may be written with escapes.
    """
    if parsed is None or key not in parsed or "\\u00" in text:
        return None
    named = _name(key)
    found = named.search(text)
    if found is None or named.search(text, found.end()) is not None:
        return None
    return found.end()


@cache
def _name(key: str) -> re.Pattern[str]:
    """Return what finds a member's name; it ends where the value begins."""
    return re.compile(rf'"{re.escape(key)}"[ \t\n\r]*:[ \t\n\r]*')


def member_elements(
    text: str, key: str, parsed: Mapping[str, object] | None = None
) -> list[tuple[object, str]]:
    """Return the elements of an array that is a member of an object, as `elements` does.

    The arguments are those of `member_text`.

    Raises:
        ValueError: When the text is no JSON object, or the member no array.
    """
    start = _only(text, key, parsed)
    return elements(member_text(text, key)) if start is None else elements(text, start)


def elements(text: str, start: int = 0) -> list[tuple[object, str]]:
    """Return each element of the array that the text holds, with its own text.

    Args:
        text: The array, and what else stands before or behind it.
        start: Where it begins.

    Raises:
        ValueError: When there is no JSON array.
    """
    position = _open(text, "[", start)
    found: list[tuple[object, str]] = []
    ended = text.startswith("]", position)
    while not ended:
        value, end = _value_at(text, position)
        found.append((value, text[position:end]))
        position, ended = _next(text, end, "]")
    return found


def is_empty(data: bytes) -> bool:
    """Tell whether an event has no data, or the mark that ends some streams."""
    return (len(data) < _SHORT or data.isspace()) and data.strip() in {b"", b"[DONE]"}


@cache
def fast_load() -> Callable[[bytes], object]:
    """Return the parser for events; benchmarks/json_decoding.py measures it.

    The fast parser refuses a lone half of a surrogate pair, which is legal JSON; what
    it refuses, the strict parser of the core judges again.
    """
    from jiter import from_json

    def load(data: bytes) -> object:
        try:
            return from_json(data, allow_inf_nan=False)
        except ValueError:
            return load_json(data.decode("utf-8"))

    return load
