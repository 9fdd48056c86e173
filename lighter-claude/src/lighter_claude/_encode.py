"""Messages to the body of a request. Pure functions on plain data."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from lighter_core import (
    ModelError,
    ModelRequest,
    ToolSpec,
    UserMessage,
)
from lighter_core.adapters import dump_json, encode_text, plain

from ._answers import answer_schema
from ._target import BLANK_LINE, Target
from ._turns import SystemMode, Turns

__all__ = ["Encoded", "Options", "encode_request"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What holds for every request of one provider.

    Attributes:
        fields: Top-level fields, `extra_body` among them.
        hosted_tools: The service's own tools.
        system_messages: Whether later system messages stay in their place.
    """

    fields: Mapping[str, object]
    hosted_tools: Sequence[Mapping[str, object]] = ()
    system_messages: SystemMode = "merge"


@dataclass(frozen=True, slots=True)
class Encoded:
    """A request's body, and what had to be changed or left out for it."""

    body: bytes
    notes: tuple[str, ...]


def encode_request(
    request: ModelRequest,
    target: Target,
    options: Options,
    *,
    stream: bool,
    refused: Container[object] = (),
) -> Encoded:
    """Return the body for a request.

    Native blocks are put in as text, so they leave as they came. The order is fixed: the
    same history gives the same bytes, and a longer history begins with the same turns.
    Of `refused` replies no thinking is sent back.

    Raises:
        ModelError: `invalid_request` for values that have no JSON form, for parts that
            Claude cannot take, and when there is nothing to send.
    """
    turns = Turns(target, options.system_messages, refused)
    try:
        messages = turns.take(request.messages)
        fields = _fields(request, target, options, stream=stream)
        if request.output is not None and answer_schema(request.output.schema) is None:
            turns.system.append(request.output.instruction)
        if turns.system:
            fields["system"] = BLANK_LINE.join(turns.system)
        if turns.container is not None:
            fields["container"] = _container(fields.get("container"), turns.container)
        head = dump_json(fields, default=plain)
    except (TypeError, ValueError, RecursionError) as err:
        raise ModelError(
            f"the request cannot be written as JSON: {err}; tool schemas, thinking and"
            " extra_body must hold JSON values only",
            "invalid_request",
            provider=target.name,
        ) from err
    if not messages or _ends_blank(request, turns):
        which = (
            "the last message says nothing" if messages else "no message says anything"
        )
        raise ModelError(
            f"there is nothing to send to {target.label}: {which}",
            "invalid_request",
            provider=target.name,
        )
    text = f'{head[:-1]},"messages":[{",".join(messages)}]}}'
    return Encoded(encode_text(text), tuple(turns.notes))


def _ends_blank(request: ModelRequest, turns: Turns) -> bool:
    """Tell whether a blank message of the user is all that follows a reply."""
    asked = isinstance(request.messages[-1], UserMessage)
    return asked and turns.last_role == "assistant"


def _fields(
    request: ModelRequest, target: Target, options: Options, *, stream: bool
) -> dict[str, object]:
    fields: dict[str, object] = {"model": target.model, "stream": stream}
    tools: list[object] = [_tool(spec) for spec in request.tool_specs]
    tools += options.hosted_tools
    schema = None if request.output is None else answer_schema(request.output.schema)
    if schema is not None:
        form = {"type": "json_schema", "schema": schema}
        fields["output_config"] = {"format": form}
    for key, value in options.fields.items():
        known = fields.get(key)
        if key == "tools" and isinstance(value, list):
            tools += cast("list[object]", value)
        elif isinstance(known, dict) and isinstance(value, Mapping):
            ours = cast("dict[str, object]", known)
            fields[key] = {**cast("Mapping[str, object]", value), **ours}
        else:
            fields[key] = value
    if tools:
        fields["tools"] = tools
    choice = request.tool_choice
    if choice is not None and (tools or choice not in {"auto", "none"}):
        fields["tool_choice"] = _tool_choice(choice)
    return fields


def _container(chosen: object, known: str) -> object:
    """Return what the caller chose; without an id there, the newest reply's."""
    if isinstance(chosen, Mapping):
        return {"id": known, **cast("Mapping[str, object]", chosen)}
    return known if chosen is None else chosen


def _tool(spec: ToolSpec) -> dict[str, object]:
    tool: dict[str, object] = {
        "name": spec.name,
        "description": spec.description,
        "input_schema": spec.parameters,
    }
    return {**tool, "strict": True} if spec.strict else tool


def _tool_choice(choice: str) -> dict[str, object]:
    if choice in {"auto", "none"}:
        return {"type": choice}
    if choice == "required":
        return {"type": "any"}
    return {"type": "tool", "name": choice}
