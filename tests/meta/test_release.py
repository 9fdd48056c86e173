"""`scripts/release.py` on a copy of the repository's packaging files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
URL = "https://example.org/somebody/lighter"


class Copy:
    """The packaging files in a folder of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for path in ROOT.glob("lighter-*/pyproject.toml"):
            (root / path.parent.name).mkdir(parents=True)
            shutil.copy(path, root / path.parent.name)
        for name in ("scripts", "changes"):
            shutil.copytree(ROOT / name, root / name)
        for name in ("pyproject.toml", "CHANGELOG.md"):
            shutil.copy(ROOT / name, root)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def ask(self, *arguments: str) -> str:
        done = self.run("scripts/release.py", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def refusal(self, *arguments: str) -> str:
        done = self.run("scripts/release.py", *arguments)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        return done.stderr

    def projects(self) -> dict[str, dict]:
        return {
            path.parent.name: tomllib.loads(path.read_text())["project"]
            for path in sorted(self.root.glob("lighter-*/pyproject.toml"))
        }

    def write_changelog(self, version: str) -> None:
        done = self.run("-m", "towncrier", "build", "--yes", "--version", version)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "lighter")


def _own_requirements(project: dict) -> list[Requirement]:
    extras = project.get("optional-dependencies", {}).values()
    texts = [
        *project.get("dependencies", []),
        *(each for extra in extras for each in extra),
    ]
    return [
        each
        for text in texts
        if (each := Requirement(text)).name.startswith("lighter-")
    ]


@pytest.mark.parametrize("new", ["0.1.1", "0.2.0", "1.0.0rc1", "12.34.56"])
def test_bump_moves_every_version_and_every_requirement_between_them(
    copy: Copy, new: str
) -> None:
    """Each asks for the same minor version, at least the one it is released with."""
    before = copy.projects()
    copy.ask("bump", new)
    after = copy.projects()
    assert {project["version"] for project in after.values()} == {new}
    asked = [each for project in after.values() for each in _own_requirements(project)]
    assert len(asked) >= len(after) - 1
    major, minor, patch = (int(part) for part in re.findall(r"\d+", new)[:3])
    for requirement in asked:
        assert requirement.specifier.contains(new, prereleases=True)
        assert requirement.specifier.contains(f"{major}.{minor}.{patch + 1}")
        assert not requirement.specifier.contains(f"{major}.{minor + 1}.0")
    for name, project in after.items():
        others = [each for each in project["dependencies"] if "lighter-" not in each]
        assert [
            e for e in before[name]["dependencies"] if "lighter-" not in e
        ] == others
        assert before[name].keys() == project.keys()
    assert copy.ask("version") == new


def test_bump_back_changes_nothing_else(copy: Copy) -> None:
    """Comments and order stay as they were."""
    now = copy.ask("version")
    copy.ask("bump", "7.8.9")
    copy.ask("bump", now)
    for path in ROOT.glob("lighter-*/pyproject.toml"):
        assert (copy.root / path.relative_to(ROOT)).read_text() == path.read_text()


@pytest.mark.parametrize(
    "wrong", ["", "1", "1.2", "v1.2.3", "1.2.3-beta", "1.2.3.dev1"]
)
def test_bump_refuses_what_is_no_version(copy: Copy, wrong: str) -> None:
    """It says what one looks like, and touches nothing."""
    now = copy.ask("version")
    assert "X.Y.Z" in copy.refusal("bump", wrong)
    assert copy.ask("version") == now


def test_versions_that_differ_are_an_error(copy: Copy) -> None:
    """The message names the command that mends it."""
    path = copy.root / "lighter-core" / "pyproject.toml"
    path.write_text(
        re.sub(r'(?m)^version = ".*"', 'version = "0.0.1"', path.read_text())
    )
    assert "bump" in copy.refusal("version")


def test_order_puts_each_distribution_after_those_it_needs(copy: Copy) -> None:
    """All of them, once; the core is first."""
    order = json.loads(copy.ask("order"))
    projects = copy.projects()
    assert sorted(order) == sorted(projects)
    assert order[0] == "lighter-core"
    for name, project in projects.items():
        for requirement in _own_requirements(project):
            assert order.index(requirement.name) < order.index(name)


def test_repository_writes_one_table_of_addresses(copy: Copy) -> None:
    """Twice is like once, and the rest of the file keeps its meaning."""
    before = copy.projects()
    copy.ask("repository", "https://example.org/other/place")
    copy.ask("repository", f"{URL}/")
    for name, project in copy.projects().items():
        urls = project.pop("urls")
        assert urls["Source"] == URL
        assert all(url.startswith(URL) for url in urls.values())
        before[name].pop("urls", None)
        assert project == before[name]
    assert "https" in copy.refusal("repository", "somewhere")


def test_the_way_to_a_release(copy: Copy) -> None:
    """What docs/releasing.md tells, in its order; the check refuses until all is done."""
    words = [path.read_text().split() for path in (copy.root / "changes").glob("+*.md")]
    missing = copy.refusal("check", "v0.9.0", URL)
    for expected in ("tag v", "repository", "make release"):
        assert expected in missing
    copy.ask("repository", URL)
    copy.ask("bump", "0.9.0")
    copy.write_changelog("0.9.0")
    assert not list((copy.root / "changes").glob("+*.md"))
    copy.ask("check", "v0.9.0", URL)
    told = " ".join(copy.ask("notes").split())
    assert words
    for each in words:
        assert " ".join(each) in told
    assert "v0.9.0" in copy.refusal("check", "v0.9.1", URL)
    assert "repository" in copy.refusal(
        "check", "v0.9.0", "https://example.org/fork/lighter"
    )


def test_notes_are_those_of_one_version(copy: Copy) -> None:
    """An older section stays where it is."""
    copy.ask("bump", "0.9.0")
    copy.write_changelog("0.9.0")
    (copy.root / "changes" / "+next.fixed.md").write_text(
        "`lighter-core`: the next one.\n"
    )
    copy.ask("bump", "0.9.1")
    assert "make release VERSION=0.9.1" in copy.refusal("notes")
    copy.write_changelog("0.9.1")
    assert copy.ask("notes") == "### Fixed\n\n- `lighter-core`: the next one."
    copy.ask("bump", "0.9.0")
    assert "the next one" not in copy.ask("notes")


def test_without_a_command_the_usage_is_told(copy: Copy) -> None:
    """So that the file explains itself."""
    assert "python scripts/release.py bump" in copy.refusal()
