"""Values and errors of tools as the text that the model reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from ._json import clean_text, dump_json
from ._redact import redact
from .errors import ToolError

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = ["MAX_ERROR_TEXT", "error_text", "result_text", "shorten", "validation_text"]

MAX_ERROR_TEXT = 500
"""Characters of an error that the model may read; the log has the whole at DEBUG."""

_CUT = " … [cut]"

_PLAIN_RULES = {  # the library speaks of Python's arguments here, the model of JSON
    "missing_keyword_only_argument": "is required",
    "unexpected_keyword_argument": "is no known argument",
    "union_tag_invalid": "has a tag that is none of those in the schema",  # no echo
}

# A path of two parts or more. What stands before it must not make it part of a URL.
_POSIX_PATH = re.compile(
    r"(?:file://|(?<![\w:/.]))(?:/[^\s/'\"<>:|]+)+/([^\s/'\"<>:|]+)"
)
_WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\(?:[^\s\\'\"<>:|]+\\)*([^\s\\'\"<>:|]+)")


def result_text(value: object) -> str:
    """Return a tool's result as compact JSON text; a `str` keeps its JSON quotes.

    Beyond JSON's own types: dataclasses and pydantic models by their fields, named
    tuples, sets and generators as arrays, dates as ISO text, enums by value, bytes as
    UTF-8 text. `None` is `null`. Lone surrogates are replaced.

    Raises:
        ValueError: For NaN and infinities, circular values, bytes that are no UTF-8.
        TypeError: For values without a JSON form.
    """
    return clean_text(dump_json(value, default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value, inf_nan_mode="constants", by_alias=True)
    except PydanticSerializationError as error:
        kind = type(value).__name__
        raise TypeError(f"a result of type {kind} has no JSON form") from error


def error_text(error: BaseException) -> str:
    """Return what the model reads of a tool's exception: short, no paths, no input.

    `ToolError` passes verbatim. Of an `OSError` only the system's message is used,
    without the file name; of a validation error the place and the rule, never the value.
    """
    if isinstance(error, ToolError):  # a subclass may have its own constructor
        return clean_text(f"{getattr(error, 'message', error)}")
    if isinstance(error, BaseExceptionGroup):  # what a TaskGroup makes of an error
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return shorten("; ".join(error_text(each) for each in inner))
    name = type(error).__name__
    text = _plain_text(error)
    return shorten(f"{name}: {text}" if text else name)


def _plain_text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return str(error.strerror)
    if hasattr(error, "errors") and type(error).__module__.startswith("pydantic_core"):
        return validation_text(error)  # type: ignore[arg-type]
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a __str__ that fails must not fail the run
        return ""
    text = redact(text[: 4 * MAX_ERROR_TEXT])
    return _WINDOWS_PATH.sub(r"\1", _POSIX_PATH.sub(r"\1", text))


def validation_text(error: ValidationError) -> str:
    """Return `place: rule` for each fault, without the values."""
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    lines: list[str] = []
    for fault in faults:
        place = ".".join(str(part) for part in fault["loc"])
        rule = _PLAIN_RULES.get(fault["type"], fault["msg"])
        lines.append(f"{place}: {rule}" if place else rule)
    return "; ".join(lines)


def shorten(text: str, limit: int = MAX_ERROR_TEXT) -> str:
    """Return at most `limit` characters, with a visible mark where text was cut."""
    text = clean_text(text)
    if len(text) <= limit:
        return text
    return text[: limit - len(_CUT)] + _CUT
