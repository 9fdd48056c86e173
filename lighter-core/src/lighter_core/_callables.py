"""What can be the name and the function of a tool, and where the function runs."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Awaitable, Callable
from typing import Any

from .errors import ToolDefinitionError

__all__ = [
    "belongs_on_loop",
    "check_function",
    "check_name",
    "check_takes_one",
    "is_model",
    "is_name",
]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def is_name(name: object) -> bool:
    """Tell whether every service accepts the name."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def check_name(name: object) -> None:
    if not is_name(name):
        raise ToolDefinitionError(
            f"{name!r} is no tool name: use 1 to 64 letters, digits, '_' and '-' (the"
            " rule that all services share)",
            tool=name if isinstance(name, str) else None,
        )


def check_function(name: str, func: object) -> None:
    problem = None
    if inspect.isclass(func):
        problem = "is a class; pass a function"
    elif not callable(func):
        problem = f"must be callable, got {type(func).__name__}"
    elif inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
        problem = "is a generator; return the whole result instead"
    if problem:
        raise ToolDefinitionError(f"the function of tool {name!r} {problem}", tool=name)


def check_takes_one(
    name: str, func: Callable[..., object], run_name: str | None
) -> None:
    """Refuse a function that cannot be called with one value, and with the run by name.

    Raises:
        ToolDefinitionError: Naming the tool.
    """
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):  # a builtin without a signature
        return
    by_name = {} if run_name is None else {run_name: None}
    try:
        signature.bind(None, **by_name)
    except TypeError as error:
        raise ToolDefinitionError(
            f"the function of tool {name!r} must take one argument, the whole object of"
            f" parameters: {error}. For one argument each, use @tool",
            tool=name,
        ) from error


def is_model(value: object) -> bool:
    """Tell a pydantic model without importing pydantic for what is none."""
    return inspect.isclass(value) and hasattr(value, "model_validate_json")


def belongs_on_loop(func: Callable[..., object]) -> bool:
    """Tell whether the call itself belongs on the event loop's thread.

    What a decorator wraps says nothing about it: the wrapper of an `async def` may be a
    plain function that runs a loop of its own.
    """
    plain: Any = func
    while isinstance(plain, functools.partial):
        plain = plain.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not inspect.isroutine(plain):
        plain = type(plain).__call__  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType]
    if inspect.iscoroutinefunction(plain):
        return True
    # A function that returns an awaitable may need the running loop to make it.
    returned = getattr(plain, "__annotations__", {}).get("return")
    if isinstance(returned, str):
        return bool(re.match(r"(\w+\.)*(Awaitable|Coroutine|Future|Task)\b", returned))
    origin = typing.get_origin(returned) or returned
    return inspect.isclass(origin) and issubclass(origin, Awaitable)
