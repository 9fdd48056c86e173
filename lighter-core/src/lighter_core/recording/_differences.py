"""How a request differs from a recorded one."""

from __future__ import annotations

from typing import cast

from ..documents import messages_to_data
from ..messages import Message
from ..requests import ModelRequest
from ._file import cleaned, request_data
from ._secrets import Clean

__all__ = ["difference"]

_SHOWN = 80
_NOT_SENT = ("usage", "stop_reason")


def difference(
    recorded: ModelRequest, asked: ModelRequest, clean: Clean
) -> tuple[str, str] | None:
    """Return the first place in which two requests differ, and how; `None` for none."""
    pairs = zip(recorded.messages, asked.messages, strict=False)
    for number, (one, other) in enumerate(pairs):
        if one != other:
            found = _message_difference(one, other, clean)
            if found is not None:
                return f"messages[{number}]{found[0]}", found[1]
    if len(recorded.messages) != len(asked.messages):
        place = f"messages[{min(len(recorded.messages), len(asked.messages))}]"
        return place, (
            f"the recorded request has {len(recorded.messages)} messages, this one"
            f" {len(asked.messages)}"
        )
    found = _first_difference(
        cleaned(request_data(recorded), clean), cleaned(request_data(asked), clean)
    )
    return found and (found[0].lstrip("."), found[1])


def _message_difference(
    one: Message, other: Message, clean: Clean
) -> tuple[str, str] | None:
    return _first_difference(_plain_message(one, clean), _plain_message(other, clean))


def _plain_message(message: Message, clean: Clean) -> object:
    """Return what of a message is sent, as plain data without secrets."""
    document = cast("dict[str, list[dict[str, object]]]", messages_to_data([message]))
    plain = document["messages"][0]
    for name in _NOT_SENT:
        plain.pop(name, None)
    return cleaned(plain, clean)


def _first_difference(
    one: object, other: object, path: str = ""
) -> tuple[str, str] | None:
    pair: tuple[object, object] = (one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, object]", one), cast("dict[str, object]", other)
        for name in {**left, **right}:
            found = _first_difference(left.get(name), right.get(name), f"{path}.{name}")
            if found is not None:
                return found
        return None
    if isinstance(one, list) and isinstance(other, list):
        items, others = cast("list[object]", one), cast("list[object]", other)
        for number in range(max(len(items), len(others))):
            found = _first_difference(
                items[number] if number < len(items) else None,
                others[number] if number < len(others) else None,
                f"{path}[{number}]",
            )
            if found is not None:
                return found
        return None
    return _unequal(*pair, path)


def _unequal(one: object, other: object, path: str) -> tuple[str, str] | None:
    if one == other:
        return None
    return path, f"recorded {_short(one)}, now {_short(other)}"


def _short(value: object) -> str:
    text = repr(value)
    return (
        text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
    )
