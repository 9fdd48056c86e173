"""Messages to the body of a request. Pure functions on plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from lighter_core import (
    ModelError,
    ModelRequest,
    ToolSpec,
    UserMessage,
)
from lighter_core.adapters import (
    ReplayNotes,
    as_object,
    dump_json,
    encode_text,
    json_values_only,
    plain,
)

from ._answers import StructuredOutput, answer_schema
from ._target import BLANK_LINE, Target
from ._turns import SystemMode, Turns

__all__ = ["Options", "encode_request"]

_NO_TOOLS = "the tool_choice was not sent to Claude: the request has no tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What holds for every request of one provider.

    Attributes:
        fields: Top-level fields, `extra_body` among them.
        hosted_tools: The service's own tools.
        system_messages: Whether later system messages stay in their place.
        structured_output: How an answer of a given form is asked for.
    """

    fields: Mapping[str, object]
    hosted_tools: Sequence[Mapping[str, object]] = ()
    system_messages: SystemMode = "merge"
    structured_output: StructuredOutput = "auto"


def encode_request(
    request: ModelRequest,
    target: Target,
    options: Options,
    *,
    stream: bool,
    turns: Turns | None = None,
    in_words: bool = False,
    notes: ReplayNotes | None = None,
) -> bytes:
    """Return the body for a request.

    Native blocks are put in as text, so they leave as they came. The order is fixed: the
    same history gives the same bytes, and a longer history begins with the same turns.
    `turns` writes the messages; it may have written the begin of them before. The form of
    the answer is asked for `in_words` if the service knows no such form, or is said to
    know none. `notes` takes what has to be changed or left out, and where.

    Raises:
        ModelError: `invalid_request` for values that have no JSON form, for parts that
            Claude cannot take, for two tools of one name, and when there is nothing to
            send.
    """
    notes = ReplayNotes() if notes is None else notes
    turns = turns or Turns(target, options.system_messages)
    with json_values_only(target):
        messages = turns.texts(request.messages, notes)
        system = turns.system
        schema = None
        if request.output is not None and not in_words:
            schema = answer_schema(request.output.schema)
        fields = _fields(request, target, options, schema, stream=stream)
        forced = request.tool_choice not in {None, "auto", "none"}
        if forced and "tool_choice" not in fields:
            notes.say(_NO_TOOLS)
        if request.output is not None and schema is None:
            system = [*system, request.output.instruction]
        if system:
            fields["system"] = BLANK_LINE.join(system)
        if turns.container is not None:
            fields["container"] = _container(fields.get("container"), turns.container)
        head = dump_json(fields, default=plain)
    if not messages or _ends_blank(request, turns):
        notes.at(len(request.messages) - 1 if messages else None)
        which = (
            "the last message says nothing" if messages else "no message says anything"
        )
        raise ModelError(
            f"there is nothing to send to {target.label}: {which}",
            "invalid_request",
            provider=target.name,
        )
    text = f'{head[:-1]},"messages":[{",".join(messages)}]}}'
    return encode_text(text)


def _ends_blank(request: ModelRequest, turns: Turns) -> bool:
    """Tell whether a blank message of the user is all that follows a reply."""
    asked = isinstance(request.messages[-1], UserMessage)
    return asked and turns.last_role == "assistant"


def _fields(
    request: ModelRequest,
    target: Target,
    options: Options,
    schema: Mapping[str, object] | None,
    *,
    stream: bool,
) -> dict[str, object]:
    fields: dict[str, object] = {"model": target.model, "stream": stream}
    tools: list[object] = [_tool(spec) for spec in request.tool_specs]
    tools += options.hosted_tools
    if schema is not None:
        wanted = {"type": "json_schema", "schema": schema}
        fields["output_config"] = {"format": wanted}
    more = options.fields.get("tools")
    if isinstance(more, list):
        tools += cast("list[object]", more)
    _need_own_names(tools, target)
    if tools:
        fields["tools"] = tools
        if request.tool_choice is not None:
            fields["tool_choice"] = _tool_choice(request.tool_choice)
    for key, value in options.fields.items():
        known = fields.get(key)
        if key == "output_config" and isinstance(value, Mapping) and known:
            ours = cast("dict[str, object]", known)
            fields[key] = {**ours, **cast("Mapping[str, object]", value)}
        elif key != "tools" or not isinstance(value, list):
            fields[key] = value
    return fields


def _need_own_names(tools: Sequence[object], target: Target) -> None:
    """Refuse two tools of one name: the service could not tell them apart.

    Raises:
        ModelError: `invalid_request`.
    """
    seen: set[str] = set()
    for tool in tools:
        name = (as_object(tool) or {}).get("name")
        if not isinstance(name, str):
            continue
        if name in seen:
            raise ModelError(
                f"two tools for {target.label} have the name {name!r}: rename the"
                " function, or take the tool out of hosted_tools or extra_body",
                "invalid_request",
                provider=target.name,
            )
        seen.add(name)


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
