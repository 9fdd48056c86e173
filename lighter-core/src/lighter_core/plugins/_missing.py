"""The texts of errors about names that lead to no plugin: what there is, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from ..errors import PluginConflictError, PluginNotFoundError
from ._entries import FIRST_PARTY, SINGULAR, PluginEntry

__all__ = ["conflict", "foreign", "missing"]

_PLACES = {
    "providers": "Agent('…') or Model.from_name",
    "tools": "tools=[…]",
    "hooks": "hooks=[…]",
}
"""Where an application names a plugin of each kind."""


def missing(
    kind: str,
    name: str,
    dist: str | None,
    served: Sequence[PluginEntry],
    names: Collection[str],
    kinds: Collection[str],
) -> PluginNotFoundError:
    """Return the error for a name that nothing serves that may be used.

    Args:
        kind: The kind of plugin.
        name: The name asked for.
        dist: The distribution asked for.
        served: Who serves the name, blocked ones among them.
        names: The names that can be used.
        kinds: The kinds of plugin that have the name.
    """
    what = SINGULAR[kind]
    usable = [entry for entry in served if entry.state != "blocked"]
    blocked = [entry for entry in served if entry.state == "blocked"]
    if dist is not None:
        blocked = [entry for entry in blocked if entry.dist == dist]
    if blocked:
        told = "; ".join(f"{e.dist} {e.version} is {e.reason}" for e in blocked)
        text = f"the {what} {name!r} is installed but may not be used: {told}"
    elif usable:  # by another distribution than the one asked for
        others = ", ".join(entry.dist for entry in usable)
        text = f"{dist!r} serves no {what} {name!r}; these do: {others}"
    else:
        text = _unknown(kind, name, names)
        for other in sorted(kinds)[:1]:
            text += f" It is the name of a {SINGULAR[other]}: use {_PLACES[other]}"
    return PluginNotFoundError(text, kind=kind, name=name, dist=dist)


def _unknown(kind: str, name: str, names: Collection[str]) -> str:
    listed = ", ".join(sorted(names)) or "none"
    text = f"no {SINGULAR[kind]} {name!r} is installed; installed: {listed}."
    known = dict(FIRST_PARTY) if kind == "providers" else dict[str, str]()
    head = name.partition("/")[0].lower()
    if head != name and head in {*names, *known}:
        text += f" Write {head!r}, and the model id after a colon: '{head}:…'."
    near = difflib.get_close_matches(name.lower(), {*names, *known}, 1, cutoff=0.75)
    if name in known:
        text += f" Install it: pip install {known[name]}"
    elif near:
        text += f" Did you mean {near[0]!r}?"
        if near[0] not in names:
            text += f" (pip install {known[near[0]]})"
    elif known:
        packages = ", ".join(sorted({*known.values()} - {"lighter-core"}))
        text += f" Lighter's own are in the packages {packages} (pip install …)"
    return text


def conflict(kind: str, name: str, found: Sequence[PluginEntry]) -> PluginConflictError:
    """Return the error for a name that several distributions serve."""
    dists = ", ".join(f"{each.dist} {each.version}" for each in found)
    return PluginConflictError(
        f"several distributions serve the {SINGULAR[kind]} {name!r}: {dists}."
        f" Choose one with dist={found[0].dist!r}, or uninstall the others",
        kind=kind,
        name=name,
    )


def foreign(entry: PluginEntry, owner: str) -> PluginConflictError:
    """Return the error for a reserved name that another distribution serves."""
    return PluginConflictError(
        f"the {SINGULAR[entry.kind]} name {entry.name!r} belongs to {owner}, but"
        f" {entry.dist} {entry.version} serves it here; if you trust that, say"
        f" dist={entry.dist!r}",
        kind=entry.kind,
        name=entry.name,
        dist=entry.dist,
    )
