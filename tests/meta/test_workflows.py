"""The public repository's workflows: what they run, and with which permissions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))

# What a job may write, and no other may: its name, and its permissions beyond reading.
WRITERS = {
    ("release.yml", "attest"): {"attestations": "write", "id-token": "write"},
    ("release.yml", "publish"): {"id-token": "write"},
    ("release.yml", "announce"): {"contents": "write"},
}


def _load(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _jobs() -> list[Any]:
    return [
        pytest.param(path.name, name, job, id=f"{path.stem}-{name}")
        for path in WORKFLOWS
        for name, job in _load(path)["jobs"].items()
    ]


def _steps(workflow: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{file}: {name}", step)
        for file, name, job in (each.values for each in _jobs())
        if workflow in (None, file)
        for step in job["steps"]
    ]


def test_there_are_a_check_and_a_release_workflow() -> None:
    """The tests below read at least these."""
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "release.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_a_commit_beside_its_version(path: Path) -> None:
    """A tag can be moved to other code, a commit cannot; the comment is for people."""
    lines = [line for line in path.read_text().splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_one_action_has_one_commit_in_all_workflows() -> None:
    """A half renewed pin would hide which code runs."""
    pins: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for name, pin in re.findall(r"uses: ([\w./-]+)@(.*)", path.read_text()):
            pins.setdefault(name, set()).add(pin)
    assert {name: found for name, found in pins.items() if len(found) > 1} == {}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_gives_nothing_by_default(path: Path) -> None:
    """Each job names what it needs; pull requests of strangers never run with secrets."""
    workflow = _load(path)
    assert workflow["permissions"] == {}
    assert "pull_request_target" not in workflow[True]  # YAML reads `on` as true
    assert "secrets." not in path.read_text()
    assert "group" in workflow["concurrency"]


@pytest.mark.parametrize(("file", "name", "job"), _jobs())
def test_a_job_has_the_least_permissions_and_an_end(
    file: str, name: str, job: dict[str, Any]
) -> None:
    """Reading, unless the table above says more."""
    expected = WRITERS.get((file, name), {"contents": "read"})
    assert job["permissions"] == expected
    assert job["timeout-minutes"] <= 45
    assert not job["runs-on"].endswith("latest")


def test_a_checkout_leaves_no_credentials_behind() -> None:
    """Later steps run code of the pull request."""
    checkouts = [
        step
        for _, step in _steps()
        if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_every_make_target_exists() -> None:
    """What fails in a workflow can be run at home with the same words."""
    targets = set(re.findall(r"(?m)^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text()))
    called = {
        target
        for _, step in _steps()
        for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))
    }
    assert {"test", "check", "build"} <= called
    assert called <= targets


def test_every_script_and_test_folder_exists() -> None:
    """The other words of commands that name files here."""
    for where, step in _steps():
        for path in re.findall(r"\b(?:scripts|tests)/[\w./-]+", step.get("run", "")):
            assert (ROOT / path).exists(), f"{where}: {path}"


def test_all_supported_interpreters_are_tested() -> None:
    """The matrix has what the classifiers promise."""
    promised = re.findall(
        r"Python :: (3\.\d+)", (ROOT / "lighter-core" / "pyproject.toml").read_text()
    )
    jobs = _load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == promised


def test_only_what_was_tested_and_attested_is_published() -> None:
    """One build; the publishing job runs no code of the repository."""
    jobs = _load(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert set(jobs["attest"]["needs"]) == {"build", "test"}
    assert set(jobs["publish"]["needs"]) == {"build", "attest"}
    assert jobs["announce"]["needs"] == "publish"
    builds = [
        step for _, step in _steps("release.yml") if step.get("run") == "make build"
    ]
    assert len(builds) == 1
    used = [
        step["uses"].split("@")[0]
        for step in jobs["publish"]["steps"]
        if "uses" in step
    ]
    assert used == ["actions/download-artifact", "pypa/gh-action-pypi-publish"]
    assert jobs["publish"]["environment"] == "release"
    assert jobs["publish"]["strategy"]["max-parallel"] == 1
