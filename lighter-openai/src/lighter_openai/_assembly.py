"""What a streamed reply is put together in: texts with parts, items on their way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from lighter_core import ToolCall, ToolCallDelta
from lighter_core.adapters import ShapeError, TextJoiner

from ._items import Item, ReasoningKind

__all__ = ["Channel", "Event", "PartKey", "Slot", "Slots"]

Event = dict[str, object]
PartKey = tuple[int, int]  # of a slot and of a part in it


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


class Channel:
    """One public text, put together from the pieces of its parts.

    What it hands out, joined, is the text: separators are handed out too, and what a
    service left out of the pieces follows when the whole part is known.
    """

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._parts: dict[PartKey, list[str]] = {}
        self._current: PartKey | None = None
        self._part: list[str] = []  # the pieces of the current one
        self._joiner = TextJoiner()
        self._shown: list[str] = []

    def add(self, key: PartKey, piece: str) -> str:
        """Take a piece of a part; return the text to show now."""
        if not piece:
            return ""
        shown = ""
        if key != self._current:
            shown = self._joiner.finish()
            if self._parts:
                shown += self._separator
            self._current = key
            self._part = self._parts.setdefault(key, [])
        self._part.append(piece)
        shown += self._joiner.feed(piece)
        if shown:
            self._shown.append(shown)
        return shown

    def settle(self, key: PartKey, whole: str) -> str:
        """Take a whole part; return the text that its pieces lacked."""
        known = "".join(self._parts.get(key, ()))
        if whole.startswith(known):
            return self.add(key, whole[len(known) :])
        # The pieces may hold the two halves of a character that the whole has in one.
        units, all_units = _utf16(known), _utf16(whole)
        if not all_units.startswith(units):
            raise ShapeError("a finished text differs from the pieces it came in")
        rest = all_units[len(units) :].decode("utf-16-le", "surrogatepass")
        return self.add(key, rest)

    def finish(self, whole: str) -> str:
        """Take the whole text, clean; return what is still to be shown."""
        shown = self.shown
        if not whole.startswith(shown):
            raise ShapeError("the finished reply differs from the pieces it came in")
        self._shown = [whole]
        return whole[len(shown) :]

    @property
    def whole(self) -> str:
        """All pieces of a text with one part, as they came."""
        return "".join(chain.from_iterable(self._parts.values()))

    @property
    def shown(self) -> str:
        """All that was handed out."""
        return "".join(self._shown)


@dataclass(eq=False)
class Slot:
    """An output item on its way."""

    number: int
    index: int | None
    id: str | None
    item: Item | None = None  # once it is complete
    kind: ReasoningKind | None = None  # which reasoning text came first
    arguments: Channel = field(default_factory=lambda: Channel(""))
    call: tuple[str, str] | None = None  # id and name, once they are known
    unshown: str = ""  # argument text that waits for them
    shown: bool = False  # whether its item was shown
    closed: dict[str, int] = field(default_factory=dict[str, int])  # parts by event

    def add_arguments(self, piece: str) -> list[ToolCallDelta]:
        """Take a piece of a call's arguments; return what can be shown."""
        self.unshown += self.arguments.add((self.number, 0), piece)
        return self.delta()

    def delta(self) -> list[ToolCallDelta]:
        """Return the argument text that waits, once it is known whose it is."""
        if self.call is None or not self.unshown:
            return []
        text, self.unshown = self.unshown, ""
        return [ToolCallDelta(*self.call, text)]

    def finish_call(self, call: ToolCall) -> list[ToolCallDelta]:
        """Take the whole call; return what of its arguments was not shown.

        Raises:
            ShapeError: When it is not the call that was shown.
        """
        known = call.call_id, call.tool_name
        if self.shown_call and self.call != known:
            raise ShapeError("a call has another id or name than its pieces had")
        self.call = known
        self.unshown += self.arguments.finish(call.arguments)
        return self.delta()

    @property
    def shown_call(self) -> bool:
        """Whether some of a call's arguments were handed out."""
        return self.call is not None and bool(self.arguments.shown)


class Slots:
    """Finds the item that an event is about.

    By id, else by index, else the latest: some servers leave one of them out, some
    give an item another id in each event, some give every item the index 0.
    """

    def __init__(self) -> None:
        self.all: list[Slot] = []
        self._by_id: dict[str, Slot] = {}
        self._by_index: dict[int, Slot] = {}

    def find(self, event: Event, item: Mapping[str, object] | None = None) -> Slot:
        """Return the slot; an event that begins or ends an item comes with it."""
        id_ = event.get("item_id") if item is None else item.get("id")
        if item is None and isinstance(id_, str) and id_ in self._by_id:
            return self._by_id[id_]
        id_ = id_ if isinstance(id_, str) and id_ else None
        index = event.get("output_index")
        index = index if isinstance(index, int) else None
        slot = self._by_id.get(id_) if id_ is not None else None
        if slot is None and index is not None:
            slot = self._by_index.get(index)
        if slot is None and id_ is None and index is None and item is None:
            slot = self.all[-1] if self.all else None
        begins = event.get("type") == "response.output_item.added"
        if slot is None or (item is not None and self._taken(slot, id_, begins=begins)):
            slot = Slot(len(self.all), index, id_)
            self.all.append(slot)
            if index is not None:
                self._by_index[index] = slot
        if id_ is not None:
            self._by_id[id_] = slot
            slot.id = slot.id or id_
        return slot

    @staticmethod
    def _taken(slot: Slot, id_: str | None, *, begins: bool) -> bool:
        """Tell whether the item that begins or ends is another one than the slot's."""
        other = id_ is None or id_ != slot.id
        return other and (begins or slot.item is not None)

    def finished(self) -> list[Slot]:
        """Return the slots with a complete item, in the service's order."""
        done = [slot for slot in self.all if slot.item is not None]
        indexes = [slot.index for slot in done if slot.index is not None]
        if len(set(indexes)) == len(done):
            done.sort(key=lambda slot: slot.index or 0)
        return done
