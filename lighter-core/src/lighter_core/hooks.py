"""The four hook classes: one function at one point of a run.

They are the explicit form. A plugin object with functions marked `@hookimpl` can stand
beside them in the same list. In every form a hook may be `def` or `async def`, gets a
value, and returns a replacement, or `None` to keep it. Sync hooks run on the event loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast

from .context import RunContext
from .errors import HookError
from .messages import (
    MESSAGE_CLASSES,
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
)
from .pausing import ApprovalRequest
from .requests import AgentRequest, ModelRequest

__all__ = [
    "AROUND_TAKES",
    "EVENTS",
    "AfterAgentHook",
    "AfterModelHook",
    "BeforeAgentHook",
    "BeforeModelHook",
    "CallModel",
    "CallTool",
    "Hook",
    "HookFunction",
    "checked_replacement",
]

_In = TypeVar("_In")
_Out = TypeVar("_Out")

HookFunction: TypeAlias = (
    Callable[[_In], _Out | None]
    | Callable[[_In], Awaitable[_Out | None]]
    | Callable[[_In, RunContext[Any]], _Out | None]
    | Callable[[_In, RunContext[Any]], Awaitable[_Out | None]]
)

CallModel: TypeAlias = Callable[[ModelRequest], Awaitable[AssistantMessage]]
"""What an `around_model` hook calls to make the model call."""

CallTool: TypeAlias = Callable[[ToolCall], Awaitable[ToolMessage]]
"""What an `around_tool` hook calls to execute the tool."""

EVENTS = (
    "before_agent",
    "before_model",
    "after_model",
    "after_agent",
    "before_tool",
    "after_tool",
    "around_model",
    "around_tool",
    "on_run_end",
)
"""The lifecycle events. `before_*` and `around_*` hooks run in the order of the list, the
first `around_*` outermost; `after_*` hooks and `on_run_end` in reverse."""

_RETURNS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "before_agent": ((AgentRequest,), "an AgentRequest"),
    "before_model": ((ModelRequest,), "a ModelRequest"),
    "after_model": ((AssistantMessage,), "an AssistantMessage"),
    "after_agent": ((list, tuple), "a list of messages"),
    "before_tool": (
        (ToolCall, ToolMessage, ApprovalRequest),
        "a ToolCall, a ToolMessage or an ApprovalRequest",
    ),
    "after_tool": ((ToolMessage,), "a ToolMessage"),
    "around_model": ((AssistantMessage,), "an AssistantMessage"),
    "around_tool": ((ToolMessage,), "a ToolMessage"),
    "on_run_end": ((), "nothing"),
}


AROUND_TAKES: Mapping[str, type] = {
    "around_model": ModelRequest,
    "around_tool": ToolCall,
}
"""What the call inside an `around_*` hook takes."""


def checked_replacement(
    event: str, value: object, *, hook: str, plugin: str | None
) -> object:
    """Return what a hook returned if its type fits the event.

    Raises:
        HookError: Naming hook, event and plugin.
    """
    kinds, expected = _RETURNS[event]
    if isinstance(value, kinds) and (event != "after_agent" or _is_history(value)):
        return value
    keep = event not in ("around_model", "around_tool", "on_run_end")
    where = f" of plugin {plugin!r}" if plugin else ""
    raise HookError(
        f"the {event} hook {hook!r}{where} returned {type(value).__name__}; it must"
        f" return {expected}{', or None to keep the value' if keep else ''}",
        hook=hook,
        event=event,
        plugin=plugin,
    )


def _is_history(value: object) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(each, MESSAGE_CLASSES)
        for each in value  # pyright: ignore[reportUnknownVariableType]
    )


class Hook(Generic[_In, _Out]):
    """What the four hook classes share.

    Args:
        hook_name: Identifies the hook in errors and logs.
        hook_function: Gets the value, and the `RunContext` if it takes a second
            argument; returns a replacement, or `None` to keep the value.
        description: What the hook is for.

    Raises:
        HookError: When `hook_function` cannot be called with one or two arguments.
    """

    event: ClassVar[str]

    def __init__(
        self,
        *,
        hook_name: str,
        hook_function: HookFunction[_In, _Out],
        description: str | None = None,
    ) -> None:
        name: object = hook_name
        if not isinstance(name, str) or not name:
            raise HookError(
                f"hook_name must be a text that identifies the hook, got {name!r}",
                event=self.event,
            )
        self._hook_name = hook_name
        self._description = description
        self._function = hook_function
        self._takes_run = _takes_run(hook_function, hook_name, self.event)

    @property
    def hook_name(self) -> str:
        """The hook's name."""
        return self._hook_name

    @property
    def description(self) -> str | None:
        """What the hook is for."""
        return self._description

    @property
    def hook_function(self) -> HookFunction[_In, _Out]:
        """The function."""
        return self._function

    async def execute(
        self, value: _In, run: RunContext[Any] | None = None
    ) -> _In | _Out:
        """Run the hook on a value; return the replacement or the value itself.

        Raises:
            HookError: When the function returns a value of the wrong type.
            BaseException: Whatever the function raises, unchanged.
        """
        function = cast("Callable[..., object]", self._function)
        if self._takes_run:
            result = function(value, run if run is not None else RunContext[Any]())
        else:
            result = function(value)
        if inspect.isawaitable(result):
            result = await result
        if result is None:
            return value
        checked_replacement(self.event, result, hook=self._hook_name, plugin=None)
        return cast("_Out", result)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(hook_name={self._hook_name!r})"


def _takes_run(function: object, name: str, event: str) -> bool:
    if not callable(function) or inspect.isclass(function):
        raise HookError(
            f"the hook_function of {name!r} must be a function", hook=name, event=event
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    places = [
        p
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)
    ]
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in places)
    needed = sum(
        p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in places
    )
    needed_by_name = [
        p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty
    ]
    if needed > 2 or needed_by_name or not places:  # noqa: PLR2004
        raise HookError(
            f"the hook_function of {name!r} is called with (value) or (value, run)",
            hook=name,
            event=event,
        )
    if needed == 2 or open_ended:  # noqa: PLR2004
        return True
    return len(places) > 1 and places[1].name == "run"  # (value, run=None)


class BeforeAgentHook(Hook[AgentRequest, AgentRequest]):
    """Runs once at the start of a run, before the system prompt is added.

    A replacement becomes the run's input.
    """

    event = "before_agent"


class BeforeModelHook(Hook[ModelRequest, ModelRequest]):
    """Runs before every model call, also after tool results.

    A replacement holds for that call only. Tool specs that it adds are shown to the
    model but cannot be executed.

    Example:
        ```python
        def in_english(request: ModelRequest) -> ModelRequest:
            extra = SystemMessage("Answer in English.")
            return replace(request, messages=[*request.messages, extra])

        hook = BeforeModelHook(hook_name="in-english", hook_function=in_english)
        ```
    """

    event = "before_model"


class AfterModelHook(Hook[AssistantMessage, AssistantMessage]):
    """Runs after every complete reply, before its tool calls are executed.

    A replacement takes the reply's place in context, result and tool execution. Deltas
    do not pass through it.
    """

    event = "after_model"


class AfterAgentHook(Hook[list[Message], Sequence[Message]]):
    """Runs once after the loop has succeeded; not after a failure or an early stop.

    A replacement becomes the response's `messages`; it causes no further model call.
    """

    event = "after_agent"
