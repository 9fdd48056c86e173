"""The notes of changes: their form, and the section that they add up to."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHANGES = ROOT / "changes"
FRAGMENTS = sorted(path for path in CHANGES.iterdir() if path.name != "README.md")
DISTRIBUTIONS = sorted(
    path.parent.name for path in ROOT.glob("lighter-*/pyproject.toml")
)
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
    "towncrier"
]


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_a_note_has_the_form_that_the_readme_describes(path: Path) -> None:
    """Its name tells the kind, its text begins with the distribution."""
    kinds = "|".join(kind["directory"] for kind in CONFIGURATION["type"])
    assert re.fullmatch(rf"\+[a-z0-9-]+\.({kinds})\.md", path.name)
    names = "|".join(re.escape(name) for name in DISTRIBUTIONS)
    text = path.read_text(encoding="utf-8")
    assert re.match(rf"(`({names})`(, | and )?)+: \S|All distributions: \S", text), text
    assert "\n\n" not in text.strip(), "one paragraph; a second change has its own file"


def test_the_readme_names_every_kind() -> None:
    """Also those that no note has yet."""
    text = (CHANGES / "README.md").read_text()
    for kind in CONFIGURATION["type"]:
        assert f"`{kind['directory']}`" in text


def test_the_draft_holds_every_note() -> None:
    """`make changelog` shows all of them, whole."""
    draft = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9.9"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert draft.startswith("## 9.9.9 (")
    words = draft.split()
    for path in FRAGMENTS:
        wanted = path.read_text(encoding="utf-8").split()
        starts = (i for i, word in enumerate(words) if word == wanted[0])
        assert any(words[i : i + len(wanted)] == wanted for i in starts), path.name


def test_the_changelog_has_the_line_that_sections_go_below() -> None:
    """Without it towncrier would put them on top of the page's title."""
    text = (ROOT / "CHANGELOG.md").read_text()
    assert text.count(CONFIGURATION["start_string"]) == 1
