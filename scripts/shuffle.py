"""Run tests many times, each time in another order; tell which outcomes depend on it.

    python scripts/shuffle.py [--orders 50] [--jobs 2] [--first 1] [TESTS …]

Each order is one process without workers, in which the tests of all files are mixed: what
one test leaves behind can meet every other one. Several orders run side by side. An
outcome is what became of one test id: passed, skipped, failed or error, and for what is
expected to fail xfailed or xpassed.

The exit status is 1 when an outcome differed between orders or a test failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
INTO = "LIGHTER_OUTCOMES"  # the file that a run of pytest writes its outcomes into
SEVERITY = ("passed", "xpassed", "xfailed", "skipped", "failed", "error")

Outcomes = dict[str, str]


def pytest_runtest_logreport(report: Any) -> None:
    """Write down a phase of a test: this file is a plugin of the runs that it starts."""
    outcome = report.outcome
    if hasattr(report, "wasxfail"):
        outcome = "xpassed" if report.passed else "xfailed"
    elif report.failed and report.when != "call":
        outcome = "error"
    with Path(os.environ[INTO]).open("a", encoding="utf-8") as file:
        file.write(json.dumps([report.nodeid, outcome]) + "\n")


def read(file: Path) -> Outcomes:
    """Return what became of each test: the worst of its phases."""
    found: Outcomes = {}
    for line in file.read_text("utf-8").splitlines():
        test, outcome = json.loads(line)
        found[test] = max(found.get(test, outcome), outcome, key=SEVERITY.index)
    return found


def options(seed: int) -> list[str]:
    """Return what gives an order to pytest."""
    order = ["--random-order-bucket=global", f"--random-order-seed={seed}"]
    return ["-p", "no:xdist", *order]


def run(seed: int, tests: list[str], folder: Path) -> Outcomes:
    """Run the tests in one order.

    Raises:
        RuntimeError: When pytest itself fails or ends too early.
    """
    into, log = folder / f"{seed}.jsonl", folder / f"{seed}.log"
    into.touch()
    own = [f"--basetemp={folder / str(seed)}", "-p", Path(__file__).stem, "-q"]
    path = os.pathsep.join([str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")])
    with log.open("w") as output:
        done = subprocess.run(  # noqa: S603 - our own words and the user's
            [sys.executable, "-m", "pytest", *options(seed), *own, *tests],
            cwd=ROOT,
            env={**os.environ, INTO: str(into), "PYTHONPATH": path.rstrip(os.pathsep)},
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode not in {0, 1}:
        end = log.read_text("utf-8", "replace")[-3000:]
        raise RuntimeError(f"order {seed} ended with {done.returncode}:\n{end}")
    return read(into)


def unlike(orders: Mapping[int, Outcomes]) -> dict[str, dict[str, list[int]]]:
    """Return the tests whose outcome differed, with the seeds of each outcome.

    A test that did not run in some order has the outcome "missing" there.
    """
    tests = {test for outcomes in orders.values() for test in outcomes}
    found: dict[str, dict[str, list[int]]] = {}
    for test in sorted(tests):
        seeds: defaultdict[str, list[int]] = defaultdict(list)
        for seed, outcomes in sorted(orders.items()):
            seeds[outcomes.get(test, "missing")].append(seed)
        if len(seeds) > 1:
            found[test] = dict(seeds)
    return found


def report(orders: Mapping[int, Outcomes]) -> Iterator[str]:
    """Say what was run and what was found, in lines."""
    tests = {test for outcomes in orders.values() for test in outcomes}
    different = unlike(orders)
    yield f"{len(orders)} orders of {len(tests):,} tests: {len(different)} differed"
    for test, outcomes in different.items():
        yield f"  {test}"
        for outcome, seeds in outcomes.items():
            yield f"    {outcome} with the seeds {', '.join(map(str, seeds))}"
    for test in sorted(bad(orders) - set(different)):
        yield f"  {test}\n    failed in every order"
    if different:
        seed = next(
            s for o, s in next(iter(different.values())).items() if o != "passed"
        )
        yield f"To repeat one: pytest {' '.join(options(seed[0]))} TESTS"


def bad(orders: Mapping[int, Outcomes]) -> set[str]:
    """Return the tests that have failed."""
    return {
        test
        for outcomes in orders.values()
        for test, outcome in outcomes.items()
        if outcome in {"failed", "error", "xpassed"}
    }


def main(words: list[str] | None = None) -> int:
    """Run the orders; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--orders", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("tests", nargs="*", default=["tests"])
    given = parser.parse_args(words)
    orders: dict[int, Outcomes] = {}
    began, ended = time.monotonic(), 0
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(given.jobs) as pool,
    ):
        seeds = range(given.first, given.first + given.orders)
        runs = {pool.submit(run, s, given.tests, Path(folder)): s for s in seeds}
        try:
            for each in as_completed(runs):
                outcomes = orders[runs[each]] = each.result()
                told = ", ".join(
                    f"{n} {o}" for o, n in Counter(outcomes.values()).items()
                )
                seconds = time.monotonic() - began
                print(f"order {runs[each]}: {told} ({seconds:.0f} s)", flush=True)
        except (RuntimeError, KeyboardInterrupt) as error:
            pool.shutdown(cancel_futures=True)
            print(error or "interrupted", file=sys.stderr)
            ended = 1
    for line in report(orders):
        print(line)
    return 1 if ended or not orders or unlike(orders) or bad(orders) else 0


if __name__ == "__main__":
    sys.exit(main())
