"""The doctor's report: what is gathered, as plain data. `docs/plugins.md` has its form."""

from __future__ import annotations

import os
import platform
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from .._redact import redact
from ..errors import PluginError
from ..plugins._entries import SINGULAR, SPECS, owner_of
from ..plugins._metadata import normal_name, read_requirements, read_version
from ..plugins._text import visible
from ..plugins.registry import PluginEntry, PluginState, Registry
from ._look import look_at
from ._probe import Probe, probe, stop_all

__all__ = [
    "Answer",
    "Cost",
    "DistributionLine",
    "Note",
    "PluginLine",
    "Report",
    "VariableState",
    "gather",
]

VariableState = Literal["set", "empty", "not set"]
"""Whether an environment variable is there; its value is never shown."""

_BROKEN: frozenset[PluginState] = frozenset(
    {"conflict", "reserved", "failed", "incompatible"}
)
_SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_RUNS = 3


@dataclass(frozen=True, slots=True)
class DistributionLine:
    """A distribution that matters here: the core, plugins, and what they require.

    `version` is `None` when it is required and missing.
    """

    name: str
    version: str | None
    required_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """What loading a plugin costs beyond the core, in a fresh interpreter."""

    milliseconds: float
    modules: int
    third_party: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PluginLine:
    """A plugin with its state, as in `PluginEntry`, and what more is known of it.

    `environment` is `None` when the plugin does not say; `tools` and `import_cost` are
    `None` when it was not loaded.
    """

    kind: str
    name: str
    value: str
    dist: str
    version: str
    state: PluginState
    reason: str
    environment: Mapping[str, VariableState] | None = None
    tools: tuple[str, ...] | None = None
    import_cost: Cost | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a name stands for, and why; `dist` is `None` when it stands for nothing."""

    kind: str
    name: str
    dist: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the metadata of a distribution."""

    place: str
    text: str
    broken: bool


@dataclass(frozen=True, slots=True)
class Report:
    """Everything. `ok` decides the exit status."""

    version: int
    ok: bool
    python: str
    platform: str
    distributions: tuple[DistributionLine, ...]
    plugins: tuple[PluginLine, ...]
    answers: tuple[Answer, ...]
    notes: tuple[Note, ...]


def gather(
    registry: Registry,
    *,
    name: str | None,
    load: bool,
    import_cost: bool,
    timeout: float,
) -> Report:
    """Gather the report.

    Args:
        registry: Where plugins are looked up.
        name: Report on this name only, and what it stands for.
        load: Load each plugin that may be loaded, each in an interpreter of its own.
        import_cost: Measure that too; implies `load`.
        timeout: Seconds for each of these.
    """
    name = name.partition(":")[0] if name is not None else None
    entries = registry.discover()
    asked = [entry for entry in entries if name in (None, entry.name)]
    lines = [_looked_at(entry) for entry in asked]
    if load or import_cost:
        lines = _loaded(lines, timeout, runs=_RUNS if import_cost else 1)
        if not import_cost:
            lines = [replace(line, import_cost=None) for line in lines]
    notes = [Note(_clean(n.place), _clean(n.text), n.broken) for n in registry.notes()]
    dists = _distributions(entries if name is None else asked)
    notes += [
        Note(each.name, f"missing; required by {', '.join(each.required_by)}", True)
        for each in dists
        if each.version is None
    ]
    answers = [] if name is None else _answers(registry, name, asked)
    broken = any(line.state in _BROKEN for line in lines)
    if name is None:
        broken = broken or any(note.broken for note in notes)
    broken = broken or any(answer.dist is None for answer in answers)
    return Report(
        version=1,
        ok=not broken,
        python=platform.python_version(),
        platform=f"{platform.python_implementation()}, {platform.system()}",
        distributions=tuple(dists),
        plugins=tuple(lines),
        answers=tuple(answers),
        notes=tuple(notes),
    )


def _looked_at(entry: PluginEntry) -> PluginLine:
    """Return the line of a plugin, with what its source says."""
    line = PluginLine(
        entry.kind,
        entry.name,
        _clean(entry.value),
        entry.dist,
        entry.version,
        entry.state,
        _clean(entry.reason),
    )
    if entry.state not in ("available", "conflict"):
        return line
    look = look_at(entry.value)
    line = replace(line, environment=_environment(look.environment))
    if not look.problem:
        return line
    state: PluginState = "incompatible" if look.incompatible else "failed"
    return replace(line, state=state, reason=_clean(look.problem))


def _loaded(lines: Sequence[PluginLine], timeout: float, runs: int) -> list[PluginLine]:
    def one(line: PluginLine) -> PluginLine:
        if line.state != "available":
            return line
        made = [probe(line.kind, line.name, line.dist, timeout=timeout)]
        while len(made) < runs and made[0].state == "loaded":
            made.append(probe(line.kind, line.name, line.dist, timeout=timeout))
        return _with(line, made)

    # Measured one after the other: they would slow each other down.
    workers = min(4, os.cpu_count() or 1) if runs == 1 else 1
    with ThreadPoolExecutor(workers) as pool:
        try:
            return list(pool.map(one, lines))
        except BaseException:
            stop_all()  # else Ctrl-C would wait for a plugin that hangs
            raise


def _with(line: PluginLine, made: Sequence[Probe]) -> PluginLine:
    first = made[0]
    if first.state != "loaded":
        return replace(line, state=first.state, reason=_clean(first.reason))
    taken = statistics.median(each.milliseconds for each in made)
    return replace(
        line,
        state="loaded",
        environment=_environment(first.environment),
        tools=None if first.tools is None else tuple(map(_clean, first.tools)),
        import_cost=Cost(taken, first.modules, first.third_party),
    )


def _environment(
    variables: Iterable[str] | None,
) -> dict[str, VariableState] | None:
    if variables is None:
        return None
    found: dict[str, VariableState] = {}
    for name in variables:
        value = os.environ.get(name)
        blank = value is not None and not value.strip()
        found[visible(name)] = (
            "not set" if value is None else "empty" if blank else "set"
        )
    return found


def _distributions(entries: Iterable[PluginEntry]) -> list[DistributionLine]:
    plugins = {each.dist for each in entries if each.dist} - {"lighter-core"}
    named = ["lighter-core", *sorted(plugins)]
    lines = [
        DistributionLine(dist, read_version(dist) or "unknown", ()) for dist in named
    ]
    users: dict[str, list[str]] = {}
    needed: set[str] = set()
    for dist in named:
        for requirement in read_requirements(dist):
            found = re.match(r"[A-Za-z0-9._-]+", requirement)
            if found is None or normal_name(found[0]) in named:
                continue
            users.setdefault(normal_name(found[0]), []).append(dist)
            if ";" not in requirement:  # an extra or a marker need not be there
                needed.add(normal_name(found[0]))
    for name, by in sorted(users.items()):
        version = read_version(name)
        if version is not None or name in needed:
            lines.append(DistributionLine(name, version, tuple(dict.fromkeys(by))))
    return lines


def _answers(
    registry: Registry, name: str, entries: Iterable[PluginEntry]
) -> list[Answer]:
    served = {entry.kind for entry in entries}
    kinds = [kind for kind in SPECS if kind in served] or ["providers"]
    return [_answer(registry, kind, name) for kind in kinds]


def _answer(registry: Registry, kind: str, name: str) -> Answer:
    try:
        entry = registry.resolve(kind, name)
    except PluginError as error:
        return Answer(kind, name, None, _clean(error.message))
    others = [
        each
        for each in registry.discover(kind)
        if each.name == name and each.dist != entry.dist
    ]
    why = f"no other distribution serves the {SINGULAR[kind]} {name!r}"
    if others:
        blocked = ", ".join(f"{each.dist} is {each.reason}" for each in others)
        why = f"the others may not: {blocked}"
    if owner_of(kind, name) == entry.dist:
        why += "; the name is reserved for it"
    return Answer(kind, name, entry.dist, _clean(why))


def _clean(text: str) -> str:
    """Return a text on one line, without the values of secret variables."""
    secrets = [value for name, value in os.environ.items() if _SECRET.search(name)]
    return visible(redact(text, *secrets))
