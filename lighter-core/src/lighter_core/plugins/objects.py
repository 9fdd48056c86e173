"""Plugin objects: what their `@hookimpl` functions are, checked before anything runs.

pluggy accepts much that would then silently do nothing, or that only its own caller
understands. Lighter runs the functions itself, sync or async, so it refuses those first.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pluggy

from ..errors import HookError
from ..hooks import EVENTS
from . import hookspecs
from .hookspecs import PROJECT

__all__ = [
    "Implementation",
    "as_plugin",
    "check_plugin",
    "new_manager",
    "plugin_name",
    "read_hook_plugins",
]

_MARK = f"{PROJECT}_impl"
_SPECS = frozenset({*EVENTS, "create_provider", "get_tools"})


@dataclass(frozen=True, slots=True)
class Implementation:
    """One `@hookimpl` function of one plugin.

    Attributes:
        event: The name of the spec.
        function: The function, bound.
        arguments: The names of the arguments that it takes.
        value_name: The name of the argument that carries the value.
        call_name: The name of the argument that carries the call inside, of `around_*`.
        plugin: The plugin's name.
    """

    event: str
    function: Callable[..., object]
    arguments: tuple[str, ...]
    value_name: str
    call_name: str
    plugin: str


def new_manager() -> pluggy.PluginManager:
    """Return a pluggy manager that knows Lighter's specs."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


def plugin_name(plugin: object) -> str:
    """Return a readable name of a plugin object or module."""
    if inspect.ismodule(plugin) or inspect.isroutine(plugin):
        return plugin.__name__
    return f"{type(plugin).__module__}.{type(plugin).__qualname__}"


def check_plugin(plugin: object, name: str, specs: Sequence[str]) -> None:
    """Refuse a plugin whose functions would silently not run.

    Args:
        plugin: The plugin object or module.
        name: Its name, for error messages.
        specs: The specs of which it must implement one at least.

    Raises:
        HookError: Naming the plugin and the function at fault.
    """
    if inspect.isroutine(plugin):
        raise HookError(
            f"{name} is a function; say when it runs: @hookimpl.before_model above it,"
            " or BeforeModelHook(hook_name=…, hook_function=…)",
            plugin=name,
        )
    if inspect.isclass(plugin):
        raise HookError(
            f"{plugin.__name__} is a class; pass an object of it", plugin=name
        )
    found: list[str] = []
    for attribute in dir(plugin):
        try:
            function: Any = inspect.getattr_static(plugin, attribute)
        except AttributeError:  # a dir() that says more than there is
            continue
        if isinstance(function, staticmethod | classmethod):
            function = cast("Any", function).__func__
        mark = getattr(function, _MARK, None) if inspect.isroutine(function) else None
        if not isinstance(mark, dict):
            if attribute in _SPECS and callable(function):
                raise HookError(
                    f"{attribute} of plugin {name!r} is not marked: put @hookimpl above"
                    " it, or it would never run",
                    event=attribute,
                    plugin=name,
                )
            continue
        spec = str(mark.get("specname") or attribute)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        _check_function(name, spec, function, cast("dict[str, object]", mark))
        if spec in found:
            raise HookError(
                f"plugin {name!r} implements {spec} twice, and nothing says which goes"
                " first; make one function of both, or list the functions in hooks=[…]",
                event=spec,
                plugin=name,
            )
        found.append(spec)
    if not any(spec in found for spec in specs):
        raise HookError(
            f"plugin {name!r} ({type(plugin).__name__}) implements none of"
            f" {', '.join(specs)}: mark its functions with @hookimpl",
            plugin=name,
        )


def _check_function(
    name: str, spec: str, function: Any, mark: Mapping[str, object]
) -> None:
    problem = _spec_problem(spec, mark)
    if problem is None and _is_generator(function, spec):
        problem = "is a generator; return the value instead"
    if problem is None and spec not in EVENTS and inspect.iscoroutinefunction(function):
        problem = "is async, which only the hooks of a run may be; use a plain def"
    if problem is None:
        allowed = _arguments(spec)
        for parameter in inspect.signature(function).parameters.values():
            problem = problem or _parameter_problem(parameter, allowed)
    if problem is not None:
        raise HookError(f"{spec} of plugin {name!r} {problem}", event=spec, plugin=name)


def _spec_problem(spec: str, mark: Mapping[str, object]) -> str | None:
    if spec not in _SPECS:
        near = difflib.get_close_matches(spec, _SPECS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"is no hook that Lighter has{hint}"
    for option in ("wrapper", "hookwrapper", "tryfirst", "trylast"):
        if mark.get(option):
            return (
                f"uses {option}=True, which Lighter does not run: hooks run in the order"
                " of the application's list"
            )
    return None


def _is_generator(function: object, spec: str) -> bool:
    """Tell generators, which would never run; `get_tools` may well yield its tools."""
    if inspect.isgeneratorfunction(function):
        return spec != "get_tools"
    return inspect.isasyncgenfunction(function)


def _parameter_problem(
    parameter: inspect.Parameter, allowed: Sequence[str]
) -> str | None:
    if parameter.name in ("self", "cls"):
        return None
    if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
        return f"takes {parameter}; take plain arguments by their names"
    if parameter.name not in allowed:
        names = ", ".join(allowed) or "none"
        return f"takes {parameter.name!r}; the arguments are: {names}"
    if parameter.default is not parameter.empty:
        return f"gives {parameter.name!r} a default, which would hide the real value"
    return None


def read_hook_plugins(plugins: Sequence[object]) -> dict[int, list[Implementation]]:
    """Return the lifecycle functions of each plugin, by the plugin's `id`.

    Raises:
        HookError: For anything that would silently not run.
    """
    manager = new_manager()
    found: dict[int, list[Implementation]] = {}
    for number, given in enumerate(plugins):
        name = plugin_name(given)
        plugin = as_plugin(given)
        check_plugin(plugin, name, EVENTS)
        try:
            manager.register(plugin, name=f"{number}:{name}")
        except (pluggy.PluginValidationError, ValueError) as error:
            raise HookError(
                f"plugin {name!r} cannot be registered: {error}", plugin=name
            ) from error
        found[id(given)] = _of_plugin(manager, plugin, name)
    return found


def as_plugin(given: object) -> object:
    """Return a marked function as a plugin that has nothing else."""
    if not inspect.isroutine(given) or not isinstance(
        getattr(given, _MARK, None), dict
    ):
        return given
    mark = cast("Mapping[str, object]", getattr(given, _MARK))
    return SimpleNamespace(**{str(mark.get("specname") or given.__name__): given})


def _of_plugin(
    manager: pluggy.PluginManager, plugin: object, name: str
) -> list[Implementation]:
    found: list[Implementation] = []
    for event in EVENTS:
        names = _arguments(event)
        found += [
            Implementation(
                event,
                implementation.function,
                tuple(implementation.argnames),
                value_name=names[0],
                call_name=names[-1],
                plugin=name,
            )
            for implementation in getattr(manager.hook, event).get_hookimpls()
            if implementation.plugin is plugin
        ]
    return found


def _arguments(spec: str) -> Sequence[str]:
    return tuple(inspect.signature(getattr(hookspecs, spec)).parameters)
