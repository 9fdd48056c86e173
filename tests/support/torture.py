"""Sizes of the torture harnesses, and the table of what they found.

Without more, each harness takes a sample. `LIGHTER_TORTURE=full` takes everything and
writes the results into docs/reliability.md (`make torture`).
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["FULL", "PAGE", "RESULTS", "Results", "examples", "sample", "size"]

FULL = os.environ.get("LIGHTER_TORTURE") == "full"
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
_HEAD = "| harness | what | cases | found | run |\n| --- | --- | ---: | --- | --- |"
_T = TypeVar("_T")


def size(sampled: int, full: int) -> int:
    """Return how many cases to take."""
    return full if FULL else sampled


def examples(full: int) -> int:
    """Return how many examples Hypothesis shall make: a quarter, and all in full."""
    return size(max(15, full // 4), full)


def sample(items: Iterable[_T], most: int, seed: int = 7) -> list[_T]:
    """Return all items, or some of them that the seed chooses, in their order."""
    found: Sequence[_T] = list(items)
    if FULL or len(found) <= most:
        return list(found)
    chosen = sorted(random.Random(seed).sample(range(len(found)), most))
    return [found[index] for index in chosen]


class Results:
    """Rows of the table, one for each harness and part."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[str, int, str, str]] = {}

    def add(
        self, harness: str, what: str, cases: int, found: str, how: str = ""
    ) -> None:
        """Note what a harness found; cases of one part add up.

        Args:
            harness: Its name.
            what: The part.
            cases: How many there were.
            found: What came of them.
            how: Said in place of "full" or "sampled".
        """
        key = f"{harness} {what}"
        before = self.rows[key][1] if key in self.rows else 0
        how = how or ("full" if FULL else "sampled")
        self.rows[key] = (what, before + cases, found, how)

    def merge(self, rows: Mapping[str, Sequence[Any]]) -> None:
        """Take the rows of another process."""
        for key, (what, cases, found, how) in rows.items():
            self.add(key.split(" ")[0], what, cases, found, how)

    def lines(self) -> list[str]:
        """The rows, in order."""
        return [
            f"| {key.split(' ')[0]} | {what} | {cases:,} | {found} | {how} |"
            for key, (what, cases, found, how) in self.rows.items()
        ]

    def write(self) -> None:
        """Put the rows into the page, in place of older rows of the same parts."""
        text = PAGE.read_text("utf-8")
        before, _, rest = text.partition(BEGIN)
        inside, _, after = rest.partition(END)
        known = {_key(line): line for line in inside.splitlines() if _is_row(line)}
        known.update({_key(line): line for line in self.lines()})
        rows = "\n".join(known[key] for key in sorted(known, key=_order))
        PAGE.write_text(f"{before}{BEGIN}\n{_HEAD}\n{rows}\n{END}{after}", "utf-8")


RESULTS = Results()
"""What this process found."""


def _is_row(line: str) -> bool:
    return bool(re.match(r"\| [ST]\d", line))


def _key(line: str) -> str:
    return "|".join(line.split("|")[1:3])


def _order(key: str) -> tuple[int, str]:
    number = re.search(r"\d+", key)
    return (int(number[0]) if number else 0, key)
