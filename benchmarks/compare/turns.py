"""The processes of the runners."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import environments
from .work import Outcome, Scenario, described, scenario

ROOT = Path(__file__).parents[2]
OWN = ("sdk", "lighter", "lighter-aiohttp", "httpx2", "aiohttp", "plain")
HELP = f"of {', '.join(OWN)}; NAME@FOLDER takes Lighter from another checkout"


class Running:
    """The process of one runner.

    Args:
        name: What the tables call it.
        command: What starts it, without the interface and the address.
        sources: A checkout whose distributions come before those that are installed.
    """

    def __init__(self, name: str, command: list[str], sources: Path | None) -> None:
        self.name = name
        self._command = command
        self._sources = sources
        self._process: subprocess.Popen[str] | None = None
        self._arguments: list[str] = []

    def start(self, protocol: str, url: str) -> None:
        """Start it; keys and settings of the environment stay outside."""
        self._arguments = [protocol, url]
        kept = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "LANG"}}
        if self._sources is not None:
            found = sorted(self._sources.glob("lighter-*/src"))
            if not found:
                raise SystemExit(f"{self._sources} is no checkout of Lighter")
            kept["PYTHONPATH"] = os.pathsep.join(map(str, found))
        self._process = subprocess.Popen(
            [*self._command, *self._arguments],
            cwd=ROOT,
            env=kept,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("BENCH_ERRORS") else subprocess.DEVNULL,
            text=True,
        )

    def measure(self, name: str, times: int) -> dict[str, Any]:
        """Return the figures of one measurement, or `left_out` with the reason."""
        assert self._process is not None
        if self._process.poll() is not None:  # it ended in another scenario
            self.stop()
            self.start(*self._arguments)
        assert self._process.stdin is not None and self._process.stdout is not None
        what = scenario(name)
        order = {"scenario": name, "times": times, "what": described(what)}
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"left_out": "its process ended"}
        line = self._process.stdout.readline()
        while line and not line.startswith("{"):  # what libraries print
            line = self._process.stdout.readline()
        found = json.loads(line) if line else {"left_out": "its process ended"}
        return checked(what, times, found)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()


def checked(what: Scenario, times: int, found: dict[str, Any]) -> dict[str, Any]:
    """Check the work of a runner that is no Python and could not do so itself."""
    done = found.pop("done", None)
    if done is None:
        return found
    outcomes = [
        Outcome(each["text"], each["deltas"], [tuple(call) for call in each["calls"]])
        for each in done
    ]
    wrong = [problem for each in outcomes if (problem := what.problem(each))]
    if len(outcomes) != times * what.runs:
        wrong.append("not every run was done")
    return {"left_out": wrong[0]} if wrong else found


def runner(name: str) -> Running:
    """Return the process of a runner or a peer, not started.

    Raises:
        SystemExit: For a name that there is none of.
    """
    if name in environments.PEERS:
        return Running(name, environments.command(name), None)
    module, _, folder = name.partition("@")
    if module not in OWN:
        known = ", ".join([*OWN, *environments.PEERS])
        raise SystemExit(f"no runner {module!r}; there are {known}")
    worker = [sys.executable, "-m", "benchmarks.compare.worker"]
    path = f"compare.runners.{module.replace('-', '_')}"
    return Running(name, [*worker, path], Path(folder) if folder else ROOT)


@contextmanager
def started(names: Sequence[str], protocol: str, url: str) -> Iterator[list[Running]]:
    """Give the runners' processes, the SDK's first, since others are compared with it."""
    ordered = sorted(names, key=lambda each: each != "sdk")
    running = [runner(each) for each in ordered]
    try:
        for each in running:
            each.start(protocol, url)
        yield running
    finally:
        for each in running:
            each.stop()
