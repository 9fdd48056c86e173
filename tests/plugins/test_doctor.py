"""`python -m lighter_core doctor`: what it says, in text and JSON, and what it never does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import lighter_core.__main__ as command
from lighter_core import Registry

from .cases import CASES, GIVES, HEAD, HOOKS, MAKES
from .conftest import Lab
from .test_cases import install

SECRET = "sk-doctor-0123456789"


def doctor(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Run the command in this process; return the exit status and the output."""
    code = command.main(["doctor", *words])
    return code, capsys.readouterr().out


def report(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code, out = doctor(capsys, "--json", *words)
    made: dict[str, Any] = json.loads(out)
    assert code == (0 if made["ok"] else 1)
    return made


def of_lab(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the lines of the lab's plugins by distribution, without `lab-`."""
    lines = [each for each in made["plugins"] if each["dist"].startswith("lab-")]
    return {each["dist"].removeprefix("lab-"): each for each in lines}


@pytest.fixture
def only_lab(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Keep the doctor from loading what is installed here."""
    dists = {entry.dist for entry in Registry().discover()}
    monkeypatch.setenv("LIGHTER_PLUGINS_BLOCK", ",".join(dists))
    lab.rescan()
    return lab


def plugin(lab: Lab, name: str, source: str, kind: str = "providers") -> None:
    lab.dist(f"lab-{name}", {kind: {name: f"lab_{name}"}})
    lab.module(f"lab_{name}", "").write_text(HEAD + source, "utf-8")


def test_everything_is_fine_here(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """The distributions of this repository have no fault; their versions are told."""
    made = report(capsys)
    assert made["version"] == 1
    assert made["ok"] is True
    assert made["python"] == ".".join(map(str, sys.version_info[:3]))
    versions = {each["name"]: each["version"] for each in made["distributions"]}
    assert {"lighter-core", "lighter-claude", "pluggy", "pydantic", "anthropic"} <= set(
        versions
    )
    assert None not in versions.values()
    code, out = doctor(capsys)
    assert code == 0
    assert out.endswith("\nEverything is fine.\n")


def test_json_has_the_documented_form(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys may be added with the same version; none goes."""
    plugin(lab, "tools", GIVES, "tools")
    made = report(capsys, "tools", "--import-cost")
    page = Path(__file__).parents[2] / "docs" / "plugins.md"
    block = page.read_text("utf-8").partition("```json\n")[2].partition("```")[0]
    documented = json.loads(block)

    def same_form(one: object, other: object, path: str = "$") -> None:
        if isinstance(one, dict) and isinstance(other, dict):
            if "environment" not in path:
                assert list(one) == list(other), path
            for key in one:
                same_form(one[key], other.get(key), f"{path}.{key}")
        elif isinstance(one, list) and isinstance(other, list):
            assert bool(one) == bool(other) or path.endswith("notes"), path
            for left, right in zip(one[:1], other[:1], strict=False):
                same_form(left, right, f"{path}[]")
        else:
            kinds = {type(one), type(other)} - {type(None)}
            assert len(kinds) <= 1 or kinds == {int, float}, path

    same_form(documented, made)


def test_no_plugin_is_imported_without_being_asked(
    lab: Lab, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The report is made from metadata and sources, with the lab's worst plugins."""
    witness = tmp_path / "witness"
    source = f"open({str(witness)!r}, 'w').close()\nraise SystemExit(3)\n{MAKES}"
    plugin(lab, "witness", source)
    for case in CASES:
        install(lab, case)
    before = set(sys.modules)
    made = report(capsys)
    assert not made["ok"]
    doctor(capsys, "witness")
    assert not [name for name in set(sys.modules) - before if name.startswith("lab_")]
    assert not witness.exists()


def test_states_without_loading(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing code, bad syntax and other interfaces are told from the source."""
    for case in CASES:
        install(lab, case)
    lines = of_lab(report(capsys))
    seen = {"syntax-error", "no-module", "no-module-tools", "relative"}
    for case in CASES:
        if not case.before:
            assert case.name not in lines
            continue
        line = lines[case.name]
        expected = case.before
        if case.after == "incompatible":
            expected = "incompatible"
        elif case.name in seen:
            expected = "failed"
        assert line["state"] == expected, line
        assert bool(line["reason"]) == (expected != "available"), case.name
    assert "no module 'lab_no_module'" in lines["no-module"]["reason"]
    assert "SyntaxError" in lines["syntax-error"]["reason"]
    assert "interface 2" in lines["newer"]["reason"]


@pytest.mark.timeout(300)
def test_states_after_loading(
    only_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--load` finds what an application would find; a crash or a hang is one line."""
    lab = only_lab
    cases = [case for case in CASES[::5] if case.before != "conflict"]
    cases += [case for case in CASES if case.name == "yields-tools"]
    for case in cases:
        install(lab, case)
    plugin(lab, "hangs", "import time\nwhile True: time.sleep(1)\n")
    plugin(lab, "crashes", "import os\nos.abort()\n")
    plugin(lab, "vanishes", "import os\nos._exit(0)\n")
    plugin(lab, "interrupts", "raise KeyboardInterrupt\n")
    plugin(
        lab,
        "forks",
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        + MAKES,
    )
    plugin(
        lab,
        "threads",
        "import threading, time\nthreading.Thread(target=time.sleep, args=[600]).start()\n"
        + MAKES,
    )
    start = time.monotonic()
    lines = of_lab(report(capsys, "--load", "--timeout", "15"))
    assert time.monotonic() - start < 250
    for case in cases:
        if case.before:
            after = case.after
            if case.kind == "tools" and case.error and case.words != ("'shout'",):
                after = "incompatible" if after == "incompatible" else "failed"
            assert lines[case.name]["state"] == after, str(lines[case.name])
            quiet = after == "loaded"
            assert bool(lines[case.name]["reason"]) != quiet, case.name
    assert lines["hangs"]["reason"] == "it was not loaded after 15 seconds"
    assert "signal 6" in lines["crashes"]["reason"]
    assert "exit status 0" in lines["vanishes"]["reason"]
    assert "KeyboardInterrupt" in lines["interrupts"]["reason"]
    assert lines["forks"]["state"] == lines["threads"]["state"] == "loaded"
    assert lines["yields-tools"]["tools"] == ["shout"]


def test_import_cost(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """Milliseconds, modules, and the packages of others that come with a plugin."""
    lab.dist("lab-heavy", {"providers": {"heavy": "lab_heavy"}})
    lab.module("lab_sdk", "")
    lab.module(
        "lab_heavy",
        """
        import sysconfig, time, lab_sdk, xml.dom.minidom
        from lighter_core import hookimpl
        sysconfig.get_config_vars()
        time.sleep(0.2)
        @hookimpl
        def create_provider(): ...
        """,
    )
    made = report(capsys, "heavy", "--import-cost")
    [line] = made["plugins"]
    cost = line["import_cost"]
    assert 200 <= cost["milliseconds"] < 20000
    assert cost["modules"] > 2
    assert cost["third_party"] == ["lab_sdk"]
    made = report(capsys, "claude", "--import-cost")
    [line] = made["plugins"]
    assert line["state"] == "loaded"
    assert line["import_cost"]["third_party"] == []
    _, out = doctor(capsys, "heavy", "--import-cost")
    assert "imports lab_sdk" in out


# Keys.


def test_variables_are_told_and_never_their_values(
    only_lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From `ENVIRONMENT` in the source; set, empty or not set."""
    lab = only_lab
    names = "('LAB_API_KEY', 'LAB_EMPTY', 'LAB_MISSING')"
    plugin(lab, "keyed", f"ENVIRONMENT = {names}\n{MAKES}")
    plugin(lab, "silent", MAKES)
    plugin(lab, "odd", f"ENVIRONMENT = 'LAB_API_KEY'\n{MAKES}")
    plugin(lab, "computed", f"ENVIRONMENT = tuple(['LAB_API_KEY'])\n{MAKES}")
    plugin(
        lab,
        "leaks",
        "import os\nraise ValueError('bad key ' + os.environ['LAB_API_KEY'])\n",
    )
    monkeypatch.setenv("LAB_API_KEY", SECRET)
    monkeypatch.setenv("LAB_EMPTY", " ")
    monkeypatch.delenv("LAB_MISSING", raising=False)
    expected = {"LAB_API_KEY": "set", "LAB_EMPTY": "empty", "LAB_MISSING": "not set"}
    for words in ([], ["--load"]):
        made = report(capsys, *words)
        assert SECRET not in json.dumps(made)
        lines = of_lab(made)
        assert lines["keyed"]["environment"] == expected
        assert lines["silent"]["environment"] is lines["odd"]["environment"] is None
        known = {"LAB_API_KEY": "set"} if words else None
        assert lines["computed"]["environment"] == known
    assert "bad key [redacted]" in lines["leaks"]["reason"]
    for words in ([], ["--load"]):
        _, out = doctor(capsys, *words)
        assert "LAB_API_KEY set, LAB_EMPTY empty, LAB_MISSING not set" in out
        assert SECRET not in out


def test_our_providers_name_the_variables_that_they_read(
    lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the variable named first, each says itself that this one is missing."""
    from lighter_core import Model, ModelError
    from lighter_core.plugins._entries import FIRST_PARTY

    keyed: dict[str, str] = {}
    for line in report(capsys)["plugins"]:
        if line["name"] in FIRST_PARTY and line["dist"] != "lighter-core":
            assert line["environment"], line["name"]
            for name in line["environment"]:
                monkeypatch.delenv(name, raising=False)
            keyed[line["name"]] = next(iter(line["environment"]))
    assert keyed.pop("local") == "LIGHTER_LOCAL_MODEL"
    assert set(keyed) >= {"claude", "deepseek", "openai", "openai-chat"}
    for name, variable in keyed.items():
        with pytest.raises(ModelError, match=variable):
            Model.from_name(name, model_id="m")


def test_our_providers_name_every_variable_that_their_code_names(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """An endpoint from the environment, say, is a surprise that the doctor must show."""
    seen: dict[str, set[str]] = {}
    for line in report(capsys)["plugins"]:
        if line["kind"] == "providers" and line["dist"] != "lighter-core":
            seen[line["dist"]] = set(line["environment"] or ())
    assert len(seen) >= 4
    for dist, told in seen.items():
        sources = Path(__file__).parents[2].joinpath(dist, "src").rglob("*.py")
        code = "".join(p.read_text("utf-8") for p in sources if p.stem != "plugin")
        options = r'"((?!ACME)[A-Z_]+_(?:API_KEY|MODEL|BASE_URL))"'
        assert told == set(re.findall(options, code)), dist


# What a name stands for.


def test_a_name_is_fine_although_something_else_is_broken(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line does not deny what stands above it."""
    plugin(lab, "good", GIVES, "tools")
    lab.dist("lab-torn", {"tools": {"torn": "lab_torn"}}, metadata="Name:\n")
    code, out = doctor(capsys, "good")
    assert code == 0
    assert "broken: its metadata has no name" in out
    assert out.endswith("\nThe name is fine; something else is broken: see above.\n")
    assert doctor(capsys)[0] == 1


def answer(made: dict[str, Any]) -> dict[str, Any]:
    [found] = made["answers"]
    assert isinstance(found, dict)
    return found


def test_a_name_is_explained(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """A model id is cut off; the answer says who serves it and why."""
    found = answer(report(capsys, "claude:some-model"))
    assert (found["kind"], found["name"]) == ("providers", "claude")
    assert found["dist"] == "lighter-claude"
    assert "reserved for it" in found["why"]
    code, out = doctor(capsys, "claude")
    assert code == 0
    assert "claude is lighter-claude" in out
    assert "openai " not in out.partition("What the name")[2]


def test_a_name_of_several_kinds_has_several_answers(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Providers, tools and hooks are asked for separately."""
    lab.dist("lab-both", {"tools": {"both": "lab_both"}, "hooks": {"both": "lab_both"}})
    lab.module("lab_both", "").write_text(HEAD + GIVES + HOOKS, "utf-8")
    kinds = [each["kind"] for each in report(capsys, "both")["answers"]]
    assert kinds == ["tools", "hooks"]


def test_names_that_stand_for_nothing_end_with_one(
    lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unknown, taken twice, somebody else's, blocked: each with what to do."""
    for each in ("one", "two"):
        lab.dist(f"lab-{each}", {"hooks": {"same": "lab_same"}})
    lab.dist("lab-evil", {"providers": {"Claude": "lab_same"}})
    lab.dist("lab-blocked", {"providers": {"blocked": "lab_same"}})
    monkeypatch.setenv("LIGHTER_PLUGINS_BLOCK", "lab-blocked")
    lab.rescan()
    for name, words in {
        "nope": "no provider 'nope' is installed",
        "same": "several distributions serve the hooks plugin 'same'",
        "Claude": "belongs to lighter-claude",
        "blocked": "blocked by LIGHTER_PLUGINS_BLOCK",
    }.items():
        found = answer(report(capsys, name))
        assert found["dist"] is None
        assert words in found["why"]
        code, out = doctor(capsys, name)
        assert code == 1
        assert out.endswith("Something is broken: see above.\n")
    monkeypatch.setenv("LIGHTER_PLUGINS_BLOCK", "lab-blocked, lab-two")
    lab.rescan()
    found = answer(report(capsys, "same"))
    assert found["dist"] == "lab-one"
    assert "lab-two is blocked by LIGHTER_PLUGINS_BLOCK" in found["why"]


def test_a_blocked_plugin_is_no_fault(
    only_lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was blocked on purpose, and is not even loaded when asked."""
    plugin(only_lab, "blocked", "raise ValueError")
    blocked = f"{os.environ['LIGHTER_PLUGINS_BLOCK']},lab-blocked"
    monkeypatch.setenv("LIGHTER_PLUGINS_BLOCK", blocked)
    only_lab.rescan()
    made = report(capsys, "--load")
    assert made["ok"]
    assert of_lab(made)["blocked"]["state"] == "blocked"


def test_broken_metadata_and_missing_requirements_are_told(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are faults; a copy that nobody sees is none."""
    lab.dist("lab-shadowed", {"providers": {"x": "lab_x"}}, at="late")
    shown = "Metadata-Version: 2.1\nName: lab-shadowed\nVersion: 1.0\n"
    lab.dist("lab-shadowed", "", at="early", metadata=shown)
    assert report(capsys)["ok"]
    lab.dist("lab-nameless", {"providers": {"x": "lab_x"}}, metadata="Version: 1.0\n")
    made = report(capsys)
    assert not made["ok"]
    texts = [note["text"] for note in made["notes"] if note["broken"]]
    assert texts == ["its metadata has no name: its plugins are left out"]
    needs = (
        "Metadata-Version: 2.1\nName: lab-needs\nVersion: 1.0\n"
        "Requires-Dist: no_such.sdk>=2\nRequires-Dist: not-this; extra == 'x'\n"
    )
    lab.dist("lab-needs", {"providers": {"needs": "lab_needs"}}, metadata=needs)
    lab.module("lab_needs", "").write_text(HEAD + MAKES, "utf-8")
    made = report(capsys)
    lines = {each["name"]: each for each in made["distributions"]}
    assert lines["no-such-sdk"] == {
        "name": "no-such-sdk", "version": None, "required_by": ["lab-needs"],
    }  # fmt: skip
    assert "not-this" not in lines
    [note] = [note for note in made["notes"] if note["place"] == "no-such-sdk"]
    assert (note["broken"], note["text"]) == (True, "missing; required by lab-needs")


# The terminal.


@pytest.mark.parametrize("width", [40, 100])
def test_lines_fit_the_terminal(
    lab: Lab,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
) -> None:
    """With long names, long reasons and control characters in them."""
    monkeypatch.setenv("COLUMNS", str(width))
    for case in CASES:
        install(lab, case)
    lab.dist("lab-long", {"tools": {"n" * 90: "m" * 90, "esc\x1b[31m": "lab_x"}})
    for words in ([], ["n" * 90], ["--load", "good-tools"]):
        _, out = doctor(capsys, *words)
        assert max(map(len, out.splitlines())) <= width
        assert all(line.isprintable() for line in out.splitlines())
        assert out.splitlines() == [line.rstrip() for line in out.splitlines()]


def run(*words: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "lighter_core", *words],
        capture_output=True, timeout=60, check=False, env={**os.environ, **more},
    )  # fmt: skip


def test_as_a_program_on_a_terminal_that_knows_ascii_only(lab: Lab) -> None:
    """Nothing goes to standard error, and nothing cannot be encoded."""
    lab.dist("lab-long", {"tools": {"ü" * 90: "lab_x"}})
    path = str(lab.place("site"))
    done = run("doctor", PYTHONIOENCODING="ascii", PYTHONPATH=path)
    assert done.stderr == b""
    assert done.returncode == 1
    assert done.stdout.isascii()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "required: COMMAND"),
        ("nope", "invalid choice: 'nope'"),
        ("doctor --nope", "unrecognized arguments: --nope"),
        ("doctor a b", "unrecognized arguments: b"),
        *[
            (f"doctor --timeout={each}", f"{each!r} is no number of seconds above 0")
            for each in ("0", "-1", "x", "nan", "1e9")
        ],
    ],
)
def test_wrong_usage_ends_with_two(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As argparse has it."""
    with pytest.raises(SystemExit) as ended:
        command.main(words.split())
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert errors.startswith("usage: python -m lighter_core")
    assert says in errors


def test_the_help_names_the_commands() -> None:
    """As a program."""
    done = run("--help")
    assert done.returncode == 0
    assert b"doctor" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="a shell's pipe")
def test_a_reader_that_goes_away_is_no_traceback() -> None:
    """As in `python -m lighter_core doctor | head -1`."""
    line = f"{sys.executable} -m lighter_core doctor | true"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""


def test_interrupt_ends_quietly(
    lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is no traceback."""

    def interrupted(*args: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lighter_core._commands.doctor.gather", interrupted)
    assert command.main(["doctor"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_command_is_imported_when_it_is_asked_for() -> None:
    """`import lighter_core` and the help load no command."""
    code = (
        "import sys, lighter_core.__main__ as m\n"
        "try: m.main(['--help'])\nexcept SystemExit: pass\n"
        "print([n for n in sys.modules if '_commands.' in n or n == 'pluggy'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("\n[]\n")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_ends_a_plugin_that_hangs(only_lab: Lab, tmp_path: Path) -> None:
    """At once, not after the time that it was given."""
    started = tmp_path / "pid"
    source = f"""
        import os, pathlib, time
        pathlib.Path({str(started) + "_"!r}).write_text(str(os.getpid()))
        os.rename({str(started) + "_"!r}, {str(started)!r})
        time.sleep(600)
    """
    only_lab.dist("lab-hangs", {"providers": {"hangs": "lab_hangs"}})
    only_lab.module("lab_hangs", source)
    with subprocess.Popen(
        [sys.executable, "-m", "lighter_core", "doctor", "--load", "--timeout", "300"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(only_lab.place("site"))},
    ) as process:  # fmt: skip
        until = time.monotonic() + 60
        while not started.exists() and time.monotonic() < until:
            time.sleep(0.05)
        pid = int(started.read_text())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == b"interrupted\n"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
