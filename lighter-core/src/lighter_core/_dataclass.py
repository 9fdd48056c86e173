"""Frozen dataclasses whose methods are made when they are first needed.

`dataclasses.dataclass` writes and compiles six functions for each class; for the classes
of this package that takes longer than loading asyncio does. Here the fields are known at
once, as always, and the functions are the standard library's too, made by the first call
of one of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any, cast

__all__ = ["dataclass"]

_METHODS = ("__init__", "__repr__", "__eq__", "__hash__")
_OF_A_FIELD = (
    "default",
    "default_factory",
    "init",
    "repr",
    "hash",
    "compare",
    "kw_only",
)


def _frozen(
    *, frozen: bool, slots: bool, init: bool = True, kw_only: bool = False
) -> Callable[[type[Any]], type[Any]]:
    """As the standard library's, for frozen classes."""

    def make(cls: type[Any]) -> type[Any]:
        own = [name for name in _METHODS if name not in vars(cls)]
        made: Any = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
        )(cls)
        params = made.__dataclass_params__
        params.init, params.frozen = init, frozen
        params.repr = params.eq = True
        _prepare(made, own)
        return cast("type[Any]", made)

    return make


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _frozen


def _prepare(made: Any, own: list[str]) -> None:
    """Give a class methods that are replaced by the real ones when one is called."""
    waiting = set(own)

    def complete() -> None:
        if not waiting:
            return
        for name, function in _functions(made).items():
            if name in own:
                function.__qualname__ = f"{made.__qualname__}.{name}"
                function.__module__ = made.__module__
                setattr(made, name, function)
        waiting.clear()  # last: another thread may be here too

    for name in own:
        setattr(made, name, _first_call(made, name, complete))
    made.__signature__ = _Signature(complete)
    made.__setattr__, made.__delattr__ = _guards(made)
    if made.__reduce__ is object.__reduce__:
        made.__getstate__ = _state
        made.__setstate__ = _restore


def _functions(made: type[Any]) -> dict[str, Any]:
    """Return the methods that the standard library writes for such a class."""
    specs: list[tuple[str, Any, Any]] = []
    for each in dataclasses.fields(made):
        options: dict[str, Any] = {name: getattr(each, name) for name in _OF_A_FIELD}
        specs.append((each.name, each.type, dataclasses.field(**options)))
    namespace = {"__doc__": made.__doc__}
    if hasattr(made, "__post_init__"):
        namespace["__post_init__"] = made.__post_init__
    donor = dataclasses.make_dataclass(
        made.__name__, specs, namespace=namespace, frozen=True
    )
    return {name: vars(donor)[name] for name in _METHODS}


def _first_call(
    made: type[Any], name: str, complete: Callable[[], None]
) -> Callable[..., Any]:
    def method(self: object, *args: object, **values: object) -> Any:
        complete()
        return vars(made)[name](self, *args, **values)

    method.__name__, method.__qualname__ = name, f"{made.__qualname__}.{name}"
    return method


class _Signature:
    """What a class answers when it is asked for its parameters."""

    def __init__(self, complete: Callable[[], None]) -> None:
        self._complete = complete

    def __get__(self, instance: object, owner: type[Any]) -> object:
        import inspect

        self._complete()
        found = inspect.signature(owner.__init__)
        return found.replace(parameters=list(found.parameters.values())[1:])


def _guards(made: type[Any]) -> tuple[Callable[..., None], Callable[..., None]]:
    names = frozenset(each.name for each in dataclasses.fields(made))

    def refuse_setting(self: object, name: str, value: object) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def refuse_deleting(self: object, name: str) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    return refuse_setting, refuse_deleting


def _state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _restore(self: Any, state: list[object]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
