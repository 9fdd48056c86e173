"""The functions that plugins may implement.

Mark an implementation with `@lighter_core.hookimpl`; it may take any subset of the
arguments, by name. `create_provider` and `get_tools` are called on the one plugin that
was asked for. The others run at their point of the loop, may be `def` or `async def`,
and return a replacement, or `None` to keep the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pluggy

if TYPE_CHECKING:
    from ..context import RunContext
    from ..messages import AssistantMessage, Message
    from ..provider import Provider
    from ..requests import AgentRequest, ModelRequest
    from ..tools import Tool

__all__ = ["PROJECT", "hookimpl", "hookspec"]

PROJECT = "lighter"
"""The project name of Lighter's pluggy markers."""

hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)


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
