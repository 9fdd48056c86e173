"""The fields of a message that comes in pieces, put together for sending back."""

from __future__ import annotations

from lighter_core.adapters import as_list, as_object, dump_json

from ._chat_message import REASONING_KEYS, says_something

__all__ = ["Fields"]

_PIECEWISE = frozenset({"content", "refusal", *REASONING_KEYS})
_TEXTS = frozenset({"text", "summary", "data"})  # of an entry of reasoning_details


class _Pieces(list[str]):
    """A text in pieces: joining them once costs nothing, adding each time would."""

    def whole(self) -> str:
        return "".join(self)


class Fields:
    """Takes the pieces of a message's fields; each kind of value grows in its way.

    Texts are joined, lists are continued, anything else is replaced. Entries of a list
    that carry one index and type after each other are pieces of one entry.
    """

    def __init__(self) -> None:
        self._values: dict[str, object] = {}

    def add(self, key: str, value: object) -> None:
        """Take a piece of a field; `None` adds nothing."""
        if value is None:
            return
        if isinstance(value, str) and key in _PIECEWISE:
            known = self._values.get(key)
            if isinstance(known, _Pieces):
                known.append(value)
            else:
                self._values[key] = _Pieces([value])
            return
        entries = as_list(value)
        if entries is not None:
            self._continue(key, entries)
        else:
            self._values[key] = value

    def _continue(self, key: str, entries: list[object]) -> None:
        known = self._values.get(key)
        if not isinstance(known, _Entries):
            known = self._values[key] = _Entries()
        for entry in entries:
            known.add(entry)

    def texts(self) -> dict[str, str]:
        """Return the JSON text of each field that says something."""
        found: dict[str, str] = {}
        for key, value in self._values.items():
            whole = value.whole() if isinstance(value, _Pieces | _Entries) else value
            if says_something(key, whole):
                found[key] = dump_json(whole)
        return found


class _Entries:
    """A list that comes in pieces."""

    def __init__(self) -> None:
        self._entries: list[object] = []
        self._last: dict[str, object] | None = None  # the entry that may go on

    def add(self, entry: object) -> None:
        piece = as_object(entry)
        if piece is None or piece.get("index") is None:
            self._entries.append(entry)
            self._last = None
            return
        last = self._last
        same = ("index", "type")
        if last is None or any(last.get(key) != piece.get(key) for key in same):
            last = self._last = {}
            self._entries.append(last)
        for key, value in piece.items():
            known = last.get(key)
            if isinstance(value, str) and key in _TEXTS:
                if isinstance(known, _Pieces):
                    known.append(value)
                else:
                    last[key] = _Pieces([value])
            elif value is not None or known is None:
                last[key] = value

    def whole(self) -> list[object]:
        """Return the list."""
        return [_whole_entry(entry) for entry in self._entries]


def _whole_entry(entry: object) -> object:
    fields = as_object(entry)
    if fields is None:
        return entry
    return {
        key: value.whole() if isinstance(value, _Pieces) else value
        for key, value in fields.items()
    }
