"""Each plugin of the lab gives its documented result: alone, and among all the others."""

from __future__ import annotations

import json
import random
import sys

import pytest

from lighter_core import (
    Agent,
    LighterError,
    Model,
    PluginConflictError,
    PluginError,
    default_registry,
)
from lighter_core.testing import FakeProvider

from .cases import CASES, GIVES, HEAD, HOOKS, MAKES, Case
from .conftest import Lab

SECRET = "sk-lab-0123456789"


def install(lab: Lab, case: Case, *, at: str = "site") -> None:
    points: str | dict[str, dict[str, str]]
    points = {case.kind: {case.asked: case.value.format(m=case.module)}}
    if case.points is not None:
        points = ""
    metadata = case.metadata if isinstance(case.metadata, str) else None
    info = lab.dist(f"lab-{case.name}", points, metadata=metadata, at=at)
    if isinstance(case.metadata, bytes):
        (info / "METADATA").write_bytes(case.metadata)
    if isinstance(case.points, str):
        text = case.points.replace("{m}", case.module)
        (info / "entry_points.txt").write_text(text, "utf-8")
    elif case.points is not None:
        (info / "entry_points.txt").write_bytes(case.points)
    if case.source is not None:
        path = lab.module(case.module, "", at=at)
        path.write_text(HEAD + case.source, "utf-8")


def ask(case: Case) -> None:
    """Use the plugin as an application would."""
    if case.kind == "providers":
        assert Model.from_name(case.asked, api_key=SECRET).provider.name == "echo"
    elif case.kind == "tools":
        Agent(FakeProvider(), tools=[case.asked])
    else:
        agent = Agent(FakeProvider(["ok"]), hooks=[case.asked])
        assert agent.run_sync("go").text == "ok"


def state(case: Case) -> str:
    """Return the state of the case's entry; empty when there is none."""
    dist = f"lab-{case.name}"
    found = [e for e in default_registry().discover() if e.dist == dist]
    assert len(found) <= 1
    for entry in found:
        quiet = entry.state in ("available", "loaded")
        assert bool(entry.reason) != quiet
        assert "\n" not in entry.reason
        known = case.metadata is None or case.metadata == ""
        assert entry.version == ("1.0" if known else "unknown")
    return found[0].state if found else ""


def check(case: Case) -> None:
    """Ask, and hold the outcome to what the case documents; twice, to the same."""
    assert state(case) == case.before
    for _ in range(2):
        if case.error is None:
            ask(case)
        else:
            with pytest.raises(case.error) as caught:
                ask(case)
            text = str(caught.value)
            assert type(caught.value) is case.error
            for each in case.words:
                assert each in text
            assert "\n" not in text
            assert SECRET not in text
            if isinstance(caught.value, PluginError):
                named = (caught.value.kind, caught.value.name)
                assert named == (case.kind, case.asked)
                if case.before == "available":
                    assert f"lab-{case.name} 1.0" in text
                    assert caught.value.dist == f"lab-{case.name}"
            elif not isinstance(caught.value, LighterError):
                assert f"lab-{case.name} 1.0" in caught.value.__notes__[0]
    assert state(case) == case.after


def test_the_lab_is_large_enough_and_names_are_its_own() -> None:
    """At least forty distributions; each has a name."""
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({case.module for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_plugin_alone(lab: Lab, case: Case) -> None:
    """Twice in a row, with the documented state before and after."""
    if "conflict" in case.before:
        for each in CASES:
            if each.asked == case.asked:
                install(lab, each)
    else:
        install(lab, case)
    check(case)


SPY = HEAD + "seen = []\n" + "".join(
    f"@hookimpl\ndef {name}({arguments}): seen.append(('{name}', {arguments or None}))\n"
    for name, arguments in {
        "create_provider": "name, options",
        "get_tools": "",
        "before_agent": "request, run",
        "before_model": "request, run",
        "after_model": "message, run",
        "after_agent": "messages, run",
        "before_tool": "call, run",
        "after_tool": "message, run",
        "on_run_end": "response, run",
    }.items()
)  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_all_plugins_at_once_each_with_its_own_result(lab: Lab, seed: int) -> None:
    """No case stops another, in any order; a spy that nobody asked for sees nothing."""
    order = list(CASES)
    random.Random(seed).shuffle(order)
    for number, case in enumerate(order):
        install(lab, case, at=f"site-{number % 3}")
    everything = {"spy": "lab_spy"}
    lab.dist("lab-spy", dict.fromkeys(("providers", "tools", "hooks"), everything))
    lab.module("lab_spy", "").write_text(SPY, "utf-8")
    before = set(sys.modules)
    for case in order:
        assert state(case) == case.before
    assert not [name for name in set(sys.modules) - before if name.startswith("lab_")]
    random.Random(seed + 100).shuffle(order)
    for case in order:
        check(case)
    assert "lab_spy" not in sys.modules  # it was never even imported
    assert default_registry().load("hooks", "spy") is sys.modules["lab_spy"]
    for case in order:  # and once it is loaded, it still sees nothing of the others
        if case.error is None:
            ask(case)
    assert sys.modules["lab_spy"].seen == []
    with pytest.raises(PluginError, match="made None"):
        Model.from_name("spy", api_key=SECRET)
    seen = [("create_provider", "spy", {"api_key": SECRET})]
    assert sys.modules["lab_spy"].seen == seen


def test_nothing_of_the_options_is_in_what_the_registry_keeps(lab: Lab) -> None:
    """Failures that are remembered, and their reasons, hold no key."""
    for case in CASES:
        install(lab, case)
    for case in CASES:
        if case.error is None:
            ask(case)
        else:
            with pytest.raises(case.error):
                ask(case)
    kept = [str(entry) for entry in default_registry().discover()]
    assert len(kept) > 80
    assert SECRET not in json.dumps(kept)


def test_interrupt_and_other_base_exceptions_pass(lab: Lab) -> None:
    """They belong to the user and to frameworks; the plugin can be loaded afterwards."""
    lab.dist("lab-stop", {"providers": {"stop": "lab_stop"}})
    for name in ("KeyboardInterrupt", "GeneratorExit"):
        lab.module("lab_stop", "").write_text(f"raise {name}", "utf-8")
        with pytest.raises((KeyboardInterrupt, GeneratorExit)):
            Model.from_name("stop")
        [entry] = [e for e in default_registry().discover() if e.name == "stop"]
        assert entry.state == "available"
        assert "lab_stop" not in sys.modules
    lab.module("lab_stop", "").write_text(HEAD + MAKES, "utf-8")
    assert Model.from_name("stop").provider.name == "echo"


def test_a_failed_plugin_is_tried_again(lab: Lab) -> None:
    """What was missing may have been installed since: nothing is failed for good."""
    lab.dist("lab-later", {"tools": {"later": "lab_later"}})
    with pytest.raises(PluginError, match="ModuleNotFoundError"):
        default_registry().load_tools("later")
    [entry] = [e for e in default_registry().discover() if e.name == "later"]
    assert (entry.state, entry.dist) == ("failed", "lab-later")
    assert "ModuleNotFoundError" in entry.reason
    lab.module("lab_later", "").write_text(HEAD + GIVES, "utf-8")
    assert [tool.name for tool in default_registry().load_tools("later")] == ["shout"]
    [entry] = [e for e in default_registry().discover() if e.name == "later"]
    assert (entry.state, entry.reason) == ("loaded", "")


def test_same_module_under_many_names_and_of_two_distributions(lab: Lab) -> None:
    """It is imported once, and each name is a plugin of its own."""
    source = (
        "import builtins\nbuiltins.lab_runs = getattr(builtins, 'lab_runs', 0) + 1\n"
    )
    lab.module("lab_shared", "").write_text(
        HEAD + MAKES + GIVES + HOOKS + source, "utf-8"
    )
    names = {"shared-a": "lab_shared", "shared-b": "lab_shared"}
    lab.dist("lab-first", dict.fromkeys(("providers", "tools", "hooks"), names))
    lab.dist("lab-second", {"providers": {"shared-c": "lab_shared"}})
    for name in ("shared-a", "shared-b", "shared-c"):
        assert Model.from_name(name).provider.name == "echo"
    assert Agent(FakeProvider(), tools=["shared-a"], hooks=["shared-b"]).tools
    import builtins

    assert builtins.lab_runs == 1  # type: ignore[attr-defined]
    del builtins.lab_runs  # type: ignore[attr-defined]


def test_a_conflict_is_settled_with_dist_for_every_kind(lab: Lab) -> None:
    """Tools and hooks too: the other distribution is not imported."""
    for each in ("left", "right"):
        lab.dist(
            f"lab-{each}", {k: {"both": f"lab_{each}"} for k in ("tools", "hooks")}
        )
        lab.module(f"lab_{each}", "").write_text(HEAD + GIVES + HOOKS, "utf-8")
    registry = default_registry()
    for load in (registry.load_tools, registry.load_hooks):
        with pytest.raises(PluginConflictError, match=r"lab-left 1\.0, lab-right 1\.0"):
            load("both")
        assert load("both", dist="Lab_Right")
    assert "lab_left" not in sys.modules
    states = {e.dist: e.state for e in registry.discover("tools") if e.name == "both"}
    assert states == {"lab-left": "conflict", "lab-right": "loaded"}
