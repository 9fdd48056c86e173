"""The tool calls of a Chat Completions reply, and ids that keep them apart."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from lighter_core import ModelRequest, ToolCall
from lighter_core.adapters import (
    ShapeError,
    as_object,
    clean_text,
    dump_json,
    members,
)

__all__ = [
    "Call",
    "Ids",
    "Turn",
    "argument_text",
    "call_name",
    "is_function",
    "legacy_call",
    "need_function",
    "whole_calls",
]


@dataclass(frozen=True, slots=True)
class Turn:
    """Where in a conversation a reply stands: what keeps made-up call ids apart.

    Attributes:
        position: The number of messages in the request.
        taken: The call ids of its history.
    """

    position: int = 0
    taken: frozenset[str] = frozenset()

    @classmethod
    def of(cls, request: ModelRequest) -> Turn:
        """Return the turn that answers the request."""
        ids = {
            call.call_id
            for message in request.messages
            if message.role == "assistant"
            for call in message.tool_calls
        }
        return cls(len(request.messages), frozenset(ids))


class Ids:
    """Gives each call of a reply an id that nothing else in the conversation has.

    Some servers send no id, the same one for every call, or start anew in each reply.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._used: set[str] = set()

    def take(self, given: object) -> str:
        """Return the id that came, unless it is missing or taken; then another."""
        found = clean_text(given) if isinstance(given, str) else ""
        attempt = 0
        while not found.strip() or found in self._used or found in self._turn.taken:
            source = f"{self._turn.position} {len(self._used)} {attempt}"
            found = f"call_{hashlib.sha256(source.encode()).hexdigest()[:24]}"
            attempt += 1
        self._used.add(found)
        return found


@dataclass(frozen=True, slots=True)
class Call:
    """A complete call: its public form, and the JSON text that stands for it later."""

    public: ToolCall
    text: str
    legacy: bool = False  # it came as `function_call`


def argument_text(value: object) -> str:
    """Return the arguments as text; some servers send an object instead of text.

    Raises:
        ShapeError: For any other value.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    fields = as_object(value)
    if fields is not None:
        return dump_json(fields)
    raise ShapeError(f"the arguments of a call are {type(value).__name__}")


def call_name(value: object) -> str:
    """Return the name of a call's function, or raise `ShapeError`."""
    if not isinstance(value, str) or not value:
        raise ShapeError("a call has no name")
    return clean_text(value)


def is_function(kind: object) -> bool:
    """Tell whether a call's type is that of functions; many servers leave it out."""
    return not kind or kind == "function"


def need_function(entry: Mapping[str, object]) -> dict[str, object]:
    """Return what a call says of its function, or raise `ShapeError`."""
    kind = entry.get("type")
    function = as_object(entry.get("function"))
    if function is None or not is_function(kind):
        raise ShapeError(f"a call of type {kind!r} cannot be answered by a function")
    return function


def whole_calls(entries: list[tuple[object, str]], ids: Ids) -> list[Call]:
    """Return the calls of a reply that came whole; each entry with its own JSON text.

    Raises:
        ShapeError: For an entry that is no call of a function.
    """
    found: list[Call] = []
    for value, text in entries:
        entry = as_object(value)
        if entry is None:
            raise ShapeError(f"a call is {type(value).__name__}, not an object")
        function = need_function(entry)
        arguments = argument_text(function.get("arguments"))
        name = call_name(function.get("name"))
        id_ = ids.take(entry.get("id"))
        parts = {member.key: member.text for member in members(text, entry)}
        if not isinstance(function.get("arguments"), str) or not arguments.strip():
            inner = {member.key: member.text for member in members(parts["function"])}
            inner["arguments"] = dump_json(arguments if arguments.strip() else "{}")
            parts["function"] = _object(inner)
        if entry.get("id") != id_:
            parts["id"] = dump_json(id_)
        found.append(
            Call(ToolCall(id_, name, clean_text(arguments)), _entry_text(parts))
        )
    return found


def _object(fields: Mapping[str, str]) -> str:
    return f"{{{','.join(f'{dump_json(k)}:{text}' for k, text in fields.items())}}}"


def _entry_text(parts: Mapping[str, str]) -> str:
    """Return the text of a call for sending back: its position in the reply goes."""
    first = {"id": parts["id"], "type": '"function"'}
    rest = {key: text for key, text in parts.items() if key not in {*first, "index"}}
    return _object(first | rest)


def legacy_call(value: object, text: str, ids: Ids) -> Call:
    """Return the call of a reply in the older form, which has no id."""
    function = as_object(value)
    if function is None:
        raise ShapeError(f"a function_call is {type(value).__name__}, not an object")
    arguments = argument_text(function.get("arguments"))
    public = ToolCall(
        ids.take(None), call_name(function.get("name")), clean_text(arguments)
    )
    return Call(public, text, legacy=True)
