"""The tables of docs/hooks.md are what really happens."""

from __future__ import annotations

import pytest
from support import hook_order


async def test_the_tables_of_the_hooks_page_are_what_happens() -> None:
    """Renew them: PYTHONPATH=tests python -m support.hook_order --write."""
    page = hook_order.PAGE.read_text(encoding="utf-8")
    assert hook_order.renewed(page, await hook_order.tables()) == page, (
        "docs/hooks.md tells an order that is not what happens; see this test's docstring"
    )


async def test_no_gate_that_denies_or_fails_lets_the_tool_run() -> None:
    """The page would tell it faithfully if one did, so it is asked for here."""
    rows = await hook_order.gate_rows()
    for words, ran, _, _ in rows:
        allowed = words in {"allows", "changes"}
        assert (ran == "**no**") is not allowed, words
    assert len(rows) >= 18


async def test_on_run_end_happens_once_in_every_run() -> None:
    """Also in those that are cancelled or left."""
    rows = await hook_order.count_rows()
    assert {row[-1] for row in rows} == {"1"}
    assert len(rows) >= 11


def test_a_page_that_lost_a_marker_is_noticed() -> None:
    """It would be left alone for ever."""
    with pytest.raises(AssertionError, match="no marker"):
        hook_order.renewed("no markers here", {"order": "x"})
