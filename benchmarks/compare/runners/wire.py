"""Histories and tools in each service's form, and its replies read without an SDK."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from ..replies import Protocol
from ..work import ANSWER, PARAMETERS, TOOL, TOOL_TEXT, Item, Outcome, add_up

PATHS = {
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
}


@dataclass
class Prepared:
    """What the requests of a run begin with."""

    model: str
    items: list[dict[str, Any]] = field(default_factory=list)


def arguments(number: int) -> dict[str, int]:
    """Return the values of a call in a history."""
    return {"a": number, "b": number}


def wire_items(protocol: Protocol, items: list[Item]) -> list[dict[str, Any]]:
    """Return a history as the service takes it."""
    make = {"responses": _responses, "chat": _chat, "messages": _messages}[protocol]
    return [make(*item) for item in items]


def _responses(kind: str, text: str, number: int) -> dict[str, Any]:
    id_ = f"call_old_{number}"
    match kind:
        case "user":
            return {"role": "user", "content": text}
        case "assistant":
            return {"role": "assistant", "content": ANSWER}
        case "call":
            return {
                "type": "function_call",
                "call_id": id_,
                "name": TOOL,
                "arguments": json.dumps(arguments(number)),
            }
        case _:
            return {"type": "function_call_output", "call_id": id_, "output": "2000000"}


def _chat(kind: str, text: str, number: int) -> dict[str, Any]:
    id_ = f"call_old_{number}"
    match kind:
        case "user":
            return {"role": "user", "content": text}
        case "assistant":
            return {"role": "assistant", "content": ANSWER}
        case "call":
            function = {"name": TOOL, "arguments": json.dumps(arguments(number))}
            call = {"id": id_, "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        case _:
            return {"role": "tool", "tool_call_id": id_, "content": "2000000"}


def _messages(kind: str, text: str, number: int) -> dict[str, Any]:
    id_ = f"toolu_old_{number}"
    match kind:
        case "user":
            return {"role": "user", "content": text}
        case "assistant":
            return {"role": "assistant", "content": ANSWER}
        case "call":
            call = {"id": id_, "name": TOOL, "input": arguments(number)}
            return {"role": "assistant", "content": [{"type": "tool_use", **call}]}
        case _:
            return {"role": "user", "content": [claude_result(id_, "2000000")]}


def claude_result(id_: str, text: str) -> dict[str, Any]:
    """Return a result block."""
    return {"type": "tool_result", "tool_use_id": id_, "content": text}


def tools(protocol: Protocol) -> list[dict[str, Any]]:
    """Return the tool's definition."""
    named = {"name": TOOL, "description": TOOL_TEXT}
    if protocol == "messages":
        return [{**named, "input_schema": PARAMETERS}]
    if protocol == "chat":
        return [{"type": "function", "function": {**named, "parameters": PARAMETERS}}]
    return [{"type": "function", **named, "parameters": PARAMETERS, "strict": False}]


def use_tool(outcome: Outcome, values: dict[str, int]) -> str:
    """Run the tool and note it."""
    a, b = values["a"], values["b"]
    outcome.calls.append((a, b))
    return json.dumps(add_up(a, b))


def request(
    protocol: Protocol, model: str, items: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a request's body."""
    if protocol == "responses":
        return {
            "model": model,
            "input": items,
            "tools": tools(protocol),
            "store": False,
        }
    body = {"model": model, "messages": items, "tools": tools(protocol)}
    return {**body, "max_tokens": 4096} if protocol == "messages" else body


def take(
    protocol: Protocol, reply: dict[str, Any], items: list[dict[str, Any]], out: Outcome
) -> bool:
    """Append a reply and its results to the history; return whether it goes on."""
    before = len(out.calls)
    if protocol == "responses":
        for item in reply["output"]:
            items.append(item)
            if item["type"] == "message":
                out.text = "".join(part["text"] for part in item["content"])
            elif item["type"] == "function_call":
                text = use_tool(out, json.loads(item["arguments"]))
                result = {"type": "function_call_output", "call_id": item["call_id"]}
                items.append({**result, "output": text})
    elif protocol == "chat":
        message = reply["choices"][0]["message"]
        items.append(message)
        out.text = message["content"] or ""
        for call in message.get("tool_calls") or ():
            text = use_tool(out, json.loads(call["function"]["arguments"]))
            items.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    else:
        blocks = reply["content"]
        items.append({"role": "assistant", "content": blocks})
        out.text = "".join(each["text"] for each in blocks if each["type"] == "text")
        results = [
            claude_result(each["id"], use_tool(out, each["input"]))
            for each in blocks
            if each["type"] == "tool_use"
        ]
        if results:
            items.append({"role": "user", "content": results})
    return len(out.calls) > before


def delta(protocol: Protocol, event: dict[str, Any]) -> str | None:
    """Return the text that an event adds."""
    if protocol == "responses":
        return event["delta"] if event["type"] == "response.output_text.delta" else None
    if protocol == "chat":
        choices = event["choices"]
        return choices[0]["delta"].get("content") or None if choices else None
    if event["type"] != "content_block_delta":
        return None
    text: str | None = event["delta"].get("text")
    return text


def question(text: str) -> dict[str, Any]:
    """Return the question as a message."""
    return {"role": "user", "content": text}


async def data(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Split an event stream with one line of data for each event."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data: ") and line != b"data: [DONE]":
                yield line[6:]
