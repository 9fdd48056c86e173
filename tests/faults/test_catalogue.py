"""Every known fault has a test that is found by its id and really runs."""

from __future__ import annotations

import ast
import os
from functools import cache
from pathlib import Path

import pytest
from support.collected import collected, collected_elsewhere
from support.faults import FAULTS, Fault, keywords

TESTS = Path(__file__).parents[1]


@cache
def functions(file: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The test functions of a file."""
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    return {
        each.name: each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        and each.name.startswith("test_")
    }


def own(fault: Fault) -> list[str]:
    """The tests that have the fault's id in their names."""
    prefix = f"test_{fault.id.replace('-', '_')}_"
    return [
        f"{path.relative_to(TESTS)}::{name}"
        for path in sorted((TESTS / "faults").glob("test_*.py"))
        for name in functions(str(path.relative_to(TESTS)))
        if name.startswith(prefix)
    ]


def test_the_table_is_complete() -> None:
    """123 faults, each once, each with a rule of its own."""
    assert [each.id for each in FAULTS] == [f"KF-{n:03}" for n in range(1, 124)]
    assert len({each.rule for each in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.id)
def test_a_fault_has_tests(fault: Fault) -> None:
    """They stand in their files and assert something."""
    tests = [*fault.tests, *own(fault)]
    assert tests, f"{fault.id} has no test: {fault.rule}"
    for each in tests:
        file, _, name = each.partition("::")
        assert name in functions(file), f"{fault.id}: there is no {each}"
        node = functions(file)[name]
        inner = [type(n).__name__ for n in ast.walk(node)]
        assert {"Assert", "Call"} & set(inner), f"{each} checks nothing"


def wrong(tests: dict[str, list[str]], found: dict[str, list[str]]) -> list[str]:
    """What is wrong with the tests of each fault, given what was collected."""
    return [
        f"{fault}: {test} {why}"
        for fault, names in tests.items()
        for test in names
        for why in found.get(test, ["is not collected"])
    ]


def test_the_tests_of_all_faults_are_collected_and_run(
    request: pytest.FixtureRequest,
) -> None:
    """By pytest itself: none is hidden, skipped without a reason or expected to fail."""
    tests = {each.id: [*each.tests, *own(each)] for each in FAULTS}
    found = collected(request.session.items)
    named = {test for names in tests.values() for test in names}
    if missing := named - set(found):  # where only some tests were asked for
        found |= collected_elsewhere(sorted({m.partition("::")[0] for m in missing}))
    assert wrong(tests, found) == []


ODD = """
import pytest

class Hidden:
    def test_in_a_class_that_is_none(self):
        assert True

@pytest.mark.skip
def test_skipped():
    assert True

@pytest.mark.skipif("True")
def test_without_reason():
    assert True

@pytest.mark.skipif(False, reason="on another system")
def test_with_reason():
    assert True
"""


def test_it_finds_tests_that_never_run(tmp_path: Path) -> None:
    """Which stand in a file, as far as its text goes."""
    (tmp_path / "test_odd.py").write_text(ODD)
    place = os.path.relpath(tmp_path / "test_odd.py", TESTS)
    found = {
        name.partition("::")[2]: faults
        for name, faults in collected_elsewhere([place]).items()
    }
    assert found == {
        "test_skipped": ["is marked skip"],
        "test_without_reason": ["is skipped without a reason"],
        "test_with_reason": [],
    }
    named = {"KF-001": ["test_with_reason", "test_in_a_class_that_is_none"]}
    assert wrong(named, found) == [
        "KF-001: test_in_a_class_that_is_none is not collected"
    ]


def test_ids_are_words_for_a_choice_by_name(request: pytest.FixtureRequest) -> None:
    """`pytest -k KF_046` finds what the table says."""
    for fault in FAULTS:
        word = fault.id.replace("-", "_")
        for each in [*fault.tests, *own(fault)]:
            assert word in keywords(f"tests/{each}[x]")
    for item in request.session.items:
        assert keywords(item.nodeid) <= item.extra_keyword_matches
