"""Runs in random order: what counts as an outcome, and that a difference is found."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "shuffle.py"
ORDERED = """
import pytest

seen = []

def test_first():
    seen.append(1)

def test_second():
    assert seen

@pytest.fixture
def broken():
    raise LookupError

def test_broken(broken): ...

def test_skipped():
    pytest.skip("why not")

@pytest.mark.xfail(strict=False)
def test_expected():
    assert False
"""


@pytest.fixture(scope="module")
def shuffle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shuffle", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_depends_on_the_order_is_found(tmp_path: Path) -> None:
    """By processes that really run the tests in other orders."""
    file = tmp_path / "test_ordered.py"
    file.write_text(ORDERED)
    # With the seed 4 the first test comes before the second one, with 5 behind it.
    words = ["--orders", "2", "--first", "4", "--jobs", "2", str(file)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 1, done.stderr
    said = done.stdout
    assert "2 orders of 5 tests: 1 differed\n" in said
    assert "::test_second\n    passed with the seeds 4\n    failed with" in said
    assert "::test_broken\n    failed in every order\n" in said
    assert "1 skipped" in said
    assert "1 xfailed" in said


def test_equal_outcomes_are_no_difference(shuffle: ModuleType) -> None:
    same = {1: {"a": "passed", "b": "skipped"}, 2: {"b": "skipped", "a": "passed"}}
    assert shuffle.unlike(same) == {}
    assert list(shuffle.report(same)) == ["2 orders of 2 tests: 0 differed"]


def test_a_test_that_vanishes_is_a_difference(shuffle: ModuleType) -> None:
    """Its process may have ended, or it was not collected."""
    orders = {1: {"a": "passed", "b": "passed"}, 2: {"a": "passed"}}
    assert shuffle.unlike(orders) == {"b": {"passed": [1], "missing": [2]}}


def test_a_run_that_cannot_be_is_told(tmp_path: Path) -> None:
    """As a file that cannot be imported."""
    (tmp_path / "test_bad.py").write_text("import nothing_of_this_name")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--orders", "1", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 1
    assert "nothing_of_this_name" in done.stderr
