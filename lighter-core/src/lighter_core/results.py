"""What a run gives back."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Generic, Literal, Self, TypeAlias

from ._dataclass import dataclass
from .errors import LighterError
from .events import (
    HostedToolItem,
    LimitNear,
    MessageAdded,
    ModelCallRestarted,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallFinished,
    ToolCallStarted,
    ToolProgress,
    TurnEnded,
    TurnStarted,
    UsageUpdated,
)
from .messages import AssistantMessage, Message, Usage
from .pausing import PausedRun, PendingCall

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    OutputT_co = TypeVar("OutputT_co", covariant=True, default=None)
    AnyOutputT = TypeVar("AnyOutputT", default=object)
else:  # defaults of type variables are for type checkers; Python has them from 3.13 on
    from typing import TypeVar

    OutputT_co = TypeVar("OutputT_co", covariant=True)
    AnyOutputT = TypeVar("AnyOutputT")

__all__ = [
    "AgentResponse",
    "AgentStreamEvent",
    "NestedEvent",
    "OutputT_co",
    "RunStatus",
]

RunStatus: TypeAlias = Literal["completed", "failed", "paused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResponse(Generic[OutputT_co]):
    """The result of a run, and the last event of its stream.

    Attributes:
        status: `"completed"` when the loop ended normally, which does not say that
            every tool succeeded; `"failed"` when a model call, a hook or a limit
            ended it; `"paused"` when a call waits for a person's approval.
        messages: The new messages only: neither the input nor the system prompt. Each
            tool call among them is answered, so they can be appended to the history as
            they are, after a failure too.
        error: The exception that ended a failed run, the very object.
        usage: Tokens of all model calls of the run, where the provider reports them.
        stop_reason: Why the last model call stopped, in the vendor's word.
        output: The final answer in the form that `output=` asked for; `None` without
            it, and when the run failed.
        notes: What Lighter had to change or could not keep, one sentence each.
        paused: Of a run with status `"paused"`: what waits, and all that it needs to go
            on with `Agent.resume`. In `messages` the calls that wait are closed with an
            error result that says so, in case it never does.
    """

    status: RunStatus
    messages: list[Message]
    error: BaseException | None = None
    usage: Usage | None = None
    stop_reason: str | None = None
    output: OutputT_co | None = None
    notes: list[str] = field(default_factory=list[str])
    paused: PausedRun | None = None
    type: Literal["response"] = "response"

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The calls that wait for a decision."""
        return () if self.paused is None else self.paused.pending

    @property
    def text(self) -> str:
        """The text of the last assistant message, or `""` when there is none."""
        for message in reversed(self.messages):
            if isinstance(message, AssistantMessage):
                return message.content
        return ""

    def raise_if_failed(self) -> Self:
        """Raise `error` if the run failed; else return the response itself.

        Example:
            ```python
            history += (await agent.run(history)).raise_if_failed().messages
            ```
        """
        if self.status == "failed" and self.error is not None:
            if isinstance(self.error, LighterError):
                # Its message says it all; the frames inside would bury it.
                raise self.error.with_traceback(None)
            raise self.error
        return self


@dataclass(frozen=True, slots=True)
class NestedEvent:
    """An event of an agent that runs as a tool of this one.

    Attributes:
        call_id: The call that it answers.
        tool_name: The agent's name as a tool.
        event: The event; of a nested agent's own nested agent again a `NestedEvent`.
    """

    call_id: str
    tool_name: str
    event: AgentStreamEvent
    type: Literal["nested"] = field(default="nested", kw_only=True)


AgentStreamEvent: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | ToolCallDelta
    | HostedToolItem
    | ModelCallRestarted
    | ToolCallStarted
    | ToolCallFinished
    | ToolProgress
    | TurnStarted
    | TurnEnded
    | UsageUpdated
    | LimitNear
    | MessageAdded
    | NestedEvent
    | AgentResponse[AnyOutputT]
)
"""An event of an agent's stream; `AgentStreamEvent[Book]` ends with such an output."""
