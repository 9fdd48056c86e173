"""The two files of pinned versions agree with each other and with the project file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"(?m)^([a-z0-9-]+)==([^ \n]+)", path.read_text()))


def _groups() -> dict[str, list]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]


def _name(requirement: str) -> str:
    return re.match(r"[a-z0-9-]+", requirement).group()


def test_build_tools_have_hashes_and_the_versions_of_the_constraints() -> None:
    """A release is built with what was tested, and each file of it is known."""
    path = ROOT / "scripts" / "build-tools.txt"
    tools = _pins(path)
    assert tools.items() <= _pins(ROOT / "constraints.txt").items(), "scripts/pin.sh"
    assert {_name(each) for each in _groups()["package"]} <= tools.keys()
    text = re.sub(r"(?m)^#.*\n", "", path.read_text()).replace(" \\\n", " ")
    for line in text.splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==\S+( +--hash=sha256:[0-9a-f]{64})+", line), (
            line
        )


def test_every_tool_of_the_groups_is_pinned() -> None:
    """A tool without a pin changes under everybody's hands."""
    wanted = {
        _name(each)
        for group in _groups().values()
        for each in group
        if isinstance(each, str)
    }
    assert wanted <= _pins(ROOT / "constraints.txt").keys(), "scripts/pin.sh"
