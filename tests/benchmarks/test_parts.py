"""The benchmarks of the parts and of growth still do what they say, once and untimed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are not here", allow_module_level=True)

ONCE = """
import pytest

class Once:
    def __call__(self, function, *args, **kwargs):
        return function(*args, **kwargs)

    def pedantic(self, function, setup, rounds):
        for _ in range(min(rounds, 2)):
            args, kwargs = setup()
            result = function(*args, **kwargs)
        return result

@pytest.fixture
def benchmark():
    return Once()

def pytest_configure(config):
    config.addinivalue_line("markers", "benchmark(group): stands in for the plugin")
"""


def test_each_part_does_its_work(tmp_path: Path) -> None:
    """Every benchmark checks its result; here each runs without the timing plugin."""
    (tmp_path / "once.py").write_text(ONCE)
    options = ["-q", "-p", "once", "-p", "no:benchmark", "-p", "no:cacheprovider"]
    chosen = ["--import-mode=importlib", "-c", os.devnull, "--rootdir", str(ROOT)]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *chosen, "benchmarks/parts"],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def test_each_kind_of_growth_does_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sizes of all cases that need no second SDK; each checks its result."""
    monkeypatch.syspath_prepend(str(ROOT))
    growth: Any = importlib.import_module("benchmarks.growth")
    cases = [each for each in growth.CASES if each.interface in {"", "chat"}]
    assert {each.name for each in cases} == {each.name for each in growth.CASES}
    for case in cases:
        small = max(40, case.size // 5000) / case.size
        ((half, full),) = growth.measure(case, 1, small)
        assert half >= 0
        assert full > 0
    assert "| 2.30 |" in growth.row(cases[0], [(1.0, 2.3)])
    assert "| 2.40 (missed) |" in growth.row(cases[0], [(1.0, 2.4)])
