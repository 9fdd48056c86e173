"""What an import of the core loads, what it exports, and which module may use which."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lighter_core

PACKAGE = Path(lighter_core.__file__).parent

# A module imports modules of lower layers, or of its own layer without a cycle.
LAYERS = {
    "__main__": 9,
    "_commands._look": 9,
    "_commands._probe": 9,
    "_commands._report": 9,
    "_commands._text": 9,
    "_commands.doctor": 9,
    "_commands.new_provider": 9,
    "_callables": 0,
    "_closing": 0,
    "_content": 0,
    "_docstring": 0,
    "_json": 0,
    "_notes": 0,
    "_redact": 0,
    "_sse": 0,
    "_sync": 0,
    "_threads": 0,
    "errors": 0,
    "_clients": 1,
    "_tool_text": 1,
    "_dataclass": 0,
    "messages": 1,
    "_trimming": 2,
    "context": 2,
    "_document_schema": 2,
    "documents": 2,
    "events": 2,
    "history": 2,
    "limits": 2,
    "requests": 2,
    "_output": 4,
    "_schema": 3,
    "_signature": 3,
    "pausing": 3,
    "provider": 3,
    "results": 3,
    "hooks": 4,
    "plugins._entries": 4,
    "plugins._loading": 4,
    "plugins._metadata": 4,
    "plugins._missing": 4,
    "plugins._text": 4,
    "plugins._signatures": 4,
    "plugins.hookspecs": 4,
    "plugins.marks": 4,
    "plugins.objects": 4,
    "plugins.registry": 4,
    "_tool": 4,
    "tools": 4,
    "_chain": 5,
    "_inputs": 5,
    "_channel": 5,
    "_state": 5,
    "_inbox": 2,
    "_journal": 5,
    "_handle": 6,
    "_stream": 6,
    "model": 6,
    "_around": 6,
    "_explain": 6,
    "_loop": 7,
    "_model_call": 6,
    "_reply": 6,
    "_setup": 6,
    "_tool_call": 6,
    "_tool_calls": 6,
    "_agent_tool": 8,
    "agent": 8,
    "adapters._answers": 9,
    "adapters._bodies": 9,
    "adapters._calls": 9,
    "adapters._codec": 9,
    "adapters._connection": 9,
    "adapters._exchange": 9,
    "adapters._faults": 9,
    "adapters._lanes": 9,
    "adapters._losses": 9,
    "adapters._making": 9,
    "adapters._opening": 9,
    "adapters._options": 9,
    "adapters._provider": 9,
    "adapters._raw": 9,
    "adapters._refused": 9,
    "adapters._retries": 9,
    "adapters._schemas": 9,
    "adapters._secrets": 9,
    "adapters._sender": 9,
    "adapters._transport": 9,
    "adapters._writing": 9,
    "fallback": 4,
    "retry": 4,
    "recording._differences": 9,
    "recording._file": 9,
    "recording._recorder": 9,
    "recording._replay": 9,
    "recording._stand_ins": 9,
    "recording.plugin": 9,
    "_commands.make_test": 9,
    "pytest_plugin": 9,
    "recording._secrets": 9,
    "testing": 9,
    "sessions._entries": 9,
    "sessions._jsonl": 9,
    "sessions._operations": 9,
    "sessions._session": 9,
    "sessions._sqlite": 9,
    "sessions._statements": 9,
    "sessions._store": 9,
    "sessions.faults": 9,
    "sessions.sql": 9,
    "sessions.workers": 9,
}

# They only name again what other modules hold, so nobody inside imports them.
FACADES = {
    "__init__",
    "_commands.__init__",
    "adapters.__init__",
    "plugins.__init__",
    "sessions.__init__",
    "recording.__init__",
}

# Public in its own module, but not a name of the package: for authors of plugins and
# providers, or for the loop itself.
NOT_EXPORTED = {
    "_explain": set(),
    "_handle": set(),
    "_state": {"RunState"},
    "_stream": set(),
    "agent": {"Input", "setup_of"},
    "context": {"RunProgress"},
    "documents": {"DOCUMENT_VERSION", "messages_from_data", "messages_to_data"},
    "errors": set(),
    "events": set(),
    "pausing": set(),
    "history": {
        "INTERRUPTED",
        "TrimmedHistory",
        "trim",
        "interrupted_result",
        "repair_with_origins",
        "require_valid_history",
    },
    "hooks": {
        "AROUND_TAKES",
        "EVENTS",
        "Hook",
        "HookFunction",
        "checked_replacement",
    },
    "limits": set(),
    "messages": {"MESSAGE_CLASSES", "are_messages", "seal_native"},
    "model": set(),
    "plugins.hookspecs": {"PROJECT", "hookspec"},
    "plugins.marks": {"HookMark"},
    "plugins.registry": set(),
    "provider": {"replay_report_of"},
    "requests": set(),
    "results": {"OutputT_co"},
    "tools": set(),
}

LATE_THIRD_PARTY = (
    "pluggy",
    "pydantic",
    "pydantic_core",
    "importlib_metadata",
    "docstring_parser",
    "jsonschema",
    "openai",
    "anthropic",
    "httpx2",
    "httpx",
)


def fresh(code: str) -> str:
    """Run code in a new interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def loaded_after(code: str) -> set[str]:
    """Return the modules that code adds to those of a bare interpreter."""
    report = (
        "import sys\nbefore = set(sys.modules)\n"
        f"{code}\nprint('\\n'.join(set(sys.modules) - before))"
    )
    return set(fresh(report).split())


def test_importing_the_core_loads_the_standard_library_only() -> None:
    """After `import lighter_core` no third-party module has been loaded."""
    loaded = loaded_after("import lighter_core")
    roots = {name.partition(".")[0] for name in loaded}
    assert "lighter_core" in roots
    assert roots - set(sys.stdlib_module_names) == {"lighter_core"}
    assert roots.isdisjoint(LATE_THIRD_PARTY)


def test_importing_the_core_loads_few_modules_of_its_own() -> None:
    """The core stays small at import."""
    loaded = loaded_after("import lighter_core")
    own = {n for n in loaded if n.partition(".")[0] == "lighter_core"}
    assert 1 < len(own) <= 45


def test_an_agent_without_tools_and_plugins_needs_no_third_party_module() -> None:
    """Running a plain agent with a hook object loads neither pluggy nor pydantic."""
    loaded = loaded_after(
        "import lighter_core\n"
        "from lighter_core.testing import FakeProvider\n"
        "hook = lighter_core.BeforeModelHook(hook_name='h', hook_function=lambda r: r)\n"
        "agent = lighter_core.Agent(FakeProvider(['hi']), hooks=[hook])\n"
        "assert agent.run_sync('x').text == 'hi'"
    )
    roots = {name.partition(".")[0] for name in loaded}
    assert roots - set(sys.stdlib_module_names) == {"lighter_core"}


def test_late_names_load_pluggy_when_first_used() -> None:
    """`hookimpl`, `Registry` and `PLUGIN_API` are there, loaded on first use."""
    loaded = loaded_after("from lighter_core import hookimpl, Registry, PLUGIN_API")
    assert "pluggy" in loaded
    assert "importlib_metadata" not in loaded


def test_star_import_gives_every_exported_name() -> None:
    """`from lighter_core import *` works and binds exactly `__all__`."""
    code = (
        "import lighter_core\nspace = {}\n"
        "exec('from lighter_core import *', space)\n"
        "print(sorted(set(space) - {'__builtins__'}) == sorted(lighter_core.__all__))"
    )
    assert fresh(code).strip() == "True"


def test_all_is_sorted_and_without_doubles() -> None:
    """`__all__` follows the order that the linter sorts to: constants, classes, rest."""
    names = list(lighter_core.__all__)
    assert len(set(names)) == len(names)

    def kind(name: str) -> int:
        if name.isupper():
            return 0
        return 1 if name[0].isupper() else 2

    assert names == sorted(names, key=lambda name: (kind(name), name))
    assert set(names) <= set(dir(lighter_core))


@pytest.mark.parametrize("module", sorted(NOT_EXPORTED))
def test_public_names_of_a_module_are_exported(module: str) -> None:
    """A name in a public module's `__all__` is exported, or listed as kept inside."""
    public = set(importlib.import_module(f"lighter_core.{module}").__all__)
    assert public - set(lighter_core.__all__) == NOT_EXPORTED[module]


def test_exported_names_have_a_home() -> None:
    """Every exported name stands in the `__all__` of the module that holds it."""
    homes: set[str] = set()
    for module in NOT_EXPORTED:
        homes |= set(importlib.import_module(f"lighter_core.{module}").__all__)
    assert set(lighter_core.__all__) <= homes


def test_classes_name_the_public_place() -> None:
    """Tracebacks say `lighter_core.Agent`, not where the class is written."""
    assert lighter_core.Agent.__module__ == "lighter_core"
    assert lighter_core.ModelError.__module__ == "lighter_core"


def test_unknown_attribute_is_an_attribute_error() -> None:
    """The late names do not hide a typing mistake."""
    with pytest.raises(AttributeError, match="no attribute 'Agnet'"):
        _ = lighter_core.Agnet  # type: ignore[attr-defined]


# The layers.


def _name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def _modules() -> dict[str, Path]:
    return {_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def _known(parts: list[str], modules: dict[str, Path]) -> str | None:
    """Return the module that a dotted place inside the package stands for."""
    name = ".".join(parts)
    if name in modules:
        return name
    package = ".".join([*parts, "__init__"])
    return package if package in modules else None


def _imports(name: str, path: Path, modules: dict[str, Path]) -> set[str]:
    """Return the modules of the package that a module imports, wherever it does."""
    package = name.split(".")[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith("lighter_core"), (
                    f"{name}: {alias.name}"
                )
        if not isinstance(node, ast.ImportFrom):
            continue
        if not node.level:
            assert not (node.module or "").startswith("lighter_core"), name
            continue
        base = package[: len(package) - node.level + 1]
        base = [*base, *(node.module.split(".") if node.module else [])]
        for alias in node.names:
            target = _known([*base, alias.name], modules) or _known(base, modules)
            assert target is not None, f"{name} imports from an unknown place {base}"
            found.add(target)
    return found


@functools.cache
def _graph() -> dict[str, set[str]]:
    modules = _modules()
    return {name: _imports(name, path, modules) for name, path in modules.items()}


def test_every_module_has_a_layer() -> None:
    """A new module must be given its place."""
    assert set(_modules()) == {*LAYERS, *FACADES}


@pytest.mark.parametrize("module", sorted(LAYERS))
def test_module_imports_only_its_own_or_lower_layers(module: str) -> None:
    """Late imports and those for type checkers count too."""
    for target in _graph()[module]:
        assert target not in FACADES, f"{module} imports the façade {target}"
        assert LAYERS[target] <= LAYERS[module], f"{module} imports {target} above it"


def test_modules_of_one_layer_import_each_other_without_a_cycle() -> None:
    """With the rule about layers, no import can ever run in a circle."""
    graph = _graph()
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail, name])
        if name in done:
            return
        for target in sorted(graph[name] - FACADES):
            visit(target, (*trail, name))
        done.add(name)

    for name in sorted(LAYERS):
        visit(name, ())
    assert done == set(LAYERS)


def test_only_one_module_reads_package_metadata() -> None:
    """importlib_metadata changes the whole process, so one late import is all."""
    users = {
        name
        for name, path in _modules().items()
        if "import importlib_metadata" in path.read_text(encoding="utf-8")
    }
    assert users == {"plugins._metadata"}


def test_the_architecture_page_has_the_same_layers() -> None:
    """The page and this test tell one story."""
    page = Path(__file__).parents[2] / "docs" / "architecture.md"
    told: dict[str, int] = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        row = re.match(r"\| (\d) \| (`.+?) \|", line)
        if row is None:
            continue
        for name in re.findall(r"`([^`]+)`", row[2]):
            inside = name.endswith("/")
            for module in LAYERS:
                if module == name or (inside and module.startswith(f"{name[:-1]}.")):
                    told[module] = int(row[1])
    assert told == LAYERS
