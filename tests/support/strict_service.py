"""What the strict services have in common."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any
from zlib import crc32

from .strict_turns import Part, Refused, Turn, need

__all__ = ["CALL_ID", "TOOL_NAME", "Event", "StrictService"]

Event = str | tuple[str, dict[str, Any]]
"""An event's name and data; or text that goes out as it is, such as a comment."""

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class StrictService(ABC):
    """One vendor's interface below one path."""

    recoverable: frozenset[str] = frozenset()
    """Codes of refusals that a client may meet once and then mend."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.turns: deque[Turn] = deque()
        self.accepted: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self.recovered: list[str] = []
        self.issued_ids: Counter[str] = Counter()  # of calls
        self._numbers = count(1)
        self._salt = f"{crc32(path.encode()):08x}"  # no two services give one id

    def script(self, *turns: Turn) -> None:
        """Set what is answered next; what was left of an older script is dropped."""
        self.turns = deque(turns)

    def remember_refusal(self, error: Refused) -> None:
        """Note why a request was refused."""
        known = self.recovered if error.code in self.recoverable else self.refusals
        known.append(str(error))

    def fresh(self, prefix: str) -> str:
        """Return an id that no other has, of some length."""
        return f"{prefix}{self._salt}{next(self._numbers):016x}"

    def call_id(self, wanted: str | None, prefix: str) -> str:
        """Return the id of a call that is issued now."""
        given = wanted if wanted is not None else self.fresh(prefix)
        self.issued_ids[given] += 1
        return given

    def need_call_id(self, value: object, where: str, longest: int = 64) -> str:
        """Refuse an id that the service has not issued itself and would not issue."""
        if not isinstance(value, str) or not value:
            raise Refused(f"{where} must be a text that is not empty")
        if value not in self.issued_ids:
            need(CALL_ID.fullmatch(value), f"{where} does not match {CALL_ID.pattern}")
            need(len(value) <= longest, f"{where} is longer than {longest} characters")
        return value

    def need_new(self, call_id: str, used: Counter[str], text: str) -> None:
        """Refuse an id that stands more often than the service itself has given it."""
        used[call_id] += 1
        need(used[call_id] <= max(1, self.issued_ids[call_id]), text)

    def need_tool_name(self, value: object, where: str) -> None:
        """Refuse a name that the service would not take for a tool."""
        good = isinstance(value, str) and TOOL_NAME.fullmatch(value)
        need(good, f"{where} does not match {TOOL_NAME.pattern}")

    def need_tools(self, found: Sequence[tuple[object, object]]) -> None:
        """Refuse names and schemas of tools that cannot be right."""
        names: set[object] = set()
        for number, (name, schema) in enumerate(found):
            self.need_tool_name(name, f"tools[{number}].name")
            need(name not in names, f"tools[{number}].name is there twice")
            names.add(name)
            good = isinstance(schema, dict) and schema.get("type") == "object"
            need(good, f"the schema of tools[{number}] is not of an object")

    @abstractmethod
    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Raise `Refused` when the request breaks a rule."""

    @abstractmethod
    def reply(
        self, parts: Sequence[Part], body: dict[str, Any]
    ) -> tuple[dict[str, Any], list[Event]]:
        """Return the reply as one JSON object and as events; remember it."""

    @abstractmethod
    def error(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        """Return the body of an error."""
