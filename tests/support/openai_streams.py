"""Small Responses replies, written for the tests: output items and event streams."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

Event = dict[str, Any]
Item = dict[str, Any]

USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 4},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 6},
    "total_tokens": 30,
}


def message(*texts: str, id_: str = "msg_1", **fields: Any) -> Item:
    """A message item with text parts."""
    parts = [{"type": "output_text", "annotations": [], "text": t} for t in texts]
    return {
        "id": id_,
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": parts,
        **fields,
    }


def refusal(text: str, id_: str = "msg_1") -> Item:
    """A message item with a refusal."""
    return {**message(id_=id_), "content": [{"type": "refusal", "refusal": text}]}


def reasoning(
    *summary: str, id_: str = "rs_1", blob: str | None = "gAAA+secret=", **fields: Any
) -> Item:
    """A reasoning item with summary parts and encrypted content."""
    item = {
        "id": id_,
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        **fields,
    }
    return item if blob is None else {**item, "encrypted_content": blob}


def thought(*texts: str, id_: str = "rs_1", **fields: Any) -> Item:
    """A reasoning item in the clear, as DeepSeek writes it."""
    content = [{"type": "reasoning_text", "text": text} for text in texts]
    return reasoning(id_=id_, blob=None, status="completed", content=content, **fields)


def call(name: str, arguments: str, number: int = 1, **fields: Any) -> Item:
    """A function call item."""
    return {
        "id": f"fc_{number}",
        "type": "function_call",
        "status": "completed",
        "call_id": f"call_{number}",
        "name": name,
        "arguments": arguments,
        **fields,
    }


def response(output: Any, status: str = "completed", **fields: Any) -> dict[str, Any]:
    """A response object."""
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "error": None,
        "incomplete_details": None,
        "output": output,
        "usage": USAGE,
        **fields,
    }


def created() -> Event:
    """The event that begins a stream."""
    body = response([], "in_progress", usage=None)
    return {"type": "response.created", "response": body}


def end(output: Any, kind: str = "completed", **fields: Any) -> Event:
    """The event that ends a stream."""
    return {"type": f"response.{kind}", "response": response(output, kind, **fields)}


def added(index: int, item: Item) -> Event:
    """The event that begins an item."""
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: Item) -> Event:
    """The event that ends an item."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def pieces(text: str, size: int = 4) -> list[str]:
    """Cut a text."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def item_events(index: int, item: Item) -> list[Event]:
    """All events of one item."""
    where = {"item_id": item["id"], "output_index": index}
    events = [added(index, {**item, "content": [], "summary": [], "arguments": ""})]
    if item["type"] == "message":
        for number, part in enumerate(item["content"]):
            kind, key = (
                ("output_text", "text")
                if part["type"] == "output_text"
                else ("refusal", "refusal")
            )
            spot = {**where, "content_index": number}
            events += [
                {"type": f"response.{kind}.delta", **spot, "delta": piece}
                for piece in pieces(part[key])
            ]
            events.append({"type": f"response.{kind}.done", **spot, key: part[key]})
    elif item["type"] == "reasoning":
        for number, part in enumerate(item["summary"]):
            spot = {**where, "summary_index": number}
            name = "response.reasoning_summary"
            events.append({"type": f"{name}_part.added", **spot, "part": part})
            events += [
                {"type": f"{name}_text.delta", **spot, "delta": piece}
                for piece in pieces(part["text"])
            ]
            events.append({"type": f"{name}_text.done", **spot, "text": part["text"]})
        for number, part in enumerate(item.get("content") or []):
            spot = {**where, "content_index": number}
            name = "response.reasoning_text"
            events += [
                {"type": f"{name}.delta", **spot, "delta": piece}
                for piece in pieces(part["text"])
            ]
            events.append({"type": f"{name}.done", **spot, "text": part["text"]})
    elif item["type"] == "function_call":
        events += [
            {
                "type": "response.function_call_arguments.delta",
                **where,
                "delta": piece,
            }
            for piece in pieces(item["arguments"])
        ]
        events.append(
            {
                "type": "response.function_call_arguments.done",
                **where,
                "arguments": item["arguments"],
            }
        )
    return [*events, done(index, item)]


def reply(*items: Item) -> list[Event]:
    """The events of a complete reply."""
    inner = [e for index, item in enumerate(items) for e in item_events(index, item)]
    return [created(), *inner, end(list(items))]


def sse(
    events: Iterable[Event | bytes],
    *,
    line_end: bytes = b"\n",
    ascii_only: bool = False,
    indent: int | None = None,
) -> bytes:
    """Events as the bytes of a stream; bytes among them are put in as they are."""
    blocks: list[bytes] = []
    for number, event in enumerate(events):
        if isinstance(event, bytes):
            blocks.append(event)
            continue
        numbered = {**event, "sequence_number": number}
        text = json.dumps(numbered, ensure_ascii=ascii_only, indent=indent)
        lines = [f"data: {line}" for line in text.split("\n")]
        block = "\n".join([f"event: {event['type']}", *lines, "", ""])
        blocks.append(block.encode("utf-8", "surrogatepass"))
    return b"".join(blocks).replace(b"\n", line_end)


def without(events: Sequence[Event], *keys: str) -> list[Event]:
    """The same events without some of their keys."""
    return [{k: v for k, v in event.items() if k not in keys} for event in events]
