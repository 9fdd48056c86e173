"""Installed plugins, good and bad: found by name, loaded alone, never in silence."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from lighter_core import (
    Agent,
    HookError,
    IncompatiblePluginError,
    Model,
    PluginConflictError,
    PluginError,
    PluginLoadError,
    PluginNotFoundError,
    Registry,
    ToolCall,
    ToolDefinitionError,
    hookimpl,
)
from lighter_core.plugins import registry as registry_module
from lighter_core.plugins._entries import FIRST_PARTY
from lighter_core.testing import FakeProvider, Turn

from .conftest import PROVIDER, Lab

TOOLS = """
    from lighter_core import hookimpl, tool

    @tool
    def shout(text: str) -> str:
        "Shout."
        return text.upper()

    @hookimpl
    def get_tools():
        return [shout]
"""

HOOKS = """
    from dataclasses import replace
    from lighter_core import hookimpl, SystemMessage

    calls = []

    @hookimpl
    def before_model(request):
        calls.append("before_model")
        return replace(request, messages=[*request.messages, SystemMessage("hooked")])

    @hookimpl
    async def after_model(run, message):
        calls.append(("after_model", run.model_calls))

    @hookimpl
    def after_agent():
        calls.append("after_agent")
"""

# Good plugins.


async def test_provider_plugin_is_used_by_its_name(lab: Lab) -> None:
    """`Model.from_name` and `Agent("name:model")` reach the installed provider."""
    lab.dist("acme", {"providers": {"acme": "acme_provider"}})
    lab.module("acme_provider", PROVIDER)
    model = Model.from_name("acme", model_id="m:1", api_key="k", extra=3)
    assert (await Agent(model).run("hello")).text == "hello"
    assert (await Agent("acme:m:2").run("hello")).text == "hello"
    seen = sys.modules["acme_provider"].seen
    assert seen == [
        ("acme", {"model_id": "m:1", "api_key": "k", "extra": 3}),
        ("acme", {"model_id": "m:2"}),
    ]


async def test_tools_and_hooks_plugins_are_used_by_their_names(lab: Lab) -> None:
    """Sync and async @hookimpl functions with any subset of the arguments run."""
    lab.dist(
        "acme",
        {"tools": {"acme-tools": "acme_tools"}, "hooks": {"audit": "acme_hooks"}},
    )
    lab.module("acme_tools", TOOLS)
    lab.module("acme_hooks", HOOKS)
    turn = Turn(tool_calls=[ToolCall("c", "shout", '{"text": "hi"}')])
    provider = FakeProvider([turn, "ok"])
    response = await Agent(provider, tools=["acme-tools"], hooks=["audit"]).run("go")
    assert response.messages[1].tool_output == '"HI"'  # type: ignore[union-attr]
    assert [r.messages[-1].content for r in provider.requests] == ["hooked"] * 2  # type: ignore[union-attr]
    assert sys.modules["acme_hooks"].calls == [
        "before_model", ("after_model", 1), "before_model", ("after_model", 2), "after_agent",
    ]  # fmt: skip


def test_entry_point_may_name_an_object_with_extras(lab: Lab) -> None:
    """KF-118: `module:object.attribute [extra]` loads the object."""
    lab.dist("acme", {"providers": {"acme": "acme_object:Space.plugin [all]"}})
    lab.module(
        "acme_object",
        PROVIDER[: PROVIDER.index("    @hookimpl")]
        + """
    class Plugin:
        @hookimpl
        def create_provider(self, name, options):
            return Echo()

    class Space:
        plugin = Plugin()
""",
    )
    assert Model.from_name("acme").provider.name == "echo"


def test_one_module_may_serve_several_names(lab: Lab) -> None:
    """KF-115: one module under two names and two kinds is loaded once, without a crash."""
    lab.dist(
        "acme",
        {
            "providers": {"a": "acme_multi", "b": "acme_multi"},
            "tools": {"a": "acme_multi"},
        },
    )
    lab.module("acme_multi", PROVIDER + textwrap.dedent(TOOLS).replace("\n", "\n    "))
    for name in ("a", "b", "a"):
        assert Model.from_name(name).provider.name == "echo"
    assert [name for name, _ in sys.modules["acme_multi"].seen] == ["a", "b", "a"]
    assert [t.name for t in Agent(FakeProvider(), tools=["a"]).tools] == ["shout"]


# Nothing happens until a plugin is named.


def test_plugins_do_nothing_until_they_are_named(lab: Lab) -> None:
    """Installed hooks and tools take no part in an agent that does not name them."""
    lab.dist("acme", {"tools": {"t": "acme_tools"}, "hooks": {"h": "acme_hooks"}})
    lab.module("acme_tools", TOOLS)
    lab.module("acme_hooks", HOOKS)
    agent = Agent(FakeProvider(["x"]))
    assert agent.run_sync("go").text == "x"
    assert agent.tools == ()
    assert not {"acme_tools", "acme_hooks"} & set(sys.modules)


def test_discovery_imports_nothing(lab: Lab) -> None:
    """KF-118: names, values, distributions and versions, read from metadata alone."""
    lab.dist("Acme_Plugins", {"providers": {"acme": "boom"}, "hooks": {"h": "boom:x"}})
    lab.module("boom", "raise SystemExit(3)")
    found = [e for e in Registry().discover() if e.dist == "acme-plugins"]
    assert [(e.kind, e.name, e.value, e.version) for e in found] == [
        ("hooks", "h", "boom:x", "1.0"),
        ("providers", "acme", "boom", "1.0"),
    ]
    assert "boom" not in sys.modules
    assert all(e.kind == "tools" for e in Registry().discover("tools"))
    with pytest.raises(ValueError, match="kind must be one of"):
        Registry().discover("nonsense")


def test_options_reach_no_other_plugin(lab: Lab) -> None:
    """The key is seen by the one plugin that was asked for."""
    lab.dist("acme", {"providers": {"a": "plugin_a"}})
    lab.dist("bcme", {"providers": {"b": "plugin_b"}})
    lab.module("plugin_a", PROVIDER)
    lab.module("plugin_b", PROVIDER)
    Model.from_name("b")
    Model.from_name("a", api_key="secret")
    assert sys.modules["plugin_b"].seen == [("b", {})]
    assert sys.modules["plugin_a"].seen == [("a", {"api_key": "secret"})]


# Broken plugins (KF-113).

BROKEN = {
    "ImportError": "import no_such_module_here",
    "SyntaxError": "def (",
    "exception": "raise ValueError('at import')",
    "SystemExit": "raise SystemExit(3)",
    "AttributeError": "x = 1",
    "no plugin": "x = 1",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_plugin_is_one_clear_error_and_harms_no_other(
    lab: Lab, kind: str
) -> None:
    """KF-113: the error names plugin, distribution, version and cause."""
    value = "broken:missing" if kind == "AttributeError" else "broken"
    lab.dist("broken-dist", {"providers": {"broken": value}}, version="2.3")
    lab.dist("acme", {"providers": {"good": "good_plugin"}})
    lab.module("broken", BROKEN[kind])
    lab.module("good_plugin", PROVIDER)
    assert Model.from_name("good").provider.name == "echo"
    for _ in range(2):
        with pytest.raises(PluginLoadError) as caught:
            Model.from_name("broken")
        assert (caught.value.name, caught.value.dist) == ("broken", "broken-dist")
        assert "broken-dist 2.3" in str(caught.value)
        if kind != "no plugin":
            assert (
                kind in str(caught.value)
                or "ModuleNotFoundError" in str(caught.value)
                or "ValueError: at import" in str(caught.value)
            )
        assert caught.value.__cause__ is not None
    assert Model.from_name("good").provider.name == "echo"


def test_interrupt_while_a_plugin_is_imported_passes(lab: Lab) -> None:
    """KeyboardInterrupt is the user's, not the plugin's."""
    lab.dist("acme", {"providers": {"acme": "interrupted"}})
    lab.module("interrupted", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        Model.from_name("acme")


BAD_HOOKS = {
    "misspelled": (
        "@hookimpl\ndef befor_model(request): ...",
        "did you mean before_model",
    ),
    "wrong argument": ("@hookimpl\ndef before_model(req): ...", "takes 'req'"),
    "default": ("@hookimpl\ndef before_model(request=None): ...", "a default"),
    "star": ("@hookimpl\ndef before_model(*request): ...", "plain arguments"),
    "keyword only": ("@hookimpl\ndef before_model(*, request): ...", "plain arguments"),
    "unmarked": ("def before_model(request): ...", "is not marked"),
    "unmarked beside a good one": (
        "@hookimpl\ndef after_model(message): ...\ndef before_model(request): ...",
        "before_model of plugin 'bad' is not marked",
    ),
    "unmarked callable object": (
        "import functools as f\nbefore_model = f.partial(print)\n@hookimpl\ndef after_model(): ...",
        "is not marked",
    ),
    "generator": ("@hookimpl\ndef before_model(request): yield", "is a generator"),
    "wrapper": (
        "@hookimpl(wrapper=True)\ndef before_model(request):\n return (yield)",
        "wrapper",
    ),
    "tryfirst": (
        "@hookimpl(tryfirst=True)\ndef before_model(request): ...",
        "tryfirst",
    ),
    "nothing": ("x = 1", "implements none of"),
}


@pytest.mark.parametrize("kind", BAD_HOOKS)
def test_hooks_plugin_that_would_silently_not_run_is_refused(
    lab: Lab, kind: str
) -> None:
    """Design section 4: whatever pluggy would skip or misread is an error by name."""
    source, words = BAD_HOOKS[kind]
    lab.dist("bad-dist", {"hooks": {"bad": "bad_hooks"}})
    lab.module("bad_hooks", "from lighter_core import hookimpl\n" + source)
    with pytest.raises(PluginLoadError, match=r"bad-dist 1.0") as caught:
        Agent(FakeProvider(), hooks=["bad"])
    assert words in str(caught.value)


BAD_PROVIDERS = {
    "wrong argument": "@hookimpl\ndef create_provider(name, opts): ...",
    "async": "@hookimpl\nasync def create_provider(name, options): ...",
    "hooks only": "@hookimpl\ndef before_model(request): ...",
}


@pytest.mark.parametrize("kind", BAD_PROVIDERS)
def test_provider_plugin_that_cannot_work_is_refused(lab: Lab, kind: str) -> None:
    """An async factory would never be awaited: refused when loaded."""
    lab.dist("bad-dist", {"providers": {"bad": "bad_provider"}})
    lab.module(
        "bad_provider", "from lighter_core import hookimpl\n" + BAD_PROVIDERS[kind]
    )
    with pytest.raises(PluginLoadError, match="bad-dist"):
        Model.from_name("bad")


@pytest.mark.parametrize("made", ["None", "3", "object()", "dict"])
def test_provider_plugin_that_makes_no_provider_is_an_error(
    lab: Lab, made: str
) -> None:
    """The error says what was made and what a provider needs."""
    lab.dist("acme", {"providers": {"acme": "makes_nothing"}})
    lab.module(
        "makes_nothing",
        f"from lighter_core import hookimpl\n@hookimpl\ndef create_provider(): return {made}",
    )
    with pytest.raises(PluginError, match="no Provider"):
        Model.from_name("acme")


def test_exception_of_a_factory_passes_unchanged(lab: Lab) -> None:
    """A provider's own complaint about its options reaches the application."""
    lab.dist("acme", {"providers": {"acme": "picky"}})
    lab.module(
        "picky",
        "from lighter_core import hookimpl\n@hookimpl\ndef create_provider(options):\n"
        "    raise TypeError('unknown option ' + ', '.join(options))",
    )
    with pytest.raises(TypeError, match="unknown option nonsense"):
        Model.from_name("acme", nonsense=1)


@pytest.mark.parametrize("given", ["None", "3", "[1]", "'text'", "[print]"])
def test_tools_plugin_that_gives_no_tools_is_an_error(lab: Lab, given: str) -> None:
    """Neither a crash in the middle nor silently no tools."""
    lab.dist("acme", {"tools": {"acme": "gives_nothing"}})
    lab.module(
        "gives_nothing",
        f"from lighter_core import hookimpl\n@hookimpl\ndef get_tools(): return {given}",
    )
    with pytest.raises(PluginError, match="'acme'"):
        Agent(FakeProvider(), tools=["acme"])


# Versions of the interface (KF-117).


@pytest.mark.parametrize("value", ["acme_v", "acme_v:plugin"])
@pytest.mark.parametrize("api", ["2", "0", "'1'", "None"])
def test_plugin_for_another_interface_is_refused(
    lab: Lab, value: str, api: str
) -> None:
    """KF-117: one line with both versions, also for an object of a marked module."""
    lab.dist("acme", {"providers": {"acme": value}})
    lab.module(
        "acme_v",
        PROVIDER
        + f"""
    PLUGIN_API = {api}

    class Plugin:
        @hookimpl
        def create_provider(self):
            return Echo()

    plugin = Plugin()
""",
    )
    with pytest.raises(IncompatiblePluginError, match=r"acme 1.0") as caught:
        Model.from_name("acme")
    assert api in str(caught.value)
    assert "\n" not in str(caught.value)


def test_plugin_for_this_interface_loads(lab: Lab) -> None:
    """`PLUGIN_API = 1` and no PLUGIN_API mean the same."""
    lab.dist("acme", {"providers": {"acme": "acme_one"}})
    lab.module("acme_one", PROVIDER + "\n    PLUGIN_API = 1\n")
    assert Model.from_name("acme").provider.name == "echo"


# Conflicts (KF-084, KF-114).


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_one_name_served_by_two_distributions_is_an_error(
    lab: Lab, order: tuple[str, str]
) -> None:
    """KF-114: both are named, independent of the order on the path; `dist=` chooses."""
    for each in order:
        lab.dist(f"acme-{each}", {"providers": {"same": f"same_{each}"}}, at=each)
        lab.module(f"same_{each}", PROVIDER, at=each)
    with pytest.raises(PluginConflictError) as caught:
        Model.from_name("same")
    assert "acme-one 1.0, acme-two 1.0" in str(caught.value)
    assert not {"same_one", "same_two"} & set(sys.modules)
    Model.from_name("same", dist="Acme_Two")
    assert "same_one" not in sys.modules
    assert len(sys.modules["same_two"].seen) == 1
    with pytest.raises(PluginNotFoundError, match="these do: acme-one, acme-two"):
        Model.from_name("same", dist="acme-three")


def test_the_page_names_all_reserved_names() -> None:
    """Whoever publishes a plugin reads there what is taken."""
    page = Path(__file__).parents[2] / "docs" / "plugins.md"
    listed = page.read_text("utf-8").partition("**Reserved names** are")[2]
    names = re.findall(r"`([^`]+)`", listed.partition("in any spelling")[0])
    assert names == sorted(FIRST_PARTY)


def test_an_unknown_provider_brings_up_no_package_that_is_there() -> None:
    """The core has said it, so it is installed."""
    with pytest.raises(PluginNotFoundError, match="lighter-openai") as caught:
        Registry().resolve("providers", "xyzzy")
    assert "lighter-core" not in str(caught.value)


def test_a_name_in_the_wrong_list_is_told(lab: Lab) -> None:
    """As the provider, among the tools, among the hooks."""
    lab.dist("acme", {"tools": {"acme-books": "acme"}, "hooks": {"acme-audit": "acme"}})
    echo = FakeProvider([])
    with pytest.raises(PluginNotFoundError, match=r"of a hooks plugin: use hooks=\["):
        Agent(echo, tools=["acme-audit"])
    with pytest.raises(PluginNotFoundError, match=r"of a tools plugin: use tools=\["):
        Agent(echo, hooks=["acme-books"])
    with pytest.raises(PluginNotFoundError, match=r"of a provider: use Agent\('"):
        Agent(echo, tools=["openai"])


@pytest.mark.parametrize("name", ["claude", "deepseek", "openai"])
def test_squatted_first_party_name_needs_an_explicit_choice(
    lab: Lab, name: str
) -> None:
    """A foreign distribution that serves a name of Lighter's own is not trusted alone."""
    lab.dist("evil", {"providers": {name: "evil_module"}})
    lab.module("evil_module", PROVIDER)
    alone = Registry(block=[f"lighter-{name}"])
    with pytest.raises(
        PluginConflictError, match=f"belongs to lighter-{name}"
    ) as caught:
        alone.create_provider(name, {"api_key": "secret"})
    assert "evil" in str(caught.value)
    assert "evil_module" not in sys.modules
    assert alone.create_provider(name, {}, dist="evil").name == "echo"


def test_squatted_name_beside_the_real_one_is_a_conflict(lab: Lab) -> None:
    """The first-party distribution does not win silently either."""
    lab.dist("evil", {"providers": {"openai": "evil_module"}})
    lab.module("evil_module", PROVIDER)
    with pytest.raises(PluginConflictError, match=r"evil 1.0, lighter-openai"):
        Model.from_name("openai", api_key="secret", model_id="m")
    assert "evil_module" not in sys.modules


def test_two_tools_plugins_with_one_tool_are_an_error(lab: Lab) -> None:
    """KF-084: duplicates are never dropped; the error names both sources."""
    lab.dist("acme", {"tools": {"t1": "tools_one"}})
    lab.dist("bcme", {"tools": {"t2": "tools_two"}})
    lab.module("tools_one", TOOLS)
    lab.module("tools_two", TOOLS)
    with pytest.raises(ToolDefinitionError, match=r"'t1' of acme .*'t2' of bcme"):
        Agent(FakeProvider(), tools=["t1", "t2"])


# Metadata (KF-118).


def test_corrupt_distributions_do_not_hide_good_ones(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """KF-113: each distribution is read in its own guard."""
    lab.dist("corrupt-a", "[lighter.providers\nx = = y\n[[")
    lab.dist("corrupt-b", "[lighter.providers]\nno value here\n")
    lab.dist("corrupt-c", {"providers": {"c": "c"}}, metadata="")
    lab.dist("corrupt-d", {"providers": {"d": "d"}}, metadata="nonsense")
    binary = lab.dist("corrupt-e", "")
    (binary / "entry_points.txt").write_bytes(b"[lighter.providers]\nx = \xff\xfe\n")
    lab.dist("acme", {"providers": {"acme": "acme_provider"}})
    lab.module("acme_provider", PROVIDER)
    lab.rescan()
    with caplog.at_level(logging.WARNING, "lighter"):
        assert Model.from_name("acme").provider.name == "echo"
    for dist, words in {
        "corrupt_b": "no entry point: 'no value here'",
        "corrupt_c": "metadata cannot be read",
        "corrupt_d": "has no name",
        "corrupt_e": "cannot be read: UnicodeDecodeError",
    }.items():
        assert any(
            dist in each.getMessage() and words in each.getMessage()
            for each in caplog.records
        ), dist


def test_stale_second_copy_of_a_distribution_is_ignored(lab: Lab) -> None:
    """KF-118: of two copies the first on the path counts, as for imports."""
    old = {"acme": "acme_old", "gone": "acme_old"}
    lab.dist("acme", {"providers": old}, version="1.0", at="old")
    lab.dist("ACME", {"providers": {"acme": "acme_new"}}, version="2.0", at="new")
    lab.module("acme_new", PROVIDER, at="new")
    lab.module("acme_old", "raise ValueError('stale')", at="old")
    assert Model.from_name("acme").provider.name == "echo"
    found = [e for e in Registry().discover() if e.dist == "acme"]
    assert [(e.name, e.version) for e in found] == [("acme", "2.0")]


def test_two_hundred_other_distributions_are_no_trouble(lab: Lab) -> None:
    """KF-118: unrelated ones are skipped; the scan happens once for the process."""
    for number in range(200):
        lab.dist(f"other-{number}", "[console_scripts]\nx = y:z\n")
    lab.dist("acme", {"providers": {"acme": "acme_provider"}})
    lab.module("acme_provider", PROVIDER)
    assert Model.from_name("acme").provider.name == "echo"
    scanned = registry_module._scanned
    assert scanned is not None
    assert not [e for e in scanned.plugins if e.dist.startswith("other-")]
    Model.from_name("acme")
    assert registry_module._scanned is scanned


# Switches.


@pytest.mark.parametrize("by", ["variable", "argument"])
def test_distributions_can_be_blocked_or_allowed(
    lab: Lab, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KF-118: by environment or by registry; names are normalised; nothing is imported."""
    lab.dist("acme-plugins", {"providers": {"acme": "acme_provider"}})
    lab.module("acme_provider", PROVIDER)

    def made(kind: str, value: str) -> Registry:
        if by == "argument":
            names = [each.strip() for each in value.split(",") if each.strip()]
            return Registry(**{kind: names})  # type: ignore[arg-type]
        monkeypatch.delenv("LIGHTER_PLUGINS_ALLOW", raising=False)
        monkeypatch.delenv("LIGHTER_PLUGINS_BLOCK", raising=False)
        monkeypatch.setenv(f"LIGHTER_PLUGINS_{kind.upper()}", value)
        return Registry()

    for kind, value in (
        ("block", "other, Acme.Plugins"),
        ("block", "acme__plugins"),
        ("allow", "other"),
        ("allow", ""),
    ):
        registry = made(kind, value)
        source = f"LIGHTER_PLUGINS_{kind.upper()}"
        if by == "argument":
            source = rf"Registry\({kind}=…\)"
        with pytest.raises(PluginNotFoundError, match=f"1.0 is blocked by {source}"):
            registry.create_provider("acme", {})
        [entry] = [e for e in registry.discover() if e.dist == "acme-plugins"]
        assert entry.state == "blocked"
        assert "blocked by" in entry.reason
    assert "acme_provider" not in sys.modules
    for kind, value in (("allow", "ACME_plugins"), ("block", "other")):
        assert made(kind, value).create_provider("acme", {}).name == "echo"


def test_registry_without_a_scan_knows_only_its_own(lab: Lab) -> None:
    """`scan=False` never looks at installed distributions."""
    lab.dist("acme", {"providers": {"acme": "acme_provider"}})
    assert Registry(scan=False).discover() == []
    with pytest.raises(PluginNotFoundError, match="installed: none"):
        Registry(scan=False).create_provider("acme", {})


# Plugins of the application.


class Own:
    """An application's provider plugin."""

    def __init__(self) -> None:
        self.provider = FakeProvider(["x"] * 9, name="own")

    @hookimpl
    def create_provider(self, name: str) -> FakeProvider:
        return self.provider


def test_application_plugins_are_registered_and_go_first(lab: Lab) -> None:
    """KF-115: registering twice is fine, another object under the name is not."""
    lab.dist("acme", {"providers": {"acme": "acme_provider"}})
    lab.module("acme_provider", PROVIDER)
    registry, own = Registry(), Own()
    registry.register(own, name="acme")
    registry.register(own, name="acme")
    registry.register(own, name="other")
    assert registry.create_provider("acme", {}) is own.provider
    assert registry.create_provider("other", {}) is own.provider
    assert registry.create_provider("acme", {}, dist="acme").name == "echo"
    with pytest.raises(PluginConflictError, match="registered already"):
        registry.register(Own(), name="acme")
    with pytest.raises(HookError, match="implements none of get_tools"):
        registry.register(own, name="acme", kind="tools")
    with pytest.raises(HookError, match="is a class"):
        registry.register(Own, name="klass")
    with pytest.raises(ValueError, match="kind must be one of"):
        registry.register(own, name="x", kind="nonsense")


def test_module_is_installed_and_registered_without_a_crash(lab: Lab) -> None:
    """KF-115: the same module by entry point and by the application."""
    lab.dist("acme", {"providers": {"acme": "acme_provider"}})
    lab.module("acme_provider", PROVIDER)
    Model.from_name("acme")
    registry_module.default_registry().register(
        sys.modules["acme_provider"], name="acme"
    )
    Model.from_name("acme")
    assert len(sys.modules["acme_provider"].seen) == 2


def test_many_threads_load_one_plugin_once(lab: Lab) -> None:
    """The module is imported once; all get their provider."""
    lab.dist("acme", {"providers": {"acme": "slow_plugin"}})
    lab.module(
        "slow_plugin", "import time\ntime.sleep(0.05)\n" + textwrap.dedent(PROVIDER)
    )
    made: list[Any] = []
    threads = [
        threading.Thread(target=lambda: made.append(Model.from_name("acme")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(sys.modules["slow_plugin"].seen) == 8


# Names and texts.


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nope", ["no provider 'nope' is installed", "openai", "pip install"]),
        ("claude", ["lighter-claude", "is blocked by LIGHTER_PLUGINS_BLOCK"]),
        ("claud", ["Did you mean 'claude'?", "pip install lighter-claude"]),
        ("opnai", ["Did you mean 'openai'?"]),
        ("OpenAI", ["no provider 'OpenAI'"]),
        ("", ["empty"]),
        (":m", ["empty"]),
    ],
)
def test_unknown_name_says_what_is_installed_and_what_to_install(
    lab: Lab, name: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence that leads on; the error is a LookupError too."""
    monkeypatch.setenv("LIGHTER_PLUGINS_BLOCK", "lighter-claude, lighter-deepseek")
    with pytest.raises(PluginNotFoundError) as caught:
        Model.from_name(name)
    assert isinstance(caught.value, LookupError)
    for each in words:
        assert each in str(caught.value)
    assert "\n" not in str(caught.value)


def test_model_id_given_twice_is_refused(lab: Lab) -> None:
    """In the name or as an argument, not both; no guessing."""
    with pytest.raises(ValueError, match="given twice"):
        Model.from_name("openai:a", model_id="b")


def test_unknown_tools_and_hooks_plugins_are_named(lab: Lab) -> None:
    """Typos in an agent's lists fail at construction."""
    with pytest.raises(PluginNotFoundError, match="no tools plugin 'nope'"):
        Agent(FakeProvider(), tools=["nope"])
    with pytest.raises(PluginNotFoundError, match="no hooks plugin 'nope'"):
        Agent(FakeProvider(), hooks=["nope"])


# Plugin objects given directly.


def test_hook_objects_that_would_not_run_are_refused() -> None:
    """Classes, objects without a hook, the same or an equal one twice."""
    from dataclasses import dataclass

    class Good:
        @hookimpl
        def before_model(self, request: Any) -> None: ...

    @dataclass(frozen=True)
    class Equal:
        number: int

        @hookimpl
        def before_model(self, request: Any) -> None: ...

    good = Good()
    for hooks in ([Good], [object()], [3], [good, good], [Equal(1), Equal(1)], [len]):
        with pytest.raises(HookError):
            Agent(FakeProvider(), hooks=hooks)
    Agent(FakeProvider(), hooks=[good, Good(), Equal(1), Equal(2)])


async def test_unhashable_static_and_class_methods_work_as_hooks() -> None:
    """Whatever carries a marked function runs, in the order of the list."""
    log: list[str] = []

    class Unhashable(dict[str, int]):
        @hookimpl
        def before_model(self, request: Any) -> None:
            log.append("unhashable")

    class Static:
        @staticmethod
        @hookimpl
        def before_model(request: Any) -> None:
            log.append("static")

        @classmethod
        @hookimpl
        def after_model(cls, message: Any) -> None:
            log.append("classmethod")

    class Renamed:
        @hookimpl(specname="before_model")
        async def anything(self, run: Any) -> None:
            log.append("renamed")

    hooks = [Unhashable(), Static(), Renamed()]
    assert (await Agent(FakeProvider(["x"]), hooks=hooks).run("go")).text == "x"
    assert log == ["unhashable", "static", "renamed", "classmethod"]


# A fresh interpreter.


def test_named_provider_imports_no_other_plugin_and_no_sdk(lab: Lab) -> None:
    """`from_name("openai", …)` imports lighter_openai alone, and sends nothing."""
    lab.dist("acme", {"providers": {"acme": "boom"}, "hooks": {"openai": "boom"}})
    lab.module("boom", "raise SystemExit('imported')")
    code = """
        import sys
        from lighter_core import Model
        Model.from_name("openai", api_key="x", model_id="m")
        loaded = {name.partition(".")[0] for name in sys.modules}
        print("lighter_openai" in loaded)
        print(sorted(loaded & {"openai", "httpx2", "lighter_local", "boom", "anthropic",
                               "xllamacpp", "pydantic"}))
    """
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(lab.place("site"))},
        check=False,
    )
    assert (result.stdout, result.stderr) == ("True\n[]\n", "")
