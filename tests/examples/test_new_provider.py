"""`python -m lighter_core new-provider`: what it writes works at once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.fresh import ROOT, FreshEnvironment, build_wheel

from lighter_core.__main__ import main

CACHE = re.compile(r"__pycache__|/\.\w+_cache/")
ECHO = ROOT / "docs" / "examples" / "lighter-echo"


def files_of(folder: Path) -> dict[str, str]:
    """Return the text of each file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not CACHE.search(str(path))
    }


def new_provider(*arguments: str | Path) -> int:
    return main(["new-provider", *map(str, arguments)])


@pytest.mark.parametrize(
    "arguments",
    [["acme-cloud-of-the-longest-v2"], ["some-cloud-of-the-longest-v2", "--http"]],
    ids=["echo", "http"],
)
def test_a_new_provider_passes_its_own_checks(
    tmp_path: Path, kit: FreshEnvironment, arguments: list[str]
) -> None:
    """Written by the installed core: its tests, mypy --strict and ruff.

    The contract is run by tests/docs/test_write_a_provider.py.
    """
    kit.run("-m", "lighter_core", "new-provider", *arguments, cwd=tmp_path)
    folder = tmp_path / f"lighter-{arguments[0]}"
    kit.install(build_wheel(folder, tmp_path))
    assert " passed" in kit.run("-W", "error", "-m", "pytest", "-q", cwd=folder)
    kit.check_types_and_style(folder)


def test_the_echo_example_is_what_the_command_writes(tmp_path: Path) -> None:
    """Renew it: remove the folder, run new-provider echo --directory with it again."""
    assert new_provider("echo", "--directory", tmp_path / "new") == 0
    assert files_of(tmp_path / "new") == files_of(ECHO)


@pytest.mark.parametrize(
    ("given", "package", "class_name"),
    [
        ("acme", "lighter_acme", "AcmeProvider"),
        (" Acme_Cloud ", "lighter_acme_cloud", "AcmeCloudProvider"),
        ("lighter-class", "lighter_class", "ClassProvider"),
        ("a1", "lighter_a1", "A1Provider"),
    ],
)
def test_names_are_brought_into_normal_form(
    tmp_path: Path, capsys, given: str, package: str, class_name: str
) -> None:
    """One name gives distribution, package, class and entry point."""
    for form in ([], ["--http"]):
        folder = tmp_path / f"new{len(form)}"
        assert new_provider(given, *form, "--directory", folder) == 0
        files = files_of(folder)
        assert f"src/{package}/py.typed" in files
        assert f"class {class_name}:" in files[f"src/{package}/_provider.py"]
        for path, text in files.items():
            assert not re.search(r"\$\w", text), path
            if path.endswith(".py"):
                compile(text, path, "exec")
        printed = capsys.readouterr().out
        assert all(str(folder / path) in printed for path in files)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "cannot be a provider's name"),
        ("é", "cannot be a provider's name"),
        ("1up", "cannot be a provider's name"),
        ("a b", "cannot be a provider's name"),
        ("../up", "cannot be a provider's name"),
        ("a-", "cannot be a provider's name"),
        ("a'b", "cannot be a provider's name"),
        ("a" * 29, "cannot be a provider's name"),
        ("OpenAI", "belongs to lighter-openai"),
        ("openai_chat", "belongs to lighter-openai"),
        ("lighter-claude", "belongs to lighter-claude"),
        ("replay", "belongs to lighter-core"),
        *[(each.name, f"belongs to {each.name}") for each in ROOT.glob("lighter-*")],
    ],
)
def test_names_that_cannot_be_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, given: str, says: str
) -> None:
    """Nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert new_provider(given) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """An empty one is used."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "lighter-acme"
    folder.mkdir()
    assert new_provider("acme") == 0
    (folder / "README.md").write_text("mine")
    before = files_of(folder)
    assert new_provider("acme") == 2
    assert "not an empty folder" in capsys.readouterr().err
    assert files_of(folder) == before
    (tmp_path / "file").write_text("")
    assert new_provider("acme", "--directory", "file") == 2
    assert new_provider("acme", "--directory", "file/below") == 1
    assert "cannot write" in capsys.readouterr().err


def test_the_command_needs_the_standard_library_only(tmp_path: Path) -> None:
    """It works before anything else is installed."""
    code = (
        "import sys; from lighter_core.__main__ import main\n"
        "assert main(['new-provider', 'acme']) == 0\n"
        "roots = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(roots & {'pluggy', 'pydantic', 'importlib_metadata', 'jinja2'}))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "[]"
