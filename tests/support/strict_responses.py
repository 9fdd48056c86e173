"""The Responses interface with the rules of OpenAI."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .strict_service import Event, StrictService
from .strict_turns import (
    Part,
    Refused,
    Say,
    Think,
    canonical,
    halves,
    need,
    only_members,
    refuse,
)

__all__ = ["Issued", "Item", "StrictResponses"]

Item = dict[str, Any]

_USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 1},
    "total_tokens": 14,
}
_FIELDS = (
    "model",
    "input",
    "stream",
    "store",
    "include",
    "tools",
    "tool_choice",
    "text",
    "reasoning",
    "instructions",
    "max_output_tokens",
    "parallel_tool_calls",
    "metadata",
    "prompt_cache_key",
    "stream_options",
    "service_tier",
    "truncation",
)
_PREFIXES = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_"}
_INPUT_PARTS = {"input_text": "text", "input_image": None, "input_file": None}
_OUTPUT_PARTS = {"output_text": "text", "refusal": "refusal"}


@dataclass(frozen=True)
class Issued:
    """An item as it went out, and its place in its reply."""

    item: Item
    reply: list[Item]
    index: int

    @property
    def thought(self) -> Item | None:
        """The reasoning that the item depends on."""
        for item in reversed(self.reply[: self.index]):
            if item["type"] == "reasoning":
                return item
        return None


def _bare(item: Item) -> str:
    kept = {k: v for k, v in item.items() if v is not None and k != "status"}
    return canonical(kept)


class StrictResponses(StrictService):
    """OpenAI's rules for `store: false`."""

    recoverable = frozenset({"invalid_encrypted_content"})
    roles = frozenset({"user", "assistant", "system", "developer"})
    require_replay = False
    """Refuse calls without the reasoning that they were issued with, ids or not."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._items: dict[str, Issued] = {}  # by item id
        self._blobs: dict[str, Issued] = {}
        self._calls: dict[str, Issued] = {}  # by call id

    def forget(self) -> None:
        """Be unable to read what was encrypted before, as with another key."""
        self._blobs.clear()

    # Requests.

    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        need(headers.get("authorization", "").startswith("Bearer "), "no key was sent")
        self._check_fields(body)
        items = body.get("input")
        if isinstance(items, str):
            need(items, "input is empty")
            return
        need(isinstance(items, list) and items, "input is neither text nor a list")
        self._check_items(items, body)

    def _check_fields(self, body: dict[str, Any]) -> None:
        only_members(body, _FIELDS, "body")
        need(isinstance(body.get("model"), str) and body["model"], "model is missing")
        need(isinstance(body.get("stream", False), bool), "stream is no boolean")
        need(body.get("store") is False, "store is not false")
        include = body.get("include")
        wanted = isinstance(include, list) and "reasoning.encrypted_content" in include
        need(wanted, "include lacks reasoning.encrypted_content")
        tools = body.get("tools", [])
        need(isinstance(tools, list), "tools is no list")
        for tool in tools:
            known = ("type", "name", "description", "parameters", "strict")
            only_members(tool, known, "tools[]")
            need(tool.get("type") == "function", "a tool is no function")
            need(isinstance(tool.get("strict"), bool), "strict of a tool is not said")
        self.need_tools([(tool.get("name"), tool.get("parameters")) for tool in tools])

    def _check_items(self, items: list[Item], body: dict[str, Any]) -> None:
        seen: set[str] = set()  # item ids and encrypted contents
        calls: Counter[str] = Counter()
        waiting: list[str] = []
        for number, item in enumerate(items):
            where = f"input[{number}]"
            need(isinstance(item, dict), f"{where} is no object")
            kind = item.get("type", "message")
            self._check_id(item, kind, where, seen)
            if kind == "message":
                self._check_message(item, where)
                if item.get("role") != "assistant":
                    self._need_outputs(waiting)
            elif kind == "reasoning":
                self._check_reasoning(item, where, seen)
                self._need_successor(item, items[number + 1 :], where)
            elif kind == "function_call":
                self._check_call(item, where, calls)
                waiting.append(item["call_id"])
            elif kind == "function_call_output":
                self._check_output(item, where, waiting)
                waiting.remove(item["call_id"])
            else:
                refuse(f"{where} has the unknown type {kind!r}")
            self._need_as_issued(item, where)
            self._need_thought(item, kind, where, seen)
        self._need_outputs(waiting)

    def _need_outputs(self, waiting: list[str]) -> None:
        if waiting:
            refuse(f"No tool output found for function call {waiting[0]}.")

    def _check_id(self, item: Item, kind: str, where: str, seen: set[str]) -> None:
        if "id" not in item:
            return
        id_ = item["id"]
        need(isinstance(id_, str) and id_, f"{where}.id is no text or empty")
        need(len(id_) <= 64, f"{where}.id is longer than 64 characters")
        prefix = _PREFIXES.get(kind, "fco_")
        need(id_.startswith(prefix), f"{where}.id does not begin with {prefix}")
        need(id_ not in seen, f"Duplicate item found with id {id_}.")
        seen.add(id_)
        need(id_ in self._items, f"Item with id {id_!r} not found.")

    def _need_as_issued(self, item: Item, where: str) -> None:
        issued = self._items.get(item.get("id", ""))
        same = issued is None or _bare(item) == _bare(issued.item)
        need(same, f"{where} is not as it was issued")

    def _check_message(self, item: Item, where: str) -> None:
        known = ["type", "role", "content"]
        role = item.get("role")
        need(role in self.roles, f"{where} has the unknown role {role!r}")
        if role == "assistant":
            known += ["id", "status", "phase"]
        only_members(item, known, where)
        phases = {None, "commentary", "final_answer"}
        need(item.get("phase") in phases, f"{where} has an unknown phase")
        content = item.get("content")
        if isinstance(content, str):
            empty = role == "assistant" and not content
            need(not empty, f"{where}.content is empty")
            return
        need(isinstance(content, list) and content, f"{where}.content is empty")
        parts = _OUTPUT_PARTS if role == "assistant" else _INPUT_PARTS
        for part in content:
            kind = part.get("type")
            need(kind in parts, f"{where}.content has a part of the type {kind!r}")
            key = parts[kind]
            if key is not None:
                text = isinstance(part.get(key), str)
                need(text, f"{where}.content has a part without text")

    def _check_reasoning(self, item: Item, where: str, seen: set[str]) -> None:
        only_members(
            item, ("type", "id", "summary", "content", "encrypted_content"), where
        )
        null = [key for key, value in item.items() if value is None]
        need(not null, f"{where}.{null[0] if null else ''} is null")
        need(not item.get("content"), f"{where}.content is too long: at most 0 parts")
        need(isinstance(item.get("summary"), list), f"{where}.summary is no list")
        blob = item.get("encrypted_content")
        if not isinstance(blob, str):
            refuse(f"Item with id {item.get('id')!r} not found: nothing is stored.")
        issued = self._blobs.get(blob)
        if issued is None:
            raise Refused(
                f"{where}.encrypted_content could not be verified",
                code="invalid_encrypted_content",
            )
        need(blob not in seen, f"{where} is there twice")
        seen.add(blob)
        known = {k: v for k, v in issued.item.items() if k in item or k != "id"}
        need(_bare(item) == _bare(known), f"{where} is not as it was issued")

    def _need_successor(self, item: Item, rest: list[Item], where: str) -> None:
        issued = self._issued_thought(item)
        if issued is None:
            return
        behind = issued.reply[issued.index + 1 :]
        good = bool(rest) and bool(behind) and self._same(rest[0], behind[0])
        need(good, f"{where} was provided without its required following item.")

    def _issued_thought(self, item: Item) -> Issued | None:
        return self._blobs.get(item.get("encrypted_content", ""))

    @staticmethod
    def _same(item: Item, issued: Item) -> bool:
        if "id" in item:
            return item["id"] == issued["id"]
        without_id = {k: v for k, v in issued.items() if k in item or k != "id"}
        return _bare({"type": "message", **item}) == _bare(without_id)

    def _check_call(self, item: Item, where: str, calls: Counter[str]) -> None:
        known = ("type", "id", "call_id", "name", "arguments", "status")
        only_members(item, known, where)
        call_id = self.need_call_id(item.get("call_id"), f"{where}.call_id")
        self.need_new(call_id, calls, f"Duplicate function_call {call_id}.")
        # A name that the model made up is refused too when it comes back.
        self.need_tool_name(item.get("name"), f"{where}.name")
        need(isinstance(item.get("arguments"), str), f"{where}.arguments is no text")

    def _check_output(self, item: Item, where: str, waiting: list[str]) -> None:
        only_members(item, ("type", "id", "call_id", "output", "status"), where)
        call_id = item.get("call_id")
        need(
            call_id in waiting,
            f"No tool call found for function call output {call_id}.",
        )
        output = item.get("output")
        good = isinstance(output, str) or (isinstance(output, list) and output)
        need(good, f"{where}.output is neither text nor a list")

    def _need_thought(self, item: Item, kind: str, where: str, seen: set[str]) -> None:
        issued = self._items.get(item.get("id", ""))
        if issued is None and self.require_replay and kind == "function_call":
            issued = self._calls.get(item["call_id"])
        if issued is None or kind == "reasoning" or issued.thought is None:
            return
        there = self._mark(issued.thought) in seen
        need(there, f"{where} was provided without its required 'reasoning' item.")

    @staticmethod
    def _mark(thought: Item) -> str:
        """What stands for a reasoning item among what was seen."""
        return thought["encrypted_content"]

    # Replies.

    def reply(
        self, parts: Sequence[Part], body: dict[str, Any]
    ) -> tuple[dict[str, Any], list[Event]]:
        items = [item for part in parts if (item := self._item(part)) is not None]
        for index, item in enumerate(items):
            issued = Issued(item, items, index)
            self._items[item["id"]] = issued
            if item["type"] == "function_call":
                self._calls[item["call_id"]] = issued
            elif item.get("encrypted_content"):
                self._blobs[item["encrypted_content"]] = issued
        response = {
            "id": self.fresh("resp_"),
            "object": "response",
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "model": body["model"],
            "output": items,
            "usage": _USAGE,
        }
        return response, self._events(response, items)

    def _item(self, part: Part) -> Item | None:
        if isinstance(part, Think):
            return self._thought(part)
        if isinstance(part, Say):
            text = {"type": "output_text", "annotations": [], "text": part.text}
            return {
                "id": self.fresh("msg_"),
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [text],
            }
        return {
            "id": self.fresh("fc_"),
            "type": "function_call",
            "status": "completed",
            "call_id": self.call_id(part.id, "call_"),
            "name": part.name,
            "arguments": part.arguments,
        }

    def _thought(self, part: Think) -> Item | None:
        shown = part.text if part.kind == "plain" else ""
        return {
            "id": self.fresh("rs_"),
            "type": "reasoning",
            "status": "completed",
            "content": None,
            "summary": [{"type": "summary_text", "text": shown}] if shown else [],
            "encrypted_content": self.fresh("gAAA/+") + "==",
        }

    def _events(self, response: dict[str, Any], items: list[Item]) -> list[Event]:
        begun = {**response, "status": "in_progress", "output": [], "usage": None}
        events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
        for index, item in enumerate(items):
            spot = {"item_id": item["id"], "output_index": index}
            empty = {
                "content": [],
                "summary": [],
                "arguments": "",
                "status": "in_progress",
            }
            begin = {k: empty.get(k, v) for k, v in item.items()}
            begin.pop("encrypted_content", None)
            for kind, inner in (("added", begin), ("done", item)):
                if kind == "done":
                    events += self._deltas(item, spot)
                name = f"response.output_item.{kind}"
                events.append({"type": name, "output_index": index, "item": inner})
        events.append({"type": "response.completed", "response": response})
        return [
            (event["type"], {**event, "sequence_number": number})
            for number, event in enumerate(events)
        ]

    def _deltas(self, item: Item, spot: dict[str, Any]) -> list[dict[str, Any]]:
        if item["type"] == "function_call":
            name, place, texts = "function_call_arguments", None, [item["arguments"]]
        elif item["type"] == "message":
            name, place = "output_text", "content_index"
            texts = [part["text"] for part in item["content"]]
        elif item["summary"]:
            name, place = "reasoning_summary_text", "summary_index"
            texts = [part["text"] for part in item["summary"]]
        else:
            name, place = "reasoning_text", "content_index"
            texts = [part["text"] for part in item.get("content") or ()]
        last = "arguments" if place is None else "text"
        found: list[dict[str, Any]] = []
        for number, text in enumerate(texts):
            where = spot if place is None else {**spot, place: number}
            kind = f"response.{name}"
            found += [
                {"type": f"{kind}.delta", **where, "delta": d} for d in halves(text)
            ]
            found.append({"type": f"{kind}.done", **where, last: text})
        return found

    def error(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return {"error": {"message": text, "type": kind, "param": None, "code": code}}
