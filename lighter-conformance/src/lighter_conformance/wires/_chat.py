"""Chat Completions."""

from __future__ import annotations

from lighter_core import ToolCall
from lighter_core.testing import Turn

from ._base import UNFINISHED, Object, Wire, dump, event, objects, slices, text_of

__all__ = ["ChatWire"]


class ChatWire(Wire):
    """Chat Completions, with the reasoning in `reasoning_content`."""

    name = "chat"
    base_path = "/v1"
    ending = 2  # the usage and [DONE] follow the finish reason

    def whole(self, turn: Turn) -> bytes:
        """Return the body of a reply that is not streamed."""
        message: Object = {"role": "assistant", "content": turn.text or None}
        if turn.reasoning is not None:
            message["reasoning_content"] = turn.reasoning
        if turn.tool_calls:
            message["tool_calls"] = [_call(each) for each in turn.tool_calls]
        choice = {"index": 0, "message": message, "finish_reason": _finish(turn)}
        body = {**_head("chat.completion"), "choices": [choice]}
        return dump({**body, "usage": _usage(turn)} if turn.usage else body)

    def stream(self, turn: Turn) -> list[bytes]:
        """Return the events of a streamed reply."""
        deltas: list[Object] = [{"role": "assistant", "content": ""}]
        texts = {"reasoning_content": turn.reasoning or "", "content": turn.text}
        for key, text in texts.items():
            deltas.extend({key: piece} for piece in slices(text, turn.pieces))
        for index, call in enumerate(turn.tool_calls):
            first = _call(ToolCall(call.call_id, call.tool_name, ""))
            deltas.append({"tool_calls": [{"index": index, **first}]})
            deltas.extend(
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                for piece in slices(call.arguments, turn.pieces)
            )
        events = [_chunk(delta, None) for delta in deltas]
        events.append(_chunk({}, _finish(turn)))
        if turn.usage:
            head = _head("chat.completion.chunk")
            events.append(event({**head, "choices": [], "usage": _usage(turn)}))
        return [*events, b"data: [DONE]\n\n"]

    def failing(self, text: str) -> bytes:
        """Return the event that reports an error inside a stream."""
        return event({"error": {"message": text, "type": "server_error", "code": 500}})

    def stranger(self) -> bytes:
        """Return an event of a kind that no provider knows yet."""
        return event({"object": "chat.weather", "choices": [], "sky": "blue"})

    def conversation(self, body: Object) -> list[object]:
        """Return the messages."""
        return list(objects(body.get("messages")))

    def calls(self, body: Object) -> list[ToolCall]:
        """Return the tool calls in a request."""
        found: list[ToolCall] = []
        for message in objects(body.get("messages")):
            for call in objects(message.get("tool_calls")):
                function = objects([call.get("function")])[0]
                name, arguments = function.get("name"), function.get("arguments")
                found.append(ToolCall(str(call.get("id")), str(name), str(arguments)))
        return found

    def results(self, body: Object) -> list[tuple[str, str]]:
        """Return call id and text of the tool results in a request."""
        return [
            (str(each.get("tool_call_id")), text_of(each.get("content")))
            for each in objects(body.get("messages"))
            if each.get("role") == "tool"
        ]

    def prompt(self, body: Object) -> str:
        """Return the text of the last user message in a request."""
        said = [e for e in objects(body.get("messages")) if e.get("role") == "user"]
        return text_of(said[-1].get("content")) if said else ""


def _head(kind: str) -> Object:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "m"}


def _chunk(delta: Object, finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({**_head("chat.completion.chunk"), "choices": [choice]})


def _call(call: ToolCall) -> Object:
    function: Object = {"name": call.tool_name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def _finish(turn: Turn) -> str:
    if turn.stop_reason == UNFINISHED:
        return "length"
    return "tool_calls" if turn.tool_calls else "stop"


def _usage(turn: Turn) -> Object:
    usage = turn.usage
    assert usage is not None  # noqa: S101 - asked for where there is one only
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
