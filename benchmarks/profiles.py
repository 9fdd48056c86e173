"""Which layer takes how much of the CPU: `make bench-profiles`.

    python -m benchmarks.profiles [--tree ../before] [--scenarios "text history-160"]
        [--protocols responses] [--save]

Runs Lighter, and the official SDK's loop, over the mock service of `benchmarks.compare`,
under cProfile with the clock of the process's CPU. A function's own time goes to the layer
that its file belongs to; built-in functions, and functions of the standard library that
belong to no layer, are counted to who called them. `--tree` profiles Lighter of another
checkout too. `--save` writes the tables into `docs/profiles.md`.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import importlib
import json
import os
import pstats
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.compare.measuring import service
from benchmarks.compare.page import TITLES
from benchmarks.compare.work import history, scenario
from benchmarks.compare.worker import Runner, work
from benchmarks.instructions import PAGE, ROOT, commit, replace, sources

BEGIN, END = "<!-- shares: written by make bench-profiles -->", "<!-- end of shares -->"
SECONDS = 0.15  # of CPU that the work takes without the profiler
DEPTH = 30  # so many functions of the standard library may call each other
SHOWN = 0.005  # less is no per cent
SCENARIOS = ("text", "stream-2000", "history-160", "tools-10")
RUNNERS = {
    "sdk": "SDK's loop",
    "lighter": "Lighter",
    "lighter_aiohttp": "Lighter, aiohttp",
}
LAYERS = {  # its name: what the path of its files, or the name of a built-in, has
    "core": r"/lighter_core/(?!adapters/|_sse)",
    "adapter": r"/lighter_core/(adapters/|_sse)|/lighter_(openai|claude|deepseek)/",
    "SDK": r"/site-packages/(openai|anthropic)/",
    "httpx2": r"/site-packages/(httpx2?|httpx_aiohttp)/",
    "httpcore2": r"/site-packages/httpcore2?/",
    "h11": r"/site-packages/h11/",
    "anyio": r"/site-packages/(anyio|sniffio)/",
    "aiohttp": r"/site-packages/(aiohttp|yarl|multidict|aiosignal|frozenlist|propcache)/"
    r"|(aiohttp|yarl|multidict)\._",
    "event loop": r"/asyncio/|/selectors\.py|select\.epoll|_socket\.socket|_asyncio\.",
    "JSON, pydantic": r"/json/|/site-packages/pydantic|jiter|pydantic_core|\b_json\.",
}
REST = "rest"
Function = tuple[str, int, str]
Stats = dict[Function, tuple[int, int, float, float, dict[Function, Any]]]


def layer_of(function: Function) -> str | None:
    """Return the layer that a function belongs to; none for what serves its caller."""
    file, _, name = function
    where = name if file == "~" else file.replace(os.sep, "/")
    for layer, pattern in LAYERS.items():
        if re.search(pattern, where):
            return layer
    return REST if "/site-packages/" in where or "/benchmarks/" in where else None


def shares(stats: Stats) -> dict[str, float]:
    """Return each layer's part of all own time."""
    total: defaultdict[str, float] = defaultdict(float)
    left = {function: own for function, (_, _, own, _, _) in stats.items()}
    for _ in range(DEPTH):
        handed_on: defaultdict[Function, float] = defaultdict(float)
        for function, taken in left.items():
            layer = layer_of(function)
            callers = {} if layer else callers_of(function, stats)
            for caller, part in callers.items():
                handed_on[caller] += taken * part
            if not callers:
                total[layer or REST] += taken
        left = handed_on
    total[REST] += sum(left.values())
    whole = sum(total.values())
    return {layer: part / whole for layer, part in total.items() if part}


def callers_of(function: Function, stats: Stats) -> dict[Function, float]:
    """Return by whom a function was called, as parts of its own time."""
    callers = stats[function][4].items()
    own = {caller: each[2] for caller, each in callers if caller != function}
    whole = sum(own.values())
    return {caller: each / whole for caller, each in own.items()} if whole else {}


def profile(name: str, protocol: str, url: str, wanted: str) -> dict[str, float]:
    """Return each layer's share of a scenario.

    Raises:
        SystemExit: When not all of the work was done.
    """
    module = importlib.import_module(f"benchmarks.compare.runners.{name}")
    runner: Runner = module.make(protocol, url)
    what = scenario(wanted)
    items = history(what.number) if what.kind == "history" else []
    with asyncio.Runner() as loop:
        prepared = runner.prepare(what.model, items)

        async def once() -> None:
            for done in await work(runner, prepared, what):
                if problem := what.problem(done):
                    raise SystemExit(f"{name}, {wanted}: {problem}")

        async def repeat(times: int) -> None:
            for _ in range(times):
                await once()

        loop.run(once())  # connections, first uses
        began = time.process_time()
        loop.run(once())
        times = max(1, int(SECONDS / (time.process_time() - began)))
        gc.collect()
        profiler = cProfile.Profile(time.process_time)
        profiler.enable()
        loop.run(repeat(times))
        profiler.disable()
    stats: Any = pstats.Stats(profiler)
    return shares(stats.stats)


def measured(
    name: str, protocol: str, url: str, wanted: str, tree: Path
) -> dict[str, float]:
    """Return what a process of its own found.

    Raises:
        SystemExit: When it failed.
    """
    kept = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "LANG"}}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.profiles"),
            *("--child", name, protocol, url, wanted),
        ],
        env={**kept, "PYTHONPATH": sources(tree)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{name}, {protocol}, {wanted}:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def row(title: str, found: dict[str, float]) -> str:
    """Return a row: each layer's share in per cent."""
    parts = [found.get(layer, 0.0) for layer in (*LAYERS, REST)]
    shown = [f"{part * 100:.0f}" if part >= SHOWN else "" for part in parts]
    return f"| {title} | {' | '.join(shown)} |"


def rows(
    measure: Callable[[str, Path], dict[str, float]], tree: Path | None
) -> Iterator[str]:
    """Yield the rows of one scenario, the SDK's first."""
    for name, title in RUNNERS.items():
        if tree is not None and name == "lighter":
            yield row(f"{title}, before", measure(name, tree))
        yield row(title, measure(name, ROOT))


def main() -> None:
    """Profile; print the tables or write them."""
    if sys.argv[1:2] == ["--child"]:
        name, protocol, url, wanted = sys.argv[2:]
        print(json.dumps(profile(name, protocol, url, wanted)))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path, help="a checkout to compare with")
    parser.add_argument("--scenarios", default=" ".join(SCENARIOS))
    parser.add_argument("--protocols", default=" ".join(TITLES), help="of these")
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    tree: Path | None = asked.tree
    lines = [
        f"Lighter is {commit(ROOT)}" + (f", before is {commit(tree)}." if tree else ".")
    ]
    head = ["", *LAYERS, REST]
    with service() as url:
        for protocol in asked.protocols.split() or TITLES:
            lines += ["", f"### Layers: {TITLES[protocol]}"]
            for wanted in asked.scenarios.split() or SCENARIOS:
                lines += ["", f"`{wanted}`:", "", f"| {' | '.join(head)} |"]
                lines += [f"|{' --- |' * len(head)}"]

                def measure(
                    name: str,
                    tree: Path,
                    protocol: str = protocol,
                    wanted: str = wanted,
                ) -> dict[str, float]:
                    return measured(name, protocol, url, wanted, tree)

                lines += rows(measure, tree)
                print(f"{protocol} {wanted}", file=sys.stderr, flush=True)
    if asked.save:
        replace(PAGE, BEGIN, END, lines)
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
