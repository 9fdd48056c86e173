"""The plugin in pytest runs of its own, as an author of a provider sees it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.conformance_cases import ECHO_SOURCES

from lighter_conformance import all_checks
from lighter_conformance.case import find_case

HEAVY = """
import socket

import pydantic

from lighter_core import hookimpl
from lighter_core.testing import FakeProvider


@hookimpl
def create_provider(name, options):
    socket.getaddrinfo("127.0.0.1", 1)
    return FakeProvider(["Hello!"] * 50)
"""
CASES = """
from lighter_conformance import Case
from lighter_core import AssistantMessage, MessageEvent
from lighter_core.testing import FakeProvider


class Mute(FakeProvider):
    async def stream(self, request):
        yield MessageEvent(await self.invoke(request))


class ScriptedCase(Case):
    def __init__(self, kind=FakeProvider):
        super().__init__("scripted", lacks=["reasoning"])
        self.kind = kind

    def make(self, **options):
        return self.kind(["Hello!"] * 50)

    def scripted(self, turns):
        def answer(turn):
            if callable(turn):
                return lambda request: turn(request.messages[-1].text)
            return turn

        replies = [answer(turn) for turn in turns]
        return self.kind([*replies, *[replies[-1]] * 50])


def mute():
    return ScriptedCase(Mute)


def provider(text="Hello!"):
    return FakeProvider([text] * 50)


NOTHING = 7
"""


LESS = ["-p", "no:asyncio", "-p", "no:hypothesispytest", "-p", "no:anyio"]
"""Plugins of the environment that only take time here."""


def pytest_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder of its own, which is also on the path."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *LESS, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ECHO_SOURCES}"},
        capture_output=True,
        check=False,
        text=True,
        timeout=100,
    )


def distribution(folder: Path, name: str, module: str) -> None:
    """Put the metadata of a distribution with a provider plugin on the path."""
    info = folder / f"lighter_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: lighter-{name}\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(f"[lighter.providers]\n{name} = {module}\n")


def test_a_plain_run_imports_the_options_only(tmp_path: Path) -> None:
    """Neither the checks nor the core, whatever else pytest is used for."""
    (tmp_path / "test_plain.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    ours = {n for n in sys.modules if n.startswith('lighter_')}\n"
        "    assert ours == {'lighter_conformance', 'lighter_conformance.plugin'}\n"
    )
    done = pytest_run(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_a_provider_is_checked_by_its_name_in_an_empty_folder(tmp_path: Path) -> None:
    """There need not be a test file; what cannot be tried is skipped with its reason."""
    distribution(tmp_path, "echo", "lighter_echo.plugin")
    done = pytest_run(tmp_path, "--lighter-provider", "echo")
    assert done.returncode == 0, done.stdout
    passed = int(re.search(r"(\d+) passed", done.stdout)[1])
    skipped = int(re.search(r"(\d+) skipped", done.stdout)[1])
    assert passed >= 18
    assert passed + skipped == len(all_checks())
    _, _, summary = done.stdout.partition("conformance[echo]: not tried")
    assert (
        sum(map(int, re.findall(r"^ +(\d+) echo\b", summary, re.MULTILINE))) == skipped
    )
    assert "its service cannot be played: no wire is named (--lighter-wire)" in summary


def test_options_reach_the_provider_and_checks_are_chosen_by_name(
    tmp_path: Path,
) -> None:
    """As JSON where it is JSON, else as text; `-k` works as for every test."""
    distribution(tmp_path, "echo", "lighter_echo.plugin")
    (tmp_path / "test_mine.py").write_text("def test_mine(): pass\n")
    done = pytest_run(
        tmp_path,
        "--lighter-provider=echo",
        "--lighter-option=prefix=I heard",
        "-k=reply-is-a-message or mine",
        "-vv",
    )
    assert f"collected {len(all_checks()) + 1} items" in done.stdout
    assert "conformance[echo]::reply-is-a-message PASSED" in done.stdout
    assert "test_mine.py::test_mine PASSED" in done.stdout
    assert f"2 passed, {len(all_checks()) - 1} deselected" in done.stdout


def test_heavy_imports_and_traffic_at_construction_are_found(tmp_path: Path) -> None:
    """A fresh interpreter tells; each of the two checks fails for its own reason."""
    (tmp_path / "heavy.py").write_text(HEAVY)
    distribution(tmp_path, "heavy", "heavy")
    done = pytest_run(
        tmp_path, "--lighter-provider=heavy", "-k=import-is or construction-sends"
    )
    assert "2 failed" in done.stdout, done.stdout
    assert re.search(r"seen +imported: \[.*'pydantic'", done.stdout)
    assert re.search(r"seen +calls of \['socket.getaddrinfo'", done.stdout)


def test_a_failure_tells_the_contract_and_its_place(tmp_path: Path) -> None:
    """The report is that text and no traceback of the suite."""
    (tmp_path / "cases.py").write_text(CASES)
    done = pytest_run(tmp_path, "--lighter-provider=cases:mute", "-ra")
    assert done.returncode == 1
    failed = re.findall(r"FAILED conformance\[scripted\]::([\w-]+)", done.stdout)
    assert failed == ["text-deltas-equal-content"], done.stdout
    assert (
        "text-deltas-equal-content does not hold for scripted\n\n"
        "  contract    The text deltas joined equal the message's `content`.\n"
        "  documented  docs/conformance.md#18-text-deltas-equal-content, section 18 of"
        ' the page "Conformance"\n'
        "  seen        deltas [], content 'Hello, world!'\n"
    ) in done.stdout
    assert "Traceback" not in done.stdout
    assert "scripted: it shows no reasoning" in done.stdout


def test_a_factory_of_a_provider_will_do(tmp_path: Path) -> None:
    """It is called for each check, with the options."""
    (tmp_path / "cases.py").write_text(CASES)
    done = pytest_run(
        tmp_path,
        "--lighter-provider=cases:provider",
        "--lighter-option=text=Moin",
        "-k=reply-is-a-message or one-message",
    )
    assert "2 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--lighter-provider=nowhere", "no provider 'nowhere' is installed"),
        ("--lighter-option=x", "takes KEY=VALUE"),
    ],
)
def test_what_cannot_be_checked_is_a_usage_error(
    tmp_path: Path, argument: str, said: str
) -> None:
    """It says what is wrong, and nothing runs."""
    done = pytest_run(tmp_path, "--lighter-provider=openai", argument)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("spec", "fields", "said"),
    [
        ("openai", {"wire": "x"}, "no wire 'x'; there are chat, messages, responses"),
        ("openai", {"lacks": ["x"]}, "no trait 'x'; there are"),
        ("json:none", {}, "json has no 'none'"),
        ("json:__all__", {}, "is list, no factory"),
        ("nowhere_at_all:x", {}, "No module named"),
        ("builtins:dict", {}, "made dict, no Provider or Case"),
    ],
)
def test_what_a_command_line_names_is_found_or_refused(
    spec: str, fields: dict, said: str
) -> None:
    """By errors that the plugin shows as they are."""
    with pytest.raises((ImportError, LookupError, TypeError, ValueError)) as caught:
        find_case(spec, {}, **fields)
    assert said in str(caught.value)
