"""The table of what the harnesses found, made by several workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import torture
from support.torture import Results


def test_rows_of_workers_add_up() -> None:
    """As if one process had found them."""
    one, other, alone = Results(), Results(), Results()
    for part, cases in (("a", 3), ("b", 4), ("a", 5)):
        alone.add("T1", part, cases, "nothing", "sampled")
    one.add("T1", "a", 3, "nothing", "sampled")
    other.add("T1", "b", 4, "nothing", "sampled")
    other.add("T1", "a", 5, "nothing", "sampled")
    whole = Results()
    for each in (one, other):
        whole.merge(each.rows)
    assert whole.rows == alone.rows


def test_rows_are_put_into_the_page_in_place_of_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of other harnesses stay."""
    page = tmp_path / "page.md"
    page.write_text(
        f"before\n{torture.BEGIN}\n| T1 | a | 1 | x | full |\n| T2 | b | 2 | y | full |\n"
        f"{torture.END}\nafter\n"
    )
    monkeypatch.setattr(torture, "PAGE", page)
    results = Results()
    results.add("T1", "a", 3, "z", "full")
    results.write()
    lines = page.read_text().splitlines()
    assert "| T1 | a | 3 | z | full |" in lines
    assert "| T2 | b | 2 | y | full |" in lines
    assert "| T1 | a | 1 | x | full |" not in lines
    assert (lines[0], lines[-1]) == ("before", "after")
