"""Small Messages replies, written for the tests: blocks, bodies and event streams."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Event = dict[str, Any]
Block = dict[str, Any]

USAGE = {
    "input_tokens": 20,
    "cache_creation_input_tokens": 4,
    "cache_read_input_tokens": 8,
    "output_tokens": 10,
    "output_tokens_details": {"thinking_tokens": 6},
}


def text(words: str, **fields: Any) -> Block:
    """A text block."""
    return {"type": "text", "text": words, **fields}


def thinking(words: str = "", signature: str = "EqAB+sig==") -> Block:
    """A thinking block."""
    return {"type": "thinking", "thinking": words, "signature": signature}


def redacted(data: str = "EmwK+data==") -> Block:
    """A redacted thinking block."""
    return {"type": "redacted_thinking", "data": data}


def call(name: str, value: Any, number: int = 1, **fields: Any) -> Block:
    """A tool call."""
    id_ = f"toolu_{number}"
    return {"type": "tool_use", "id": id_, "name": name, "input": value, **fields}


def search(query: str, number: int = 1) -> Block:
    """A call of a tool that runs at the service."""
    return {
        "type": "server_tool_use",
        "id": f"srvtoolu_{number}",
        "name": "web_search",
        "input": {"query": query},
    }


def found(number: int = 1) -> Block:
    """The result of a tool that runs at the service."""
    return {
        "type": "web_search_tool_result",
        "tool_use_id": f"srvtoolu_{number}",
        "content": [{"type": "web_search_result", "encrypted_content": "Eo8B+x=="}],
    }


def body(
    *blocks: Block, stop: str | None = "end_turn", **fields: Any
) -> dict[str, Any]:
    """A complete reply."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": USAGE,
        **fields,
    }


def pieces(words: str, size: int = 4) -> list[str]:
    """Cut a text."""
    return [words[start : start + size] for start in range(0, len(words), size)]


def started() -> Event:
    """The event that begins a stream; its usage is the input's, output begins."""
    usage = {k: v for k, v in USAGE.items() if k != "output_tokens_details"}
    message = body(stop=None, usage={**usage, "output_tokens": 1})
    return {"type": "message_start", "message": message}


def begin(index: int, block: Block) -> Event:
    """The event that begins a block."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> Event:
    """The event that adds to a block."""
    added = {"type": kind, **fields}
    return {"type": "content_block_delta", "index": index, "delta": added}


def stop(index: int) -> Event:
    """The event that ends a block."""
    return {"type": "content_block_stop", "index": index}


def end(reason: str | None = "end_turn", **fields: Any) -> list[Event]:
    """The events that end a stream."""
    ending = {"stop_reason": reason, "stop_sequence": None, **fields}
    usage = {
        "input_tokens": None,
        "output_tokens": USAGE["output_tokens"],
        "output_tokens_details": USAGE["output_tokens_details"],
    }
    return [
        {"type": "message_delta", "delta": ending, "usage": usage},
        {"type": "message_stop"},
    ]


def block_events(index: int, block: Block) -> list[Event]:
    """All events of one block."""
    match block["type"]:
        case "text":
            first = {**block, "text": ""}
            added = [delta(index, "text_delta", text=p) for p in pieces(block["text"])]
        case "thinking":
            first = {**block, "thinking": "", "signature": ""}
            words, signature = block["thinking"], block["signature"]
            added = [delta(index, "thinking_delta", thinking=p) for p in pieces(words)]
            added.append(delta(index, "signature_delta", signature=signature))
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            first = {**block, "input": {}}
            whole = json.dumps(block["input"], ensure_ascii=False)
            parts = [] if block["input"] == {} else pieces(whole)
            added = [
                delta(index, "input_json_delta", partial_json=p) for p in ["", *parts]
            ]
        case _:
            first, added = block, []
    return [begin(index, first), *added, stop(index)]


def reply(*blocks: Block, stop: str | None = "end_turn", **fields: Any) -> list[Event]:
    """The events of a complete reply."""
    inner = [e for index, each in enumerate(blocks) for e in block_events(index, each)]
    return [started(), *inner, *end(stop, **fields)]


def sse(
    events: Iterable[Event | bytes],
    *,
    line_end: bytes = b"\n",
    ascii_only: bool = False,
    indent: int | None = None,
) -> bytes:
    """Events as the bytes of a stream; bytes among them are put in as they are."""
    blocks: list[bytes] = []
    for event in events:
        if isinstance(event, bytes):
            blocks.append(event)
            continue
        data = json.dumps(event, ensure_ascii=ascii_only, indent=indent)
        lines = [f"data: {line}" for line in data.split("\n")]
        block = "\n".join([f"event: {event['type']}", *lines, "", ""])
        blocks.append(block.encode("utf-8", "surrogatepass"))
    return b"".join(blocks).replace(b"\n", line_end)
