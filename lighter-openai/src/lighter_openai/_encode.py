"""Messages to the body of a request. Pure functions on plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from lighter_core import ModelRequest, OutputSpec, ToolSpec
from lighter_core.adapters import (
    ReplayNotes,
    closed_schema,
    dump_json,
    encode_text,
    json_values_only,
    map_schema,
    plain,
)

from ._dialect import Target
from ._input import InputItems

__all__ = ["Options", "drop_vain_choice", "encode_request", "output_format"]

Options = Mapping[str, object]
"""Fields that hold for every request of one provider, `extra_body` among them."""

_JOINED = frozenset({"include", "tools"})  # lists to which extra_body adds


def encode_request(
    request: ModelRequest,
    target: Target,
    options: Options,
    *,
    stream: bool,
    writer: InputItems | None = None,
    notes: ReplayNotes | None = None,
) -> bytes:
    """Return the body for a request.

    Native items are put in as text, so they leave as they came. Everything else about
    the order is fixed too: the same history gives the same bytes, and a longer history
    begins with the same items.

    Args:
        request: The request.
        target: Whom it is for.
        options: Fields that hold for every request.
        stream: Whether the reply shall be streamed.
        writer: Writes the messages; it may have written the begin of them before.
        notes: Takes what is lost, and where.

    Raises:
        ModelError: `invalid_request` for values that have no JSON form, and for parts
            that the service cannot take.
    """
    lost = ReplayNotes() if notes is None else notes
    with json_values_only(target):
        fields = _fields(request, target, options, stream=stream)
        drop_vain_choice(fields, options, target, lost)
        head = dump_json(fields, default=plain)
        writer = writer or InputItems(target)
        items = ",".join(writer.texts(request.messages, lost))
    return encode_text(f'{head[:-1]},"input":[{items}]}}')


def _fields(
    request: ModelRequest, target: Target, options: Options, *, stream: bool
) -> dict[str, object]:
    fields: dict[str, object] = {"model": target.model, "stream": stream}
    fields.update(target.dialect.extra_fields)
    if request.tool_specs:
        fields["tools"] = [_tool(spec) for spec in request.tool_specs]
    if request.tool_choice is not None:
        fields["tool_choice"] = _tool_choice(request.tool_choice)
    if request.output is not None:
        fields["text"] = {"format": output_format(request.output)}
    for key, value in options.items():
        known = fields.get(key)
        if key in _JOINED and isinstance(known, list) and isinstance(value, list):
            fields[key] = [*cast("list[object]", known), *cast("list[object]", value)]
        elif key == "text" and isinstance(known, dict) and isinstance(value, Mapping):
            fields[key] = {**cast("Options", known), **cast("Options", value)}
        else:
            fields[key] = value
    return fields


def drop_vain_choice(
    fields: dict[str, object], options: Options, target: Target, notes: ReplayNotes
) -> None:
    """Take out a `tool_choice` where there are no tools: services refuse it.

    One in `extra_body` stays: what stands there is sent as it is.
    """
    if fields.get("tools") or "tool_choice" in options:
        return
    if fields.pop("tool_choice", None) not in (None, "auto", "none"):
        notes.say(
            f"the tool_choice was not sent to {target.name!r}: the request has no tools"
        )


def _tool(spec: ToolSpec) -> dict[str, object]:
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "strict": spec.strict,  # left out, some services would try strict
    }


def _tool_choice(choice: str) -> object:
    if choice in {"auto", "none", "required"}:
        return choice
    return {"type": "function", "name": choice}


def output_format(output: OutputSpec) -> dict[str, object]:
    schema = closed_schema(output.schema)
    return {
        "type": "json_schema",
        "name": re.sub(r"[^A-Za-z0-9_-]", "_", output.name)[:64] or "output",
        "schema": schema,
        "strict": _fits_strict(schema),
    }


def _fits_strict(schema: Mapping[str, object]) -> bool:
    """Tell whether each object in the schema is closed and needs all its properties.

    The service refuses any other schema with `strict: true`.
    """
    loose: list[object] = []

    def look(each: dict[str, Any]) -> dict[str, Any]:
        if each.get("type") == "object" or "properties" in each:
            needed = set(each.get("required") or ())
            if each.get("additionalProperties") is not False or needed != set(
                each.get("properties") or ()
            ):
                loose.append(each)
        return each

    map_schema(schema, look)
    return not loose
