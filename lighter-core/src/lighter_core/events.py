"""The events of a stream.

Providers yield deltas and items of hosted tools, then one `MessageEvent`. An agent's
stream shows the deltas and items, tool events of its own, and one `AgentResponse` last.
Both unions are open: a later version may add members, so end a `match` with `case _`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .messages import AssistantMessage, ToolCall, ToolMessage

__all__ = [
    "HostedToolItem",
    "MessageEvent",
    "ModelCallRestarted",
    "ProviderStreamEvent",
    "ReasoningDelta",
    "TextDelta",
    "ToolCallDelta",
    "ToolCallFinished",
    "ToolCallStarted",
]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the reply's text."""

    text: str
    type: Literal["text_delta"] = field(default="text_delta", kw_only=True)


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of reasoning text or of a reasoning summary."""

    text: str
    type: Literal["reasoning_delta"] = field(default="reasoning_delta", kw_only=True)


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """The complete reply; the last event of every provider stream."""

    message: AssistantMessage
    type: Literal["message"] = field(default="message", kw_only=True)


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a call's argument text, while the model writes it.

    Nothing of it is complete or checked: show it, do not act on it. The call itself is
    in the complete reply.
    """

    call_id: str
    tool_name: str
    arguments: str
    type: Literal["tool_call_delta"] = field(default="tool_call_delta", kw_only=True)


@dataclass(frozen=True, slots=True)
class HostedToolItem:
    """Something that a tool of the service itself has done, such as a web search.

    Attributes:
        name: The service's word for it, e.g. `"web_search_call"`.
        item: The service's own item as JSON text.
    """

    name: str
    item: str
    type: Literal["hosted_tool_item"] = field(default="hosted_tool_item", kw_only=True)


@dataclass(frozen=True, slots=True)
class ModelCallRestarted:
    """An `around_model` hook makes the call again: forget the deltas since the last one."""

    type: Literal["model_call_restarted"] = field(
        default="model_call_restarted", kw_only=True
    )


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """A tool is about to run; it runs once the consumer asks for the next event."""

    call: ToolCall
    type: Literal["tool_call_started"] = field(
        default="tool_call_started", kw_only=True
    )


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """A tool call was answered, by the tool or by an error result."""

    call: ToolCall
    message: ToolMessage
    type: Literal["tool_call_finished"] = field(
        default="tool_call_finished", kw_only=True
    )


ProviderStreamEvent: TypeAlias = (
    TextDelta | ReasoningDelta | ToolCallDelta | HostedToolItem | MessageEvent
)
