"""What is known of each plugin without importing it: its entry, and the entry's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..hooks import EVENTS
from ._metadata import InstalledPlugin, normal_name

__all__ = [
    "FIRST_PARTY",
    "SINGULAR",
    "SPECS",
    "Failure",
    "Key",
    "PluginEntry",
    "PluginState",
    "Rules",
    "entries_of",
    "owner_of",
]

FIRST_PARTY: Mapping[str, str] = {
    "claude": "lighter-claude",
    "deepseek": "lighter-deepseek",
    "local": "lighter-local",
    "openai": "lighter-openai",
    "openai-chat": "lighter-openai",
    "replay": "lighter-core",
}
"""The reserved names of providers, each with its distribution."""

SPECS: Mapping[str, tuple[str, ...]] = {
    "providers": ("create_provider",),
    "tools": ("get_tools",),
    "hooks": EVENTS,
}
"""Each kind of plugin, and the functions of which it has one at least."""

SINGULAR = {"providers": "provider", "tools": "tools plugin", "hooks": "hooks plugin"}

PluginState = Literal[
    "available",
    "loaded",
    "registered",
    "blocked",
    "conflict",
    "reserved",
    "failed",
    "incompatible",
]
"""What would happen, or has happened, when a plugin is asked for by its name."""

Key = tuple[str, str, str]
"""Kind, name and distribution of a plugin."""


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A plugin as `Registry.discover` lists it; nothing is imported for that.

    Attributes:
        kind: `"providers"`, `"tools"` or `"hooks"`.
        name: The name that it is asked for by.
        value: `"module"` or `"module:attribute"`; empty for the application's objects.
        dist: The distribution's normalised name; empty for the application's objects.
        version: The distribution's version, `"unknown"` where its metadata has none.
        state: `"available"`: it will be loaded when asked for. `"loaded"`: it was, in
            this process. `"registered"`: an object of the application. `"blocked"`: the
            block or allow list keeps it out. `"conflict"`: several distributions serve
            the name. `"reserved"`: the name belongs to another distribution.
            `"failed"`: the last attempt to load it failed. `"incompatible"`: it is for
            another plugin interface. Conflicts and reserved names need `dist=`.
        reason: Why, in one line, where there is something to say.
    """

    kind: str
    name: str
    value: str
    dist: str
    version: str
    state: PluginState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """How the last attempt to load a plugin ended."""

    state: Literal["failed", "incompatible"]
    reason: str


@dataclass(frozen=True, slots=True)
class Rules:
    """Which distributions may serve plugins, and who says so."""

    allow: frozenset[str] | None
    block: frozenset[str]
    allow_source: str
    block_source: str

    def refusal(self, dist: str) -> str:
        """Return why a distribution may not serve plugins; empty when it may."""
        if dist in self.block:
            return f"blocked by {self.block_source}"
        if self.allow is not None and dist not in self.allow:
            return f"blocked by {self.allow_source}, which does not name it"
        return ""


def owner_of(kind: str, name: str) -> str | None:
    """Return the distribution that a name is reserved for.

    Other spellings of a reserved name are reserved too: whoever types `"OpenAI"` must
    not reach somebody else's plugin.
    """
    return FIRST_PARTY.get(normal_name(name)) if kind == "providers" else None


def entries_of(
    installed: Iterable[InstalledPlugin],
    rules: Rules,
    loaded: Iterable[Key],
    failures: Mapping[Key, Failure],
) -> list[PluginEntry]:
    """Return the entries of installed plugins, each with its state."""
    installed = tuple(installed)
    served: Counter[tuple[str, str]] = Counter(
        (each.kind, each.name) for each in installed if not rules.refusal(each.dist)
    )
    known = frozenset(loaded)
    found: list[PluginEntry] = []
    for each in installed:
        state, reason = _state(each, rules, known, failures, served)
        found.append(
            PluginEntry(
                each.kind,
                each.name,
                each.value,
                each.dist,
                each.version,
                state,
                reason,
            )
        )
    return found


def _state(
    each: InstalledPlugin,
    rules: Rules,
    loaded: frozenset[Key],
    failures: Mapping[Key, Failure],
    served: Mapping[tuple[str, str], int],
) -> tuple[PluginState, str]:
    """What has happened in this process goes before what would happen."""
    key = (each.kind, each.name, each.dist)
    if refusal := rules.refusal(each.dist):
        return "blocked", refusal
    if key in loaded:
        return "loaded", ""
    if failure := failures.get(key):
        return failure.state, failure.reason
    owner = owner_of(each.kind, each.name)
    if owner not in (None, each.dist):
        return "reserved", f"the name belongs to {owner}; needs dist={each.dist!r}"
    if served[each.kind, each.name] > 1:
        return "conflict", f"others serve the name too; needs dist={each.dist!r}"
    return "available", ""
