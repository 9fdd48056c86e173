"""T19, T21: a canary that shows nowhere; what imports and constructors touch."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
import pprint
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.interfaces import INTERFACES, Interface, failure
from support.torture import FULL, Results
from support.wire import Wire, wired

from lighter_core import Agent, Model, ModelError, ToolCall, ToolMessage, tool
from lighter_core.testing import FakeProvider, Turn

CANARY = "sk-canary-9f8e7d6c5b4a"
each = pytest.mark.parametrize("interface", INTERFACES, ids=lambda each: each.name)


def _refused(work: Callable[[], Any]) -> str:
    try:
        return repr(work())
    except Exception as error:  # a refusal is an answer too, and is looked at
        return "".join(traceback.format_exception(error))


def _logged(value: object) -> str:
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    logger = logging.Logger("canary")  # noqa: LOG001 - nobody else's
    logger.addHandler(handler)
    for level in (10, 20, 30, 40, 50):
        logger.log(level, "%s %r", value, value)
    return text.getvalue()


def _chained(value: object) -> str:
    try:
        try:
            raise ValueError(str(value))
        except ValueError as inner:
            raise ExceptionGroup("group", [inner, KeyError(repr(value))]) from inner
    except ExceptionGroup as error:
        return "".join(traceback.format_exception(error))


RENDERINGS: dict[str, Callable[[Any], str]] = {
    "repr": repr,
    "str": str,
    "format": lambda value: f"{value} {value!r:>10}",
    "percent": lambda value: "%s %r" % (value, value),  # noqa: UP031
    "ascii": ascii,
    "pprint": pprint.pformat,
    "list": lambda value: str([value]),
    "dict": lambda value: str({"x": value}),
    "variables": lambda value: _refused(lambda: vars(value)),
    "json": lambda value: _refused(lambda: json.dumps(value)),
    "json by repr": lambda value: json.dumps([value], default=repr),
    "pickle": lambda value: _refused(lambda: pickle.dumps(value)),
    "copy": lambda value: _refused(lambda: copy.copy(value)),
    "deepcopy": lambda value: _refused(lambda: copy.deepcopy(value)),
    "log": _logged,
    "chain": _chained,
    "reduce": lambda value: _refused(lambda: value.__reduce_ex__(4)),
    "dir": lambda value: str(dir(value)),
    "traceback": lambda value: "".join(
        traceback.format_exception(value)
        if isinstance(value, BaseException)
        else [repr(value)]
    ),
    "locals": lambda value: "".join(
        traceback.StackSummary.extract(
            [(sys._getframe(), 1)], capture_locals=True
        ).format()
    ),
}


async def objects(interface: Interface) -> dict[str, object]:
    """Everything that has seen the key."""
    async with wired(interface, api_key=CANARY) as (provider, wire):
        told = json.dumps({"error": {"message": f"bad {CANARY}", "type": CANARY}})
        wire.script(Wire(told.encode(), status=401))
        error = await failure(provider, streamed=True)
        response = await Agent(provider).run("go")
        return {
            "provider": provider,
            "model": Model(provider),
            "agent": Agent(provider),
            "error": error,
            "cause": error.__cause__,
            "response": response,
            "stream": Agent(provider).stream("go"),
            "sender": provider._sender,
        }


# What holds the key itself, for as long as it sends requests; its text hides it.
_HOLDS = {("sender", "variables"), ("sender", "reduce"), ("sender", "pickle")}
_HOLDS |= {("sender", "copy"), ("sender", "deepcopy")}


def showing(found: dict[str, object]) -> Iterator[str]:
    """Where the canary shows."""
    for name, value in found.items():
        for rendering, render in RENDERINGS.items():
            if (name, rendering) not in _HOLDS and CANARY in render(value):
                yield f"{name} by {rendering}"


@each
async def test_T19_the_canary_shows_nowhere(
    interface: Interface, caplog: pytest.LogCaptureFixture, results: Results
) -> None:
    """S1, S2: 8 kinds of objects by 20 renderings."""
    caplog.set_level(logging.DEBUG)
    found = await objects(interface)
    assert list(showing(found)) == []
    assert CANARY not in caplog.text
    count = len(found) * len(RENDERINGS) - len(_HOLDS)
    results.add("T19", f"renderings of a key, {interface.name}", count, "0 hits")


async def test_T19_tool_errors_are_no_leak(results: Results) -> None:
    """S11: neither arguments nor paths nor long texts reach the model."""

    @tool
    async def connect(port: int) -> str:
        """Connect."""
        raise OSError(f"password={CANARY} /srv/me/secret/key.pem " + "x" * 10_000)

    calls = [
        ToolCall("1", "connect", f'{{"port": "{CANARY}"}}'),
        ToolCall("2", "connect", '{"port": 1}'),
        ToolCall("3", "n" * 10_000, "{}"),
    ]
    provider = FakeProvider([Turn(tool_calls=calls), "done"])
    response = await Agent(provider, tools=[connect]).run("go")
    for result in (m for m in response.messages if isinstance(m, ToolMessage)):
        assert result.is_error
        assert len(result.tool_output) <= 500
        assert "/srv/me" not in result.tool_output
        assert "Traceback" not in result.tool_output
    outputs = {m.call_id: m.tool_output for m in response.messages if m.role == "tool"}
    assert CANARY not in outputs["1"]
    results.add("T19", "errors of tools", 3, "bounded, without paths and arguments")


def test_T19_finds_it() -> None:
    """An object whose text shows what it holds; an error that keeps its key."""

    class Open:
        def __repr__(self) -> str:
            return f"Open({CANARY})"

    assert len(RENDERINGS) == 20
    assert "x by repr" in list(showing({"x": Open()}))
    error = ModelError(f"bad {CANARY}", "auth_error")
    hits = list(showing({"x": error}))
    assert {"x by str", "x by pickle", "x by traceback", "x by log"} <= set(hits)


AUDIT = """
import sys
seen, on = [], [False]

def hook(event, args):
    if not on[0]:
        return
    if event in ("socket.connect", "socket.bind", "subprocess.Popen", "os.system"):
        seen.append(event + " " + repr(args[:1]))
    elif event == "open" and isinstance(args[0], (str, bytes)):
        name = args[0] if isinstance(args[0], str) else args[0].decode()
        if not name.endswith((".py", ".pyc", ".so", ".pyd")):
            seen.append("open " + name)

sys.addaudithook(hook)
on[0] = True
"""


def audited(code: str) -> list[str]:
    """What a program does that it should not."""
    source = AUDIT + textwrap.dedent(code) + "\non[0] = False\nprint(seen)\n"
    done = subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    found: list[str] = eval(done.stdout.splitlines()[-1])
    # Reading what a folder of packages holds is how Python imports.
    return [e for e in found if "__editable__" not in e and "/pyvenv.cfg" not in e]


PROGRAMS = {
    "import of the core": "import lighter_core",
    "an agent": "from lighter_core import Agent\nfrom lighter_core.testing import"
    " FakeProvider\nAgent(FakeProvider(['x']))",
    **{
        f"{i.name}": f"from {i.provider.__module__.split('.')[0]} import"
        f" {i.provider.__name__} as P\nP(api_key='k-0123456', model_id='m',"
        " base_url='http://127.0.0.1:9')"
        for i in INTERFACES
    },
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_T21_imports_and_constructors_touch_nothing(
    name: str, results: Results
) -> None:
    """S12: no socket, no process, no file but modules."""
    assert audited(PROGRAMS[name]) == []
    results.add("T21", "programs that import and construct", 1, "0 files, 0 sockets")


def test_T21_finds_it(tmp_path: Any) -> None:
    """A file that is opened and a socket that is bound."""
    (tmp_path / "x").write_text("x")
    code = f"import socket\nopen({str(tmp_path / 'x')!r}).close()\n"
    code += "s = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.close()"
    assert [e.split()[0] for e in audited(code)] == ["open", "socket.bind"]


def test_T21_the_import_is_light(results: Results) -> None:
    """R11: in time of the processor, and no SDK among the modules."""
    code = """
    import sys, time
    began = time.process_time()
    import lighter_core
    print(time.process_time() - began)
    print([m for m in sys.modules if m.split('.')[0] in
           ('openai', 'anthropic', 'httpx2', 'pydantic', 'pluggy')])
    """
    best = 9.0
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
        seconds, modules = done.stdout.splitlines()
        assert modules == "[]"
        best = min(best, float(seconds))
    assert best < 0.3 or not FULL  # times say nothing beside other tests
    results.add(
        "T21", "import of lighter_core", 3, f"{best * 1000:.0f} ms of one core, no SDK"
    )
