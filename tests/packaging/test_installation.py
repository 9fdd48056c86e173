"""The wheels in fresh environments, as users install them."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.parent.name for path in ROOT.glob("lighter-*/pyproject.toml"))

KEYED = {
    "claude": "lighter-claude",
    "deepseek": "lighter-deepseek",
    "openai": "lighter-openai",
    "openai-chat": "lighter-openai",
}

DISCOVER = """
import sys
from lighter_core import default_registry
found = default_registry().discover("providers")
print(*sorted(f"{each.name} {each.dist} {each.version}" for each in found), sep="\\n")
assert not [name for name in sys.modules if name.startswith("lighter_") and name != "lighter_core" and "lighter_core." not in name]
"""

MAKE = """
import sys
from lighter_core import Model
for name in {names!r}:
    model = Model.from_name(name, api_key="x", model_id="y")
    print(type(model.provider).__module__.split(".")[0])
assert not {{"openai", "anthropic", "httpx2"}} & set(sys.modules)
"""

OURS = """
import importlib.metadata
print(*sorted(each.name for each in importlib.metadata.distributions() if each.name.startswith("lighter-")))
"""

PROGRAM = """
from typing import assert_type

from lighter_core import Agent, AgentResponse, Model, tool


@tool
def add(a: int, b: int) -> int:
    \"\"\"Add two numbers.\"\"\"
    return a + b


def main() -> str:
    agent = Agent(Model.from_name("claude", api_key="x", model_id="y"), tools=[add])
    response = agent.run_sync("What is 2 + 3?")
    assert_type(response, AgentResponse[None])
    assert_type(response.text, str)
    return response.text
"""

MISTAKES = """
from lighter_core import Agent, UserMessage

Agent(3)
UserMessage(b"bytes")
Agent("claude:y").run_sync(None)
"""

# mypy would read all of the SDK for this one, which takes it 15 seconds.
PLUGIN = """
from lighter_claude import ClaudeProvider
from lighter_core import Provider

provider: Provider = ClaudeProvider(api_key="x", model_id="y")
ClaudeProvider(api_key=7, model_id="y")
"""


@pytest.fixture(scope="module")
def claude(distributions, with_pip):
    """Install the core and Claude with pip itself, offline from the wheels."""
    names = ("lighter-core", "lighter-claude")
    with_pip.install(*distributions.foreign(*names))
    wheels = [distributions[name].wheel for name in names]
    with_pip.pip("install", "--quiet", *wheels)
    return with_pip


def test_claude_comes_without_openai(claude) -> None:
    """Its SDK is the only one, and pip finds nothing amiss."""
    assert claude.run(OURS) == ["lighter-claude lighter-core"]
    found = claude.run(
        "from importlib.util import find_spec\n"
        "print(*(find_spec(name) is not None for name in ('anthropic', 'openai', 'lighter_openai')))"
    )
    assert found == ["True False False"]
    assert "No broken requirements" in claude.pip("check")


def test_claude_is_found_and_made_by_name(claude, distributions) -> None:
    """Discovery imports no plugin; making the model imports no SDK."""
    expected = distributions.providers("lighter-core", "lighter-claude")
    assert claude.run(DISCOVER) == expected
    assert claude.run(MAKE.format(names=["claude"])) == ["lighter_claude"]


def test_a_missing_plugin_names_the_distribution_to_install(claude) -> None:
    """The first mistake of a new user."""
    (line,) = claude.run(
        "from lighter_core import Model, PluginNotFoundError\n"
        "try:\n    Model.from_name('openai', api_key='x', model_id='y')\n"
        "except PluginNotFoundError as error:\n    print(' '.join(str(error).split()))"
    )
    assert "lighter-openai" in line


def _check(
    run: Callable[..., str], folder: Path, programs: dict[str, str], *command: str
) -> dict[str, set[int]]:
    """Return the lines of each program in which a type checker finds an error."""
    for name, code in programs.items():
        (folder / f"{name}.py").write_text(code)
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    printed = run(sys.executable, "-m", *command, cwd=folder, may_fail=True)
    found: dict[str, set[int]] = {}
    for name, line in re.findall(r"(\w+)\.py:(\d+):.*error: ", printed):
        found.setdefault(name, set()).add(int(line))
    return found


def test_mypy_sees_the_types_of_the_wheels(claude, run, tmp_path: Path) -> None:
    """A program passes its strict checks; each of three mistakes is found in its line."""
    programs = {"program": PROGRAM, "mistakes": MISTAKES}
    python = ("--python-executable", str(claude.python))
    found = _check(
        run, tmp_path, programs, "mypy", "--strict", "--config-file=", *python, "."
    )
    assert found == {"mistakes": {4, 5, 6}}


def test_pyright_sees_the_types_of_the_wheels(claude, run, tmp_path: Path) -> None:
    """The same, and the plugin: it is a provider, and a wrong option is found."""
    programs = {"program": PROGRAM, "mistakes": MISTAKES, "plugin": PLUGIN}
    found = _check(
        run, tmp_path, programs, "pyright", "--pythonpath", str(claude.python)
    )
    assert found == {"mistakes": {4, 5, 6}, "plugin": {6}}


@pytest.mark.parametrize("name", NAMES)
def test_a_distribution_alone_is_complete(fresh, distributions, name: str) -> None:
    """With what it needs of ours and no more, it imports and lacks nothing."""
    environment = fresh([name])
    environment.check()
    needed = sorted(each.name for each in distributions.with_needs(name))
    built = distributions[name]
    lines = environment.run(
        f"{OURS}\nimport {built.package}\nprint({built.package}.__version__)"
    )
    assert lines == [" ".join(needed), built.version]


def test_the_core_alone_runs_an_agent(fresh) -> None:
    """With the scripted provider, and no other distribution of ours."""
    lines = fresh(["lighter-core"]).run(
        textwrap.dedent(
            """
            from lighter_core import Agent, Model
            from lighter_core.testing import FakeProvider, Turn
            agent = Agent(Model(FakeProvider([Turn(text="Hello.")])))
            print(agent.run_sync("Hi").text)
            """
        )
    )
    assert lines == ["Hello."]


def test_all_together_and_without_one(fresh, distributions) -> None:
    """Each declared provider is found and made; so are the others when one has gone."""
    environment = fresh(NAMES)
    _need_providers(environment, distributions, NAMES)
    environment.uninstall("lighter-claude")
    _need_providers(
        environment, distributions, [name for name in NAMES if name != "lighter-claude"]
    )


def _need_providers(environment, distributions, names: list[str]) -> None:
    environment.check()
    assert environment.run(DISCOVER) == distributions.providers(*names)
    keyed = {each: name for each, name in KEYED.items() if name in names}
    made = environment.run(MAKE.format(names=list(keyed)))
    assert made == [name.replace("-", "_") for name in keyed.values()]
