"""Runners in turn, each in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Running:
    """The process of one runner.

    Args:
        name: What the tables call it.
        module: The module below `benchmarks`.
        python: The interpreter that has what the runner imports.
    """

    def __init__(self, name: str, module: str, python: Path) -> None:
        self.name = name
        self._command = [str(python), "-m", "benchmarks.compare.worker", module]
        self._process: subprocess.Popen[str] | None = None

    def start(self, protocol: str, url: str) -> None:
        """Start it; keys and settings of the environment stay outside."""
        kept = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "LANG"}}
        self._process = subprocess.Popen(
            [*self._command, protocol, url],
            cwd=ROOT,
            env=kept,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def measure(self, scenario: str, times: int) -> dict[str, Any]:
        """Return the figures of one measurement, or `left_out` with the reason."""
        assert self._process is not None
        assert self._process.stdin is not None and self._process.stdout is not None
        order = json.dumps({"scenario": scenario, "times": times})
        try:
            self._process.stdin.write(order + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"left_out": "its process ended"}
        line = self._process.stdout.readline()
        while line and not line.startswith("{"):  # what libraries print
            line = self._process.stdout.readline()
        return json.loads(line) if line else {"left_out": "its process ended"}

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


def take_turns(
    runners: list[Running],
    protocol: str,
    url: str,
    scenarios: dict[str, int],
    repeats: int,
) -> dict[str, dict[str, Any]]:
    """Return, for each scenario and runner, its figures of each turn."""
    out: dict[str, dict[str, Any]] = {}
    for runner in runners:
        runner.start(protocol, url)
    try:
        for scenario, times in scenarios.items():
            taken: dict[str, Any] = {runner.name: [] for runner in runners}
            for _ in range(repeats):
                for runner in runners:
                    if isinstance(taken[runner.name], str):
                        continue
                    figures = runner.measure(scenario, times)
                    if "left_out" in figures:
                        taken[runner.name] = figures["left_out"]
                    else:
                        taken[runner.name].append(figures)
            out[scenario] = taken
            print(f"{protocol} {scenario}: measured", file=sys.stderr, flush=True)
    finally:
        for runner in runners:
            runner.stop()
    return out
