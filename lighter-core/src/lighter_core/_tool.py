"""`Tool`: a function that a model may call, and how its calls are run."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ._callables import (
    belongs_on_loop,
    check_function,
    check_name,
    check_takes_one,
    is_model,
)
from ._dataclass import dataclass
from ._schema import (
    ArgumentsError,
    Parameters,
    from_json_schema,
    from_model,
)
from ._signature import run_parameter
from ._threads import call_in_thread
from ._tool_text import error_text, result_text, shorten
from .context import RunContext
from .errors import ToolDefinitionError
from .limits import need_seconds
from .messages import ToolCall, ToolMessage
from .requests import JSONObject, ToolSpec

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Tool", "ToolRules"]

_ModelT = TypeVar("_ModelT", bound="BaseModel")

logger: logging.Logger = logging.getLogger("lighter.tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRules:
    """How a tool's calls are run."""

    thread: bool = True
    parallel: bool = True
    timeout: float | None = None
    approval: bool = False


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
        parallel: `False` keeps the tool from running beside others of one reply.
        timeout: Seconds that one call may take; the model then reads that it timed out.
            A worker thread cannot be stopped and goes on. Default: the run's
            `RunLimits.tool_seconds`.
        approval: `True` pauses the run before each call, until a person has decided.
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
        parallel: bool = True,
        timeout: float | None = None,
        approval: bool = False,
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
        parallel: bool = True,
        timeout: float | None = None,
        approval: bool = False,
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
        parallel: bool = True,
        timeout: float | None = None,
        approval: bool = False,
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
        rules = ToolRules(
            thread=thread, parallel=parallel, timeout=timeout, approval=approval
        )
        self._setup(name, description, parameters, func, built, run_name, rules)

    def _setup(
        self,
        name: str,
        description: str,
        parameters: object,
        func: Callable[..., object],
        built: Parameters,
        run_name: str | None,
        rules: ToolRules,
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
        self._threaded = rules.thread and not belongs_on_loop(func)
        if rules.timeout is not None:
            need_seconds(f"the timeout of tool {name!r}", rules.timeout)
        self._rules = rules
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

    @property
    def parallel(self) -> bool:
        """Whether it may run beside other tools of one reply."""
        return self._rules.parallel

    @property
    def timeout(self) -> float | None:
        """Seconds that one call may take."""
        return self._rules.timeout

    @property
    def approval(self) -> bool:
        """Whether a person must approve each call."""
        return self._rules.approval

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
            kwargs[self._run_name] = context.for_call(call.call_id, self._name)
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
