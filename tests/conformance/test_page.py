"""The page of the contract says what the checks say."""

from __future__ import annotations

import re
from pathlib import Path

from lighter_conformance import all_checks
from lighter_conformance.__main__ import contract_page
from lighter_conformance.case import TRAITS

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def test_the_page_has_the_sections_of_the_checks() -> None:
    """To renew it: python -m lighter_conformance."""
    text = PAGE.read_text()
    assert text.endswith(contract_page())


def test_every_failure_refers_to_a_section() -> None:
    """The anchor is the heading's, as Markdown viewers make it."""
    headings = re.findall(r"^### (.*)$", PAGE.read_text(), re.MULTILINE)
    anchors = [h.lower().replace(".", "").replace(" ", "-") for h in headings]
    assert [f"docs/conformance.md#{a}" for a in anchors] == [
        check.place for check in all_checks()
    ]


def test_every_trait_is_explained() -> None:
    """In the table at the top."""
    head = PAGE.read_text().partition("\n## ")[0]
    assert [trait for trait in TRAITS if f"`{trait}`" not in head] == []
    needs = {need for check in all_checks() for need in check.needs}
    assert needs == set(TRAITS)


def test_the_readme_shows_a_failure_as_it_is() -> None:
    """Its example refers to a section that there is."""
    readme = PAGE.parents[1] / "lighter-conformance" / "README.md"
    places = re.findall(r"docs/conformance\.md#[\w-]+", readme.read_text())
    assert places
    assert set(places) <= {check.place for check in all_checks()}
