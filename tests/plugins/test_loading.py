"""Loading from several threads, states of the application's own plugins, resolving."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest

from lighter_core import (
    Agent,
    IncompatiblePluginError,
    Model,
    PluginConflictError,
    PluginEntry,
    PluginLoadError,
    PluginNotFoundError,
    Registry,
    default_registry,
    hookimpl,
    load_hooks,
    load_tools,
)
from lighter_core.testing import FakeProvider

from .cases import GIVES, HEAD, HOOKS, MAKES
from .conftest import Lab


def install(lab: Lab, name: str, source: str, *kinds: str) -> None:
    """Install a plugin `name` whose module is `lab_<name>`."""
    module = f"lab_{name}"
    points = {name: module}
    lab.dist(f"lab-{name}", dict.fromkeys(kinds or ("providers",), points))
    lab.module(module, "").write_text(HEAD + textwrap.dedent(source), "utf-8")


def states(registry: Registry) -> dict[str, str]:
    entries = registry.discover()
    return {e.name: e.state for e in entries if e.dist.startswith("lab-") or not e.dist}


# Threads.

LOADS_ANOTHER = """
import threading
from lighter_core import default_registry
made = []
def load():
    made.append(default_registry().create_provider("inner", {}).name)
thread = threading.Thread(target=load)
thread.start()
thread.join(10)
assert made == ["echo"], "the inner plugin was not loaded within 10 seconds"
"""


@pytest.mark.timeout(60)
def test_a_plugin_may_load_another_from_a_thread_while_it_is_imported(lab: Lab) -> None:
    """No lock of the registry is held while a plugin's code runs."""
    install(lab, "inner", MAKES)
    install(lab, "outer", LOADS_ANOTHER + MAKES)
    assert Model.from_name("outer").provider.name == "echo"


WAITS_FOR_THE_OTHER = """
import time
from lighter_core import default_registry
time.sleep(0.1)
try:
    default_registry().create_provider("{other}", {{}})
except ImportError:
    pass  # the other one is half imported: a circle, as with import statements
"""


@pytest.mark.timeout(60)
def test_plugins_that_load_each_other_from_two_threads_do_not_deadlock(
    lab: Lab,
) -> None:
    """Python's import system sees the circle; afterwards both are loaded."""
    for name, other in (("left", "right"), ("right", "left")):
        install(lab, name, MAKES + WAITS_FOR_THE_OTHER.format(other=other))
    threads = [
        threading.Thread(target=lambda n=name: Model.from_name(n), daemon=True)
        for name in ("left", "right")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert Model.from_name("left").provider.name == "echo"
    assert Model.from_name("right").provider.name == "echo"


def test_threads_that_load_one_plugin_get_one_object(lab: Lab) -> None:
    """It runs once, and every thread has the same plugin."""
    install(lab, "slow", "import time\ntime.sleep(0.05)\n" + HOOKS, "hooks")
    got: list[object] = []
    registry, start = Registry(), threading.Barrier(8)

    def load() -> None:
        start.wait()
        got.append(registry.load_hooks("slow"))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [sys.modules["lab_slow"]] * 8


def test_a_slow_plugin_holds_up_no_other(lab: Lab) -> None:
    """While one is imported, others are listed and loaded."""
    wait = "import builtins\nbuiltins.lab_started.set()\nbuiltins.lab_go.wait(30)\n"
    install(lab, "slow", wait + MAKES)
    install(lab, "quick", MAKES)
    import builtins

    started, go = threading.Event(), threading.Event()
    builtins.lab_started, builtins.lab_go = started, go  # type: ignore[attr-defined]
    thread = threading.Thread(target=lambda: Model.from_name("slow"))
    thread.start()
    try:
        assert started.wait(30)
        assert Model.from_name("quick").provider.name == "echo"
        assert states(default_registry()) == {"quick": "loaded", "slow": "available"}
    finally:
        go.set()
        thread.join()
        del builtins.lab_started, builtins.lab_go  # type: ignore[attr-defined]
    assert states(default_registry()) == {"quick": "loaded", "slow": "loaded"}


# Objects of the application.


class Own:
    """An application's provider plugin."""

    @hookimpl
    def create_provider(self) -> FakeProvider:
        return FakeProvider(name="own")


def test_registered_objects_are_listed_first(lab: Lab) -> None:
    """Their entries have no distribution; a registry without a scan has them alone."""
    install(lab, "acme", MAKES)
    registry = Registry()
    registry.register(Own(), name="acme")
    entry = PluginEntry("providers", "acme", "", "", "", "registered")
    assert registry.discover("providers")[0] == entry
    assert registry.resolve("providers", "acme") == entry
    assert registry.resolve("providers", "acme", dist="lab-acme").state == "available"
    alone = Registry(scan=False)
    alone.register(Own(), name="acme")
    assert alone.discover() == [entry]
    assert alone.discover("hooks") == []
    with pytest.raises(PluginNotFoundError, match="installed: acme"):
        alone.create_provider("acme2", {})


def test_registered_object_for_another_interface_is_refused() -> None:
    """It is told from `PLUGIN_API`, as for installed ones."""
    own = Own()
    own.PLUGIN_API = 2  # type: ignore[attr-defined]
    with pytest.raises(IncompatiblePluginError, match="interface 2") as caught:
        Registry(scan=False).register(own, name="own")
    assert "registered provider 'own'" in str(caught.value)


def test_errors_of_registered_objects_name_them() -> None:
    """There is no distribution to name."""

    class Nothing:
        @hookimpl
        def create_provider(self) -> None: ...

        @hookimpl
        def get_tools(self) -> int:
            return 3

    registry = Registry(scan=False)
    registry.register(Nothing(), name="own")
    with pytest.raises(Exception, match="the registered provider 'own' made None"):
        registry.create_provider("own", {})
    registry.register(Nothing(), name="own", kind="tools")
    with pytest.raises(Exception, match="the registered tools plugin 'own' gave int"):
        registry.load_tools("own")


# Resolving.


def test_resolving_imports_nothing(lab: Lab) -> None:
    """Every outcome of a name is known from metadata alone."""
    install(lab, "boom", "raise SystemExit(3)")
    lab.dist("lab-evil", {"providers": {"OpenAI": "lab_boom"}})
    lab.dist("lab-also", {"providers": {"boom2": "lab_boom"}})
    registry = Registry(block=["lab-also"])
    assert registry.resolve("providers", "boom").dist == "lab-boom"
    assert registry.resolve("providers", "OpenAI", dist="Lab.Evil").value == "lab_boom"
    with pytest.raises(PluginConflictError, match="belongs to lighter-openai"):
        registry.resolve("providers", "OpenAI")
    with pytest.raises(PluginNotFoundError, match=r"blocked by Registry\(block"):
        registry.resolve("providers", "boom2")
    with pytest.raises(PluginNotFoundError, match=r"blocked by Registry\(block"):
        registry.resolve("providers", "boom2", dist="lab-also")
    with pytest.raises(PluginNotFoundError, match="'lab-other' serves no provider"):
        registry.resolve("providers", "boom", dist="lab-other")
    with pytest.raises(PluginNotFoundError, match="serves no provider"):
        registry.resolve("providers", "boom", dist="")
    with pytest.raises(ValueError, match="kind must be one of"):
        registry.resolve("provider", "boom")
    assert "lab_boom" not in sys.modules


def test_blocking_the_others_settles_a_conflict(lab: Lab) -> None:
    """Block and allow lists come before the search; the entry says who blocked it."""
    for name in ("one", "two"):
        lab.dist(f"lab-{name}", {"hooks": {"same": "lab_hooks"}})
    lab.module("lab_hooks", "").write_text(HEAD + HOOKS, "utf-8")
    registry = Registry(block=["lab-two"])
    assert registry.resolve("hooks", "same").dist == "lab-one"
    registry = Registry(allow=["lab-two"])
    entries = [e for e in registry.discover("hooks") if e.name == "same"]
    assert [(e.dist, e.state, e.reason) for e in entries] == [
        ("lab-one", "blocked", "blocked by Registry(allow=…), which does not name it"),
        ("lab-two", "available", ""),
    ]
    assert registry.load("hooks", "same") is sys.modules["lab_hooks"]


def test_load_tools_and_load_hooks_of_the_package(lab: Lab) -> None:
    """The functions are those of the default registry."""
    install(lab, "both", GIVES + HOOKS, "tools", "hooks")
    tools: Any = load_tools("both", dist="lab-both")
    assert [tool.name for tool in tools] == ["shout"]
    assert load_hooks("both") is sys.modules["lab_both"]
    agent = Agent(FakeProvider(["ok"]), tools=tools, hooks=[load_hooks("both")])
    assert agent.run_sync("go").text == "ok"
    with pytest.raises(PluginNotFoundError, match="no hooks plugin 'nope'"):
        load_hooks("nope")


def test_cause_is_kept_and_the_reason_is_one_line(lab: Lab) -> None:
    """The whole traceback is the error's cause; the entry keeps no exception."""
    install(lab, "broken", "raise ValueError('x' * 9000 + '\\x1b[31m\\n')")
    with pytest.raises(PluginLoadError) as caught:
        Model.from_name("broken")
    assert isinstance(caught.value.__cause__, ValueError)
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()
    [entry] = [e for e in default_registry().discover() if e.name == "broken"]
    assert (entry.state, entry.reason) == ("failed", str(caught.value))


# A fresh interpreter.

FRESH = """
import sys
from lighter_core import Model, Registry
entries = Registry().discover()
plugins = {e.value.partition(".")[0] for e in entries} - {"lighter_core"}
print(len(plugins) >= 5, sorted(plugins & set(sys.modules)))
Model.from_name("claude", api_key="x", model_id="m")
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(plugins & loaded))
print(sorted(loaded & {"anthropic", "openai", "httpx2", "httpx", "xllamacpp", "pydantic", "jiter"}))
"""


def test_a_named_provider_is_the_one_plugin_imported_and_no_sdk_is(lab: Lab) -> None:
    """Listing imports none of them; `from_name("claude")` imports lighter_claude."""
    kinds = ("providers", "tools", "hooks")
    lab.dist("lab-boom", {kind: {"boom": "boom"} for kind in kinds})
    lab.module("boom", "raise SystemExit('imported')")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FRESH],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(lab.place("site"))},
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout == "True []\n['lighter_claude']\n[]\n"


BESIDE_CORRUPT = """
import logging
records = []
handler = logging.Handler()
handler.emit = lambda record: records.append(record.getMessage())
logging.getLogger("lighter").addHandler(handler)
from lighter_core import Agent
from lighter_core.testing import FakeProvider
{first}
from lighter_core import tool
@tool
def shout(text: str) -> str:
    "Shout."
    return text.upper()
agent = Agent(FakeProvider(['{{"result": 3}}'] * 2), tools=[shout])
print(agent.run_sync("go", output=int).status)
print([text for text in records if "pydantic" in text])
"""


@pytest.mark.parametrize(
    "first", ["", "Agent(FakeProvider()).run_sync('x', output=int)"]
)
def test_a_corrupt_distribution_does_not_stop_tools(lab: Lab, first: str) -> None:
    """pydantic reads all metadata too, and would fail with its first type."""
    lab.dist("lab-corrupt", "[console_scripts]\nno value here\n")
    done = subprocess.run(
        [sys.executable, "-c", BESIDE_CORRUPT.format(first=first)],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(lab.place("site"))},
    )  # fmt: skip
    assert done.stderr == ""
    assert "completed" in done.stdout
    assert "pydantic cannot read all installed metadata" in done.stdout
