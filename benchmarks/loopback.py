"""Whole runs over the loopback, for counting: `python -m benchmarks.loopback …`.

    python -m benchmarks.loopback RUNNER PROTOCOL SCENARIO TIMES URL

What the same program does more often costs more by the runs alone: imports, connections
and first uses are in both. Every run is checked.
"""

from __future__ import annotations

import asyncio
import importlib
import sys

from benchmarks.compare.work import history, scenario
from benchmarks.compare.worker import Runner, work

FEW = 3


def main() -> None:
    """Run it."""
    name, protocol, wanted, times, url = sys.argv[1:]
    what = scenario(wanted)
    module = importlib.import_module(f"benchmarks.compare.runners.{name}")
    with asyncio.Runner() as loop:
        runner: Runner = module.make(protocol, url)
        items = history(what.number) if what.kind == "history" else []
        prepared = runner.prepare(what.model, items)

        async def repeat(number: int) -> None:
            for _ in range(number):
                for each in await work(runner, prepared, what):
                    if problem := what.problem(each):
                        raise SystemExit(f"{name}: {problem}")

        loop.run(repeat(FEW))
        loop.run(repeat(int(times)))


if __name__ == "__main__":
    main()
