"""The process of one runner: `python -m benchmarks.compare.worker RUNNER PROTOCOL URL`.

Takes one JSON line for each measurement, `{"scenario": "tools-10", "times": 3}`, and
answers with one: the CPU time of this process for one unit of the work, or the reason
why the runner is left out. Every run is checked.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import resource
import sys
import time
from collections.abc import Awaitable
from dataclasses import replace
from typing import Protocol

from .work import Item, Outcome, Scenario, history, scenario


class Runner(Protocol):
    """Who does the work; made once, used for every scenario."""

    def prepare(self, model: str, items: list[Item]) -> object:
        """Return what a run needs and an application makes once."""
        ...

    def run(self, prepared: object) -> Awaitable[Outcome]:
        """Ask the question, with the tool, until the reply."""
        ...

    def stream(self, prepared: object) -> Awaitable[Outcome]:
        """Ask the question and take the reply delta by delta."""
        ...


def cpu() -> float:
    """Return the seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def work(runner: Runner, prepared: object, what: Scenario) -> list[Outcome]:
    """Do the work of a scenario once."""
    if what.kind in {"stream", "paced"}:
        return [await runner.stream(prepared)]
    if what.runs == 1:
        return [await runner.run(prepared)]
    return list(await asyncio.gather(*(runner.run(prepared) for _ in range(what.runs))))


def measure(
    loop: asyncio.Runner,
    runner: Runner,
    known: dict[str, object],
    order: dict[str, object],
) -> dict[str, object]:
    """Do the work as often as ordered; return what one unit of it cost."""
    what, times = scenario(str(order["scenario"])), int(str(order["times"]))
    if what.name not in known:
        items = history(what.number) if what.kind == "history" else []
        known[what.name] = runner.prepare(what.model, items)
        few = replace(what, runs=min(what.runs, 20))
        loop.run(work(runner, known[what.name], few))  # connections, first uses
    gc.collect()
    done: list[Outcome] = []

    async def repeat() -> None:
        for _ in range(times):
            done.extend(await work(runner, known[what.name], what))

    began, spent = time.perf_counter(), cpu()
    loop.run(repeat())
    spent, passed = cpu() - spent, time.perf_counter() - began
    wrong = [problem for each in done if (problem := what.problem(each))]
    if wrong or len(done) != times * what.runs:
        return {"left_out": wrong[0] if wrong else "not every run was done"}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    units = times * what.units
    return {"cpu": spent / units, "wall": passed / units, "peak_mb": peak}


def main() -> None:
    """Serve measurements until standard input ends."""
    name, protocol, url = sys.argv[1:4]
    known: dict[str, object] = {}
    with asyncio.Runner() as loop:
        module = importlib.import_module(f"benchmarks.{name}")
        runner: Runner = module.make(protocol, url)
        for line in sys.stdin:
            try:
                answer = measure(loop, runner, known, json.loads(line))
            except NotImplementedError as error:  # what a peer has no way to do
                answer = {"left_out": str(error)}
            except Exception as error:  # noqa: BLE001 - the runner is left out, by name
                text = str(error).splitlines() or [""]
                answer = {"left_out": f"{type(error).__name__}: {text[0][:120]}"}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
