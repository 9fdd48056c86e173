"""The tool calls of a streamed Chat Completions reply, put together from pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lighter_core import ToolCall, ToolCallDelta
from lighter_core.adapters import (
    ShapeError,
    TextJoiner,
    as_object,
    clean_text,
    dump_json,
    load_json,
)

from ._chat_calls import (
    Call,
    Ids,
    Turn,
    argument_text,
    call_name,
    is_function,
    need_function,
)

__all__ = ["CallPieces"]

_OF_A_PIECE = frozenset({"index", "id", "type", "function"})
_OF_A_FUNCTION = frozenset({"name", "arguments"})
_Place = int | str | None
"""The index that the service wrote, if it can tell calls apart."""


@dataclass(eq=False)
class _Slot:
    """A call on its way."""

    id: str
    place: _Place = None
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    extra: dict[str, object] = field(default_factory=dict[str, object])
    inner: dict[str, object] = field(default_factory=dict[str, object])
    joiner: TextJoiner = field(default_factory=TextJoiner)
    held: str = ""  # argument text that waits for the name
    legacy: bool = False

    def is_whole(self) -> bool:
        """Tell whether the arguments so far are a JSON object."""
        if not self.arguments[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(load_json("".join(self.arguments)), dict)
        except ValueError:
            return False

    def text(self, public: ToolCall) -> str:
        """Return the text that stands for the call when it is sent back."""
        arguments = public.arguments if public.arguments.strip() else "{}"
        function = {**self.inner, "name": public.tool_name, "arguments": arguments}
        if self.legacy:
            return clean_text(dump_json(function))
        entry = {"id": self.id, "type": "function", **self.extra, "function": function}
        return clean_text(dump_json(entry))


class _Latest:
    """Finds the latest call that a piece can belong to, however many there are.

    Two indexes must be the same, then an id may be missing on one side; where an index is
    missing, the ids decide.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, _Place, str | None], tuple[int, _Slot]] = {}
        self._count = 0

    def add(self, slot: _Slot, id_: str | None) -> None:
        """Take the newest call, with the id that the service wrote."""
        self._count += 1
        for key in (
            ("both", slot.place, id_),
            ("place", slot.place, None),
            ("id", None, id_),
        ):
            self._known[key] = self._count, slot

    def find(self, place: _Place, id_: str | None) -> _Slot | None:
        """Return the latest call that fits an index and an id."""
        if id_ is None:  # as in nearly every piece
            known = self._known.get(("place", place, None))
            return None if known is None else known[1]
        keys: list[tuple[str, _Place, str | None]]
        if place is None:
            keys = [("id", None, id_), ("both", None, None)]
        else:
            keys = [("both", place, id_), ("both", place, None), ("both", None, id_)]
        found = [self._known[key] for key in keys if key in self._known]
        return max(found, key=lambda each: each[0])[1] if found else None


class CallPieces:
    """Puts calls together from their pieces.

    A piece belongs to the call with its index and id, as far as it has them, else to
    the latest. A name after arguments begins another call, though: some servers give every
    call the index 0, or one id, and some give neither.
    """

    def __init__(self, turn: Turn) -> None:
        self._ids = Ids(turn)
        self._slots: list[_Slot] = []
        self._latest = _Latest()

    def add(self, value: object) -> list[ToolCallDelta]:
        """Take a piece; return what of it can be shown."""
        piece = as_object(value)
        if piece is None:
            raise ShapeError(f"a piece of a call is {type(value).__name__}")
        if not is_function(piece.get("type")):
            need_function(piece)
        function = as_object(piece.get("function")) or {}
        slot = self._find(piece, function)
        if not piece.keys() <= _OF_A_PIECE:
            slot.extra |= _further(piece, _OF_A_PIECE)
        return self._take(slot, function)

    def add_legacy(self, value: object) -> list[ToolCallDelta]:
        """Take a piece of a call in the older form."""
        function = as_object(value)
        if function is None:
            raise ShapeError(f"a piece of a call is {type(value).__name__}")
        if not self._slots:
            self._slots.append(_Slot(self._ids.take(None), legacy=True))
        return self._take(self._slots[-1], function)

    def finish(self) -> tuple[list[Call], list[ToolCallDelta]]:
        """Return the complete calls, and what of them was not shown yet.

        Raises:
            ShapeError: For a call without a name.
        """
        calls: list[Call] = []
        shown: list[ToolCallDelta] = []
        for slot in self._in_order():
            arguments = clean_text("".join(slot.arguments))
            public = ToolCall(slot.id, call_name(slot.name), arguments)
            rest = slot.joiner.finish()
            if rest:
                shown.append(ToolCallDelta(slot.id, public.tool_name, rest))
            calls.append(Call(public, slot.text(public), slot.legacy))
        return calls, shown

    def _in_order(self) -> list[_Slot]:
        indexed = {s.place: s for s in self._slots if isinstance(s.place, int)}
        if len(indexed) < len(self._slots):
            return self._slots
        return [slot for _, slot in sorted(indexed.items())]

    def _find(
        self, piece: Mapping[str, object], function: Mapping[str, object]
    ) -> _Slot:
        id_, index = piece.get("id"), piece.get("index")
        if not isinstance(id_, str) or not id_.strip():
            id_ = None
        place = index if isinstance(index, int | str) else None
        slot = self._latest.find(place, id_)
        if slot is None and id_ is None and place is None and self._slots:
            slot = self._slots[-1]
        name = function.get("name")
        if slot is None or _begins_another(slot, name, function.get("arguments")):
            slot = _Slot(self._ids.take(id_), place)
            self._slots.append(slot)
            self._latest.add(slot, id_)
        return slot

    @staticmethod
    def _take(slot: _Slot, function: Mapping[str, object]) -> list[ToolCallDelta]:
        if not function.keys() <= _OF_A_FUNCTION:
            slot.inner |= _further(function, _OF_A_FUNCTION)
        name = function.get("name")
        if isinstance(name, str) and name != slot.name:
            slot.name += name  # else it is said again
        piece = argument_text(function.get("arguments"))
        if piece:
            slot.arguments.append(piece)
            slot.held += slot.joiner.feed(piece)
        if not slot.held or not slot.name:
            return []
        shown, slot.held = slot.held, ""
        return [ToolCallDelta(slot.id, clean_text(slot.name), shown)]


def _further(value: Mapping[str, object], known: frozenset[str]) -> dict[str, object]:
    return {k: v for k, v in value.items() if k not in known and v is not None}


def _begins_another(slot: _Slot, name: object, arguments: object) -> bool:
    """Tell whether a piece that seems to belong to a call is the first of another."""
    if not isinstance(name, str) or not name or not slot.arguments:
        return False
    if name != slot.name:
        return True
    # Some servers say the name in each piece: then the text of the call goes on.
    begins = isinstance(arguments, dict) or str(arguments or "").lstrip()[:1] == "{"
    return begins and slot.is_whole()
