"""The Chat Completions interface with the rules of OpenAI, and a thinking variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .strict_service import Event, StrictService
from .strict_turns import Call, Part, Say, Think, halves, need, only_members

__all__ = ["StrictChat"]

_FIELDS = (
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "stop",
    "user",
    "seed",
    "reasoning_effort",
    "thinking",
    "parallel_tool_calls",
)
_MEMBERS = {
    "system": ("role", "content", "name"),
    "developer": ("role", "content", "name"),
    "user": ("role", "content", "name"),
    "assistant": ("role", "content", "name", "tool_calls", "refusal"),
    "tool": ("role", "content", "tool_call_id"),
}
_LONGEST_ID = 40  # this interface takes shorter ids than Responses


class StrictChat(StrictService):
    """OpenAI's rules; with `reasoning="demanded"` those of a thinking DeepSeek model.

    Args:
        path: The path that it answers.
        reasoning: Whether reasoning text in messages is an unknown member, or has to
            come back with each call that it was issued with.
    """

    def __init__(
        self, path: str, *, reasoning: Literal["refused", "demanded"] = "refused"
    ) -> None:
        super().__init__(path)
        self.reasoning = reasoning
        self._thoughts: dict[str, str] = {}  # reasoning by call id

    # Requests.

    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        need(headers.get("authorization", "").startswith("Bearer "), "no key was sent")
        only_members(body, _FIELDS, "body")
        need(isinstance(body.get("model"), str) and body["model"], "model is missing")
        stream = body.get("stream", False)
        need(isinstance(stream, bool), "stream is no boolean")
        need(stream or "stream_options" not in body, "stream_options without stream")
        tools = body.get("tools")
        if tools is not None:
            need(isinstance(tools, list) and tools, "tools is empty")
            functions = [each.get("function", {}) for each in tools]
            self.need_tools([(f.get("name"), f.get("parameters")) for f in functions])
        messages = body.get("messages")
        need(isinstance(messages, list) and messages, "messages is empty")
        waiting: list[str] = []
        used: Counter[str] = Counter()
        for number, message in enumerate(messages or ()):
            where = f"messages[{number}]"
            self._check_members(message, where)
            if message["role"] == "tool":
                id_ = message.get("tool_call_id")
                need(id_ in waiting, f"{where}: 'tool' must answer a call before it")
                waiting.remove(id_)
                continue
            need(not waiting, f"{where}: the calls {waiting} have no answer before it")
            if message["role"] == "assistant":
                waiting = self._check_calls(message, where, used)
        need(not waiting, f"the calls {waiting} have no answer")

    def _check_members(self, message: Any, where: str) -> None:
        need(isinstance(message, dict), f"{where} is no object")
        role = message.get("role")
        need(role in _MEMBERS, f"{where} has the unknown role {role!r}")
        known = list(_MEMBERS[role])
        if self.reasoning == "demanded":
            need(role != "developer", f"{where} has the unknown role {role!r}")
            if role == "assistant":
                known.append("reasoning_content")
        only_members(message, known, where)
        content = message.get("content")
        if role == "assistant" and content is None:
            need(message.get("tool_calls"), f"{where} has neither content nor calls")
        elif isinstance(content, list):
            need(content, f"{where}.content is empty")
        else:
            need(isinstance(content, str), f"{where}.content is no text")

    def _check_calls(
        self, message: dict[str, Any], where: str, used: Counter[str]
    ) -> list[str]:
        if "tool_calls" not in message:
            return []
        calls = message["tool_calls"]
        need(isinstance(calls, list) and calls, f"{where}.tool_calls is empty")
        found: list[str] = []
        for call in calls:
            only_members(call, ("id", "type", "function"), f"{where}.tool_calls[]")
            id_ = self.need_call_id(call.get("id"), f"{where} call id", _LONGEST_ID)
            self.need_new(id_, used, f"{where}: the call id {id_} is used twice")
            found.append(id_)
            need(call.get("type") == "function", f"{where}: a call is no function's")
            function = call.get("function")
            only_members(function, ("name", "arguments"), f"{where} function")
            self.need_tool_name(function.get("name"), f"{where} function name")
            text = isinstance(function.get("arguments"), str)
            need(text, f"{where}: the arguments are no text")
        if self.reasoning == "demanded":
            thought = message.get("reasoning_content")
            text = "The `reasoning_content` in the thinking mode must be passed back"
            need(isinstance(thought, str), f"{where}: {text}")
            known = {self._thoughts[id_] for id_ in found if id_ in self._thoughts}
            same = not known or thought in known
            need(same or not self.require_replay, f"{where}: another reasoning_content")
        return found

    require_replay = False
    """Refuse other reasoning than what a call was issued with."""

    # Replies.

    def reply(
        self, parts: Sequence[Part], body: dict[str, Any]
    ) -> tuple[dict[str, Any], list[Event]]:
        shown = self.reasoning == "demanded"
        plain = [p.text for p in parts if isinstance(p, Think) and p.kind == "plain"]
        thought = "".join(plain) if shown else ""
        text = "".join(part.text for part in parts if isinstance(part, Say))
        calls = [self._call(part) for part in parts if isinstance(part, Call)]
        for call in calls:
            if thought:
                self._thoughts[call["id"]] = thought
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if thought:
            message["reasoning_content"] = thought
        if calls:
            message["tool_calls"] = calls
        reason = "tool_calls" if calls else "stop"
        reply = {
            "id": self.fresh("chatcmpl-"),
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": _USAGE,
        }
        return reply, _events(reply, thought, text, calls, reason)

    def _call(self, part: Call) -> dict[str, Any]:
        return {
            "id": self.call_id(part.id, "call_"),
            "type": "function",
            "function": {"name": part.name, "arguments": part.arguments},
        }

    def error(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return {"error": {"message": text, "type": kind, "param": None, "code": code}}


_USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}


def _events(
    reply: dict[str, Any],
    thought: str,
    text: str,
    calls: list[dict[str, Any]],
    reason: str,
) -> list[Event]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in halves(thought)]
    deltas += [{"content": piece} for piece in halves(text)]
    for index, call in enumerate(calls):
        function = call["function"]
        begin = {**call, "function": {"name": function["name"], "arguments": ""}}
        deltas.append({"tool_calls": [{"index": index, **begin}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in halves(function["arguments"])
        ]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    head = {
        "id": reply["id"],
        "object": "chat.completion.chunk",
        "model": reply["model"],
    }
    chunks = [{**head, "choices": [choice], "usage": None} for choice in choices]
    last = {**head, "choices": [], "usage": reply["usage"]}
    return [*[("", chunk) for chunk in [*chunks, last]], "data: [DONE]\n\n"]
