"""Measure side by side and write `docs/performance.md`: `make bench`.

    python -m benchmarks.compare [--turns 5] [--peers all]
    python -m benchmarks.compare --scenarios "text history-160" --protocols responses \
        --runners "sdk lighter httpx2"    only print a table
    python -m benchmarks.compare --page   only write the page again, from the figures

Runners take turns, each in a process of its own: A B C A B C. What is compared is a
runner's CPU time in one turn to that of the official SDK in the same turn; the median of
these ratios is shown, so that other work on the machine hits all of them alike.

With a choice of scenarios, protocols or runners the figures are printed and not kept, but
for `--save`, which puts them in the place of the same ones kept before. `--resume` leaves
out what is there already: a long measurement may be stopped and gone on with, or be made
in parts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from . import environments, figures, page, turns
from .measuring import measure_alone, measure_cell, service
from .work import scenario

# How often the work is done at a time: enough for caches to be warm; how often in a turn.
SCENARIOS = {
    "text": (100, 3),
    "tools-10": (8, 2),
    "tools-40": (1, 1),
    "stream-2000": (1, 4),
    "paced-200": (1, 2),
    "history-160": (20, 2),
    "200x3": (1, 1),
}
ALONE = "alone"
PROTOCOLS = ("responses", "chat", "messages")


def main() -> None:
    """Measure, keep or print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--scenarios", type=_names, default=[], help=f"or {ALONE}")
    parser.add_argument("--protocols", type=_names, default=[])
    parser.add_argument("--runners", type=_names, default=[], help=turns.HELP)
    parser.add_argument("--peers", type=_names, default=[], help="names, or all")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--page", action="store_true")
    asked = parser.parse_args()
    if asked.page:
        page.write(figures.read())
        return
    whole = not (asked.scenarios or asked.protocols or asked.runners)
    kept = asked.save or asked.resume or whole
    found = figures.read() if asked.save or asked.resume else figures.none()
    measure(asked, found, kept=kept)
    if kept:
        page.write(found)
    else:
        page.show(found, sys.stdout)


def measure(asked: argparse.Namespace, found: dict[str, Any], *, kept: bool) -> None:
    """Measure what is asked for into the figures; keep them after each scenario."""
    _need(asked)
    peers, missing = environments.made(
        [*asked.peers, *(each for each in asked.runners if each in environments.PEERS)]
    )
    own = [each for each in asked.runners if each not in environments.PEERS]
    names = own if asked.runners else turns.OWN
    scenarios = asked.scenarios or [*SCENARIOS, ALONE]
    protocols = asked.protocols or PROTOCOLS
    figures.begin(found, peers, missing)
    with service() as url:
        for protocol in protocols:
            measured = [each for each in scenarios if each != ALONE]
            if asked.resume:
                measured = [
                    each
                    for each in measured
                    if not figures.has(
                        found, protocol, each, [*names, *_speaking(peers, protocol)]
                    )
                ]
            if not measured:
                continue
            asked_for = [*names, *_speaking(peers, protocol)]
            with turns.started(asked_for, protocol, url) as running:
                for name in measured:
                    times, slices = SCENARIOS.get(name, (1, 1))
                    taken = measure_cell(running, name, times, asked.turns, slices)
                    figures.put(found, protocol, name, taken)
                    if kept:
                        figures.write(found)
                    print(f"{protocol} {name}", file=sys.stderr, flush=True)
    if ALONE in scenarios and not (asked.resume and found["alone"]):
        found["alone"] = measure_alone()
    figures.end(found)
    if kept:
        figures.write(found)


def _need(asked: argparse.Namespace) -> None:
    """Refuse names that there are none of before anything is measured.

    Raises:
        SystemExit: With the names that there are.
    """
    for each in asked.scenarios:
        try:
            if each != ALONE:
                scenario(each)
        except ValueError as error:
            known = ", ".join([*SCENARIOS, ALONE])
            raise SystemExit(f"{error}; there are {known}, with any number") from None
    for each in asked.protocols:
        if each not in PROTOCOLS:
            raise SystemExit(f"no protocol {each!r}; there are {', '.join(PROTOCOLS)}")
    for each in asked.runners:
        if each not in environments.PEERS:
            turns.runner(each)


def _speaking(peers: Sequence[str], protocol: str) -> list[str]:
    return [each for each in peers if protocol in environments.PEERS[each].protocols]


def _names(text: str) -> list[str]:
    return text.replace(",", " ").split()


if __name__ == "__main__":
    main()
