"""Tools: functions that a model may call."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from ._callables import (
    belongs_on_loop,
    check_function,
    check_name,
    check_takes_one,
    is_model,
    is_name,
)
from ._docstring import read_docstring
from ._schema import (
    ArgumentsError,
    Parameters,
    from_json_schema,
    from_model,
)
from ._signature import from_signature, run_parameter
from ._threads import call_in_thread
from ._tool_text import error_text, result_text, shorten
from .context import RunContext
from .errors import ToolDefinitionError
from .messages import ToolCall, ToolMessage
from .requests import JSONObject, ToolSpec

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["FunctionTool", "Tool", "tool"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
_ModelT = TypeVar("_ModelT", bound="BaseModel")

logger: logging.Logger = logging.getLogger("lighter.tools")


class Tool:
    """A function with a name, a description and a parameter schema.

    A function that takes the whole object as one argument; for one that takes keyword
    arguments use `@tool`. A second parameter annotated `RunContext` receives the run.

    Args:
        name: 1 to 64 letters, digits, `_` and `-`; the rule that all services share.
        description: When and why to use the tool, for the model.
        parameters: A pydantic model, whose instance `func` receives, or a JSON Schema
            of an object, whose parsed arguments it receives as a dict.
        func: The function, sync or async. A sync one runs on a worker thread.
        thread: `False` runs a sync function on the event loop itself.
        validate: Check arguments against a JSON Schema (needs the extra
            `lighter-core[jsonschema]`); a pydantic model always checks.

    Raises:
        ToolDefinitionError: For a bad name, schema or function.

    Example:
        ```python
        class Sum(BaseModel):
            a: int
            b: int

        add = Tool(
            name="add",
            description="Calculate the sum of two numbers.",
            parameters=Sum,
            func=lambda args: args.a + args.b,
        )
        ```
    """

    @overload
    def __init__(
        self,
        *,
        name: str,
        description: str,
        parameters: type[_ModelT],
        func: Callable[[_ModelT], object]
        | Callable[[_ModelT, RunContext[Any]], object],
        thread: bool = True,
    ) -> None: ...

    @overload
    def __init__(
        self,
        *,
        name: str,
        description: str,
        parameters: Mapping[str, object],
        func: Callable[[dict[str, Any]], object]
        | Callable[[dict[str, Any], RunContext[Any]], object],
        thread: bool = True,
        validate: bool = False,
    ) -> None: ...

    def __init__(
        self,
        *,
        name: str,
        description: str,
        parameters: type[BaseModel] | Mapping[str, object],
        func: Callable[..., object],
        thread: bool = True,
        validate: bool = False,
    ) -> None:
        check_name(name)
        check_function(name, func)
        if isinstance(parameters, Mapping):
            built = from_json_schema(name, parameters, validate)
        elif is_model(parameters):
            built = from_model(name, parameters)
        else:
            raise ToolDefinitionError(
                f"the parameters of tool {name!r} must be a pydantic model or a JSON"
                f" Schema dict, got {type(parameters).__name__}",
                tool=name,
            )
        run_name = run_parameter(func)
        check_takes_one(name, func, run_name)
        self._setup(name, description, parameters, func, built, run_name, thread)

    def _setup(
        self,
        name: str,
        description: str,
        parameters: object,
        func: Callable[..., object],
        built: Parameters,
        run_name: str | None,
        thread: bool,
    ) -> None:
        if not isinstance(description, str):
            raise ToolDefinitionError(
                f"the description of tool {name!r} must be a str", tool=name
            )
        self._name = name
        self._description = description
        self._given = parameters
        self._func = func
        self._built = built
        self._run_name = run_name
        self._threaded = thread and not belongs_on_loop(func)
        self._spec = ToolSpec(name, description, built.schema)

    @property
    def name(self) -> str:
        """The tool's name."""
        return self._name

    @property
    def description(self) -> str:
        """What the model reads about it."""
        return self._description

    @property
    def parameters(self) -> object:
        """The model or schema it was built from; for `@tool` the schema."""
        return self._given

    @property
    def func(self) -> Callable[..., object]:
        """The function."""
        return self._func

    @property
    def threaded(self) -> bool:
        """Whether calls run on a worker thread."""
        return self._threaded

    def get_spec(self) -> ToolSpec:
        """Return the definition for the model, a copy; `strict` is always `False`."""
        return deepcopy(self._spec)

    async def execute(
        self,
        args: JSONObject | str,
        *,
        call_id: str,
        run: RunContext[Any] | None = None,
    ) -> ToolMessage:
        """Validate the arguments, call the function, put its result into a message.

        Every `Exception` becomes a message with `is_error=True`: arguments that do not
        fit, a failing function, a result without a JSON form. Cancellation of the
        calling task, KeyboardInterrupt and SystemExit pass.

        Args:
            args: The arguments, as an object or as its JSON text.
            call_id: The id to answer.
            run: The run that the call belongs to.
        """
        try:
            text = args if isinstance(args, str) else result_text(args)
        except (TypeError, ValueError) as error:
            return self._failure(call_id, "invalid arguments: " + error_text(error))
        return await self.answer(ToolCall(call_id, self._name, text), run)

    async def answer(self, call: ToolCall, run: RunContext[Any] | None) -> ToolMessage:
        """Execute a call of the model; like `execute`."""
        try:
            args, kwargs = self._built.parse(call.arguments)
        except ArgumentsError as error:
            logger.debug("tool %s refused its arguments: %s", self._name, error)
            return self._failure(call.call_id, shorten(f"invalid arguments: {error}"))
        if self._run_name is not None:
            context = run if run is not None else RunContext[Any]()
            kwargs[self._run_name] = context.for_call(call.call_id)
        try:
            value = await self._call(args, kwargs)
            output = result_text(value)
        except asyncio.CancelledError as error:
            # The tool's own, unless this very task is being cancelled.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return self._raised(call.call_id, error)
        except Exception as error:  # noqa: BLE001 - a declared border: the model decides
            return self._raised(call.call_id, error)
        return ToolMessage(
            call_id=call.call_id, tool_name=self._name, tool_output=output
        )

    async def _call(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> object:
        if self._threaded:
            value = await call_in_thread(functools.partial(self._func, *args, **kwargs))
        else:
            value = self._func(*args, **kwargs)
        while inspect.isawaitable(value):
            value = await value
        return value

    def _raised(self, call_id: str, error: BaseException) -> ToolMessage:
        """Answer for a function that failed; the log has what the model does not see."""
        kind = type(error).__name__
        logger.warning(
            "tool %s failed: %s",
            self._name,
            kind,
            extra={"lighter_error": kind},
        )
        logger.debug("tool %s failed, in full:", self._name, exc_info=error)
        return self._failure(call_id, error_text(error))

    def _failure(self, call_id: str, text: str) -> ToolMessage:
        return ToolMessage(
            call_id=call_id, tool_name=self._name, tool_output=text, is_error=True
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self._name!r})"


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
        thread: bool,
    ) -> None:
        self._setup(name, description, built.schema, func, built, run_name, thread)
        self._call_through = func
        functools.update_wrapper(self, func, updated=())

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call the function itself, unchanged: no validation, no thread."""
        return self._call_through(*args, **kwargs)


@overload
def tool(function: Callable[_P, _R], /) -> FunctionTool[_P, _R]: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, thread: bool = True
) -> Callable[[Callable[_P, _R]], FunctionTool[_P, _R]]: ...


def tool(
    function: Callable[_P, _R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    thread: bool = True,
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

    def build(func: Callable[_P, _R]) -> FunctionTool[_P, _R]:
        return _build(func, name, description, thread, names)

    return build if function is None else build(function)


def _caller_names() -> Mapping[str, object]:
    """Return the local names where `@tool` stands, for annotations that use them."""
    frame = sys._getframe(2)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)


def _build(
    func: Callable[_P, _R],
    name: str | None,
    description: str | None,
    thread: bool,
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
        thread=thread,
    )
