"""T18: the plugin lab of `tests/plugins`, and faults that it must find."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from support.torture import FULL, Results

ROOT = Path(__file__).parents[2]
SEEDS = {  # what is broken, as code that runs before the tests
    "the first of two distributions wins silently": """
from lighter_core.plugins import registry
whole = registry.Registry.discover
def first(self, kind=None):
    found = {(e.kind, e.name): e for e in reversed(whole(self, kind))}
    return sorted(found.values(), key=lambda e: (e.kind, e.name))
registry.Registry.discover = first
""",
    "a broken plugin ends the process": """
from lighter_core.plugins import registry
def broken(entry):
    raise SystemExit(3)
registry.load_entry = broken
""",
}
TESTS = (
    "test_one_name_served_by_two_distributions_is_an_error"
    " or test_broken_plugin_is_one_clear_error_and_harms_no_other"
    " or test_each_plugin_alone"
)


@pytest.mark.parametrize("seed", ["", *SEEDS] if FULL else SEEDS)
def test_T18_the_lab_finds_it(seed: str, tmp_path: Path, results: Results) -> None:
    """S8: the lab passes, as it does by itself, and does not when a fault is put in."""
    (tmp_path / "seeded.py").write_text(SEEDS.get(seed, ""), "utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "seeded"),
            *("tests/plugins/test_lab.py", "tests/plugins/test_cases.py"),
            *("-k", TESTS, "-x"),
        ],
        cwd=ROOT,
        env={**_environment(), "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    # 1 says that tests failed, and not that the seed could not be imported.
    assert done.returncode == (1 if seed else 0), done.stdout[-2000:]
    if not seed:
        cases = importlib.import_module("plugins.cases").CASES
        assert len(cases) >= 40
        results.add("T18", "plugins of the lab", len(cases), "each as documented")


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)
