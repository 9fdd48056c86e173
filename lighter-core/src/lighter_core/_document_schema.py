"""The form of a JSON document of messages, version 1, as one table.

Reading, writing and the published JSON Schema follow this table. It repeats the fields
of the message classes on purpose: a field that a class gains cannot change a format that
is out already, and a test compares the two.

pydantic-core does the work. It reads JSON text straight into the classes, without
coercion, and takes no name of a class or function from a document.
"""

from __future__ import annotations

from base64 import b64decode, b64encode

from pydantic_core import core_schema as cs
from pydantic_core import from_json

from ._json import load_json
from .messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    NativeContext,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)

__all__ = ["CONFIG", "PARTS", "document_schema"]

CONFIG = cs.CoreConfig(hide_input_in_errors=True)

PARTS = "<parts>"
"""Stands in the place of an error inside the parts of a user message."""

_TEXT = cs.str_schema(strict=True)
_COUNT = cs.int_schema(strict=True, ge=0)
_FLAG = cs.bool_schema(strict=True)


def document_schema(version: int) -> cs.CoreSchema:
    """Return the table: an object with the version and the messages."""
    fields = {
        "version": cs.typed_dict_field(
            cs.int_schema(strict=True, ge=version, le=version)
        ),
        "messages": cs.typed_dict_field(cs.list_schema(_message(), fail_fast=True)),
    }
    return cs.typed_dict_schema(fields, extra_behavior="forbid", config=CONFIG)


def _message() -> cs.CoreSchema:
    system = _tagged(SystemMessage, "role", "system", content=_TEXT)
    user = _tagged(UserMessage, "role", "user", content=_content())
    assistant = _tagged(
        AssistantMessage,
        "role",
        "assistant",
        content=_TEXT,
        reasoning=_optional(_TEXT),
        tool_calls=_default(cs.tuple_variable_schema(_call()), ()),
        usage=_optional(_usage()),
        stop_reason=_optional(_TEXT),
        native=_optional(_native()),
    )
    tool = _tagged(
        ToolMessage,
        "role",
        "tool",
        call_id=_TEXT,
        tool_name=_TEXT,
        tool_output=_TEXT,
        is_error=_default(_FLAG, default=False),
    )
    choices = {"system": system, "user": user, "assistant": assistant, "tool": tool}
    return cs.tagged_union_schema(choices, "role")


def _content() -> cs.CoreSchema:
    data = cs.no_info_before_validator_function(
        _from_base64,
        cs.bytes_schema(),
        # pydantic-core's own base64 is the one of URLs
        serialization=cs.plain_serializer_function_ser_schema(_to_base64),
    )
    media = {
        "data": _optional(data),
        "url": _optional(_TEXT),
        "media_type": _optional(_TEXT),
    }
    text = _tagged(TextPart, "type", "text", text=_TEXT)
    image = _tagged(ImagePart, "type", "image", **media)
    file = _tagged(FilePart, "type", "file", **media, name=_optional(_TEXT))
    part = cs.tagged_union_schema({"text": text, "image": image, "file": file}, "type")
    return cs.union_schema([_TEXT, (cs.tuple_variable_schema(part), PARTS)])


def _call() -> cs.CoreSchema:
    return _object(ToolCall, call_id=_TEXT, tool_name=_TEXT, arguments=_TEXT)


def _usage() -> cs.CoreSchema:
    return _object(
        Usage,
        input_tokens=_COUNT,
        output_tokens=_COUNT,
        cache_read_tokens=_default(_COUNT, 0),
        cache_write_tokens=_default(_COUNT, 0),
        reasoning_tokens=_default(_COUNT, 0),
    )


def _native() -> cs.CoreSchema:
    return _object(
        NativeContext,
        v=_COUNT,
        provider=_TEXT,
        endpoint=_TEXT,
        api=_TEXT,
        model=_TEXT,
        items=cs.no_info_after_validator_function(
            _need_array,
            _TEXT,
            serialization=cs.plain_serializer_function_ser_schema(_need_array),
        ),
        seal=_TEXT,
    )


def _tagged(
    cls: type, tag: str, constant: str, /, **fields: cs.CoreSchema
) -> cs.CoreSchema:
    return _object(cls, **{tag: cs.literal_schema([constant])}, **fields)


def _object(cls: type, /, **fields: cs.CoreSchema) -> cs.CoreSchema:
    table = [cs.dataclass_field(n, each, kw_only=True) for n, each in fields.items()]
    return cs.dataclass_schema(
        cls,
        cs.dataclass_args_schema(cls.__name__, table, extra_behavior="forbid"),
        list(fields),
        post_init=hasattr(cls, "__post_init__"),
        slots=True,
        config=CONFIG,
    )


def _optional(schema: cs.CoreSchema) -> cs.CoreSchema:
    """A field that is left out of a document while it is `None`."""
    return _default(cs.nullable_schema(schema), None)


def _default(schema: cs.CoreSchema, default: object) -> cs.CoreSchema:
    """A field that is left out of a document while it has its default."""
    return cs.with_default_schema(schema, default=default)


def _to_base64(value: bytes) -> str:
    return b64encode(value).decode("ascii")


def _from_base64(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError("must be base64 text")  # noqa: TRY004 - pydantic's protocol
    return b64decode(value, validate=True)


def _need_array(text: str) -> str:
    """Native items go into requests as they are: they must be what they claim to be."""
    try:
        value: object = from_json(text, allow_inf_nan=False)
    except (TypeError, ValueError):  # TypeError: text with lone surrogates
        value = load_json(text)  # which knows surrogates and more depth
    if not isinstance(value, list):
        raise ValueError("must be JSON text of an array")  # noqa: TRY004 - the same
    return text
