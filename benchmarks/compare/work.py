"""The work of each scenario, known to the service that asks for it and to who checks it.

`text`: one short reply. `tools-N`: N rounds with one tool call each, then a reply; the
history grows by two items a round. `stream-N`: a reply of N text deltas, sent at once.
`paced-N`: the same, a millisecond between two deltas. `history-N`: one short reply to N
items of history. `KxN`: K runs of `tools-N` at the same time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

QUESTION = "Is there a bookstore on the moon, and what does it sell these days?"
ANSWER = "There is none yet. The nearest one is about 384,400 kilometres away from it."
TOOL = "add_up"
TOOL_TEXT = "Add two numbers to a million."
PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def add_up(a: int, b: int) -> int:
    """Return what the tool returns; the service looks for it in the next request."""
    return 1_000_000 + a + b


def pieces(number: int) -> list[str]:
    """Return the text deltas of a stream, no two alike."""
    return [f"word{each} " for each in range(number)]


Item = tuple[Literal["user", "assistant", "call", "result"], str, int]


def history(number: int) -> list[Item]:
    """Return a conversation of that many items before the question."""
    kinds: tuple[Literal["user", "call", "result", "assistant"], ...] = (
        "user",
        "call",
        "result",
        "assistant",
    )
    whole = number - number % 4
    return [(kinds[at % 4], QUESTION, at // 4) for at in range(whole)]


@dataclass
class Outcome:
    """What a runner did, for the proof that it did all of it."""

    text: str = ""
    deltas: list[str] = field(default_factory=list)
    calls: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Scenario:
    """One kind of work.

    Attributes:
        model: The model to ask for; it tells the service what to answer.
        units: By how much the cost of one piece of work is divided.
    """

    name: str
    kind: Literal["text", "tools", "stream", "paced", "history", "many"]
    number: int
    runs: int
    model: str
    units: int
    unit: str

    def problem(self, done: Outcome) -> str | None:
        """Return what of one run is missing or wrong."""
        rounds = self.number if self.kind in {"tools", "many"} else 0
        if done.calls != [(each, each) for each in range(rounds)]:
            return f"{len(done.calls)} tool calls with the right values, not {rounds}"
        if self.kind in {"stream", "paced"}:
            wanted = pieces(self.number)
            if done.deltas != wanted:
                return f"{len(done.deltas)} of {self.number} deltas, or not as sent"
            return None if done.text == "".join(wanted) else "not the text of the reply"
        return None if done.text == ANSWER else f"the text {done.text[:40]!r}"


def described(what: Scenario) -> dict[str, object]:
    """Return what a runner in another language needs to do the work."""
    return {
        "kind": what.kind,
        "runs": what.runs,
        "units": what.units,
        "model": what.model,
        "items": history(what.number) if what.kind == "history" else [],
        "question": QUESTION,
        "answer": ANSWER,
        "tool": {"name": TOOL, "description": TOOL_TEXT, "parameters": PARAMETERS},
    }


def scenario(name: str) -> Scenario:
    """Read a scenario's name.

    Raises:
        ValueError: When there is none of that name.
    """
    if name == "text":
        return Scenario(name, "text", 0, 1, "text-0", 1, "run")
    if match := re.fullmatch(r"(\d+)x(\d+)", name):
        runs, rounds = int(match[1]), int(match[2])
        units = runs * (rounds + 1)
        return Scenario(name, "many", rounds, runs, f"tools-{rounds}", units, "call")
    match = re.fullmatch(r"(tools|stream|paced|history)-(\d+)", name)
    if match is None:
        raise ValueError(f"no scenario {name!r}")
    number = int(match[2])
    match match[1]:
        case "tools":
            return Scenario(name, "tools", number, 1, name, number + 1, "call")
        case "history":
            return Scenario(name, "history", number, 1, name, 1, "call")
        case "stream":
            return Scenario(name, "stream", number, 1, name, number, "delta")
        case _:
            return Scenario(name, "paced", number, 1, name, number, "delta")
