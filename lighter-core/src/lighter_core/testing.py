"""A scripted provider for tests of agents, hooks and tools. It sends nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .errors import ModelError, ProviderContractError
from .events import MessageEvent, ProviderStreamEvent, ReasoningDelta, TextDelta
from .messages import AssistantMessage, ToolCall, Usage
from .requests import ModelRequest

__all__ = ["FakeProvider", "Pause", "Script", "Turn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One scripted reply.

    Attributes:
        text: The reply's text.
        reasoning: The reply's reasoning.
        tool_calls: The calls that it asks for.
        usage: The tokens to report.
        stop_reason: The word to report.
        pieces: In how many deltas the text and the reasoning arrive.
    """

    text: str = ""
    reasoning: str | None = None
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage | None = None
    stop_reason: str | None = "end_turn"
    pieces: int = 2

    def message(self) -> AssistantMessage:
        """Return the complete reply."""
        return AssistantMessage(
            self.text,
            reasoning=self.reasoning,
            tool_calls=self.tool_calls,
            usage=self.usage,
            stop_reason=self.stop_reason,
        )


@dataclass(frozen=True, slots=True)
class Pause:
    """A place in a turn where the provider waits.

    Attributes:
        seconds: How long to wait.
        until: An event to wait for, instead.
    """

    seconds: float = 0.0
    until: asyncio.Event | None = field(default=None, kw_only=True)

    async def wait(self) -> None:
        """Wait."""
        if self.until is not None:
            await self.until.wait()
        else:
            await asyncio.sleep(self.seconds)


_Step: TypeAlias = ProviderStreamEvent | Pause | BaseException
_Reply: TypeAlias = str | Turn | AssistantMessage | BaseException | Sequence[_Step]
Script: TypeAlias = _Reply | Callable[[ModelRequest], _Reply]
"""One turn: a text, a `Turn`, a message, an exception to raise, the exact events of the
stream (with pauses and exceptions between them), or a function of the request."""


class FakeProvider:
    """A provider that follows a script, one entry for each call.

    Args:
        turns: The replies, in order.
        faults: Exceptions by position: `(turn, event)`, both counted from 0, raises just
            before that event of that turn's stream; the position behind the last event
            raises at the end. `invoke` raises a fault of the turn wherever it stands.
        name: The provider's name.

    Attributes:
        requests: The requests received, in order, as they were at that moment.
        closed_streams: How many streams have ended or were closed.

    Example:
        ```python
        provider = FakeProvider(
            [
                Turn(tool_calls=[ToolCall("c1", "add", '{"a": 19, "b": 23}')]),
                "19 + 23 = 42.",
            ]
        )
        response = await Agent(provider, tools=[add]).run("What is 19 + 23?")
        ```
    """

    capabilities: frozenset[str] = frozenset()

    def __init__(
        self,
        turns: Iterable[Script] = (),
        *,
        faults: Mapping[tuple[int, int], BaseException] | None = None,
        name: str = "fake",
    ) -> None:
        if isinstance(turns, str):
            raise TypeError(f"turns must be a list of replies: write [{turns!r}]")
        self._turns = list(turns)
        self._faults = dict(faults or {})
        self._name = name
        self.requests: list[ModelRequest] = []
        self.closed_streams: int = 0

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._name

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the next turn's message.

        Raises:
            ModelError: `invalid_request` when the script is over.
            BaseException: Whatever the script says.
        """
        message: AssistantMessage | None = None
        for step in self._next_steps(request):
            await asyncio.sleep(0)
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, Pause):
                await step.wait()
            elif isinstance(step, MessageEvent):
                message = step.message
        if message is None:
            raise ProviderContractError(
                "the scripted turn has no message", event_number=1, provider=self._name
            )
        return message

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield the next turn's events; errors as in `invoke`."""
        try:
            for step in self._next_steps(request):
                await asyncio.sleep(0)
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, Pause):
                    await step.wait()
                else:
                    yield step
        finally:
            self.closed_streams += 1

    def _next_steps(self, request: ModelRequest) -> list[_Step]:
        number = len(self.requests)
        self.requests.append(
            ModelRequest(
                request.messages,
                tool_specs=request.tool_specs,
                output=request.output,
                tool_choice=request.tool_choice,
            )
        )
        if number >= len(self._turns):
            raise ModelError(
                f"the script of provider {self._name!r} has {len(self._turns)} turns;"
                f" call {number + 1} finds none",
                "invalid_request",
                provider=self._name,
            )
        turn = self._turns[number]
        reply = turn(request) if callable(turn) else turn
        steps = _steps_of(reply)
        return self._with_faults(number, steps)

    def _with_faults(self, number: int, steps: list[_Step]) -> list[_Step]:
        out: list[_Step] = []
        event = 0
        for step in steps:
            if not isinstance(step, Pause | BaseException):
                fault = self._faults.get((number, event))
                if fault is not None:
                    out.append(fault)
                event += 1
            out.append(step)
        fault = self._faults.get((number, event))
        if fault is not None:
            out.append(fault)
        return out

    def __repr__(self) -> str:
        return f"FakeProvider(name={self._name!r}, turns={len(self._turns)})"


def _steps_of(reply: _Reply) -> list[_Step]:
    if isinstance(reply, BaseException):
        return [reply]
    if isinstance(reply, str):
        reply = Turn(text=reply)
    if isinstance(reply, Turn):
        return _deltas(reply.message(), reply.pieces)
    if isinstance(reply, AssistantMessage):
        return _deltas(reply, 2)
    return list(reply)


def _deltas(message: AssistantMessage, pieces: int) -> list[_Step]:
    steps: list[_Step] = [
        ReasoningDelta(piece) for piece in _cut(message.reasoning or "", pieces)
    ]
    steps.extend(TextDelta(piece) for piece in _cut(message.content, pieces))
    steps.append(MessageEvent(message))
    return steps


def _cut(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, pieces)))
    return [text[start : start + size] for start in range(0, len(text), size)]
