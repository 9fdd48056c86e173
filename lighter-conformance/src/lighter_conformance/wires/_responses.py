"""Responses."""

from __future__ import annotations

from itertools import count

from lighter_core import ToolCall
from lighter_core.testing import Turn

from ._base import UNFINISHED, Object, Wire, dump, event, objects, slices, text_of

__all__ = ["ResponsesWire"]


class ResponsesWire(Wire):
    """Responses.

    Args:
        plain_reasoning: Whether reasoning comes as text in the clear instead of as a
            summary with encrypted content.
    """

    name = "responses"
    base_path = "/v1"

    def __init__(self, *, plain_reasoning: bool = False) -> None:
        self._plain = plain_reasoning

    def whole(self, turn: Turn) -> bytes:
        """Return the body of a reply that is not streamed."""
        return dump(self._response(turn, self._items(turn)))

    def stream(self, turn: Turn) -> list[bytes]:
        """Return the events of a streamed reply."""
        items, numbers = self._items(turn), count()
        events: list[Object] = [
            {"type": "response.created", "response": self._response(turn, [], "queued")}
        ]
        for index, item in enumerate(items):
            where: Object = {"item_id": item["id"], "output_index": index}
            begun: Object = {key: _EMPTY.get(key, item[key]) for key in item}
            at = {"output_index": index}
            events.append({"type": "response.output_item.added", **at, "item": begun})
            events += [{**where, **each} for each in _deltas(item, turn.pieces)]
            events.append({"type": "response.output_item.done", **at, "item": item})
        response = self._response(turn, items)
        events.append({"type": f"response.{response['status']}", "response": response})
        return [
            event({**each, "sequence_number": next(numbers)}, str(each["type"]))
            for each in events
        ]

    def _items(self, turn: Turn) -> list[Object]:
        items: list[Object] = []
        if turn.reasoning is not None:
            items.append(self._reasoning(turn.reasoning))
        if turn.text:
            part: Object = {"type": "output_text", "text": turn.text}
            part["annotations"] = _NONE
            message = {"id": "msg_1", "type": "message", "role": "assistant"}
            items.append({**message, "status": "completed", "content": [part]})
        items.extend(
            {
                "id": f"fc_{number}",
                "type": "function_call",
                "status": "completed",
                "call_id": call.call_id,
                "name": call.tool_name,
                "arguments": call.arguments,
            }
            for number, call in enumerate(turn.tool_calls)
        )
        return items

    def _reasoning(self, text: str) -> Object:
        item: Object = {"id": "rs_1", "type": "reasoning"}
        if self._plain:
            part = {"type": "reasoning_text", "text": text}
            return {**item, "summary": [], "content": [part], "status": "completed"}
        summary = [{"type": "summary_text", "text": text}]
        return {**item, "summary": summary, "encrypted_content": "gAAA+c2VjcmV0="}

    @staticmethod
    def _response(turn: Turn, items: list[Object], status: str = "") -> Object:
        if not status:
            status = "incomplete" if turn.stop_reason == UNFINISHED else "completed"
        short = {"reason": "max_output_tokens"} if status == "incomplete" else None
        body: Object = {**_HEAD, "status": status, "output": items}
        body["incomplete_details"] = short
        usage = turn.usage
        if usage is None or status == "queued":
            return body
        cached = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": 0}
        tokens: Object = {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": cached,
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.total_tokens,
        }
        return {**body, "usage": tokens}

    def failing(self, text: str) -> bytes:
        """Return the event that reports an error inside a stream."""
        return event(
            {"type": "error", "code": "server_error", "message": text, "param": None},
            "error",
        )

    def stranger(self) -> bytes:
        """Return an event of a kind that no provider knows yet."""
        return event({"type": "response.weather", "sky": "blue"}, "response.weather")

    def conversation(self, body: Object) -> list[object]:
        """Return the input items."""
        return list(objects(body.get("input")))

    def calls(self, body: Object) -> list[ToolCall]:
        """Return the tool calls in a request."""
        return [
            ToolCall(str(e.get("call_id")), str(e.get("name")), str(e.get("arguments")))
            for e in objects(body.get("input"))
            if e.get("type") == "function_call"
        ]

    def results(self, body: Object) -> list[tuple[str, str]]:
        """Return call id and text of the tool results in a request."""
        return [
            (str(each.get("call_id")), text_of(each.get("output")))
            for each in objects(body.get("input"))
            if each.get("type") == "function_call_output"
        ]

    def prompt(self, body: Object) -> str:
        """Return the text of the last user message in a request."""
        if isinstance(body.get("input"), str):
            return text_of(body["input"])
        said = [e for e in objects(body.get("input")) if e.get("role") == "user"]
        return text_of(said[-1].get("content")) if said else ""


_NONE: list[object] = []
_EMPTY: Object = {"content": _NONE, "summary": _NONE, "arguments": ""}
_HEAD: Object = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "test-model",
    "error": None,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": _NONE,
}


def _deltas(item: Object, count_: int) -> list[Object]:
    """Return the events between an item's begin and its end, without the place."""
    if item["type"] == "function_call":
        name, text = "response.function_call_arguments", str(item["arguments"])
        done: Object = {"name": item["name"], "arguments": text}
        return _pieces(name, text, count_, {}, done)
    if item.get("summary"):
        where: Object = {"summary_index": 0}
        name, part_name, more = "reasoning_summary_text", "reasoning_summary_part", {}
    else:
        where = {"content_index": 0}
        plain = item["type"] == "reasoning"
        name = "reasoning_text" if plain else "output_text"
        part_name, more = "content_part", {} if plain else {"logprobs": _NONE}
    (part,) = objects(item["summary"] if "summary_index" in where else item["content"])
    text = text_of([part])
    begin: Object = {**part, "text": ""}
    return [
        {"type": f"response.{part_name}.added", **where, "part": begin},
        *_pieces(f"response.{name}", text, count_, {**where, **more}, {"text": text}),
        {"type": f"response.{part_name}.done", **where, "part": part},
    ]


def _pieces(
    name: str, text: str, count_: int, where: Object, done: Object
) -> list[Object]:
    events: list[Object] = [
        {"type": f"{name}.delta", **where, "delta": piece}
        for piece in slices(text, count_)
    ]
    return [*events, {"type": f"{name}.done", **where, **done}]
