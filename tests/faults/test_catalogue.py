"""Every known fault has a test that is found by its id and really runs."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
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
    """They exist, assert something, and none of them is skipped or expected to fail."""
    tests = [*fault.tests, *own(fault)]
    assert tests, f"{fault.id} has no test: {fault.rule}"
    for each in tests:
        file, _, name = each.partition("::")
        assert name in functions(file), f"{fault.id}: there is no {each}"
        node = functions(file)[name]
        marks = {ast.unparse(mark).split("(")[0] for mark in node.decorator_list}
        assert not marks & {"pytest.mark.skip", "pytest.mark.xfail"}, each
        inner = [type(n).__name__ for n in ast.walk(node)]
        assert {"Assert", "Call"} & set(inner), f"{each} checks nothing"


def test_ids_are_words_for_a_choice_by_name(request: pytest.FixtureRequest) -> None:
    """`pytest -k KF_046` finds what the table says."""
    for fault in FAULTS:
        word = fault.id.replace("-", "_")
        for each in [*fault.tests, *own(fault)]:
            assert word in keywords(f"tests/{each}[x]")
    for item in request.session.items:
        assert keywords(item.nodeid) <= item.extra_keyword_matches
