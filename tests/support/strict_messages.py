"""The Messages interface with the rules of Anthropic."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from .strict_service import Event, StrictService
from .strict_turns import (
    Call,
    Part,
    Refused,
    Say,
    Think,
    canonical,
    halves,
    need,
    only_members,
)

__all__ = ["StrictMessages"]

Block = dict[str, Any]

_FIELDS = (
    "model",
    "messages",
    "max_tokens",
    "stream",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "metadata",
    "stop_sequences",
    "cache_control",
    "service_tier",
    "container",
)
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_USER = frozenset({"text", "image", "document", "tool_result", "search_result"})
_ASSISTANT = frozenset({"text", "tool_use"}) | _THOUGHTS
_MEMBERS = {
    "text": ("type", "text", "cache_control", "citations"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "tool_use": ("type", "id", "name", "input", "cache_control", "caller"),
    "tool_result": ("type", "tool_use_id", "content", "is_error", "cache_control"),
    "image": ("type", "source", "cache_control"),
    "document": ("type", "source", "title", "context", "citations", "cache_control"),
    "search_result": ("type", "source", "title", "content", "cache_control"),
}


class StrictMessages(StrictService):
    """Anthropic's rules.

    Attributes:
        bind_thinking: Refuse thinking when anything before it has changed. A client may
            then take all thinking out and try once more.
        user_begins: Refuse a conversation that the assistant begins, as was the rule in
            2024; what is published today does not say it.
        system_in_messages: Take system messages among the others, as newer models do.
        require_replay: Refuse a tool round whose thinking was left out.
    """

    recoverable = frozenset({"bound"})

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.bind_thinking = False
        self.user_begins = False
        self.system_in_messages = False
        self.require_replay = False
        self._replies: dict[str, list[Block]] = {}  # by signature or opaque data
        self._prefixes: dict[str, str] = {}
        self._thoughtful: dict[str, bool] = {}  # by call id

    # Requests.

    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        key = headers.get("authorization", "").removeprefix("Bearer ")
        need(key or headers.get("x-api-key"), "no key was sent")
        need(headers.get("anthropic-version"), "anthropic-version is missing")
        only_members(body, _FIELDS, "body")
        need(isinstance(body.get("model"), str) and body["model"], "model is missing")
        need(isinstance(body.get("stream", False), bool), "stream is no boolean")
        most = body.get("max_tokens")
        good = isinstance(most, int) and not isinstance(most, bool) and most > 0
        need(good, "max_tokens is no positive integer")
        tools = body.get("tools", [])
        self.need_tools(
            [(each.get("name"), each.get("input_schema")) for each in tools]
        )
        self._check_system(body.get("system"))
        messages = body.get("messages")
        need(isinstance(messages, list) and messages, "messages is empty")
        self._check_messages(messages)
        self._check_rounds(messages)
        if self.bind_thinking:
            self._check_prefixes(messages, body)

    def _check_system(self, system: object) -> None:
        if system is None or isinstance(system, str):
            return
        need(isinstance(system, list) and system, "system is neither text nor a list")
        for block in system if isinstance(system, list) else ():
            self._check_block(block, "system", frozenset({"text"}))

    def _check_messages(self, messages: list[Block]) -> None:
        first = messages[0].get("role")
        good = first == "user" or not self.user_begins
        need(good, "the first message is not the user's")
        for number, message in enumerate(messages):
            where = f"messages[{number}]"
            only_members(message, ("role", "content"), where)
            role = message.get("role")
            if role == "system":
                self._check_place(messages, number)
            else:
                need(role in {"user", "assistant"}, f"{where} has the role {role!r}")
            content = message.get("content")
            if isinstance(content, str):
                need(content.strip(), f"{where}: text content blocks must be non-empty")
                continue
            need(isinstance(content, list) and content, f"{where}.content is empty")
            known = _ASSISTANT if role == "assistant" else _USER
            for block in content or ():
                self._check_block(block, where, known)
            if role == "assistant":
                self._check_thinking(content or [], where)
        last = messages[-1]
        need(
            last["role"] != "assistant", "the last message is the assistant's (prefill)"
        )

    def _check_place(self, messages: list[Block], number: int) -> None:
        where = f"messages[{number}]"
        need(self.system_in_messages, f"{where}: role 'system' is not supported")
        before = messages[number - 1]["role"]
        need(before == "user", f"{where}: system must follow a user message")
        rest = messages[number + 1 :]
        good = not rest or rest[0].get("role") == "assistant"
        need(good, f"{where}: system must stand before an assistant message")

    def _check_block(self, block: Any, where: str, known: frozenset[str]) -> None:
        need(isinstance(block, dict), f"{where}: a content block is no object")
        kind = block.get("type")
        need(kind in known, f"{where}: a block of the type {kind!r} cannot stand there")
        only_members(block, _MEMBERS[kind], f"{where} {kind}")
        if kind == "text":
            text = block.get("text")
            good = isinstance(text, str) and text.strip()
            need(good, f"{where}: text content blocks must be non-empty")
        elif kind == "tool_use":
            self.need_call_id(block.get("id"), f"{where} tool_use.id")
            self.need_tool_name(block.get("name"), f"{where} tool_use.name")
            need(isinstance(block.get("input"), dict), f"{where}: input is no object")
        elif kind == "tool_result":
            content = block.get("content", "")
            for each in content if isinstance(content, list) else ():
                self._check_block(each, where, _USER - {"tool_result"})

    def _check_thinking(self, content: list[Block], where: str) -> None:
        """Each thinking block stands in its whole reply, and that is as it was."""
        thoughts = [i for i, block in enumerate(content) if block["type"] in _THOUGHTS]
        if thoughts:
            text = "the first block must be thinking when there is any"
            need(thoughts[0] == 0, f"{where}: {text}")
        for index in thoughts:
            block = content[index]
            mark = block.get("signature", block.get("data"))
            reply = self._replies.get(mark) if isinstance(mark, str) else None
            if reply is None:
                raise Refused(f"{where}: invalid `signature` in `thinking` block")
            texts = [canonical(each) for each in reply]
            own = canonical(block)
            need(own in texts, f"{where}: thinking blocks cannot be modified")
            start = index - texts.index(own)
            there = [canonical(each) for each in content[max(start, 0) :]]
            wholes = (texts, texts[: _without_last_thoughts(reply)])
            good = start >= 0 and any(
                index < start + len(whole) and there[: len(whole)] == whole
                for whole in wholes
            )
            need(good, f"{where}: the reply of a thinking block cannot be modified")

    def _check_rounds(self, messages: list[Block]) -> None:
        """Each call has its result in the next message, before anything else."""
        used: set[str] = set()
        waiting: list[str] = []
        for number, message in enumerate(_merged(messages)):
            where = f"messages[{number}]"
            content = message["content"]
            if message["role"] == "assistant":
                for block in content:
                    if block["type"] == "tool_use":
                        id_ = block["id"]
                        need(id_ not in used, f"{where}: tool_use ids must be unique")
                        used.add(id_)
                        waiting.append(id_)
                        self._need_thought(content, id_, where)
                continue
            results = [each for each in content if each["type"] == "tool_result"]
            first = content[: len(results)]
            need(first == results, f"{where}: tool_result blocks must come first")
            for block in results:
                id_ = block.get("tool_use_id")
                need(id_ in waiting, f"{where}: unexpected tool_use_id {id_!r}")
                waiting.remove(id_)
            need(not waiting, f"{where}: no tool_result right after {waiting}")
        need(not waiting, "the last call has no tool_result")
        roles = [message["role"] for message in messages]
        split = any(
            pair == ("user", "user") and _has_results(messages[index])
            for index, pair in enumerate(pairwise(roles), 1)
        )
        need(not split, "the results of one round are not in one message")

    def _need_thought(self, content: list[Block], call_id: str, where: str) -> None:
        if self.require_replay and self._thoughtful.get(call_id):
            there = any(block["type"] in _THOUGHTS for block in content)
            need(there, f"{where}: a tool round must begin with its thinking")

    def _check_prefixes(self, messages: list[Block], body: dict[str, Any]) -> None:
        for number, message in enumerate(messages):
            for block in message["content"] if message["role"] == "assistant" else ():
                mark = block.get("signature", block.get("data")) if block else None
                known = self._prefixes.get(mark) if isinstance(mark, str) else None
                if known is not None and known != _prefix(messages[:number], body):
                    raise Refused(
                        f"messages[{number}]: the thinking is bound to a different"
                        " conversation",
                        code="bound",
                    )

    # Replies.

    def reply(
        self, parts: Sequence[Part], body: dict[str, Any]
    ) -> tuple[dict[str, Any], list[Event]]:
        thoughts = [part for part in parts if isinstance(part, Think)]
        if thoughts and parts[0] != thoughts[0]:  # the service thinks first
            parts = [thoughts[0], *(p for p in parts if p is not thoughts[0])]
        pairs = [self._block(part) for part in parts]
        blocks = [block for block, _ in pairs]
        kept = [b for b in blocks if b["type"] != "text" or b["text"].strip()]
        prefix = _prefix(body["messages"], body)
        thoughtful = any(block["type"] in _THOUGHTS for block in blocks)
        for block in blocks:
            mark = block.get("signature", block.get("data"))
            if isinstance(mark, str):
                self._replies[mark] = kept
                self._prefixes[mark] = prefix
            elif block["type"] == "tool_use":
                self._thoughtful[block["id"]] = thoughtful
        calls = any(block["type"] == "tool_use" for block in blocks)
        message = {
            "id": self.fresh("msg_"),
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": blocks,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 9, "output_tokens": 5},
        }
        return message, _events(message, pairs)

    def _block(self, part: Part) -> tuple[Block, str]:
        """Return a block, and the text that its deltas carry."""
        if isinstance(part, Say):
            return {"type": "text", "text": part.text}, part.text
        if isinstance(part, Call):
            value = _object(part.arguments)
            block = {
                "type": "tool_use",
                "id": self.call_id(part.id, "toolu_"),
                "name": part.name,
                "input": value,
            }
            return block, json.dumps(value) if value else ""
        if part.kind == "redacted":
            return {"type": "redacted_thinking", "data": self.fresh("EmwK/")}, ""
        shown = part.text if part.kind == "plain" else ""
        signature = self.fresh("EqQB+/") + "="
        return {"type": "thinking", "thinking": shown, "signature": signature}, shown

    def error(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        kind = "api_error" if status >= 500 else "invalid_request_error"
        if status == 529:
            kind = "overloaded_error"
        return {"type": "error", "error": {"type": kind, "message": text}}


def _object(arguments: str) -> Block:
    """Return arguments as this service writes them: always an object of real JSON."""
    try:
        value = json.loads(arguments or "{}")
        json.dumps(value, allow_nan=False)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"text": arguments}


def _blocks(message: Block) -> list[Block]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _without_last_thoughts(reply: list[Block]) -> int:
    """Return the length of a reply without the thinking at its end."""
    length = len(reply)
    while length and reply[length - 1]["type"] in _THOUGHTS:
        length -= 1
    return length


def _has_results(message: Block) -> bool:
    return any(block["type"] == "tool_result" for block in _blocks(message))


def _merged(messages: list[Block]) -> list[Block]:
    """Join neighbours of one role, as the service does; system messages are user's."""
    found: list[Block] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        if found and found[-1]["role"] == role:
            found[-1]["content"] += _blocks(message)
        else:
            found.append({"role": role, "content": list(_blocks(message))})
    return found


def _plain(value: object) -> object:
    """Return a value without its cache marks."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


def _prefix(messages: list[Block], body: dict[str, Any]) -> str:
    parts = [{"role": m["role"], "content": _blocks(m)} for m in messages]
    return canonical(_plain([body.get("system"), body.get("tools"), parts]))


def _events(message: dict[str, Any], pairs: list[tuple[Block, str]]) -> list[Event]:
    begun = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": begun},
        {"type": "ping"},
    ]
    for index, (block, text) in enumerate(pairs):
        empty = {"text": "", "thinking": "", "signature": "", "input": {}}
        begin = {k: empty.get(k, v) for k, v in block.items()}
        spot = {"index": index}
        events.append({"type": "content_block_start", **spot, "content_block": begin})
        kind, key = {
            "text": ("text_delta", "text"),
            "tool_use": ("input_json_delta", "partial_json"),
        }.get(block["type"], ("thinking_delta", "thinking"))
        deltas = [{"type": kind, key: piece} for piece in halves(text)]
        if "signature" in block:
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        events += [
            {"type": "content_block_delta", **spot, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", **spot})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": 5}
    events.append({"type": "message_delta", "delta": end, "usage": usage})
    events.append({"type": "message_stop"})
    return [(event["type"], event) for event in events]
