"""Rules of the repository that no other tool holds."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = sorted(path.parent for path in ROOT.glob("lighter-*/pyproject.toml"))


def _tracked() -> list[Path]:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.split("\0") if name]


def _texts() -> list[tuple[Path, str]]:
    found = []
    for path in _tracked():
        try:
            found.append((path, path.read_text(encoding="utf-8")))
        except (UnicodeDecodeError, FileNotFoundError):
            continue
    return found


def _project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def test_no_file_names_a_package_registry() -> None:
    """Hosts of registries belong into the user's configuration."""
    parts = ["py", r"pi\.org|python", r"hosted|npm", r"js\.(org|com)|deb", r"\.debian"]
    hosts = re.compile("".join(parts))
    assert [str(path) for path, text in _texts() if hosts.search(text)] == []


def test_no_file_names_an_absolute_path_of_a_machine() -> None:
    """Home and work directories of a developer have no place here."""
    paths = re.compile(r"(^|[^\w./-])/(root|work|farm|home/\w+)/", re.MULTILINE)
    allowed = {ROOT / "tests" / "core" / "test_fault_tools.py"}
    found = [
        str(path.relative_to(ROOT))
        for path, text in _texts()
        if path not in allowed and paths.search(text)
    ]
    assert found == []


def test_uv_lock_is_not_tracked() -> None:
    """A uv.lock names the hosts of registries; constraints.txt has the pins."""
    assert not [path for path in _tracked() if path.name == "uv.lock"]


def test_constraints_hold_names_and_versions_only() -> None:
    """Each line is `name==version`, in order."""
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert lines
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9A-Za-z.]+", line), line
    assert lines == sorted(lines, key=lambda line: line.split("==")[0])


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda path: path.name)
def test_every_distribution_is_complete(folder: Path) -> None:
    """README, licence, types and sources are where they belong."""
    package = folder / "src" / folder.name.replace("-", "_")
    assert (folder / "README.md").read_text().startswith(f"# {folder.name}")
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert (package / "py.typed").exists()
    assert (package / "__init__.py").exists()
    assert _project(folder)["requires-python"] == ">=3.11"


def test_all_distributions_have_one_version() -> None:
    """While it is 0.x; each asks for the others' same minor, from its own version on."""
    versions = {_project(folder)["version"] for folder in DISTRIBUTIONS}
    assert len(versions) == 1
    for folder in DISTRIBUTIONS:
        for requirement in _project(folder)["dependencies"]:
            if requirement.startswith("lighter-"):
                assert requirement.split("~=")[1] in versions, "scripts/release.py bump"


def test_modules_stay_small() -> None:
    """A module past 400 lines is one room too few."""
    long = {
        str(path.relative_to(ROOT)): count
        for path in ROOT.glob("lighter-*/src/**/*.py")
        if (count := len(path.read_text().splitlines())) > 400
    }
    assert long == {}


def test_every_dependency_has_its_reason() -> None:
    """docs/dependencies.md names each one."""
    page = (ROOT / "docs" / "dependencies.md").read_text()
    for folder in DISTRIBUTIONS:
        project = _project(folder)
        extras = project.get("optional-dependencies", {}).values()
        for requirement in [
            *project["dependencies"],
            *(each for extra in extras for each in extra),
        ]:
            name = re.match(r"[A-Za-z0-9-]+", requirement).group()
            if not name.startswith("lighter-"):
                assert f"| {name} " in page, f"{name} of {folder.name}"


def test_links_between_pages_lead_somewhere() -> None:
    """Relative links in Markdown files point to files that exist."""
    broken = []
    for path, text in _texts():
        if path.suffix != ".md":
            continue
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target and not (path.parent / target).exists():
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert broken == []


def test_the_readme_opens_with_the_two_commands() -> None:
    """A stranger runs the first block that they see."""
    text = (ROOT / "README.md").read_text()
    first = text.split("```")[1]
    assert "make demo" in first
    assert "make test" in first


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda path: path.name)
def test_every_distribution_is_known_to_every_tool(folder: Path) -> None:
    """A list in the root's pyproject that lacks one would leave it unchecked."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    package, source = folder.name.replace("-", "_"), f"{folder.name}/src"
    assert folder.name in tool["uv"]["sources"]
    assert package in tool["coverage"]["run"]["source_pkgs"]
    assert package in tool["ruff"]["lint"]["isort"]["known-first-party"]
    assert source in tool["mypy"]["mypy_path"]
    assert source in tool["pyright"]["include"]
    assert source in tool["pyright"]["extraPaths"]
