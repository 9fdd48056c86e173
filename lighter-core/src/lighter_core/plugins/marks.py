"""`hookimpl`: the mark of functions that implement Lighter's specs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import pluggy

from .hookspecs import PROJECT

if TYPE_CHECKING:
    from . import _signatures as forms

__all__ = ["HookMark", "hookimpl"]

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., object])

_mark: Final = pluggy.HookimplMarker(PROJECT)


class HookMark:
    """Marks a function as an implementation of a spec.

    `@hookimpl` goes by the function's name. `@hookimpl.before_tool` and the like say
    themselves which spec it is: the function may have any name, a type checker holds it
    to the spec's arguments and return type, and it may stand in a list of hooks by
    itself. Both take any subset of the arguments, by name, sync or async.

    Example:
        ```python
        @hookimpl.before_tool
        def no_deletes(call: ToolCall) -> ToolMessage | None:
            if call.tool_name != "delete":
                return None
            return ToolMessage(
                call_id=call.call_id,
                tool_name=call.tool_name,
                tool_output="nothing is deleted here",
                is_error=True,
            )

        agent = Agent("openai:model-id", tools=[delete], hooks=[no_deletes])
        ```
    """

    @overload
    def __call__(self, function: _FunctionT, /) -> _FunctionT: ...

    @overload
    def __call__(
        self, /, *, specname: str | None = None
    ) -> Callable[[_FunctionT], _FunctionT]: ...

    def __call__(self, function: Any = None, /, **options: Any) -> Any:
        """Mark a function; `specname` where its name is another than the spec's."""
        return _mark(function, **options)

    def create_provider(self, function: forms.CreateProvider) -> forms.CreateProvider:
        """Mark the function that makes a plugin's provider; never async."""
        return _mark(function, specname="create_provider")

    def get_tools(self, function: forms.GetTools) -> forms.GetTools:
        """Mark the function that returns a plugin's tools; never async."""
        return _mark(function, specname="get_tools")

    def before_agent(self, function: forms.BeforeAgent) -> forms.BeforeAgent:
        """Mark a hook that runs once at the start of a run."""
        return _mark(function, specname="before_agent")

    def before_model(self, function: forms.BeforeModel) -> forms.BeforeModel:
        """Mark a hook that runs before every model call."""
        return _mark(function, specname="before_model")

    def after_model(self, function: forms.AfterModel) -> forms.AfterModel:
        """Mark a hook that runs after every complete reply."""
        return _mark(function, specname="after_model")

    def after_agent(self, function: forms.AfterAgent) -> forms.AfterAgent:
        """Mark a hook that runs once after a run has succeeded."""
        return _mark(function, specname="after_agent")

    def before_tool(self, function: forms.BeforeTool) -> forms.BeforeTool:
        """Mark a gate that runs before every tool execution."""
        return _mark(function, specname="before_tool")

    def after_tool(self, function: forms.AfterTool) -> forms.AfterTool:
        """Mark a hook that runs after every tool execution."""
        return _mark(function, specname="after_tool")

    def around_model(self, function: forms.AroundModel) -> forms.AroundModel:
        """Mark a hook that stands around every model call."""
        return _mark(function, specname="around_model")

    def around_tool(self, function: forms.AroundTool) -> forms.AroundTool:
        """Mark a hook that stands around every tool execution."""
        return _mark(function, specname="around_tool")

    def on_run_end(self, function: forms.OnRunEnd) -> forms.OnRunEnd:
        """Mark a hook that runs at the end of every run."""
        return _mark(function, specname="on_run_end")

    def __repr__(self) -> str:
        return "hookimpl"


hookimpl: Final = HookMark()
"""The mark."""
