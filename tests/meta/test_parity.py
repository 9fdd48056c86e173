"""docs/parity.md names, for each behaviour of the original, a test that exists."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "parity.md"

PAGES = (
    "introduction",
    "getting-started-quickstart",
    "getting-started-concepts",
    "guides-configuration",
    "guides-tools",
    "guides-conversations",
    "guides-streaming",
    "guides-hooks",
    "guides-errors",
    "providers",
    "providers-custom",
    "advanced-model",
    "advanced-limits",
    "reference-agent",
    "reference-model-and-providers",
    "reference-messages",
    "reference-tools",
    "reference-hooks",
    "reference-errors",
)
"""The pages of the original's documentation."""

COLUMNS = ["page", "behaviour", "in Lighter", "test", "note"]
NOTE = re.compile(r"\*\*(same|beyond|differs)\*\*(: .+|; .+)?")
NODE = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


class Row(NamedTuple):
    """One row of the page."""

    line: int
    pages: list[str]
    behaviour: str
    place: str
    test: str
    note: str


def rows_of(text: str) -> list[Row]:
    """Return the rows of every table of a page."""
    rows: list[Row] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if [c.strip() for c in line.strip("|").split("|")] == COLUMNS:
            continue
        if set(line) <= set("|- "):
            continue
        assert len(cells) == len(COLUMNS), f"line {number} has {len(cells)} cells"
        pages = [page.strip() for page in cells[0].split(",")]
        rows.append(Row(number, pages, *cells[1:]))
    return rows


@functools.cache
def rows() -> list[Row]:
    """Return the rows of docs/parity.md."""
    return rows_of(PAGE.read_text(encoding="utf-8"))


@functools.cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of a file's test functions; empty when there is no file."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    )


def missing(row: Row) -> list[str]:
    """Return what is wrong with a row's tests."""
    nodes = NODE.findall(row.test)
    left = NODE.sub("", row.test).replace("<br>", "").strip()
    faults = [f"line {row.line}: cannot read {left!r}"] if left else []
    if not nodes:
        faults.append(f"line {row.line}: no test")
    for path, name in nodes:
        if name not in names_in(path):
            faults.append(f"line {row.line}: {path} has no {name}")
    return faults


def test_every_row_names_tests_that_exist() -> None:
    """No behaviour is claimed without a test."""
    assert [fault for row in rows() for fault in missing(row)] == []


def test_every_row_is_complete() -> None:
    """Behaviour, place and a note of the three kinds."""
    for row in rows():
        assert row.behaviour, row.line
        assert row.place, row.line
        assert NOTE.fullmatch(row.note), f"line {row.line}: {row.note}"


def test_every_deliberate_difference_has_a_reason() -> None:
    """`differs` alone would not say what to expect."""
    for row in rows():
        if not row.note.startswith("**same**"):
            assert len(row.note) > len("**differs**: "), f"line {row.line}"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_of_the_original_has_rows(page: str) -> None:
    """Each page's statements are accounted for."""
    assert any(page in row.pages for row in rows())


def test_rows_name_known_pages_only() -> None:
    """A page's name is spelled as in the list."""
    assert {page for row in rows() for page in row.pages} == set(PAGES)


def test_no_behaviour_stands_twice() -> None:
    """A statement on several pages has one row that names them."""
    counts = Counter(row.behaviour for row in rows())
    assert [text for text, count in counts.items() if count > 1] == []


def test_the_page_is_of_the_size_that_the_original_has() -> None:
    """Rows are not lost by a table that can no longer be read."""
    assert len(rows()) >= 200


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ("", "no test"),
        ("see below", "cannot read"),
        ("`tests/core/test_seed_agent.py::test_that_is_not_there`", "has no"),
        ("`tests/core/test_nowhere.py::test_x`", "has no"),
    ],
)
def test_the_check_itself_finds_faults(cell: str, fault: str) -> None:
    """A row with such a cell would fail."""
    row = Row(1, ["introduction"], "b", "p", cell, "**same**")
    assert any(fault in each for each in missing(row))


def test_a_row_with_too_few_cells_is_noticed() -> None:
    """A broken table is an error, not an empty page."""
    with pytest.raises(AssertionError, match="line 1 has 3 cells"):
        rows_of("| introduction | b | p |")
