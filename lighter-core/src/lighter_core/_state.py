"""What a run has done so far, readable at every moment."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from ._inbox import Inbox
from ._schema import ArgumentsError
from ._tool_text import shorten
from .context import RunContext, RunProgress
from .errors import OutputError
from .events import LimitNear
from .history import INTERRUPTED, interrupted_result
from .messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from .pausing import WAITING, Decision, PausedRun, PendingCall, Resumption
from .results import AgentResponse, RunStatus

if TYPE_CHECKING:
    from ._journal import Journal
    from ._output import OutputPlan
    from .limits import RunLimits

__all__ = ["Receipt", "RunState"]

_NEAR = 0.8  # the part of a limit from which on it is told to be near

Receipt: TypeAlias = Literal["finished", "cancelled", "unknown"]
"""How a tool call that started has ended; `"unknown"` for a thread that may go on."""


class RunState:
    """The messages, counters and receipts of one run.

    Every view of the messages is acceptable as a history: a call without a result is
    shown with an "interrupted" one.
    """

    def __init__(
        self,
        messages: list[Message],
        deps: object,
        plan: OutputPlan | None = None,
        journal: Journal | None = None,
        run_id: str | None = None,
    ) -> None:
        self.input = messages
        self.plan = plan
        self.journal = journal
        self.progress: RunProgress = RunProgress()
        self.context: RunContext[object] = RunContext(
            deps=deps, run_id=run_id or os.urandom(16).hex(), progress=self.progress
        )
        self.notes: list[str] = []
        self.receipts: dict[str, Receipt] = {}
        self.aborted = False
        self.awaited = False
        self.turns = 0
        self.resumed = False
        self.decisions: Mapping[str, Decision] = {}
        self.pending: list[PendingCall] = []
        self.all_events = False  # whether the stream tells of turns, tokens, limits too
        self.inbox = Inbox()
        self._began = time.monotonic()
        self._near: set[str] = set()  # limits that were told to be near
        self.progress.input = messages
        self._new = self.progress.new
        self._open: list[ToolCall] = []  # calls of the last reply, from the first one
        self._done: dict[str, ToolMessage] = {}  # without a result; what others have
        self._final: list[Message] | None = None
        self._stop_reason: str | None = None
        self._output: object = None
        self._repaired = False

    def add_reply(self, message: AssistantMessage) -> None:
        """Take a complete reply; its calls wait for results now."""
        self._new.append(message)
        self._open = list(message.tool_calls)
        self.decisions = {}  # ids may come again: what was decided holds for one reply

    def add_message(self, message: UserMessage) -> None:
        """Take a message that the user gave while the run went on."""
        self._new.append(message)

    def limits_near(self, limits: RunLimits) -> list[LimitNear]:
        """Return the limits of which four fifths are used now, each once."""
        progress, usage = self.progress, self.progress.usage
        found: list[LimitNear] = []
        for name, used in (
            ("model_calls", progress.model_calls),
            ("tool_calls", progress.tool_calls),
            ("total_tokens", 0 if usage is None else usage.total_tokens),
            ("seconds", time.monotonic() - self._began),
        ):
            value: float | None = getattr(limits, name)
            if value is None or used < value * _NEAR or name in self._near:
                continue
            self._near.add(name)
            found.append(LimitNear(name, used, value))
        return found

    def count_call(self, message: AssistantMessage) -> None:
        """Take what a model call used and why it stopped, from the model's own reply.

        A hook may put another message in its place, but the tokens were spent.
        """
        self._stop_reason = message.stop_reason
        progress: RunProgress | None = self.progress
        while progress is not None and message.usage is not None:
            known = progress.usage
            progress.usage = message.usage if known is None else known + message.usage
            progress = progress.parent

    def add_result(self, message: ToolMessage) -> None:
        """Take the result of an open call; results stand in call order."""
        self._done[message.call_id] = message
        while self._open and self._open[0].call_id in self._done:
            self._new.append(self._done.pop(self._open.pop(0).call_id))

    def unanswered(self) -> list[ToolCall]:
        """Return the calls of the last reply that have no result yet."""
        return [call for call in self._open if call.call_id not in self._done]

    def take_output(self, message: AssistantMessage) -> bool:
        """Read the final answer; tell whether the run is over.

        The first answer that does not fit is sent back once, with what is wrong.

        Raises:
            OutputError: When the second one does not fit either.
        """
        if self.plan is None:
            return True
        try:
            self._output = self.plan.read(message.content)
        except ArgumentsError as error:
            if self._repaired:
                raise OutputError(
                    "the model's answer does not fit the output asked for, also after"
                    f" it was told what is wrong: {shorten(str(error))}"
                ) from error
            self._repaired = True
            self._new.append(UserMessage(self.plan.repair(str(error))))
            return False
        return True

    def check_limits(self, limits: RunLimits) -> None:
        """Refuse to go on when the tokens are used up.

        Raises:
            LimitExceededError: When they are.
        """
        usage = self.progress.usage
        if usage is not None:
            limits.check_tokens(usage.total_tokens)

    def count_tool_call(self, limits: RunLimits, name: str) -> None:
        """Count a tool call that is about to start.

        Raises:
            LimitExceededError: When it may not.
        """
        progress = self.progress
        self.check_limits(limits)
        limits.check_tool_calls(progress.tool_calls, progress.calls_by_name, name)
        progress.tool_calls += 1
        progress.calls_by_name[name] = progress.calls_by_name.get(name, 0) + 1

    def check_aborted(self) -> None:
        """End a cancelled run whose tool or hook swallowed the cancellation.

        Raises:
            CancelledError: When the run was cancelled through its handle.
        """
        if self.aborted:
            raise asyncio.CancelledError

    def replace_messages(self, messages: list[Message]) -> None:
        """Take what an `after_agent` hook made of the new messages."""
        self._final = messages

    def go_on(self, resumption: Resumption) -> None:
        """Take up a paused run where it stood, with what was decided."""
        paused, progress = resumption.paused, self.progress
        self.decisions = resumption.decisions
        self.resumed = True
        self.turns = progress.model_calls = paused.model_calls
        progress.calls_by_name = dict(paused.calls_by_name)
        progress.tool_calls = sum(paused.calls_by_name.values())
        progress.usage = paused.usage
        self._new += paused.messages
        self._open = paused.open_calls
        self._done = {each.call_id: each for each in paused.results}
        self._stop_reason = paused.stop_reason
        self.notes += paused.notes

    def wait_for(self, call: ToolCall, reason: str) -> None:
        """Note that a call waits for a decision."""
        self.pending.append(PendingCall(call, reason))

    def uncount_tool_call(self, name: str) -> None:
        """Take back the count of a call that did not start after all."""
        self.progress.tool_calls -= 1
        self.progress.calls_by_name[name] -= 1

    def _paused(self) -> PausedRun:
        return PausedRun(
            run_id=str(self.context.run_id),
            input=tuple(self.input),
            messages=tuple(self._new),
            results=tuple(self._done.values()),
            pending=tuple(self.pending),
            decided={
                call.call_id: self.decisions[call.call_id]
                for call in self.unanswered()
                if call.call_id in self.decisions
            },
            model_calls=self.progress.model_calls,
            calls_by_name=dict(self.progress.calls_by_name),
            usage=self.progress.usage,
            stop_reason=self._stop_reason,
            notes=tuple(self.notes),
        )

    def messages(self) -> list[Message]:
        """Return the new messages, each call answered."""
        if self._final is not None:
            return list(self._final)
        return self._closed()

    async def save(self) -> None:
        """Let the journal store what was completed since the last time.

        Raises:
            Exception: Whatever the journal raises; nothing may go on without it.
        """
        if self.journal is not None:
            await self.journal.save(self._new)

    async def end_journal(self) -> None:
        """Let the journal store the rest: calls that stay without a result are closed."""
        if self.journal is not None:
            await self.journal.end(self._new if self.pending else self._closed())

    def _closed(self) -> list[Message]:
        why = WAITING if self.pending else INTERRUPTED
        closing = (
            self._done.get(call.call_id) or interrupted_result(call, why)
            for call in self._open
        )
        return [*self._new, *closing]

    def context_messages(self) -> list[Message]:
        """Return input and new messages, for the next model call."""
        return [*self.input, *self._new]

    def response(
        self, status: RunStatus, error: BaseException | None = None
    ) -> AgentResponse[object]:
        """Return the run's result as it stands."""
        return AgentResponse(
            status=status,
            messages=self.messages(),
            error=error,
            usage=self.progress.usage,
            stop_reason=self._stop_reason,
            output=self._output if status == "completed" else None,
            notes=list(self.notes),
            paused=self._paused() if status == "paused" else None,
        )
