"""The example distributions, installed from wheels into a fresh environment."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.fresh import ROOT, FreshEnvironment

EXAMPLES = ("lighter-echo", "lighter-acme-tools")

SCRIPT = """
import sys
import lighter_core
from lighter_core import Agent, Model, ToolCall, default_registry
from lighter_core.testing import FakeProvider, Turn

assert "venv" in lighter_core.__file__, lighter_core.__file__
found = {(e.kind, e.name, e.dist) for e in default_registry().discover()}
assert ("providers", "echo", "lighter-echo") in found
assert ("tools", "acme-books", "lighter-acme-tools") in found
assert ("hooks", "acme-audit", "lighter-acme-tools") in found
assert ("hooks", "acme-policy", "lighter-acme-tools") in found
assert not [n for n in sys.modules if n.startswith(("lighter_echo", "lighter_acme"))]

model = Model.from_name("echo", model_id="any")
assert not [n for n in sys.modules if n.startswith("lighter_acme")]
print(Agent(model).run_sync("Hello!").raise_if_failed().text)
print(Agent("echo:any", hooks=["acme-audit"]).run_sync("Again.").text)

order = ToolCall("c1", "order_book", '{"title": "Walden"}')
agent = Agent(
    FakeProvider([Turn(tool_calls=[order]), "Done."] * 2),
    tools=["acme-books"],
    hooks=["acme-audit", "acme-policy"],
)
import os
print(agent.run_sync("Order it.").messages[1].tool_output)
os.environ["ACME_DENIED_TOOLS"] = "order_book"
print(agent.run_sync("Order it.").messages[1].tool_output)
"""


def test_plugins_of_others_work_from_their_wheels(
    kit: FreshEnvironment, tmp_path: Path
) -> None:
    """By name, each imported when it is asked for."""
    printed = kit.run("-I", "-W", "error", "-c", SCRIPT, cwd=tmp_path)
    assert printed.splitlines() == [
        "Received: Hello!",
        "Received: Again.",
        '"1 x Walden: 7 crowns"',
        "denied by policy: do not try again, tell the user",
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_passes_its_own_tests(
    kit: FreshEnvironment, tmp_path: Path, name: str
) -> None:
    """Away from this repository, whose settings they do not need."""
    copy = tmp_path / name
    shutil.copytree(ROOT / "docs" / "examples" / name, copy)
    assert " passed" in kit.run("-m", "pytest", "-q", cwd=copy)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_code_in_the_readme_of_an_example_runs(
    kit: FreshEnvironment, tmp_path: Path, name: str
) -> None:
    """Where the examples are installed."""
    page = (ROOT / "docs" / "examples" / name / "README.md").read_text("utf-8")
    code = "".join(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    assert "Agent(" in code
    kit.run("-W", "error", "-c", code, cwd=tmp_path)


def test_the_tools_example_is_typed_and_tidy(
    kit: FreshEnvironment, tmp_path: Path
) -> None:
    """As every generated provider is: by mypy --strict and ruff."""
    copy = tmp_path / "lighter-acme-tools"
    shutil.copytree(ROOT / "docs" / "examples" / copy.name, copy)
    kit.check_types_and_style(copy)


def test_the_echo_example_passes_the_contract(
    kit: FreshEnvironment, tmp_path: Path
) -> None:
    """As its README says to run it."""
    command = ("-m", "pytest", "-q", "--lighter-provider", "echo")
    printed = kit.run(*command, "--lighter-lacks", "tools", cwd=tmp_path)
    assert " passed" in printed
    assert "failed" not in printed
