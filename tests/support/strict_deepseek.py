"""The Responses interface with the rules of DeepSeek."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .strict_responses import Issued, Item, StrictResponses
from .strict_service import Event
from .strict_turns import Think, need, only_members

__all__ = ["StrictDeepSeek"]


class StrictDeepSeek(StrictResponses):
    """DeepSeek's rules: reasoning goes in the clear, and has to come back with tools."""

    roles = frozenset({"user", "assistant", "system"})  # developer would count as user
    recoverable: frozenset[str] = frozenset()

    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        foreign = sorted(name for name in headers if name.startswith("openai-"))
        need(not foreign, f"a header of another service was sent: {foreign}")
        super().check(body, headers)

    def _check_fields(self, body: dict[str, Any]) -> None:
        include = ["reasoning.encrypted_content"]
        super()._check_fields({**body, "store": False, "include": include})

    def _check_items(self, items: list[Item], body: dict[str, Any]) -> None:
        super()._check_items(items, body)
        thinks = (body.get("reasoning") or {}).get("effort") != "none"
        before, thought = "", False
        for number, item in enumerate(items):
            kind = item.get("type", "message")
            where = f"input[{number}]"
            mine = kind != "function_call_output" and (
                kind != "message" or item.get("role") == "assistant"
            )
            if kind == "function_call" and before == "function_call_output":
                answered = items[number - 1]["call_id"]
                whole = self._calls.get(answered)
                mates = [each.get("call_id") for each in whole.reply] if whole else []
                text = f"{where} stands behind the result of a call of its batch"
                need(item["call_id"] not in mates, text)
            if kind == "reasoning":
                thought = True
            elif kind == "function_call" and thinks and body.get("tools"):
                text = "The `reasoning_text` in the thinking mode must be passed back to the API."
                need(thought, f"{text} ({where})")
            if not mine:
                thought = False
            if kind == "function_call_output":
                calls = {"function_call", "function_call_output"}
                need(
                    before in calls, f"{where} stands apart from the calls of its batch"
                )
            before = kind

    def _check_reasoning(self, item: Item, where: str, seen: set[str]) -> None:
        only_members(item, ("type", "id", "summary", "content", "status"), where)
        content = item.get("content")
        need(isinstance(content, list) and content, f"{where}.content is missing")
        for part in content:
            good = part.get("type") == "reasoning_text" and part.get("text")
            need(
                good and isinstance(part["text"], str), f"{where} has no reasoning_text"
            )

    def _issued_thought(self, item: Item) -> Issued | None:
        return None  # any text will do, wherever it stands

    @staticmethod
    def _mark(thought: Item) -> str:
        return thought["id"]

    def _thought(self, part: Think) -> Item | None:
        if part.kind != "plain" or not part.text:
            return None
        return {
            "type": "reasoning",
            "id": self.fresh("rs_"),
            "status": "completed",
            "content": [{"type": "reasoning_text", "text": part.text}],
            "summary": [],
        }

    def _events(self, response: dict[str, Any], items: list[Item]) -> list[Event]:
        events: list[Event] = []
        for event in super()._events(response, items):
            events += [": keep-alive\n\n", event]
        return events
