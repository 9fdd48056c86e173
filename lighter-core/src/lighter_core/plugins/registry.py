"""Finding a plugin by name, and loading that one alone.

Installed plugins do nothing until an application names them. Loading has four steps:
read the metadata once per process; find the name; import, check and register that one
entry point; call its function. A broken plugin never affects another, and no plugin
sees the options (the key) that are meant for another.
"""

from __future__ import annotations

import difflib
import importlib
import logging
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..errors import (
    HookError,
    IncompatiblePluginError,
    PluginConflictError,
    PluginError,
    PluginLoadError,
    PluginNotFoundError,
)
from ..hooks import EVENTS
from ._metadata import InstalledPlugin, normal_name, read_installed

if TYPE_CHECKING:
    import pluggy

    from ..provider import Provider
    from ..tools import Tool

__all__ = ["PLUGIN_API", "InstalledPlugin", "Registry", "default_registry"]

logger: logging.Logger = logging.getLogger("lighter.plugins")

PLUGIN_API = 1
"""The version of the plugin interface; a plugin without `PLUGIN_API` means 1."""

_FIRST_PARTY: Mapping[str, str] = {
    "claude": "lighter-claude",
    "deepseek": "lighter-deepseek",
    "local": "lighter-local",
    "openai": "lighter-openai",
    "openai-chat": "lighter-openai",
}

_SPECS: Mapping[str, tuple[str, ...]] = {
    "providers": ("create_provider",),
    "tools": ("get_tools",),
    "hooks": EVENTS,
}

_SINGULAR = {"providers": "provider", "tools": "tools plugin", "hooks": "hooks plugin"}


@dataclass(frozen=True, slots=True)
class _Loaded:
    plugin: object
    manager: pluggy.PluginManager


class Registry:
    """The plugins of a process, or of one application or test.

    Args:
        allow: Names of distributions that may serve plugins; `None` means all. Default:
            the environment variable `LIGHTER_PLUGINS_ALLOW`, separated by commas; when
            it is set and empty, none.
        block: Names of distributions that may not. Default: `LIGHTER_PLUGINS_BLOCK`.
        scan: Whether to look at installed distributions at all.
    """

    def __init__(
        self,
        *,
        allow: Iterable[str] | None = None,
        block: Iterable[str] | None = None,
        scan: bool = True,
    ) -> None:
        self._allow = _names(allow, "LIGHTER_PLUGINS_ALLOW")
        self._block = _names(block, "LIGHTER_PLUGINS_BLOCK") or frozenset()
        self._scan = scan
        self._own: dict[tuple[str, str], object] = {}
        self._loaded: dict[tuple[str, str, str], _Loaded] = {}
        self._lock = threading.RLock()

    def register(self, plugin: object, *, name: str, kind: str = "providers") -> None:
        """Add a plugin object of the application; it goes before installed ones.

        Raises:
            PluginConflictError: When another object has that name already.
            HookError: When the object implements nothing of its kind.
        """
        _need_kind(kind)
        with self._lock:
            known = self._own.get((kind, name))
            if known is plugin:
                return
            if known is not None:
                raise PluginConflictError(
                    f"the {_SINGULAR[kind]} {name!r} is registered already",
                    kind=kind,
                    name=name,
                )
            self._loaded[kind, name, ""] = _register(plugin, name, _SPECS[kind])
            self._own[kind, name] = plugin

    def discover(self, kind: str | None = None) -> list[InstalledPlugin]:
        """Return the installed plugins that are allowed; nothing is imported."""
        if kind is not None:
            _need_kind(kind)
        if not self._scan:
            return []
        return [
            entry
            for entry in _installed()
            if kind in (None, entry.kind) and self._permits(entry.dist)
        ]

    def create_provider(
        self, name: str, options: Mapping[str, object], *, dist: str | None = None
    ) -> Provider:
        """Load the provider plugin of that name and let it make a provider.

        Raises:
            PluginError: When it is missing, ambiguous, broken or incompatible.
        """
        from ..provider import Provider

        loaded = self._load("providers", name, dist)
        made = loaded.manager.hook.create_provider(name=name, options=options)
        if not isinstance(made, Provider):
            raise PluginError(
                f"the provider plugin {name!r} made {type(made).__name__}, which is no"
                " Provider: it needs `name`, `invoke` and `stream`",
                kind="providers",
                name=name,
                dist=dist,
            )
        return made

    def load_tools(self, name: str, *, dist: str | None = None) -> list[Tool]:
        """Load the tools plugin of that name and return its tools.

        Raises:
            PluginError: When it is missing, ambiguous, broken or incompatible.
        """
        from ..tools import Tool

        loaded = self._load("tools", name, dist)
        groups: list[object] = loaded.manager.hook.get_tools() or [None]
        given: list[object] = []  # pluggy leaves None out of its results
        for group in groups:
            given.extend(
                cast("Iterable[object]", group) if _is_many(group) else [group]
            )
        tools = [each for each in given if isinstance(each, Tool)]
        for each in given:
            if not isinstance(each, Tool):
                raise PluginError(
                    f"the tools plugin {name!r} gave {type(each).__name__}; get_tools"
                    " must return an iterable of Tool objects",
                    kind="tools",
                    name=name,
                    dist=dist,
                )
        return tools

    def load_hooks(self, name: str, *, dist: str | None = None) -> object:
        """Load the hooks plugin of that name and return its plugin object.

        Raises:
            PluginError: When it is missing, ambiguous, broken or incompatible.
        """
        return self._load("hooks", name, dist).plugin

    def _permits(self, dist: str) -> bool:
        return dist not in self._block and (self._allow is None or dist in self._allow)

    def _load(self, kind: str, name: str, dist: str | None) -> _Loaded:
        with self._lock:
            if dist is None and (kind, name) in self._own:
                return self._loaded[kind, name, ""]
            entry = self._find(kind, name, dist)
            key = (kind, name, entry.dist)
            if key not in self._loaded:
                self._loaded[key] = _import(entry)
            return self._loaded[key]

    def _find(self, kind: str, name: str, dist: str | None) -> InstalledPlugin:
        wanted = None if dist is None else normal_name(dist.strip())
        served = [entry for entry in self.discover(kind) if entry.name == name]
        found = [e for e in served if wanted is None or e.dist == wanted]
        if not found:
            raise self._missing(kind, name, dist, served)
        if len(found) > 1:
            dists = ", ".join(f"{e.dist} {e.version}" for e in found)
            raise PluginConflictError(
                f"several distributions serve the {_SINGULAR[kind]} {name!r}: {dists}."
                f" Choose one with dist={found[0].dist!r}, or uninstall the others",
                kind=kind,
                name=name,
            )
        owner = _FIRST_PARTY.get(name) if kind == "providers" else None
        if owner is not None and wanted is None and found[0].dist != owner:
            raise PluginConflictError(
                f"the provider {name!r} belongs to {owner}, but {found[0].dist}"
                f" {found[0].version} serves it here; if you trust that, say"
                f" dist={found[0].dist!r}",
                kind=kind,
                name=name,
                dist=found[0].dist,
            )
        return found[0]

    def _missing(
        self, kind: str, name: str, dist: str | None, served: Sequence[InstalledPlugin]
    ) -> PluginNotFoundError:
        what = _SINGULAR[kind]
        if served:  # by another distribution than the one asked for
            others = ", ".join(e.dist for e in served)
            text = f"{dist!r} serves no {what} {name!r}; these do: {others}"
            return PluginNotFoundError(text, kind=kind, name=name, dist=dist)
        names = {entry.name for entry in self.discover(kind)}
        names |= {own for own_kind, own in self._own if own_kind == kind}
        listed = ", ".join(sorted(names)) or "none"
        text = f"no {what} {name!r} is installed; installed: {listed}."
        known = dict(_FIRST_PARTY) if kind == "providers" else dict[str, str]()
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
            packages = ", ".join(sorted(set(known.values())))
            text += f" Lighter's own are in the packages {packages} (pip install …)"
        if self._allow is not None or self._block:
            text += (
                " (some are blocked by LIGHTER_PLUGINS_ALLOW or LIGHTER_PLUGINS_BLOCK)"
            )
        return PluginNotFoundError(text, kind=kind, name=name, dist=dist)


def _is_many(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _need_kind(kind: str) -> None:
    if kind not in _SPECS:
        raise ValueError(f"kind must be one of {', '.join(_SPECS)}, got {kind!r}")


def _names(given: Iterable[str] | None, variable: str) -> frozenset[str] | None:
    if given is None:
        text = os.environ.get(variable)
        if text is None:
            return None
        given = [part.strip() for part in text.split(",") if part.strip()]
    elif isinstance(given, str):
        raise TypeError(
            f"allow and block take lists of distributions, got a str: write [{given!r}]"
        )
    return frozenset(normal_name(each.strip()) for each in given)


def _import(entry: InstalledPlugin) -> _Loaded:
    """Import one entry point, check it, register it with a manager of its own."""
    source = (
        f"the {_SINGULAR[entry.kind]} {entry.name!r} of {entry.dist} {entry.version}"
    )
    module_name, _, attribute = entry.value.partition(":")
    try:
        module = importlib.import_module(module_name)
        plugin: object = module
        for part in attribute.split(".") if attribute else ():
            plugin = getattr(plugin, part)
    except (Exception, SystemExit) as error:  # a declared border
        raise PluginLoadError(
            f"{source} cannot be imported: {type(error).__name__}: {error}",
            kind=entry.kind,
            name=entry.name,
            dist=entry.dist,
        ) from error
    # The module speaks for the objects in it.
    wanted = getattr(plugin, "PLUGIN_API", getattr(module, "PLUGIN_API", 1))
    if wanted != PLUGIN_API:
        raise IncompatiblePluginError(
            f"{source} was written for plugin interface {wanted!r}; this lighter-core has"
            f" {PLUGIN_API}. Install versions that fit each other",
            kind=entry.kind,
            name=entry.name,
            dist=entry.dist,
        )
    try:
        loaded = _register(plugin, entry.name, _SPECS[entry.kind])
    except HookError as error:
        raise PluginLoadError(
            f"{source} is no plugin of its kind: {error}",
            kind=entry.kind,
            name=entry.name,
            dist=entry.dist,
        ) from error
    logger.debug("loaded %s", source)
    return loaded


def _register(plugin: object, name: str, specs: Sequence[str]) -> _Loaded:
    import pluggy

    from .objects import check_plugin, new_manager

    check_plugin(plugin, name, specs)
    manager = new_manager()
    try:
        manager.register(plugin, name=name)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        raise HookError(
            f"{name!r} cannot be registered: {error}", plugin=name
        ) from error
    return _Loaded(plugin, manager)


_lock = threading.Lock()
_scanned: list[InstalledPlugin] | None = None
_default: Registry | None = None


def _installed() -> list[InstalledPlugin]:
    global _scanned  # noqa: PLW0603 - once per process
    with _lock:
        if _scanned is None:
            _scanned = read_installed()
        return _scanned


def default_registry() -> Registry:
    """Return the registry that names in `Model.from_name` and `Agent` refer to."""
    global _default  # noqa: PLW0603 - once per process
    with _lock:
        if _default is None:
            _default = Registry()
        return _default
