"""A reply's output items: their public fields, and their text for sending back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lighter_core import ToolCall
from lighter_core.adapters import ShapeError, as_list, as_object, clean_text, members

from ._dialect import Dialect

__all__ = [
    "Item",
    "ReasoningKind",
    "has_refusal",
    "message_texts",
    "native_items",
    "need_item",
    "reasoning_kind",
    "reasoning_texts",
    "tool_call",
]

_THOUGHTS = frozenset({"summary_text", "reasoning_text", "text"})

ReasoningKind = Literal["summary", "content"]


@dataclass(frozen=True, slots=True)
class Item:
    """One output item: decoded, and the text that it was decoded from."""

    value: dict[str, object]
    text: str

    @property
    def type(self) -> str:
        """The item's type; empty when it has none."""
        kind = self.value.get("type")
        return kind if isinstance(kind, str) else ""


def need_item(value: object, text: str) -> Item:
    """Return the item, or raise `ShapeError` when it is no JSON object."""
    fields = as_object(value)
    if fields is None:
        raise ShapeError(f"an output item is {type(value).__name__}, not an object")
    return Item(fields, text)


def _parts(value: object, where: str) -> Iterator[tuple[int, dict[str, object]]]:
    parts = as_list(value)
    if parts is None:
        raise ShapeError(f"{where} is {type(value).__name__}, not an array")
    for index, part in enumerate(parts):
        fields = as_object(part)
        if fields is None:
            raise ShapeError(f"a part of {where} is {type(part).__name__}")
        yield index, fields


def _text(part: dict[str, object], key: str) -> str:
    text = part.get(key)
    if not isinstance(text, str):
        raise ShapeError(f"the {key} of a content part is {type(text).__name__}")
    return text


def message_texts(item: Item) -> Iterator[tuple[int, str]]:
    """Yield position and text of each text or refusal part of a message item."""
    for index, part in _parts(item.value.get("content"), "the content of a message"):
        match part.get("type"):
            case "output_text":
                yield index, _text(part, "text")
            case "refusal":
                yield index, _text(part, "refusal")
            case _:  # other kinds have no text of their own
                pass


def has_refusal(item: Item) -> bool:
    """Tell whether the message item holds a refusal."""
    return any(
        part.get("type") == "refusal"
        for _, part in _parts(item.value.get("content"), "the content of a message")
    )


def reasoning_texts(item: Item, kind: ReasoningKind) -> Iterator[tuple[int, str]]:
    """Yield position and text of each part of a reasoning item's summary or content."""
    value = item.value.get(kind)
    if value is None:
        return
    for index, part in _parts(value, f"the {kind} of a reasoning item"):
        kind_ = part.get("type")
        if isinstance(kind_, str) and kind_ in _THOUGHTS:
            yield index, _text(part, "text")


def reasoning_kind(item: Item) -> ReasoningKind:
    """Tell which of an item's two texts is its public one: the summary if there is one."""
    return (
        "summary" if any(t for _, t in reasoning_texts(item, "summary")) else "content"
    )


def tool_call(item: Item) -> ToolCall:
    """Return the public form of a function call item."""
    found: list[str] = []
    for key in ("call_id", "name", "arguments"):
        value = item.value.get(key)
        if not isinstance(value, str):
            raise ShapeError(f"the {key} of a function call is {type(value).__name__}")
        found.append(clean_text(value))
    if not found[0] or not found[1]:
        raise ShapeError("a function call has an empty call_id or name")
    return ToolCall(*found)


def native_items(items: Sequence[Item], dialect: Dialect) -> str | None:
    """Return the JSON array text in which the items can be sent back, if any can.

    Beside encrypted reasoning all items stay as and where they are: the service holds
    each reasoning against the item behind it, and those against their reasoning. What it
    refuses to take back is left out: reasoning that it can neither read nor look up,
    reasoning that nothing follows. Where reasoning is missing, the ids of the others go
    too: an id stands for the whole turn. Without encrypted reasoning messages without
    text are left out as well, since some servers refuse them.
    Where the service wants the calls of a turn together, they stand last.
    """
    if dialect.calls_last:
        items = sorted(items, key=lambda item: item.type == "function_call")
    lost = any(_unreadable(item, dialect) for item in items)
    bound = not (lost or dialect.plain_reasoning) and any(map(_is_thought, items))
    kept = [
        item
        for item in items
        if not _unreadable(item, dialect) and (bound or not _empty_message(item))
    ]
    while kept and _is_thought(kept[-1]):
        del kept[-1]
    texts = [_text_to_send(item, dialect, without_id=lost) for item in kept]
    return f"[{','.join(texts)}]" if texts else None


def _is_thought(item: Item) -> bool:
    return item.type == "reasoning"


def _unreadable(item: Item, dialect: Dialect) -> bool:
    if not _is_thought(item):
        return False
    if dialect.plain_reasoning:
        return not any(text for _, text in reasoning_texts(item, "content"))
    return not item.value.get("encrypted_content")


def _empty_message(item: Item) -> bool:
    return item.type == "message" and not any(text for _, text in message_texts(item))


def _text_to_send(item: Item, dialect: Dialect, *, without_id: bool) -> str:
    """Return the item's own text; members that would be refused are cut out of it."""
    thought = _is_thought(item)

    def refused(key: str, value: object) -> bool:
        if key == "id":
            return without_id
        if not thought:
            return False
        if key == "content" and value and not dialect.plain_reasoning:
            return True
        return value is None or key == "status"

    if not any(refused(key, value) for key, value in item.value.items()):
        return item.text
    kept = [m.whole for m in members(item.text) if not refused(m.key, m.value)]
    return f"{{{','.join(kept)}}}"
