"""A reply's content blocks: their public fields, and their text for sending back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lighter_core import HostedToolItem, ToolCall
from lighter_core.adapters import (
    ShapeError,
    as_object,
    clean_text,
    dump_json,
    elements,
    member_text,
    members,
)

__all__ = [
    "THOUGHTS",
    "Block",
    "hosted_ids",
    "hosted_item",
    "native_blocks",
    "need_block",
    "quoted",
    "rewritten",
    "sent_and_container",
    "shown_text",
    "tool_call",
    "tool_calls",
    "with_container",
]

THOUGHTS = frozenset({"thinking", "redacted_thinking"})
"""The types of blocks that hold reasoning."""

_CONTAINER = '{"type":"lighter_container","id":'
_CONTAINER_END = re.compile(re.escape(_CONTAINER) + r'("(?:[^"\\]|\\.)*")\}\]')


@dataclass(frozen=True, slots=True)
class Block:
    """One content block: decoded, and the text that it was decoded from."""

    value: dict[str, object]
    text: str

    @property
    def type(self) -> str:
        """The block's type; empty when it has none."""
        kind = self.value.get("type")
        return kind if isinstance(kind, str) else ""


def need_block(value: object, text: str) -> Block:
    """Return the block, or raise `ShapeError` when it is no JSON object."""
    fields = as_object(value)
    if fields is None:
        raise ShapeError(f"a content block is {type(value).__name__}, not an object")
    return Block(fields, text)


def quoted(text: str) -> str:
    """Return a JSON string; halves of characters stay escapes, so nothing is lost."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(text)
    return dump_json(text)


def rewritten(text: str, replaced: Mapping[str, str]) -> str:
    """Return an object's JSON text with members replaced by other JSON texts."""
    parts: list[str] = []
    seen: set[str] = set()
    for member in members(text):
        new = replaced.get(member.key)
        seen.add(member.key)
        parts.append(member.whole if new is None else f"{quoted(member.key)}:{new}")
    parts += [f"{quoted(k)}:{v}" for k, v in replaced.items() if k not in seen]
    return f"{{{','.join(parts)}}}"


def shown_text(block: Block, key: str) -> str:
    """Return the text of a text or thinking block; a missing one is empty."""
    text = block.value.get(key, "")
    if not isinstance(text, str):
        raise ShapeError(f"the {key} of a content block is {type(text).__name__}")
    return clean_text(text)


def tool_call(block: Block) -> ToolCall:
    """Return the public form of a `tool_use` block; its input stays as it came."""
    id_, name = block.value.get("id"), block.value.get("name")
    if not isinstance(id_, str) or not isinstance(name, str) or not id_ or not name:
        raise ShapeError("a tool call has no id or no name")
    if as_object(block.value.get("input")) is None:
        raise ShapeError("the input of a tool call is no JSON object")
    arguments = clean_text(member_text(block.text, "input", block.value))
    return ToolCall(clean_text(id_), clean_text(name), arguments)


def tool_calls(blocks: Iterable[Block]) -> list[ToolCall]:
    """Return the calls among the blocks, in order."""
    return [tool_call(block) for block in blocks if block.type == "tool_use"]


def hosted_item(block: Block) -> HostedToolItem | None:
    """Return the event for a block of a tool that runs at the service."""
    kind = block.type
    hosted = kind.endswith(("_tool_use", "_tool_result")) or kind == "container_upload"
    return HostedToolItem(kind, block.text) if hosted else None


def hosted_ids(items: str) -> tuple[set[str], set[str]]:
    """Return the ids of calls of hosted tools among the blocks, and those of results."""
    calls: set[str] = set()
    results: set[str] = set()
    if "_tool_use" not in items and "_tool_result" not in items:
        return calls, results
    for value, _ in elements(items):
        block = as_object(value) or {}
        kind, id_, called = (block.get(k) for k in ("type", "id", "tool_use_id"))
        if isinstance(kind, str) and kind.endswith("_tool_use"):
            calls.update({id_} if isinstance(id_, str) else ())
        elif isinstance(kind, str) and kind.endswith("_tool_result"):
            results.update({called} if isinstance(called, str) else ())
    return calls, results


def native_blocks(blocks: Sequence[Block], container: object = None) -> str:
    """Return the JSON array text in which the blocks can be sent back.

    What the service returns but refuses to take back is left out: text that is blank,
    and thinking without a signature. The id of the reply's `container` follows the
    blocks; `sent_and_container` takes it out again.
    """
    kept = [block.text for block in blocks if not _refused(block)]
    id_ = (as_object(container) or {}).get("id")
    known = clean_text(id_) if isinstance(id_, str) else ""
    return with_container(kept, known or None)


def with_container(blocks: Iterable[str], container: str | None) -> str:
    """Return a JSON array text: the blocks and, if there is one, a container's id."""
    end = [] if container is None else [f"{_CONTAINER}{dump_json(container)}}}"]
    return f"[{','.join([*filter(None, blocks), *end])}]"


def sent_and_container(items: str) -> tuple[str, str | None]:
    """Return the text of the blocks, commas between them, and the container's id."""
    items = items.strip()
    start = items.rfind(_CONTAINER)
    # Only the last element of the outer array is directly before the end.
    found = _CONTAINER_END.fullmatch(items, start) if start > 0 else None
    if found is None:
        return items[1:-1].strip(), None
    return items[1:start].removesuffix(","), str(json.loads(found[1]))


def _refused(block: Block) -> bool:
    if block.type == "text":
        return not shown_text(block, "text").strip()
    return block.type == "thinking" and not block.value.get("signature")
