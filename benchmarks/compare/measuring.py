"""The service, and what is measured while it runs."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .turns import ROOT, Running

BASE = "sdk"


@contextmanager
def service() -> Iterator[str]:
    """Run the mock service in a process of its own; give its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.compare.service"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def measure_cell(
    running: Sequence[Running], scenario: str, times: int, turns: int, slices: int = 1
) -> dict[str, Any]:
    """Return each runner's figures turn by turn, or the reason why it is left out.

    Where the SDK is among the runners, each figure has its ratio to the SDK's of the same
    turn. Where the SDK fails there is nothing to compare with: then all are left out.

    Args:
        running: Who is measured.
        scenario: With what.
        times: How often a runner does the work before the next one's turn.
        turns: How many figures each gets.
        slices: From how many such short pieces of work, A B C A B C, a figure is made:
            what else the machine does for a while makes all of them longer.
    """
    taken: dict[str, Any] = {each.name: [] for each in running}
    for _ in range(turns):
        for each, found in _turn(running, taken, scenario, times, slices):
            taken[each] = found if isinstance(found, str) else [*taken[each], found]
        if not isinstance(taken.get(BASE, ""), str):
            base = taken[BASE][-1]["cpu"]
            for figures in taken.values():
                if not isinstance(figures, str):
                    figures[-1]["ratio"] = figures[-1]["cpu"] / base
    if isinstance(taken.get(BASE), str):
        return dict.fromkeys(taken, f"no SDK to compare with: {taken[BASE]}")
    return taken


def _turn(
    running: Sequence[Running],
    taken: dict[str, Any],
    scenario: str,
    times: int,
    slices: int,
) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Give a figure for each runner that is not left out already, or why it is now."""
    left = [each for each in running if not isinstance(taken[each.name], str)]
    pieces: dict[str, list[dict[str, Any]]] = {each.name: [] for each in left}
    for _ in range(slices):
        for each in left:
            pieces[each.name].append(each.measure(scenario, times))
    for name, found in pieces.items():
        wrong = [each["left_out"] for each in found if "left_out" in each]
        yield name, wrong[0] if wrong else _together(found)


def _together(pieces: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "cpu": statistics.mean(each["cpu"] for each in pieces),
        "wall": statistics.mean(each["wall"] for each in pieces),
        "peak_mb": max(each["peak_mb"] for each in pieces),
    }


def measure_alone() -> dict[str, float]:
    """Return the figures of the framework without a network."""
    out = subprocess.run(
        [sys.executable, "-m", "benchmarks.compare.alone"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    found: dict[str, float] = json.loads(out)
    return found
