"""Interfaces of model services: how a scripted turn looks on the wire."""

from __future__ import annotations

from ._base import UNFINISHED, Wire
from ._chat import ChatWire
from ._messages import MessagesWire
from ._responses import ResponsesWire

__all__ = [
    "UNFINISHED",
    "ChatWire",
    "MessagesWire",
    "ResponsesWire",
    "Wire",
    "wire_named",
]


def wire_named(name: str) -> Wire:
    """Return the wire of that name.

    Raises:
        LookupError: When there is none.
    """
    known: dict[str, Wire] = {
        each.name: each for each in (ChatWire(), MessagesWire(), ResponsesWire())
    }
    if name not in known:
        raise LookupError(f"no wire {name!r}; there are {', '.join(sorted(known))}")
    return known[name]
