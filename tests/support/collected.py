"""What pytest collects: each test function with the marks that keep it from running.

As a plugin (`-p support.collected`) it writes that down for another process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

__all__ = ["collected", "collected_elsewhere"]

INTO = "LIGHTER_COLLECTED"
TESTS = Path(__file__).parents[1]


def collected(items: Iterable[pytest.Item]) -> dict[str, list[str]]:
    """Return what is wrong with the marks of each test, by file and function."""
    found: dict[str, list[str]] = {}
    for item in items:
        name = item.nodeid.removeprefix("tests/").partition("[")[0]
        faults = found.setdefault(name, [])
        for mark in item.iter_markers():
            reason = mark.kwargs.get("reason")
            if mark.name in {"skip", "xfail"}:
                faults.append(f"is marked {mark.name}")
            if mark.name == "skipif" and not (isinstance(reason, str) and reason):
                faults.append("is skipped without a reason")
    return found


def collected_elsewhere(files: Iterable[str]) -> dict[str, list[str]]:
    """Return the same for files below `tests`, collected by a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "collected.json"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "--collect-only", "-qq"),
                *("-p", "support.collected", *(f"tests/{each}" for each in files)),
            ],
            cwd=TESTS.parent,
            env={
                **os.environ,
                INTO: str(into),
                "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
            },
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert into.exists(), done.stdout[-2000:] + done.stderr[-2000:]
        return json.loads(into.read_text("utf-8"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write down what was collected."""
    if INTO in os.environ:
        Path(os.environ[INTO]).write_text(json.dumps(collected(session.items)), "utf-8")
