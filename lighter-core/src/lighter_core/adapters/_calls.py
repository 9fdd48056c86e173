"""Tool calls of a history, as every service takes them."""

from __future__ import annotations

import re

from .._json import clean_text, dump_json, load_json
from ..messages import ToolCall
from ._raw import as_object

__all__ = ["arguments_text", "is_object", "normal_call_id", "normal_tool_name"]

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ODD = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


def normal_call_id(call_id: str) -> str:
    """Return a call id that every service accepts: itself, else a digest of it.

    The same id always gives the same digest, so a call and its result stay together.
    """
    if _CALL_ID.fullmatch(call_id):
        return call_id
    import hashlib

    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[:32]}"


def normal_tool_name(name: str) -> str:
    """Return a tool's name that every service accepts; models make up others."""
    if name and len(name) <= _LONGEST_NAME and not _ODD.search(name):
        return name
    return _ODD.sub("_", name)[:_LONGEST_NAME] or "_"


def is_object(call: ToolCall) -> bool:
    """Tell whether a call's arguments are the JSON text of an object, or blank."""
    return _read(call)[0]


def arguments_text(call: ToolCall) -> str | None:
    """Return a call's arguments as the JSON text of an object; blank is `{}`.

    It can be written as UTF-8. `None` when they are no object, and for numbers that
    are infinite in Python.
    """
    return _read(call)[1]


def _read(call: ToolCall) -> tuple[bool, str | None]:
    """Read the arguments once for all requests that they are a part of."""
    known: object = getattr(call, "_memo", None)
    if isinstance(known, tuple):
        return known  # pyright: ignore[reportUnknownVariableType]
    found = _read_anew(call.arguments.strip())
    object.__setattr__(call, "_memo", found)
    return found


def _read_anew(text: str) -> tuple[bool, str | None]:
    if not text:
        return True, "{}"
    try:
        value = as_object(load_json(text))
    except ValueError:
        return False, None
    if value is None:
        return False, None
    try:
        whole = dump_json(value)
    except ValueError:
        return True, None
    # An escaped half of a character is legal JSON, and yet it is refused.
    return True, text if clean_text(whole) == whole else whole
