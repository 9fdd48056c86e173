"""Messages to the body of a request. Pure functions on plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from lighter_core import (
    AssistantMessage,
    ContentPart,
    FilePart,
    ImagePart,
    Message,
    ModelError,
    ModelRequest,
    OutputSpec,
    SystemMessage,
    TextPart,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from lighter_core.adapters import (
    as_list,
    as_object,
    dump_json,
    elements,
    encode_text,
    normal_call_id,
    plain,
)

from ._dialect import Target

__all__ = ["Options", "encode_request"]

Options = Mapping[str, object]
"""Fields that hold for every request of one provider, `extra_body` among them."""

_JOINED = frozenset({"include", "tools"})  # lists to which extra_body adds


def encode_request(
    request: ModelRequest,
    target: Target,
    options: Options,
    *,
    stream: bool,
    replay: bool = True,
) -> bytes:
    """Return the body for a request.

    Native items are put in as text, so they leave as they came. Everything else about
    the order is fixed too: the same history gives the same bytes, and a longer history
    begins with the same items. Without `replay` all items are made from public fields.

    Raises:
        ModelError: `invalid_request` for values that have no JSON form.
    """
    try:
        fields = _fields(request, target, options, stream=stream)
        head = dump_json(fields, default=plain)
        items = ",".join(_input_items(request.messages, target, replay=replay))
    except (TypeError, ValueError, RecursionError) as err:
        raise ModelError(
            f"the request cannot be written as JSON: {err}; tool schemas, reasoning and"
            " extra_body must hold JSON values only",
            "invalid_request",
            provider=target.dialect.name,
        ) from err
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
        fields["text"] = {"format": _output_format(request.output)}
    for key, value in options.items():
        known = fields.get(key)
        if key in _JOINED and isinstance(known, list) and isinstance(value, list):
            fields[key] = [*cast("list[object]", known), *cast("list[object]", value)]
        elif key == "text" and isinstance(known, dict) and isinstance(value, Mapping):
            fields[key] = {**cast("Options", value), **cast("Options", known)}
        else:
            fields[key] = value
    return fields


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


def _output_format(output: OutputSpec) -> dict[str, object]:
    return {
        "type": "json_schema",
        "name": re.sub(r"[^A-Za-z0-9_-]", "_", output.name)[:64] or "output",
        "schema": output.schema,
        "strict": _fits_strict(output.schema),
    }


def _fits_strict(schema: object) -> bool:
    """Tell whether each object in the schema is closed and needs all its properties.

    The service refuses any other schema with `strict: true`.
    """
    if isinstance(schema, Mapping):
        fields = cast("Mapping[str, object]", schema)
        properties = fields.get("properties")
        if properties is not None or fields.get("type") == "object":
            names = set(cast("Mapping[str, object]", properties or {}))
            required = set(cast("Sequence[str]", fields.get("required") or ()))
            if fields.get("additionalProperties") is not False or required != names:
                return False
        return all(_fits_strict(value) for value in fields.values())
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return all(_fits_strict(each) for each in cast("Sequence[object]", schema))
    return True


def _input_items(
    messages: Sequence[Message], target: Target, *, replay: bool
) -> Iterator[str]:
    """Yield the JSON text of the items that the messages become."""
    sent: set[str] = set()  # the same reply twice would repeat its item ids: refused
    verbatim_ids = False  # whether the results that follow answer native calls
    for message in messages:
        if isinstance(message, AssistantMessage):
            native = message.native
            verbatim_ids = (
                replay
                and native is not None
                and native.items not in sent
                and _may_replay(message, target)
            )
            if native is not None and verbatim_ids:
                sent.add(native.items)
                inner = native.items.strip()[1:-1].strip()
                if inner:
                    yield inner
            else:
                yield from map(dump_json, _rebuilt(message, target))
        elif isinstance(message, ToolMessage):
            yield dump_json(_result(message, verbatim_id=verbatim_ids))
        else:
            yield dump_json(_spoken(message))


def _may_replay(message: AssistantMessage, target: Target) -> bool:
    native = message.native
    return (
        native is not None
        and native.model == target.model
        and _same_service(message, target)
    )


def _same_service(message: AssistantMessage, target: Target) -> bool:
    native = message.native
    return (
        native is not None
        and native.v == 1
        and native.provider == target.dialect.name
        and native.api == target.dialect.api
        and native.endpoint == target.endpoint
        and message.native_intact()
    )


def _rebuilt(message: AssistantMessage, target: Target) -> Iterator[dict[str, object]]:
    """Yield items made from public fields: no ids, no reasoning.

    Ids belong to another model's turn, reasoning cannot be made up. The phase of a
    message is kept where only the model has changed: later models read it.
    """
    phased = _phased_texts(message) if _same_service(message, target) else []
    for text, phase in phased or [(message.content, None)]:
        if text:
            item: dict[str, object] = {"role": "assistant", "content": text}
            yield item if phase is None else {**item, "phase": phase}
    for call in message.tool_calls:
        yield {
            "type": "function_call",
            "call_id": normal_call_id(call.call_id),
            "name": call.tool_name,
            "arguments": call.arguments,
        }


def _phased_texts(message: AssistantMessage) -> list[tuple[str, object]]:
    """Return text and phase of each native message, when any of them has a phase."""
    found: list[tuple[str, object]] = []
    for value, _ in elements(message.native.items) if message.native else ():
        item = as_object(value) or {}
        if item.get("type") != "message":
            continue
        parts = [as_object(part) or {} for part in as_list(item.get("content")) or ()]
        texts = [part.get("text", part.get("refusal", "")) for part in parts]
        text = "".join(each for each in texts if isinstance(each, str))
        found.append((text, item.get("phase")))
    return found if any(phase for _, phase in found) else []


def _result(message: ToolMessage, *, verbatim_id: bool) -> dict[str, object]:
    call_id = message.call_id if verbatim_id else normal_call_id(message.call_id)
    return {
        "type": "function_call_output",
        "call_id": call_id,
        "output": message.tool_output,
    }


def _spoken(message: SystemMessage | UserMessage) -> dict[str, object]:
    if isinstance(message.content, str):
        return {"role": message.role, "content": message.content}
    return {"role": "user", "content": [_part(part) for part in message.content]}


def _part(part: ContentPart) -> dict[str, object]:
    match part:
        case TextPart():
            return {"type": "input_text", "text": part.text}
        case ImagePart():
            url = part.data_url()
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case FilePart(data=None):
            return {"type": "input_file", "file_url": part.url}
        case FilePart():
            name = part.name or _file_name(part.media_type or "")
            data = part.data_url()
            return {"type": "input_file", "filename": name, "file_data": data}


def _file_name(media_type: str) -> str:
    """Return a name for a file without one; the service goes by its ending."""
    import mimetypes

    return f"file{mimetypes.guess_extension(media_type) or ''}"
