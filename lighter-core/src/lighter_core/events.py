"""The events of a stream.

Providers yield `TextDelta`, `ReasoningDelta` and one `MessageEvent`. An agent's
stream shows the deltas, tool events of its own, and one `AgentResponse` last. Both
unions are open: a later version may add members, so end a `match` with `case _`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .messages import AssistantMessage, ToolCall, ToolMessage

__all__ = [
    "MessageEvent",
    "ProviderStreamEvent",
    "ReasoningDelta",
    "TextDelta",
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


ProviderStreamEvent: TypeAlias = TextDelta | ReasoningDelta | MessageEvent
