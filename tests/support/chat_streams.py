"""Small Chat Completions replies, written for the tests: bodies and event streams."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Chunk = dict[str, Any]

USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 10,
    "total_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 6},
}


def call(name: str, arguments: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    """A call of a whole reply."""
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **fields,
    }


def body(
    message: dict[str, Any] | None = None, finish: Any = "stop", **fields: Any
) -> dict[str, Any]:
    """A whole reply."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, **(message or {})},
                "finish_reason": finish,
            }
        ],
        "usage": USAGE,
        **fields,
    }


def chunk(
    delta: dict[str, Any] | None = None, finish: Any = None, **fields: Any
) -> Chunk:
    """One event of a streamed reply."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **fields,
    }


def usage_chunk(usage: Any = USAGE) -> Chunk:
    """The event without choices that brings the usage."""
    return {**chunk(), "choices": [], "usage": usage}


def call_chunk(index: int | None = 0, **fields: Any) -> Chunk:
    """An event with a piece of a call."""
    piece = {} if index is None else {"index": index}
    return chunk({"tool_calls": [{**piece, **fields}]})


def call_chunks(entry: dict[str, Any], index: int = 0, size: int = 3) -> list[Chunk]:
    """The events of a call: its head, then its arguments in pieces."""
    function = entry["function"]
    head = {k: v for k, v in entry.items() if k != "index"}
    head["function"] = {**function, "arguments": ""}
    pieces = [
        function["arguments"][at : at + size]
        for at in range(0, len(function["arguments"]), size)
    ]
    return [
        call_chunk(index, **head),
        *(call_chunk(index, function={"arguments": piece}) for piece in pieces),
    ]


def reply(message: dict[str, Any], finish: str = "stop", size: int = 3) -> list[Chunk]:
    """The events of a reply, its texts and arguments cut into pieces."""
    events = [chunk({"role": "assistant", "content": None})]
    for key, value in message.items():
        if isinstance(value, str):
            events += [
                chunk({key: value[at : at + size]}) for at in range(0, len(value), size)
            ]
        elif key == "tool_calls":
            for index, entry in enumerate(value):
                events += call_chunks(entry, index, size)
        elif value is not None:
            events.append(chunk({key: value}))
    return [*events, chunk(finish=finish), usage_chunk()]


def sse(events: Iterable[Chunk | str], *, done: bool = True) -> bytes:
    """The bytes of an event stream; texts are data as they stand."""
    lines = [
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
        for each in events
    ]
    if done:
        lines.append("[DONE]")
    return "".join(f"data: {line}\n\n" for line in lines).encode()
