"""Messages to the body of a Chat Completions request. Pure functions on plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, cast

from lighter_core import (
    AssistantMessage,
    ContentPart,
    FilePart,
    ImagePart,
    Message,
    ModelError,
    ModelRequest,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolSpec,
)
from lighter_core.adapters import (
    MessageWriter,
    ReplayNotes,
    as_object,
    dump_json,
    elements,
    encode_text,
    json_values_only,
    loss_of,
    members,
    plain,
)

from ._chat_message import REASONING_KEYS
from ._dialect import PLACEHOLDER, Target
from ._encode import Options, drop_vain_choice, output_format
from ._input import as_image, file_name, need_image
from ._replay import CallIds, obstacle, public_call

__all__ = ["ChatMessages", "Reasoning", "encode_chat_request"]

Reasoning = Literal["keep", "drop", "require"]
"""What becomes of the reasoning of earlier replies.

`keep` leaves it where the reply has it, `drop` takes it out, `require` also writes it
into messages that are rebuilt.
"""

_LONGEST_ID = 40  # OpenAI refuses longer ones in this interface
_AUDIO = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


def encode_chat_request(
    request: ModelRequest,
    target: Target,
    options: Options,
    *,
    stream: bool,
    writer: ChatMessages | None = None,
    notes: ReplayNotes | None = None,
) -> bytes:
    """Return the body for a request.

    The same history gives the same bytes, and a longer history begins with the same
    messages.

    Args:
        request: The request.
        target: Whom it is for.
        options: Fields that hold for every request.
        stream: Whether the reply shall be streamed.
        writer: Writes the messages; it may have written the begin of them before.
        notes: Takes what is lost, and where.

    Raises:
        ModelError: `invalid_request` for values that have no JSON form, and for parts
            that the interface cannot take.
    """
    lost = ReplayNotes() if notes is None else notes
    with json_values_only(target):
        fields = _fields(request, target, options, stream=stream)
        drop_vain_choice(fields, options, target, lost)
        head = dump_json(fields, default=plain)
        writer = writer or ChatMessages(target)
        items = ",".join(writer.texts(request.messages, lost))
    return encode_text(f'{head[:-1]},"messages":[{items}]}}')


def _fields(
    request: ModelRequest, target: Target, options: Options, *, stream: bool
) -> dict[str, object]:
    fields: dict[str, object] = {"model": target.model, "stream": stream}
    if request.tool_specs:
        fields["tools"] = [_tool(spec) for spec in request.tool_specs]
    if request.tool_choice is not None:
        fields["tool_choice"] = _tool_choice(request.tool_choice)
    if request.output is not None:
        schema = {k: v for k, v in output_format(request.output).items() if k != "type"}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    for key, value in options.items():
        known = fields.get(key)
        if key == "stream_options" and not stream:
            continue  # services refuse it there
        if key == "tools" and isinstance(known, list) and isinstance(value, list):
            fields[key] = [*cast("list[object]", known), *cast("list[object]", value)]
        else:
            fields[key] = value
    return fields


def _tool(spec: ToolSpec) -> dict[str, object]:
    function: dict[str, object] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    }
    if spec.strict:  # left out it means false, and not every server knows the word
        function["strict"] = True
    return {"type": "function", "function": function}


def _tool_choice(choice: str) -> object:
    if choice in {"auto", "none", "required"}:
        return choice
    return {"type": "function", "function": {"name": choice}}


class ChatMessages(MessageWriter):
    """Writes the messages of a conversation.

    Args:
        target: Whom it is for.
        reasoning: What becomes of the reasoning of earlier replies.
    """

    def __init__(self, target: Target, reasoning: Reasoning = "keep") -> None:
        super().__init__()
        self._target = target
        self._reasoning = reasoning
        self._ids = CallIds(_LONGEST_ID)
        self._legacy = False  # whether they answer a call in the older form

    def _write(self, message: Message) -> Iterable[str]:
        # Most are not written from a dict: with long histories that shows.
        if isinstance(message, AssistantMessage):
            text = self._reply(message)
            return (text,) if text else ()
        if isinstance(message, ToolMessage):
            return (self._result(message),)
        if isinstance(message.content, str):
            content = dump_json(message.content)
            return (f'{{"role":"{message.role}","content":{content}}}',)
        return (dump_json(self._parts(message.content)),)

    def _reply(self, message: AssistantMessage) -> str | None:
        """Return the text of a reply; `None` for one that says nothing."""
        self._legacy = False
        why = obstacle(message, self._target) or self._ids.obstacle(message)
        native = _native_message(message) if why is None else None
        self._ids.begin(message, rebuilt=native is None)
        if native is None:
            return self._rebuilt(message, why or "its native context is no message")
        return self._replayed(message, *native)

    def _replayed(
        self, message: AssistantMessage, value: Mapping[str, object], text: str
    ) -> str:
        """Return the message as the service wrote it."""
        self._legacy = "function_call" in value
        if self._reasoning == "drop" and any(key in value for key in REASONING_KEYS):
            kept = [m.whole for m in members(text) if m.key not in REASONING_KEYS]
            return f"{{{','.join(kept)}}}"
        missing = not any(key in value for key in REASONING_KEYS)
        if self._reasoning == "require" and message.tool_calls and missing:
            # The service wrote no reasoning there, and yet it asks for the field.
            return (
                f'{text.rstrip()[:-1]},"reasoning_content":{dump_json(PLACEHOLDER)}}}'
            )
        return text

    def _rebuilt(self, message: AssistantMessage, why: str) -> str | None:
        """Return the message made from public fields; `None` for an empty one."""
        thought = self._thought(message)
        kept = thought is not None
        note = loss_of(message, self._target.name, why, reasoning_kept=kept)
        if note is not None:
            self._notes.add(note, "dropped")
        if not message.content and not message.tool_calls:
            return None
        said = f'"content":{dump_json(message.content)}'
        if thought is not None:
            said += f',"reasoning_content":{dump_json(thought)}'
        if message.tool_calls:
            calls = (self._call(n, call) for n, call in enumerate(message.tool_calls))
            said += f',"tool_calls":[{",".join(calls)}]'
        return f'{{"role":"assistant",{said}}}'

    def _call(self, number: int, call: ToolCall) -> str:
        id_ = dump_json(self._ids.rebuilt(call.call_id))
        name, arguments = public_call(call, self._target, self._notes, number)
        function = f'"name":{dump_json(name)},"arguments":{dump_json(arguments)}'
        return f'{{"id":{id_},"type":"function","function":{{{function}}}}}'

    def _thought(self, message: AssistantMessage) -> str | None:
        if self._reasoning != "require":
            return None
        native = message.native
        own = native is not None and native.provider == self._target.name
        if message.tool_calls:
            return message.reasoning or PLACEHOLDER
        return message.reasoning if own else None

    def _parts(self, content: Sequence[ContentPart]) -> dict[str, object]:
        parts: list[dict[str, object]] = []
        for number, part in enumerate(content):
            with self._notes.needed(f".content[{number}]"):
                parts.append(_part(part, self._target))
        return {"role": "user", "content": parts}

    def _result(self, message: ToolMessage) -> str:
        content = dump_json(message.tool_output)
        if self._legacy:
            name = dump_json(message.tool_name)
            return f'{{"role":"function","name":{name},"content":{content}}}'
        id_ = dump_json(self._ids.of_result(message.call_id))
        return f'{{"role":"tool","tool_call_id":{id_},"content":{content}}}'


def _native_message(
    message: AssistantMessage,
) -> tuple[Mapping[str, object], str] | None:
    """Return the service's own message and its text, if that is what is kept."""
    found = elements(message.native.items) if message.native else []
    value = as_object(found[0][0]) if len(found) == 1 else None
    return None if value is None else (value, found[0][1])


def _part(part: ContentPart, target: Target) -> dict[str, object]:
    match as_image(part):
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ImagePart() as image:
            need_image(image, target)
            return {"type": "image_url", "image_url": {"url": image.data_url()}}
        case FilePart() as file:
            return _file(file, target)


def _file(part: FilePart, target: Target) -> dict[str, object]:
    media = part.media()
    if media is None:
        raise ModelError(
            "Chat Completions takes no FilePart with a url: read the file and pass its"
            " data and media_type",
            "invalid_request",
            provider=target.name,
        )
    kind = media[0].lower()
    if kind in _AUDIO:
        data = part.data_url().partition(",")[2]
        return {
            "type": "input_audio",
            "input_audio": {"data": data, "format": _AUDIO[kind]},
        }
    name = part.name or file_name(kind)
    return {"type": "file", "file": {"filename": name, "file_data": part.data_url()}}
