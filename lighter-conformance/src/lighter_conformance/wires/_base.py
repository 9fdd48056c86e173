"""What every interface of a model service can be asked for."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias, cast

from lighter_core import ToolCall
from lighter_core.testing import Turn

__all__ = [
    "UNFINISHED",
    "Object",
    "Wire",
    "dump",
    "event",
    "objects",
    "slices",
    "text_of",
]

Object: TypeAlias = dict[str, object]

UNFINISHED = "unfinished"
"""The `stop_reason` of a turn that ran out of tokens."""


class Wire(ABC):
    """One interface: writes replies as its service does, and reads requests.

    Attributes:
        name: Its name.
        base_path: What a provider's `base_url` has behind the host.
        ending: How many events at a stream's end may be lost and the reply is complete.
    """

    name: str
    base_path: str = ""
    ending: int = 0

    def streamed(self, body: Object) -> bool:
        """Tell whether a request asks for a streamed reply."""
        return body.get("stream") is True

    @abstractmethod
    def whole(self, turn: Turn) -> bytes:
        """Return the body of a reply that is not streamed."""

    @abstractmethod
    def stream(self, turn: Turn) -> list[bytes]:
        """Return the events of a streamed reply, one piece each."""

    def failure(self, status: int, text: str) -> bytes:
        """Return the body of an error status."""
        return dump({"error": {"message": text, "type": f"kind_{status}"}})

    @abstractmethod
    def failing(self, text: str) -> bytes:
        """Return the event that reports an error inside a stream."""

    @abstractmethod
    def stranger(self) -> bytes:
        """Return an event of a kind that no provider knows yet."""

    @abstractmethod
    def conversation(self, body: Object) -> list[object]:
        """Return the units of the conversation in a request: a longer one adds to it."""

    @abstractmethod
    def calls(self, body: Object) -> list[ToolCall]:
        """Return the tool calls in a request."""

    @abstractmethod
    def results(self, body: Object) -> list[tuple[str, str]]:
        """Return call id and text of the tool results in a request."""

    @abstractmethod
    def prompt(self, body: Object) -> str:
        """Return the text of the last user message in a request."""

    def tools(self, body: Object) -> list[str]:
        """Return the names of the tools in a request."""
        return [
            str(objects([each.get("function", each)])[0].get("name"))
            for each in objects(body.get("tools"))
        ]


def dump(value: object) -> bytes:
    """Write JSON as UTF-8; escaped where a text has no UTF-8 form."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def event(value: object, name: str | None = None) -> bytes:
    """Write one event of a stream."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + dump(value) + b"\n\n"


def slices(text: str, count: int) -> list[str]:
    """Cut a text into so many pieces at most; none for no text."""
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)]


def objects(value: object) -> list[Object]:
    """Return the objects in a list; empty for anything else."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [
        cast("Object", each)
        for each in cast("Sequence[object]", value)
        if isinstance(each, dict)
    ]


def text_of(content: object) -> str:
    """Return the text of content: a string, or a list of parts with a `text`."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in objects(content))
