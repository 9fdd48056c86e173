"""Messages as JSON documents that lose nothing, and back.

A document is `{"version":1,"messages":[…]}`, compact, with the members of a message in
the order of its fields and without those that hold their default. Equal messages give
equal text. Native context is kept as the text that it is, so that the next request after
a round trip is the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, cast

from ._json import dump_json, escape_surrogates, load_json
from .errors import HistoryError
from .messages import MESSAGE_CLASSES, Message

if TYPE_CHECKING:
    from pydantic_core import SchemaSerializer, SchemaValidator, ValidationError

__all__ = [
    "DOCUMENT_VERSION",
    "messages_from_data",
    "messages_from_json",
    "messages_to_data",
    "messages_to_json",
]

DOCUMENT_VERSION = 1
"""The version of the documents that are written; all earlier ones can be read."""

_LONGEST = 300
_MAX_BYTES = 64 * 1024 * 1024
_NEWER = "a newer version of lighter-core may have written the document"


def messages_to_json(messages: Iterable[Message]) -> str:
    """Return the messages as one JSON document.

    The text can always be encoded as UTF-8: lone surrogates are written as escapes. Two
    halves of a surrogate pair side by side come back as the character that they make.

    What is written can be read: what reading would refuse is refused here already.

    Raises:
        TypeError: When something is no message.
        HistoryError: When a message holds what no document can, e.g. native context
            that is no JSON; `path` says which one.
    """
    given = list(messages)
    data = messages_to_data(given)
    try:
        return escape_surrogates(dump_json(data))
    except ValueError:  # a number with more digits than Python writes
        raise _unwritable(given) from None


def messages_to_data(messages: Iterable[Message]) -> object:
    """Return the document as plain data, for documents that hold it; errors as above."""
    given = list(messages)
    for each in given:
        if not isinstance(cast("object", each), MESSAGE_CLASSES):
            raise TypeError(f"a history holds messages, got {type(each).__name__}")
    from pydantic_core import PydanticSerializationError

    try:
        return _plain(given)
    except PydanticSerializationError:
        raise _unwritable(given) from None


def _plain(messages: list[Message]) -> object:
    document = {"version": DOCUMENT_VERSION, "messages": messages}
    return _serializer().to_python(
        document, mode="json", exclude_defaults=True, warnings="error"
    )


def _unwritable(messages: list[Message]) -> HistoryError:
    """Return the error about the first message that cannot be written."""
    for number, each in enumerate(messages):
        try:
            dump_json(_plain([each]))
        except ValueError:  # what pydantic-core raises is one, and repeats the value
            path = f"messages[{number}]"
            text = f"{path} holds a value that no document can: its native context or"
            return HistoryError(f"{text} a number in it is damaged", path=path)
    raise AssertionError  # one of them failed before


def messages_from_json(
    document: str | bytes, *, max_bytes: int = _MAX_BYTES
) -> list[Message]:
    """Return the messages of a document.

    Reading does not repair. A run repairs the messages that it is given; elsewhere
    `check_history` tells whether services would take them.

    Args:
        document: What `messages_to_json` returned, as text or as UTF-8.
        max_bytes: Longer documents are refused unread; characters, for text.

    Raises:
        HistoryError: When it is no such document, or one of a version that is not known;
            `path` says where, e.g. `"messages[3].tool_calls[0]"`.
    """
    given: object = document
    if not isinstance(given, str | bytes):
        raise TypeError(f"a document is str or bytes, got {type(given).__name__}")
    if len(given) > max_bytes:
        raise HistoryError(
            f"the document has a length of {len(given):,}, more than"
            f" max_bytes={max_bytes:,}"
        )
    from pydantic_core import ValidationError

    try:
        if isinstance(given, str):
            given = given.encode("utf-8")
        if _has_surrogates(given):  # which pydantic-core does not read from JSON
            return messages_from_data(load_json(given))
        read: object = _validator().validate_json(given)
    except ValidationError as error:
        raise _refusal(error) from None
    except ValueError as error:
        raise HistoryError(f"the document is not JSON: {error}") from None
    return cast("dict[str, list[Message]]", read)["messages"]


def messages_from_data(data: object) -> list[Message]:
    """Return the messages of a document that is plain data; errors as above."""
    from pydantic_core import ValidationError

    try:
        read: object = _validator().validate_python(data)
    except ValidationError as error:
        raise _refusal(error) from None
    return cast("dict[str, list[Message]]", read)["messages"]


def _has_surrogates(document: bytes) -> bool:
    """Tell whether there may be escapes of surrogates."""
    return b"\\ud" in document or b"\\uD" in document


@cache
def _validator() -> SchemaValidator:
    from pydantic_core import SchemaValidator

    from ._document_schema import CONFIG, document_schema

    return SchemaValidator(document_schema(DOCUMENT_VERSION), CONFIG)


@cache
def _serializer() -> SchemaSerializer:
    from pydantic_core import SchemaSerializer

    from ._document_schema import CONFIG, document_schema

    return SchemaSerializer(document_schema(DOCUMENT_VERSION), CONFIG)


def _refusal(error: ValidationError) -> HistoryError:
    """Return the error about the first fault; another version comes before all."""
    details = error.errors(include_url=False, include_input=False)
    deepest = max(details, key=lambda each: len(each["loc"]))
    fault = next((d for d in details if d["loc"] == ("version",)), deepest)
    path = _path(fault["loc"])
    if fault["type"] == "json_invalid":
        return HistoryError(f"the document is not JSON: {fault['msg']}")
    if path == "version":
        return HistoryError(f"version must be {DOCUMENT_VERSION}: {_NEWER}", path=path)
    if fault["type"] in {"unexpected_keyword_argument", "extra_forbidden"}:
        return HistoryError(f"{path} is not known: {_NEWER}", path=path)
    text = fault["msg"].removeprefix("Value error, ")
    if len(text) > _LONGEST:  # it may repeat what the document holds
        text = f"{text[:_LONGEST]}..."
    return HistoryError(f"{path or 'the document'}: {text}", path=path)


def _path(steps: tuple[int | str, ...]) -> str:
    """Return a place as Python writes it, without the names of kinds in between."""
    from ._document_schema import PARTS

    path = ""
    for n, step in enumerate(steps):
        if isinstance(step, int):
            path += f"[{step}]"
        elif step not in {"str", PARTS} and not _is_kind(steps, n):
            name = step if len(step) <= 60 else f"{step[:57]}..."  # noqa: PLR2004
            path += f".{name}" if path else name
    return path


def _is_kind(steps: tuple[int | str, ...], n: int) -> bool:
    """Tell whether the step names the kind of a message or of a part."""
    from ._document_schema import PARTS

    return n >= 2 and steps[n - 2] in {"messages", PARTS}  # noqa: PLR2004
