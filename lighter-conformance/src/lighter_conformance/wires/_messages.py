"""Messages."""

from __future__ import annotations

import json

from lighter_core import ToolCall
from lighter_core.testing import Turn

from ._base import UNFINISHED, Object, Wire, dump, event, objects, slices, text_of

__all__ = ["MessagesWire"]


class MessagesWire(Wire):
    """Messages, with the reasoning in a thinking block."""

    name = "messages"
    ending = 1  # message_stop follows the stop reason

    def whole(self, turn: Turn) -> bytes:
        """Return the body of a reply that is not streamed."""
        message = _message(_blocks(turn), _stop(turn))
        return dump({**message, "usage": _usage(turn)} if turn.usage else message)

    def stream(self, turn: Turn) -> list[bytes]:
        """Return the events of a streamed reply."""
        begin = _message([], None)
        if turn.usage:
            begin["usage"] = {**_usage(turn), "output_tokens": 1}
        events: list[Object] = [{"type": "message_start", "message": begin}]
        events.append({"type": "ping"})
        for index, block in enumerate(_blocks(turn)):
            at: Object = {"index": index}
            empty, deltas = _deltas(block, turn)
            events.append({"type": "content_block_start", **at, "content_block": empty})
            events += [
                {"type": "content_block_delta", **at, "delta": each} for each in deltas
            ]
            events.append({"type": "content_block_stop", **at})
        end: Object = {"type": "message_delta", "delta": {"stop_reason": _stop(turn)}}
        if turn.usage:
            end["usage"] = {"output_tokens": turn.usage.output_tokens}
        events.append(end)
        events.append({"type": "message_stop"})
        return [event(each, str(each["type"])) for each in events]

    def failure(self, status: int, text: str) -> bytes:
        """Return the body of an error status."""
        error = {"type": f"kind_{status}", "message": text}
        return dump({"type": "error", "error": error})

    def failing(self, text: str) -> bytes:
        """Return the event that reports an error inside a stream."""
        error = {"type": "overloaded_error", "message": text}
        return event({"type": "error", "error": error}, "error")

    def stranger(self) -> bytes:
        """Return an event of a kind that no provider knows yet."""
        return event({"type": "weather_report", "sky": "blue"}, "weather_report")

    def conversation(self, body: Object) -> list[object]:
        """Return the messages."""
        return list(objects(body.get("messages")))

    def calls(self, body: Object) -> list[ToolCall]:
        """Return the tool calls in a request."""
        return [
            ToolCall(str(e.get("id")), str(e.get("name")), json.dumps(e.get("input")))
            for e in _sent(body)
            if e.get("type") == "tool_use"
        ]

    def results(self, body: Object) -> list[tuple[str, str]]:
        """Return call id and text of the tool results in a request."""
        return [
            (str(each.get("tool_use_id")), text_of(each.get("content")))
            for each in _sent(body)
            if each.get("type") == "tool_result"
        ]

    def prompt(self, body: Object) -> str:
        """Return the text of the last user message in a request."""
        said = [e for e in objects(body.get("messages")) if e.get("role") == "user"]
        return text_of(said[-1].get("content")) if said else ""


def _sent(body: Object) -> list[Object]:
    found: list[Object] = []
    for message in objects(body.get("messages")):
        found += objects(message.get("content"))
    return found


def _message(blocks: list[Object], stop: str | None) -> Object:
    message: Object = {"id": "msg_1", "type": "message", "role": "assistant"}
    message |= {"model": "m", "content": blocks, "stop_reason": stop}
    return {**message, "stop_sequence": None}


def _blocks(turn: Turn) -> list[Object]:
    blocks: list[Object] = []
    if turn.reasoning is not None:
        thought = {"type": "thinking", "thinking": turn.reasoning}
        blocks.append({**thought, "signature": "EqAB+sig=="})
    if turn.text:
        blocks.append({"type": "text", "text": turn.text})
    blocks.extend(
        {
            "type": "tool_use",
            "id": call.call_id,
            "name": call.tool_name,
            "input": json.loads(call.arguments or "{}"),
        }
        for call in turn.tool_calls
    )
    return blocks


def _deltas(block: Object, turn: Turn) -> tuple[Object, list[Object]]:
    """Return the block as it begins, and what is added to it."""
    if block["type"] == "text":
        text = str(block["text"])
        added = [
            {"type": "text_delta", "text": each} for each in slices(text, turn.pieces)
        ]
        return {**block, "text": ""}, [dict[str, object](each) for each in added]
    if block["type"] == "thinking":
        deltas: list[Object] = [
            {"type": "thinking_delta", "thinking": each}
            for each in slices(str(block["thinking"]), turn.pieces)
        ]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    text = json.dumps(block["input"], ensure_ascii=False)
    return {**block, "input": {}}, [
        {"type": "input_json_delta", "partial_json": each}
        for each in slices(text, turn.pieces)
    ]


def _stop(turn: Turn) -> str:
    if turn.stop_reason == UNFINISHED:
        return "max_tokens"
    return "tool_use" if turn.tool_calls else "end_turn"


def _usage(turn: Turn) -> Object:
    usage = turn.usage
    assert usage is not None  # noqa: S101 - asked for where there is one only
    cached = usage.cache_read_tokens
    return {
        "input_tokens": usage.input_tokens - cached,  # here without the cached ones
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }
