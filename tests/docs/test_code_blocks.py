"""Every Python block of the documentation runs as it is written.

Blocks of one page follow each other, as a reader would run them. Names of services lead
to a scripted provider, registered as an application may register its own; providers that
a block constructs itself are real ones and send nothing.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path

import pytest

import lighter_core
from lighter_core import ToolCall, default_registry, hookimpl
from lighter_core.testing import FakeProvider, Turn

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        *ROOT.glob("lighter-*/README.md"),
        *(
            page
            for page in ROOT.glob("docs/**/*.md")
            if page.parts[-3] != "examples"  # distributions, tested where installed
        ),
    ]
)
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SERVICES = ("claude", "deepseek", "local", "openai", "openai-chat")


def _blocks(page: Path) -> list[tuple[int, str]]:
    text = page.read_text()
    return [
        (text[: match.start()].count("\n") + 2, textwrap.dedent(match.group(1)))
        for match in BLOCK.finditer(text)
    ]


WITH_CODE = [page for page in PAGES if _blocks(page)]


def _reply(request):
    """Call the first tool once; give the form that is asked for; else say something."""
    last = request.messages[-1]
    if request.tool_specs and last.role == "user":
        return Turn(tool_calls=[ToolCall("c1", "add", '{"a": 19, "b": 23}')])
    if "JSON Schema" in request.messages[0].content:
        return '{"title": "Moon", "pages": 42}'
    return "The answer is 42."


class _Scripted:
    @hookimpl
    def create_provider(self, name: str) -> FakeProvider:
        return FakeProvider([_reply] * 10, name=name)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch):
    """Let the names of services lead to a script, and give constructors a key."""
    registry = default_registry()
    for name in ("OPENAI", "ANTHROPIC", "DEEPSEEK"):
        monkeypatch.setenv(f"{name}_API_KEY", "none-at-all")
        monkeypatch.setenv(f"{name}_MODEL", "some-model")
    known = dict(registry._own), dict(registry._loaded)
    for name in SERVICES:
        registry.register(_Scripted(), name=name)
    yield
    registry._own, registry._loaded = known


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: str(p.relative_to(ROOT)))
async def test_the_blocks_of_a_page_run(
    page: Path, scripted, capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, in one namespace and in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for line, source in _blocks(page):
        code = compile(
            "\n" * (line - 1) + source,
            str(page),
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        )
        result = eval(code, names)
        if inspect.isawaitable(result):
            await result
    assert "failed" not in capsys.readouterr().out


def test_the_pages_with_code_are_found() -> None:
    """An empty list would pass every test above."""
    names = {str(page.relative_to(ROOT)) for page in WITH_CODE}
    assert {"README.md", "lighter-core/README.md", "docs/providers/openai.md"} <= names


def _examples() -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for name in lighter_core.__all__:
        value = getattr(lighter_core, name)
        doc = inspect.getdoc(value) if callable(value) else None
        for number, match in enumerate(BLOCK.finditer(doc or "")):
            found[f"{name}-{number}"] = textwrap.dedent(match.group(1))
    return sorted(found.items())


@pytest.mark.parametrize(("name", "source"), _examples())
def test_examples_in_docstrings_are_python(name: str, source: str) -> None:
    """They name things of the application, so they are parsed and not run."""
    compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_there_are_examples_in_docstrings() -> None:
    """Each class that users construct has one."""
    assert len(_examples()) >= 8
