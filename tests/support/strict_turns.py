"""What the strict services are told to answer, and how they refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

__all__ = [
    "Call",
    "Part",
    "Refused",
    "Say",
    "Think",
    "Turn",
    "canonical",
    "halves",
    "need",
    "only_members",
    "parse_strictly",
    "refuse",
]


@dataclass(frozen=True)
class Say:
    """Text of the reply."""

    text: str


@dataclass(frozen=True)
class Think:
    """Reasoning: in the clear, with its text left out, or as one opaque block."""

    text: str = "Hm."
    kind: Literal["plain", "omitted", "redacted"] = "plain"


@dataclass(frozen=True)
class Call:
    """A tool call; without an id the service makes one."""

    name: str
    arguments: str = "{}"
    id: str | None = None


Part = Say | Think | Call


@dataclass(frozen=True)
class Turn:
    """One answer.

    Attributes:
        parts: What the reply says, in order.
        end: How the connection ends; anything but `"complete"` happens at `at`.
        at: Where, as a share of the reply's bytes.
        status: An error status answers instead of a reply.
    """

    parts: tuple[Part, ...] = field(default=(Say("ok."),))
    end: Literal["complete", "cut", "reset", "stall"] = "complete"
    at: float = 0.5
    status: int = 200


class Refused(Exception):
    """The request breaks a rule of the service."""

    def __init__(self, text: str, *, code: str | None = None) -> None:
        super().__init__(text)
        self.code = code


def refuse(text: str, *, code: str | None = None) -> NoReturn:
    """Refuse the request."""
    raise Refused(text, code=code)


def need(condition: object, text: str, *, code: str | None = None) -> None:
    """Refuse the request unless the condition holds."""
    if not condition:
        raise Refused(text, code=code)


def only_members(value: Any, known: Iterable[str], where: str) -> None:
    """Refuse what is no object or has members that the service does not know."""
    need(isinstance(value, dict), f"{where} is no object")
    unknown = sorted(set(value) - set(known))
    need(not unknown, f"unknown parameter: {where}.{unknown[0] if unknown else ''}")


def canonical(value: object) -> str:
    """Return a text that is the same for the same JSON value only; 1.0 is not 1."""
    return json.dumps(value, sort_keys=True)


def _no_constant(name: str) -> NoReturn:
    raise Refused(f"{name} is no JSON")


_STRUCTURE = frozenset({"model", "type", "role", "content", "function"})


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs) and not _STRUCTURE.isdisjoint(found):
        raise Refused("a member stands twice in one object")
    return (
        found  # the arguments of a call are the model's own: there the last one counts
    )


_LONE = re.compile("[\ud800-\udfff]")


def parse_strictly(body: bytes) -> dict[str, Any]:
    """Return the request's JSON object; refuse what is not strictly one."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            parse_constant=_no_constant,
            object_pairs_hook=_no_duplicates,
        )
    except UnicodeDecodeError:
        refuse("the body is no valid UTF-8")
    except ValueError as err:
        refuse(f"the body is no valid JSON: {err}")
    need(isinstance(value, dict), "the body is no JSON object")
    lone = _LONE.search(json.dumps(value, ensure_ascii=False))
    need(not lone, "the body holds a lone half of a surrogate pair")
    return value


def halves(text: str, size: int = 5) -> list[str]:
    """Cut a text as services do that count in UTF-16: also inside a character."""
    units = text.encode("utf-16-le")
    return [
        units[start : start + 2 * size].decode("utf-16-le", "surrogatepass")
        for start in range(0, len(units), 2 * size)
    ]
