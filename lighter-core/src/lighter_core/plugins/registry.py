"""Finding a plugin by name, and loading that one alone.

Installed plugins do nothing until an application names them. Loading has four steps:
read the metadata once per process; find the name; import, check and register that one
entry point; call its function. A broken plugin never affects another, and no plugin
sees the options (the key) that are meant for another.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from ..errors import (
    IncompatiblePluginError,
    PluginConflictError,
    PluginError,
    PluginLoadError,
)
from . import _missing
from ._entries import (
    SINGULAR,
    SPECS,
    Failure,
    Key,
    PluginEntry,
    PluginState,
    Rules,
    entries_of,
    owner_of,
)
from ._loading import PLUGIN_API, Loaded, api_problem, load_entry, register_plugin
from ._metadata import InstalledPlugin, MetadataNote, Scan, normal_name, scan_installed
from ._text import told, visible

if TYPE_CHECKING:
    from ..provider import Provider
    from ..tools import Tool

__all__ = [
    "PLUGIN_API",
    "MetadataNote",
    "PluginEntry",
    "PluginState",
    "Registry",
    "default_registry",
    "load_hooks",
    "load_tools",
]


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
        allowed, allow_source = _names(allow, "allow", "LIGHTER_PLUGINS_ALLOW")
        blocked, block_source = _names(block, "block", "LIGHTER_PLUGINS_BLOCK")
        self._rules = Rules(allowed, blocked or frozenset(), allow_source, block_source)
        self._scan = scan
        self._own: dict[tuple[str, str], Loaded] = {}
        self._loaded: dict[Key, Loaded] = {}
        self._failures: dict[Key, Failure] = {}
        # It guards the tables only. No plugin's code runs while it is held.
        self._lock = threading.Lock()

    def register(self, plugin: object, *, name: str, kind: str = "providers") -> None:
        """Add a plugin object of the application; it goes before installed ones.

        Raises:
            PluginConflictError: When another object has that name already.
            HookError: When the object implements nothing of its kind.
            IncompatiblePluginError: When it is for another plugin interface.
        """
        _need_kind(kind)
        source = f"the registered {SINGULAR[kind]} {name!r}"
        if problem := api_problem(getattr(plugin, "PLUGIN_API", PLUGIN_API)):
            raise IncompatiblePluginError(f"{source} {problem}", kind=kind, name=name)
        made = register_plugin(plugin, name, SPECS[kind], source=source)
        with self._lock:
            known = self._own.setdefault((kind, name), made)
        if known.plugin is not plugin:
            raise PluginConflictError(
                f"the {SINGULAR[kind]} {name!r} is registered already",
                kind=kind,
                name=name,
            )

    def discover(self, kind: str | None = None) -> list[PluginEntry]:
        """Return all plugins, each with its state; nothing is imported.

        Those of the application come first, then the installed ones, blocked ones and
        broken ones too, by kind, name and distribution.
        """
        if kind is not None:
            _need_kind(kind)
        with self._lock:
            own, loaded, failures = list(self._own), set(self._loaded), self._failures
            failures = dict(failures)
        entries = [
            PluginEntry(each, name, "", "", "", "registered", "")
            for each, name in sorted(own)
        ]
        if self._scan:
            installed = _scan().plugins
            entries += entries_of(installed, self._rules, loaded, failures)
        return [entry for entry in entries if kind in (None, entry.kind)]

    def notes(self) -> tuple[MetadataNote, ...]:
        """Return what the scan found wrong with the metadata of distributions."""
        return _scan().notes if self._scan else ()

    def resolve(self, kind: str, name: str, *, dist: str | None = None) -> PluginEntry:
        """Return the entry that a name stands for; nothing is imported.

        Args:
            kind: `"providers"`, `"tools"` or `"hooks"`.
            name: The plugin's name, exactly.
            dist: The distribution to take it from.

        Raises:
            PluginNotFoundError: When nothing that may be used serves the name.
            PluginConflictError: When several distributions do, or when the name belongs
                to another one; both are settled with `dist`.
        """
        _need_kind(kind)
        wanted = None if dist is None else normal_name(dist.strip())
        entries = self.discover(kind)
        served = [each for each in entries if each.name == name]
        usable = [each for each in served if each.state != "blocked"]
        if wanted is not None:
            usable = [each for each in usable if each.dist == wanted]
        elif usable and usable[0].state == "registered":
            return usable[0]
        if not usable or wanted == "":
            names = {each.name for each in entries if each.state != "blocked"}
            kinds = {each.kind for each in self.discover() if each.name == name}
            raise _missing.missing(kind, name, wanted, served, names, kinds)
        if len(usable) > 1:
            raise _missing.conflict(kind, name, usable)
        owner = owner_of(kind, name)
        if wanted is None and owner not in (None, usable[0].dist):
            raise _missing.foreign(usable[0], str(owner))
        return usable[0]

    def create_provider(
        self, name: str, options: Mapping[str, object], *, dist: str | None = None
    ) -> Provider:
        """Load the provider plugin of that name and let it make a provider.

        Raises:
            PluginError: When it is missing, ambiguous, broken or incompatible, or makes
                something else than a provider.
            Exception: What the plugin raises about its options, with a note saying who.
        """
        from ..provider import Provider

        loaded = self._load("providers", name, dist)
        try:
            made: object = loaded.manager.hook.create_provider(
                name=name, options=options
            )
        except SystemExit as error:  # a factory must not end the program
            raise _load_error(loaded, "providers", name, error) from error
        except Exception as error:
            error.add_note(f"raised by create_provider of {loaded.source}")
            raise
        if isinstance(made, Provider) and not isinstance(made, type):
            return made
        hint = ""
        if inspect.iscoroutine(made):
            made.close()  # it would warn that nobody awaited it
            hint = "; write create_provider as a plain def"
        what = "None" if made is None else visible(type(made).__name__)
        what = f"the class {visible(made.__name__)}" if isinstance(made, type) else what
        raise PluginError(
            f"{loaded.source} made {what}, which is no Provider: it needs `name`,"
            f" `invoke` and `stream`{hint}",
            kind="providers",
            name=name,
            dist=loaded.dist or None,
        )

    def load_tools(self, name: str, *, dist: str | None = None) -> list[Tool]:
        """Load the tools plugin of that name and return its tools.

        Raises:
            PluginError: When it is missing, ambiguous, broken or incompatible, or gives
                something else than tools.
        """
        from ..tools import Tool

        loaded = self._load("tools", name, dist)
        given: list[object] = []
        try:
            # One plugin, so one result; pluggy leaves None out of its results.
            results: list[object] = loaded.manager.hook.get_tools() or [None]
            for each in results:
                given.extend(
                    cast("Iterable[object]", each) if _is_many(each) else [each]
                )
        except (Exception, SystemExit) as error:  # a declared border: part of loading
            raise _load_error(loaded, "tools", name, error) from error
        tools = [each for each in given if isinstance(each, Tool)]
        for each in given:
            if not isinstance(each, Tool):
                if inspect.iscoroutine(each):
                    each.close()
                raise PluginError(
                    f"{loaded.source} gave {visible(type(each).__name__)}; get_tools must"
                    " return an iterable of Tool objects",
                    kind="tools",
                    name=name,
                    dist=loaded.dist or None,
                )
        return tools

    def load_hooks(self, name: str, *, dist: str | None = None) -> object:
        """Load the hooks plugin of that name and return its plugin object.

        Raises:
            PluginError: When it is missing, ambiguous, broken or incompatible.
        """
        return self.load("hooks", name, dist=dist)

    def load(self, kind: str, name: str, *, dist: str | None = None) -> object:
        """Load a plugin of any kind and return its module or object; call nothing of it.

        Raises:
            PluginError: When it is missing, ambiguous, broken or incompatible.
        """
        return self._load(kind, name, dist).plugin

    def _load(self, kind: str, name: str, dist: str | None) -> Loaded:
        entry = self.resolve(kind, name, dist=dist)
        if entry.state == "registered":
            return self._own[kind, name]
        key = (kind, name, entry.dist)
        if done := self._loaded.get(key):
            return done
        installed = InstalledPlugin(kind, name, entry.value, entry.dist, entry.version)
        try:
            made = load_entry(installed)
        except (PluginLoadError, IncompatiblePluginError) as error:
            known = isinstance(error, IncompatiblePluginError)
            with self._lock:
                self._failures[key] = Failure(
                    "incompatible" if known else "failed", error.message
                )
            raise
        with self._lock:
            self._failures.pop(key, None)
            return self._loaded.setdefault(key, made)


def _load_error(
    loaded: Loaded, kind: str, name: str, error: BaseException
) -> PluginLoadError:
    what = SPECS[kind][0]
    return PluginLoadError(
        f"{what} of {loaded.source} failed: {told(error)}",
        kind=kind,
        name=name,
        dist=loaded.dist or None,
    )


def _is_many(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _need_kind(kind: str) -> None:
    if kind not in SPECS:
        raise ValueError(f"kind must be one of {', '.join(SPECS)}, got {kind!r}")


def _names(
    given: Iterable[str] | None, parameter: str, variable: str
) -> tuple[frozenset[str] | None, str]:
    """Return normalised names of distributions, and who gave them."""
    source = f"Registry({parameter}=…)"
    if given is None:
        text = os.environ.get(variable)
        if text is None:
            return None, variable
        given = [part.strip() for part in text.split(",") if part.strip()]
        source = variable
    elif isinstance(given, str):
        raise TypeError(
            f"allow and block take lists of distributions, got a str: write [{given!r}]"
        )
    return frozenset(normal_name(each.strip()) for each in given), source


_lock = threading.Lock()
_scanned: Scan | None = None
_default: Registry | None = None


def _scan() -> Scan:
    global _scanned  # noqa: PLW0603 - once per process
    with _lock:
        if _scanned is None:
            _scanned = scan_installed()
        return _scanned


def default_registry() -> Registry:
    """Return the registry that names in `Model.from_name` and `Agent` refer to."""
    global _default  # noqa: PLW0603 - once per process
    with _lock:
        if _default is None:
            _default = Registry()
        return _default


def load_tools(name: str, *, dist: str | None = None) -> list[Tool]:
    """Return the tools of an installed plugin: `default_registry().load_tools(…)`."""
    return default_registry().load_tools(name, dist=dist)


def load_hooks(name: str, *, dist: str | None = None) -> object:
    """Return an installed hooks plugin: `default_registry().load_hooks(…)`."""
    return default_registry().load_hooks(name, dist=dist)
