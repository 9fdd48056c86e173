"""Loading one plugin in an interpreter of its own: it may hang, exit or crash there."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..errors import IncompatiblePluginError, PluginError
from ..plugins._text import told, visible
from ._look import variables_of

__all__ = ["Probe", "probe", "run_child", "stop_all"]

_CHILD = (
    "import json, sys; given = json.load(sys.stdin); sys.path[:] = given['path'];"
    " from lighter_core._commands._probe import run_child; run_child(given)"
)


_running: set[subprocess.Popen[bytes]] = set()


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of loading a plugin.

    Attributes:
        state: `"loaded"`, `"failed"` or `"incompatible"`.
        reason: Why not, in one line.
        environment: The variables that it names in `ENVIRONMENT`.
        tools: The names of its tools, of a tools plugin.
        milliseconds: How long loading took, beyond what the core itself needs.
        modules: How many modules came with it.
        third_party: The top-level packages of others among them.
    """

    state: Literal["loaded", "failed", "incompatible"]
    reason: str = ""
    environment: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    milliseconds: float = 0.0
    modules: int = 0
    third_party: tuple[str, ...] = ()


def probe(kind: str, name: str, dist: str, *, timeout: float) -> Probe:
    """Load a plugin in a fresh interpreter and return what came of it.

    It hears nothing and says nothing: its output is dropped. After the time, it and all
    processes that it started are killed.
    """
    given = {"path": [*map(str, sys.path)], "kind": kind, "name": name, "dist": dist}
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as result:
        source.write(json.dumps(given).encode())
        source.seek(0)
        # Files, not pipes: a process that the plugin leaves behind would hold a pipe.
        child = subprocess.Popen(  # noqa: S603 - this interpreter, no shell
            [sys.executable, "-c", _CHILD],
            stdin=source,
            stdout=result,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _running.add(child)
        try:
            code = child.wait(timeout)
        except subprocess.TimeoutExpired:
            return Probe("failed", f"it was not loaded after {timeout:g} seconds")
        finally:
            _kill(child)
            _running.discard(child)
        result.seek(0)
        return _read(result.read(), code)


def stop_all() -> None:
    """End all interpreters at work: whoever asked has gone."""
    for child in list(_running):
        _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # its children too
    child.kill()
    child.wait()


def _read(data: bytes, code: int) -> Probe:
    try:
        fields: dict[str, Any] = json.loads(data)
        for key in ("environment", "tools", "third_party"):
            fields[key] = None if fields[key] is None else tuple(fields[key])
        return Probe(**fields)
    except (ValueError, TypeError, KeyError):
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        return Probe("failed", f"it ended the interpreter ({how})")


def run_child(given: Mapping[str, str]) -> None:
    """Load the plugin, write a `Probe` as JSON to standard output, and end at once."""
    out = os.dup(1)
    os.dup2(2, 1)  # what the plugin prints is no result
    try:
        made = _load(given["kind"], given["name"], given["dist"])
    except BaseException as error:  # noqa: BLE001 - the report must come in any case
        made = Probe("failed", told(error))
    data = json.dumps(asdict(made)).encode()
    while data:
        data = data[os.write(out, data) :]
    os._exit(0)  # threads of the plugin would delay the end


def _load(kind: str, name: str, dist: str) -> Probe:
    from ..plugins.objects import new_manager
    from ..plugins.registry import Registry

    new_manager()  # so that pluggy is no part of the cost
    registry = Registry(allow=[dist], block=[])
    entry = registry.resolve(kind, name, dist=dist)
    before, start = set(sys.modules), time.perf_counter()
    try:
        plugin = registry.load(kind, name, dist=dist)
        taken = time.perf_counter() - start
        added = set(sys.modules) - before
        tools = None
        if kind == "tools":
            made = registry.load_tools(name, dist=dist)
            tools = tuple(visible(each.name) for each in made)
    except IncompatiblePluginError as error:
        return Probe("incompatible", error.message)
    except PluginError as error:
        return Probe("failed", error.message)
    module = sys.modules.get(entry.value.partition(":")[0].strip())
    environment = getattr(plugin, "ENVIRONMENT", getattr(module, "ENVIRONMENT", None))
    own = {"lighter_core", entry.value.partition(":")[0].partition(".")[0].strip()}
    roots = {each.partition(".")[0] for each in added}
    roots = {
        each for each in roots if not each.startswith("_sysconfigdata")
    }  # Python's
    return Probe(
        "loaded",
        environment=variables_of(environment),
        tools=tools,
        milliseconds=round(taken * 1000, 1),
        modules=len(added),
        third_party=tuple(sorted(roots - own - set(sys.stdlib_module_names))),
    )
