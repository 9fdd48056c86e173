"""Messages to the input items of a Responses request. Pure functions on plain data."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from lighter_core import (
    AssistantMessage,
    ContentPart,
    FilePart,
    ImagePart,
    Message,
    ModelError,
    TextPart,
    ToolMessage,
)
from lighter_core.adapters import (
    MessageWriter,
    as_list,
    as_object,
    dump_json,
    elements,
    loss_of,
)

from ._dialect import Target
from ._replay import (
    CallIds,
    obstacle,
    public_call,
    same_service,
)

__all__ = ["InputItems", "as_image", "file_name", "need_image"]


class InputItems(MessageWriter):
    """Writes the items of a conversation.

    Args:
        target: Whom it is for.
        refused: Replies whose native context is not used.
    """

    def __init__(self, target: Target, refused: Container[object] = ()) -> None:
        super().__init__()
        self._target = target
        self._refused = refused
        self._sent: set[str] = set()  # one reply twice would repeat its ids: refused
        self._ids = CallIds()

    def _write(self, message: Message) -> Iterable[str]:
        # Most are not written from a dict: with long histories that shows.
        if isinstance(message, AssistantMessage):
            return self._reply(message)
        if isinstance(message, ToolMessage):
            id_ = dump_json(self._ids.of_result(message.call_id))
            output = dump_json(message.tool_output)
            return (
                f'{{"type":"function_call_output","call_id":{id_},"output":{output}}}',
            )
        if isinstance(message.content, str):
            content = dump_json(message.content)
            return (f'{{"role":"{message.role}","content":{content}}}',)
        return (dump_json(self._parts(message.content)),)

    def _reply(self, message: AssistantMessage) -> Iterator[str]:
        why = self._obstacle(message)
        self._ids.begin(message, rebuilt=why is not None)
        native = message.native
        if why is None and native is not None:
            self._sent.add(native.items)
            return self._native(message, native.items.strip()[1:-1].strip())
        self._note(message, why or "")
        return self._rebuilt(message)

    def _obstacle(self, message: AssistantMessage) -> str | None:
        """Return why a reply cannot be sent as the service wrote it, if it cannot."""
        why = obstacle(message, self._target)
        if why is None and message in self._refused:
            return "the service refused its native context"
        if why is None and message.native and message.native.items in self._sent:
            return "it stands in the history twice"
        return why or self._ids.obstacle(message)

    def _native(self, message: AssistantMessage, items: str) -> Iterator[str]:
        placeholder = self._target.dialect.placeholder
        if placeholder and message.tool_calls and not message.reasoning:
            yield dump_json(_thought(placeholder))
        if items:
            yield items

    def _rebuilt(self, message: AssistantMessage) -> Iterator[str]:
        """Yield items made from public fields: no ids, no reasoning of other services.

        Ids belong to another model's turn, reasoning cannot be made up. The phase of a
        message is kept where only the model has changed: later models read it.
        """
        target = self._target
        thought = self._public_thought(message)
        if thought is not None:
            yield dump_json(_thought(thought))
        phased = _phased_texts(message) if same_service(message, target) else []
        for text, phase in phased or [(message.content, None)]:
            if text:
                # llama.cpp refuses it without a type, which OpenAI lets be left out.
                end = "" if phase is None else f',"phase":{dump_json(phase)}'
                item = '{"type":"message","role":"assistant","content":'
                yield f"{item}{dump_json(text)}{end}}}"
        for number, call in enumerate(message.tool_calls):
            id_ = dump_json(self._ids.rebuilt(call.call_id))
            name, arguments = public_call(call, self._target, self._notes, number)
            yield (
                f'{{"type":"function_call","call_id":{id_},"name":{dump_json(name)},'
                f'"arguments":{dump_json(arguments)}}}'
            )

    def _public_thought(self, message: AssistantMessage) -> str | None:
        """Return the reasoning text of a rebuilt message, where the service wants it."""
        dialect, native = self._target.dialect, message.native
        if not dialect.plain_reasoning:
            return None
        if message.tool_calls:
            return message.reasoning or dialect.placeholder
        own = native is not None and native.provider == dialect.name
        return message.reasoning if own else None

    def _note(self, message: AssistantMessage, why: str) -> None:
        kept = bool(message.reasoning) and self._public_thought(message) is not None
        note = loss_of(message, self._target.name, why, reasoning_kept=kept)
        if note is not None:
            self._notes.add(note, "dropped")

    def _parts(self, content: Sequence[ContentPart]) -> dict[str, object]:
        parts: list[dict[str, object]] = []
        for number, part in enumerate(content):
            with self._notes.needed(f".content[{number}]"):
                parts.append(_part(part, self._target))
        return {"role": "user", "content": parts}


def _thought(text: str) -> dict[str, object]:
    content = [{"type": "reasoning_text", "text": text}]
    return {"type": "reasoning", "summary": [], "content": content}


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


def _part(part: ContentPart, target: Target) -> dict[str, object]:
    if part.type != "text" and part.type not in target.dialect.parts:
        raise ModelError(
            f"{target.label} takes no {type(part).__name__} in a user message",
            "invalid_request",
            provider=target.name,
        )
    match as_image(part):
        case TextPart(text=text):
            return {"type": "input_text", "text": text}
        case ImagePart() as image:
            need_image(image, target)
            url = image.data_url()
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case FilePart() as file:
            media = file.media()
            if media is None:
                return {"type": "input_file", "file_url": file.url}
            name, data = file.name or file_name(media[0]), file.data_url()
            return {"type": "input_file", "filename": name, "file_data": data}


def as_image(part: ContentPart) -> ContentPart:
    """Return a file that is an image as one: the interfaces keep the two apart."""
    if isinstance(part, FilePart):
        media = part.media()
        kind = (media[0] if media else part.media_type) or ""
        if kind.lower().startswith("image/"):
            return ImagePart(part.data, part.url, part.media_type)
    return part


def need_image(part: ImagePart, target: Target) -> None:
    """Refuse an image of a media type that the service does not take.

    Raises:
        ModelError: `invalid_request`.
    """
    media = part.media()
    given = media[0] if media else part.media_type
    kind = (given or "").partition(";")[0].strip().lower()
    known = target.dialect.images
    if kind and kind not in known and (known or not kind.startswith("image/")):
        what = ", ".join(sorted(known)) or "images; pass a FilePart"
        raise ModelError(
            f"{target.label} takes no ImagePart of type {kind!r}; it takes {what}",
            "invalid_request",
            provider=target.name,
        )


def file_name(media_type: str) -> str:
    """Return a name for a file without one; the service goes by its ending."""
    import mimetypes

    return f"file{mimetypes.guess_extension(media_type) or ''}"
