"""The events of a stream.

Providers yield deltas and items of hosted tools, then one `MessageEvent`. An agent's
stream shows the deltas and items, events of its own about turns, tools, tokens and limits,
and one `AgentResponse` last. Both unions are open: a later version may add members, so
end a `match` with `case _`.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from ._dataclass import dataclass
from .messages import AssistantMessage, ToolCall, ToolMessage, Usage, UserMessage

__all__ = [
    "HostedToolItem",
    "LimitNear",
    "MessageAdded",
    "MessageEvent",
    "ModelCallRestarted",
    "ProviderStreamEvent",
    "ReasoningDelta",
    "TextDelta",
    "ToolCallDelta",
    "ToolCallFinished",
    "ToolCallStarted",
    "ToolProgress",
    "TurnEnded",
    "TurnStarted",
    "UsageUpdated",
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


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A tool that is at work tells how far it is, by `run.progress(…)`.

    Attributes:
        call_id: The call.
        tool_name: The tool.
        value: What it tells, plain data. Some may be left out when nobody reads.
    """

    call_id: str
    tool_name: str
    value: object
    type: Literal["tool_progress"] = field(default="tool_progress", kw_only=True)


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The model is asked; deltas follow.

    Attributes:
        number: Of the turn in this run, from 1.
    """

    number: int
    type: Literal["turn_started"] = field(default="turn_started", kw_only=True)


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The reply is complete and its tool calls are answered.

    Attributes:
        number: Of the turn in this run, from 1.
        message: The reply.
    """

    number: int
    message: AssistantMessage
    type: Literal["turn_ended"] = field(default="turn_ended", kw_only=True)


@dataclass(frozen=True, slots=True)
class UsageUpdated:
    """A model call has told what it used.

    Attributes:
        usage: Tokens of the run so far.
    """

    usage: Usage
    type: Literal["usage_updated"] = field(default="usage_updated", kw_only=True)


@dataclass(frozen=True, slots=True)
class LimitNear:
    """The run has used four fifths of one of its limits; told once for each.

    Attributes:
        limit: Which, as in `RunLimits`.
        used: How much.
        value: The limit.
    """

    limit: str
    used: float
    value: float
    type: Literal["limit_near"] = field(default="limit_near", kw_only=True)


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """A message given by `steer` or `follow_up` has joined the conversation."""

    message: UserMessage
    type: Literal["message_added"] = field(default="message_added", kw_only=True)


ProviderStreamEvent: TypeAlias = (
    TextDelta | ReasoningDelta | ToolCallDelta | HostedToolItem | MessageEvent
)
