"""Loading one entry point: import it, check it, register it with a manager of its own.

No lock is held here. Python's own import lock sees to it that a module runs once, also
when plugins load each other from several threads, and finds circles among them.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import HookError, IncompatiblePluginError, PluginLoadError
from ._entries import SINGULAR, SPECS
from ._metadata import InstalledPlugin
from ._text import told, visible

if TYPE_CHECKING:
    import pluggy

__all__ = ["PLUGIN_API", "Loaded", "api_problem", "load_entry", "register_plugin"]

logger: logging.Logger = logging.getLogger("lighter.plugins")

PLUGIN_API = 1
"""The version of the plugin interface; a plugin without `PLUGIN_API` means 1."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A plugin that can be used.

    Attributes:
        plugin: The module or object.
        manager: A pluggy manager with this plugin alone.
        source: What it is and where it comes from, for error messages.
        dist: Its distribution; empty for an object of the application.
    """

    plugin: object
    manager: pluggy.PluginManager
    source: str
    dist: str


def load_entry(entry: InstalledPlugin) -> Loaded:
    """Import, check and register one entry point.

    Raises:
        PluginLoadError: When it cannot be imported, or is no plugin of its kind.
        IncompatiblePluginError: When it is for another plugin interface.
    """
    source = (
        f"the {SINGULAR[entry.kind]} {entry.name!r} of {entry.dist} {entry.version}"
    )
    what = "cannot be imported"
    try:
        module, plugin = _import(entry.value)
        what = "is no plugin of its kind"
        # The module speaks for the objects in it.
        wanted = getattr(plugin, "PLUGIN_API", getattr(module, "PLUGIN_API", 1))
        problem = api_problem(wanted)
        loaded = None if problem else _register(plugin, entry, source)
    except (Exception, SystemExit) as error:  # a declared border
        cause = visible(error) if isinstance(error, HookError) else told(error)
        raise PluginLoadError(
            f"{source} {what}: {cause}",
            kind=entry.kind,
            name=entry.name,
            dist=entry.dist,
        ) from error
    if loaded is None:
        raise IncompatiblePluginError(
            f"{source} {problem}", kind=entry.kind, name=entry.name, dist=entry.dist
        )
    logger.debug("loaded %s", source)
    return loaded


def _register(plugin: object, entry: InstalledPlugin, source: str) -> Loaded:
    specs = SPECS[entry.kind]
    return register_plugin(plugin, entry.name, specs, source=source, dist=entry.dist)


def api_problem(wanted: object) -> str | None:
    """Return what is wrong with a `PLUGIN_API`, `None` when it fits."""
    if type(wanted) is not int:
        return (
            f"has PLUGIN_API = {_shown(wanted)}, which is no int; this lighter-core has"
            f" plugin interface {PLUGIN_API}"
        )
    if wanted == PLUGIN_API:
        return None
    newer = wanted > PLUGIN_API
    return (
        f"was written for plugin interface {wanted}; this lighter-core has {PLUGIN_API}."
        f" Install {'a newer lighter-core' if newer else 'a newer version of it'}"
    )


def _shown(value: object) -> str:
    return visible(repr(value))


def _import(value: str) -> tuple[object, object]:
    """Return the module and the object that an entry point's value names."""
    module_name, _, attribute = (part.strip() for part in value.partition(":"))
    module = importlib.import_module(module_name)
    plugin: object = module
    for part in attribute.split(".") if attribute else ():
        plugin = getattr(plugin, part)
    return module, plugin


def register_plugin(
    plugin: object, name: str, specs: Sequence[str], *, source: str, dist: str = ""
) -> Loaded:
    """Check a plugin and register it with a manager of its own.

    Raises:
        HookError: When it would silently not run.
    """
    import pluggy

    from .objects import as_plugin, check_plugin, new_manager

    checked = as_plugin(plugin)
    check_plugin(checked, name, specs)
    manager = new_manager()
    try:
        manager.register(checked, name=name)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        raise HookError(
            f"{name!r} cannot be registered: {error}", plugin=name
        ) from error
    return Loaded(plugin, manager, source, dist)
