"""The functions that plugins may implement.

Mark an implementation with `@lighter_core.hookimpl`, or with `@hookimpl.before_tool` and
the like, which a type checker holds to the spec. It may take any subset of the arguments,
by name. `create_provider` and `get_tools` are called on the one plugin that was asked
for. The others run at their point of the loop, may be `def` or `async def`, and return a
replacement, or `None` to keep the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pluggy

if TYPE_CHECKING:
    from ..context import RunContext
    from ..hooks import CallModel, CallTool
    from ..messages import AssistantMessage, Message, ToolCall, ToolMessage
    from ..pausing import ApprovalRequest
    from ..provider import Provider
    from ..requests import AgentRequest, ModelRequest
    from ..results import AgentResponse
    from ..tools import Tool

__all__ = ["PROJECT", "hookspec"]

PROJECT = "lighter"
"""The project name of Lighter's pluggy markers."""

hookspec: Final = pluggy.HookspecMarker(PROJECT)


@hookspec(firstresult=True)
def create_provider(name: str, options: Mapping[str, object]) -> Provider | None:
    """Make the provider that the entry point `name` stands for.

    Args:
        name: The entry point's name; one module may serve several.
        options: What the application passed to `Model.from_name`, `model_id` included
            when it was given. Refuse what is unknown with a TypeError.
    """


@hookspec
def get_tools() -> Iterable[Tool]:  # type: ignore[empty-body]
    """Return the plugin's tools."""


@hookspec
def before_agent(request: AgentRequest, run: RunContext[object]) -> AgentRequest | None:
    """Run once at the start of a run, before the system prompt is added."""


@hookspec
def before_model(request: ModelRequest, run: RunContext[object]) -> ModelRequest | None:
    """Run before every model call; a replacement holds for that call only."""


@hookspec
def after_model(
    message: AssistantMessage, run: RunContext[object]
) -> AssistantMessage | None:
    """Run after every complete reply, before its tool calls are executed."""


@hookspec
def after_agent(
    messages: list[Message], run: RunContext[object]
) -> Sequence[Message] | None:
    """Run once after a run has succeeded; a replacement becomes its new messages."""


@hookspec
def before_tool(
    call: ToolCall, run: RunContext[object]
) -> ToolCall | ToolMessage | ApprovalRequest | None:
    """Run before every tool execution, and decide about it.

    A `ToolCall` replaces the call, and all other hooks are asked about the new one. A
    `ToolMessage` answers it instead of the tool, and no hook is asked after that: who
    denies, wins. An `ApprovalRequest` pauses the run until a person has decided, when no
    other hook denies. All keep the `call_id`. A hook that raises fails the run; the tool
    does not run.
    """


@hookspec
def after_tool(message: ToolMessage, run: RunContext[object]) -> ToolMessage | None:
    """Run after every tool execution, also on errors; a replacement goes to the model."""


@hookspec
def around_model(  # type: ignore[empty-body]
    request: ModelRequest, run: RunContext[object], call_model: CallModel
) -> AssistantMessage:  # pyright: ignore[reportReturnType]
    """Stand around every model call; the first of several hooks is the outermost.

    `await call_model(request)` makes the call and returns the reply; it may be called
    again, or not at all when another reply is returned.
    """


@hookspec
def around_tool(  # type: ignore[empty-body]
    call: ToolCall, run: RunContext[object], call_tool: CallTool
) -> ToolMessage:  # pyright: ignore[reportReturnType]
    """Stand around every tool execution, as `around_model` around model calls."""


@hookspec
def on_run_end(response: AgentResponse[object], run: RunContext[object]) -> None:
    """Run at the end of every run: success, failure and cancellation.

    A cancelled run shows a failed response whose error is the `CancelledError`. The hook
    has 5 seconds; what it raises is logged and changes nothing.
    """
