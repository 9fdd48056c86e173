"""The tables of docs/history.md are what the encoders really do."""

from __future__ import annotations

import pytest
from support import hand_over


def test_the_tables_of_the_history_page_are_what_happens() -> None:
    """Renew them: PYTHONPATH=tests python -m support.hand_over --write."""
    page = hand_over.PAGE.read_text(encoding="utf-8")
    assert hand_over.renewed(page, hand_over.tables()) == page, (
        "docs/history.md tells what does not happen; see this test's docstring"
    )


@pytest.mark.parametrize("source", hand_over.SOURCES)
def test_each_source_gives_replies_that_hold_what_is_looked_for(source: str) -> None:
    """A row without its mark would say "left out" of everything."""
    rows = {row: hand_over.reply(source, row) for row in hand_over.ROWS}
    there = {row: each for row, each in rows.items() if each is not None}
    assert len(there) >= 5
    for row, message in there.items():
        assert message.native is not None
        assert hand_over.MARK in message.native.items, row


def test_the_same_model_gets_all_but_what_it_would_refuse() -> None:
    """The page would tell it faithfully if something else were lost."""
    for row in hand_over.own_rows():
        for same in row[1::2]:
            odd = "odd name" in row[0] or "no object" in row[0]
            assert same in {"-", "as it came"} or odd, row


def test_what_is_left_out_for_another_service_is_always_noted() -> None:
    for row in [*hand_over.own_rows(), *hand_over.other_rows()]:
        for cell in row[1:]:
            for one in cell.split(" / "):
                assert one != "left out", row
