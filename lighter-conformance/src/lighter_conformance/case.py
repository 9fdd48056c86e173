"""What is checked: how a provider is made, and how its service is played."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

from lighter_core import Model, PluginError, Provider
from lighter_core.testing import Turn

from .wires import ChatWire, MessagesWire, ResponsesWire, Wire, wire_named

__all__ = ["KEY", "Case", "ClassCase", "NamedCase", "ScriptedTurn", "find_case"]

KEY = "sk-canary-6f1d2c9b"
"""The key that providers get; it must never show."""

ScriptedTurn: TypeAlias = Turn | Callable[[str], Turn]
"""A reply, or a function of the last user message's text that returns one."""

TRAITS: Mapping[str, str] = {
    "http": "its service cannot be played: no wire is named (--lighter-wire)",
    "key": "it takes no `api_key`",
    "model_id": "it takes no `model_id`",
    "native": "it keeps no native context",
    "plugin": "it is no installed plugin",
    "reasoning": "it shows no reasoning",
    "script": "its replies cannot be scripted (--lighter-wire, or a Case with scripted)",
    "timeout": "it takes no `timeout`",
    "tools": "it knows no tools",
    "usage": "it reports no usage",
    "validates": "it does not say that it checks its requests",
}
"""What a case may have, and what is said of one that has not."""

_OF_SERVICES = frozenset({"key", "model_id", "native", "timeout", "validates"})


class Case:
    """A provider under test. Override what it needs.

    Args:
        name: Its name in reports.
        wire: The interface that it speaks; the suite then plays its service over
            loopback. `None` for a provider without one.
        has: Traits that it has although it has no wire, e.g. `"validates"`.
        lacks: Traits that it has not, e.g. `"reasoning"`.
        prompt: What to say to a provider whose replies cannot be scripted.
        plugin: The name that `Model.from_name` knows it by, if any.
    """

    def __init__(
        self,
        name: str,
        *,
        wire: Wire | None = None,
        has: Iterable[str] = (),
        lacks: Iterable[str] = (),
        prompt: str = "Say hello.",
        plugin: str | None = None,
    ) -> None:
        self.name = name
        self.wire = wire
        self.has = frozenset(has)
        self.lacks = frozenset(lacks)
        self.prompt = prompt
        self.plugin = plugin
        unknown = (self.has | self.lacks) - TRAITS.keys()
        if unknown:
            raise ValueError(f"no trait {min(unknown)!r}; there are {sorted(TRAITS)}")

    def make(self, **options: object) -> Provider:
        """Make a provider; options as `base_url` and `api_key` come from the checks."""
        raise NotImplementedError

    def scripted(self, turns: Sequence[ScriptedTurn]) -> Provider | None:  # noqa: ARG002
        """Make a provider without a service that gives these replies, the last for ever.

        `None` when that cannot be done.
        """
        return None

    def why_not(self, trait: str) -> str | None:
        """Return why a check that needs a trait says nothing here, else `None`."""
        if trait in self.lacks or not self._may_have(trait):
            return f"{self.name}: {TRAITS[trait]}"
        return None

    def _may_have(self, trait: str) -> bool:
        if trait in self.has:
            return True
        if trait == "http":
            return self.wire is not None
        if trait == "script":
            own = type(self).scripted is not Case.scripted
            return self.wire is not None or own
        if trait == "plugin":
            return self.plugin is not None
        return self.wire is not None or trait not in _OF_SERVICES

    def options_by_name(self) -> dict[str, object]:
        """Return all options, as `Model.from_name` takes them."""
        return self.defaults()

    def defaults(self) -> dict[str, object]:
        """Return the options that checks do not care about."""
        if self.wire is None:
            return {}
        given = {"api_key": ("key", KEY), "model_id": ("model_id", "test-model")}
        return {k: v for k, (trait, v) in given.items() if trait not in self.lacks}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ClassCase(Case):
    """A provider that a class or a function makes from keyword options.

    Args:
        make: The class or function.
        options: What it gets each time, before the options of the checks.
        fields: As in `Case`; the name is the class's unless given.
    """

    def __init__(
        self,
        make: Callable[..., Provider],
        options: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        wire: Wire | None = None,
        has: Iterable[str] = (),
        lacks: Iterable[str] = (),
        prompt: str = "Say hello.",
        plugin: str | None = None,
    ) -> None:
        super().__init__(
            name or str(getattr(make, "__name__", "provider")),
            wire=wire,
            has=has,
            lacks=lacks,
            prompt=prompt,
            plugin=plugin,
        )
        self._make = make
        self._options = dict(options or {})

    def make(self, **options: object) -> Provider:
        """Make one."""
        return self._make(**{**self.options_by_name(), **options})

    def options_by_name(self) -> dict[str, object]:
        """Return all options, as `Model.from_name` takes them."""
        return {**self.defaults(), **self._options}


class NamedCase(ClassCase):
    """A provider that is an installed plugin.

    Args:
        name: The name that `Model.from_name` takes.
        options: What it gets each time.
        fields: As in `Case`. The wires of Lighter's own providers are known.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, object] | None = None,
        *,
        wire: Wire | None = None,
        has: Iterable[str] = (),
        lacks: Iterable[str] = (),
        prompt: str = "Say hello.",
    ) -> None:
        known = _OWN.get(name)
        if wire is None and known is not None:
            wire, options = known, {"max_retries": 0, **(options or {})}

        def make(**given: object) -> Provider:
            return Model.from_name(name, **given).provider  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

        super().__init__(
            make,
            options,
            name=name,
            wire=wire,
            has=has,
            lacks=lacks,
            prompt=prompt,
            plugin=name,
        )


_OWN: Mapping[str, Wire] = {
    "claude": MessagesWire(),
    "deepseek": ResponsesWire(plain_reasoning=True),
    "openai": ResponsesWire(),
    "openai-chat": ChatWire(),
}


def find_case(
    spec: str,
    options: Mapping[str, object],
    *,
    wire: str | None = None,
    lacks: Iterable[str] = (),
) -> Case:
    """Return what a command line names.

    Args:
        spec: The name of a plugin, or `module:factory`. A factory makes a provider from
            the options, or a `Case`.
        options: The options.
        wire: The name of a wire.
        lacks: Traits that it has not.

    Raises:
        LookupError: When there is no such plugin, wire or attribute.
        ImportError: When the module cannot be imported.
        TypeError: When the factory makes something else.
    """
    played = None if wire is None else wire_named(wire)
    module_name, separator, attribute = spec.partition(":")
    if not separator:
        _need_plugin(spec, options)
        return NamedCase(spec, options, wire=played, lacks=lacks)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: object = getattr(importlib.import_module(module_name), attribute)
    except AttributeError as error:
        raise LookupError(f"{module_name} has no {attribute!r}") from error
    if isinstance(found, Case):
        return found
    if not callable(found):
        raise TypeError(f"{spec} is {type(found).__name__}, no factory")
    make = cast("Callable[..., Provider]", found)
    if played is None or (isinstance(found, type) and issubclass(found, Case)):
        made: object = make(**options)
        if isinstance(made, Case):
            return made
        if not isinstance(made, Provider):
            raise TypeError(f"{spec} made {type(made).__name__}, no Provider or Case")
    return ClassCase(make, options, name=attribute, wire=played, lacks=lacks)


def _need_plugin(name: str, options: Mapping[str, object]) -> None:
    try:
        Model.from_name(name, **options)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    except PluginError as error:
        raise LookupError(str(error)) from error
    except Exception:  # noqa: BLE001, S110 - the checks say more about those
        pass
