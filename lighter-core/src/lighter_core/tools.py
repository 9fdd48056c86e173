"""Tools: functions that a model may call."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, overload

from ._callables import check_function, check_name, is_name
from ._docstring import read_docstring
from ._schema import Parameters
from ._signature import from_signature
from ._tool import Tool, ToolRules
from .errors import ToolDefinitionError

__all__ = ["FunctionTool", "Tool", "tool"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class FunctionTool(Tool, Generic[_P, _R]):
    """What `@tool` makes: a `Tool` that can still be called like the function."""

    def __init__(  # pyright: ignore[reportMissingSuperCall]
        self,
        func: Callable[_P, _R],
        *,
        name: str,
        description: str,
        built: Parameters,
        run_name: str | None,
        rules: ToolRules,
    ) -> None:
        self._setup(name, description, built.schema, func, built, run_name, rules)
        self._call_through = func
        functools.update_wrapper(self, func, updated=())

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call the function itself, unchanged: no validation, no thread."""
        return self._call_through(*args, **kwargs)


@overload
def tool(function: Callable[_P, _R], /) -> FunctionTool[_P, _R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    thread: bool = True,
    parallel: bool = True,
    timeout: float | None = None,
    approval: bool = False,
) -> Callable[[Callable[_P, _R]], FunctionTool[_P, _R]]: ...


def tool(
    function: Callable[_P, _R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    thread: bool = True,
    parallel: bool = True,
    timeout: float | None = None,
    approval: bool = False,
) -> FunctionTool[_P, _R] | Callable[[Callable[_P, _R]], FunctionTool[_P, _R]]:
    """Make a tool of a function; it stays callable.

    The name is the function's, the description its docstring without the sections
    about parameters, whose text describes the parameters; `Annotated[…, Field(…)]` goes
    first. Arguments are validated strictly: no `"3"` and no `true` for an `int`, no
    unknown ones; a pydantic model among the types keeps its own rules. A parameter
    annotated `RunContext` receives the run.

    Args:
        function: The function, sync or async.
        name: Another name for the model.
        description: Another description.
        thread: `False` runs a sync function on the event loop itself, for functions
            that are quick or must run there; the default is a worker thread.
        parallel: As in `Tool`.
        timeout: As in `Tool`.
        approval: As in `Tool`.

    Raises:
        ToolDefinitionError: For parameters that a model cannot give.

    Example:
        ```python
        @tool
        def add(a: int, b: int) -> int:
            "Calculate the sum of two numbers."
            return a + b
        ```
    """
    names = _caller_names()
    rules = ToolRules(
        thread=thread, parallel=parallel, timeout=timeout, approval=approval
    )

    def build(func: Callable[_P, _R]) -> FunctionTool[_P, _R]:
        return _build(func, name, description, rules, names)

    return build if function is None else build(function)


def _caller_names() -> Mapping[str, object]:
    """Return the local names where `@tool` stands, for annotations that use them."""
    frame = sys._getframe(2)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)


def _build(
    func: Callable[_P, _R],
    name: str | None,
    description: str | None,
    rules: ToolRules,
    names: Mapping[str, object],
) -> FunctionTool[_P, _R]:
    plain: Any = func
    while isinstance(plain, functools.partial):
        plain = plain.func
    chosen = name if name is not None else getattr(plain, "__name__", "")
    if name is None and not is_name(chosen):
        raise ToolDefinitionError(
            f"{func!r} has no usable name; give one with name=…", tool=None
        )
    check_name(chosen)
    check_function(chosen, func)
    text, descriptions = read_docstring(plain)
    built, run_name = from_signature(
        chosen, func, descriptions=descriptions, names=names
    )
    return FunctionTool(
        func,
        name=chosen,
        description=text if description is None else description,
        built=built,
        run_name=run_name,
        rules=rules,
    )
