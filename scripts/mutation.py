"""Put one mistake at a time into modules and see whether the tests notice.

    python scripts/mutation.py [--tests DIR,DIR] [--seconds N] [--only TEXT] [--among FILE]
        [--measured FILE] [MODULE ...]

What else stands on the command line goes to pytest.

The tests are collected once. A child process runs them all and remembers which test ran
which line; then each mutant gets a child of its own, which runs the tests of its lines,
quickest first, until one fails. `--seconds` is how much of them at most, by their
measured time: a mutant that only a slow test would notice counts as survived.

Tests that start interpreters of their own meet no mutant there. Mutants that change
nothing anyone could see are listed with the reason in `equivalent_mutants.txt`; the
score is told with and without them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import coverage
import pytest
from mutants import Mutant, mutants_of

_HERE = Path(__file__).parent
_MODULES = ("_loop", "_tool_calls", "_tool_call", "_reply", "_sse", "history")
_JOBS = int(os.environ.get("JOBS", "2"))
_GRACE = 30.0  # seconds that any mutant's tests may take


class Runner:
    """A pytest plugin that runs the collected tests in children, mutant by mutant."""

    def __init__(
        self,
        modules: Sequence[str],
        seconds: float,
        only: str,
        among: str,
        found: Path,
    ) -> None:
        self.modules, self.seconds, self.only = modules, seconds, only
        self.among, self.found = among, found
        self.failed: list[str] = []  # in a child: tests that failed so far
        self.stop_at_first = False
        self.survivors: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Do all the work in place of running the tests once."""
        items = {each.nodeid: each for each in session.items}
        files = {each: _file_of(each) for each in self.modules}
        if not self.found.exists():
            child = os.fork()
            if not child:
                self._measure(items, files)
            os.waitpid(child, 0)
        seconds, lines = json.loads(self.found.read_text("utf-8"))
        report(f"{len(seconds)} tests in {sum(seconds.values()):.0f} s")
        known = _equivalent()
        for module, path in files.items():
            mutants = [
                each
                for each in mutants_of(path.read_text("utf-8"), module, str(path))
                if self.only in each.key and (not self.among or each.key in self.among)
            ]
            survived = self._judge(mutants, items, seconds, lines[module])
            _tell(module, mutants, survived, known)
            self.survivors += [each.key for each in survived if each.key not in known]
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note failures; a mutant's child ends with the first."""
        if report.failed:
            self.failed.append(report.nodeid)
            if self.stop_at_first:
                os._exit(1)

    def _run(self, items: Sequence[pytest.Item]) -> None:
        for item, after in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)

    def _measure(self, items: dict[str, pytest.Item], files: dict[str, Path]) -> None:
        """In a child: write each test's time, and the tests of each line."""
        _be_quiet(next(iter(items.values())).config)
        measured = coverage.Coverage(
            data_file=None,
            include=[str(each) for each in files.values()],
            config_file=False,
        )
        seconds: dict[str, float] = {}
        measured.start()
        for nodeid, item in items.items():
            measured.switch_context(nodeid)
            begun = _used()
            self._run([item])
            seconds[nodeid] = _used() - begun
        measured.stop()
        for nodeid in self.failed:  # they would fail with each mutant, too
            seconds.pop(nodeid, None)
            sys.stderr.write(f"fails without a mutant: {nodeid}\n")
        data = measured.get_data()
        lines = {
            module: {
                line: [each for each in tests if each in seconds]
                for line, tests in data.contexts_by_lineno(str(path)).items()
            }
            for module, path in files.items()
        }
        self.found.write_text(json.dumps([seconds, lines]), "utf-8")
        os._exit(0)

    def _judge(
        self,
        mutants: Sequence[Mutant],
        items: dict[str, pytest.Item],
        seconds: dict[str, float],
        lines: dict[str, list[str]],
    ) -> list[Mutant]:
        """Return the mutants that no test noticed."""
        waiting, running = list(mutants), dict[int, tuple[Mutant, float]]()
        survived: list[Mutant] = []
        caught: Counter[str] = Counter()
        while waiting or running:
            while waiting and len(running) < _JOBS:
                mutant = waiting.pop(0)
                where = mutant.lines or map(int, lines)
                tests = {test for line in where for test in lines.get(str(line), [])}
                # What caught a mutant before often catches the next one.
                ordered = sorted(
                    tests, key=lambda each: seconds[each] / (1 + caught[each])
                )
                chosen, spent = list[pytest.Item](), 0.0
                for test in ordered:
                    spent += seconds[test]
                    if chosen and spent > self.seconds:
                        break
                    chosen.append(items[test])
                if not chosen:
                    survived.append(mutant)
                    continue
                child = self._start(mutant, chosen)
                running[child] = (mutant, time.monotonic() + 20 * spent + _GRACE)
            for child, (mutant, until) in list(running.items()):
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    del running[child]
                    if status == 0:
                        survived.append(mutant)
                elif time.monotonic() > until:
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.01)
        return survived

    def _start(self, mutant: Mutant, items: Sequence[pytest.Item]) -> int:
        child = os.fork()
        if child:
            return child
        status = 1
        try:
            _be_quiet(items[0].config)
            self.stop_at_first = True
            mutant.put_in(importlib.import_module(f"lighter_core.{mutant.module}"))
            self._run(items)
            status = 0
        finally:  # also when the mistake ends pytest itself
            os._exit(status)


def report(text: str) -> None:
    """Write a line, also while pytest captures what tests write."""
    os.write(_OUTPUT, f"{text}\n".encode())


def _used() -> float:
    """Return the seconds of a core so far: a busy machine makes no difference."""
    return sum(os.times()[:4])


def _be_quiet(config: pytest.Config) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    config.pluginmanager.unregister(reporter)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _file_of(module: str) -> Path:
    file = importlib.import_module(f"lighter_core.{module}").__file__
    if file is None:
        raise ImportError(module)
    return Path(file)


def _equivalent() -> set[str]:
    """Return the keys of mutants that change nothing; a `#` line is a reason."""
    lines = (_HERE / "equivalent_mutants.txt").read_text("utf-8").splitlines()
    return {each for each in lines if each and not each.startswith("#")}


def _tell(
    module: str, mutants: Sequence[Mutant], survived: Sequence[Mutant], known: set[str]
) -> None:
    same = [each for each in survived if each.key in known]
    real = len(mutants) - len(same)
    caught = len(mutants) - len(survived)
    report(
        f"{module}: {len(mutants)} mutants, {caught} noticed: "
        f"{100 * caught / max(len(mutants), 1):.1f} %; "
        f"{100 * caught / max(real, 1):.1f} % without {len(same)} equivalent ones"
    )
    for each in survived:
        mark = " (equivalent)" if each in same else ""
        report(f"  line {each.lines.start}{mark}: {each.key}")


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", default=_MODULES)
    parser.add_argument("--tests", default="tests/core,tests/faults")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", default="", help="text of the mutants' keys")
    parser.add_argument("--among", type=Path, help="a file that holds the keys to try")
    parser.add_argument("--measured", type=Path, help="keep the first step here")
    given, more = parser.parse_known_args()
    options = ["-q", "-p", "no:cacheprovider", "-o", "timeout=60"]
    with tempfile.TemporaryDirectory() as folder:
        found = given.measured or Path(folder, "found.json")
        among = given.among.read_text("utf-8") if given.among else ""
        runner = Runner(given.modules, given.seconds, given.only, among, found)
        status = pytest.main(
            [*options, *given.tests.split(","), *more], plugins=[runner]
        )
    return int(status) or int(bool(runner.survivors))


_OUTPUT = os.dup(1)

if __name__ == "__main__":
    os.environ["HYPOTHESIS_DATABASE_DIRECTORY"] = ""
    sys.exit(main())
