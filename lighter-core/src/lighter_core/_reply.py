"""One reply of the model: asked for in time, read event by event, checked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from contextlib import nullcontext
from typing import cast

from ._channel import Sink
from ._closing import close_stream
from .errors import ProviderContractError
from .events import (
    HostedToolItem,
    MessageEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from .limits import RunLimits, reached
from .messages import AssistantMessage
from .provider import Provider
from .requests import ModelRequest

__all__ = ["ask", "reply_problem"]


async def ask(
    provider: Provider, request: ModelRequest, sink: Sink | None, limits: RunLimits
) -> AssistantMessage:
    """Make the call within the time that it may take; return the checked reply.

    Raises:
        LimitExceededError: When the time is over; the request is cancelled.
        ProviderContractError: When the reply is none.
        Exception: Whatever the provider raises.
    """
    if limits.model_call_seconds is None and limits.idle_seconds is None:
        return await _reply(provider, request, sink, None)
    whole = asyncio.timeout(limits.model_call_seconds)
    seconds = limits.idle_seconds
    idle = None if seconds is None else _IdleClock(seconds)
    try:
        async with whole, idle.clock if idle is not None else nullcontext():
            return await _reply(provider, request, sink, idle)
    except TimeoutError as error:
        if idle is not None and idle.clock.expired():
            what = "seconds without anything from the model"
            raise reached("idle_seconds", idle.seconds, what) from error
        if limits.model_call_seconds is not None and whole.expired():
            what = "seconds for one model call"
            seconds = limits.model_call_seconds
            raise reached("model_call_seconds", seconds, what) from error
        raise


class _IdleClock:
    """Ends a model call when nothing comes for too long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.clock = asyncio.timeout(seconds)

    def start(self) -> None:
        """Count from now on."""
        self.clock.reschedule(asyncio.get_running_loop().time() + self.seconds)

    def stop(self) -> None:
        """Count no more until `start`."""
        self.clock.reschedule(None)


async def _reply(
    provider: Provider,
    request: ModelRequest,
    sink: Sink | None,
    idle: _IdleClock | None,
) -> AssistantMessage:
    if sink is None and idle is None:
        reply: object = await provider.invoke(request)
        return _checked_reply(provider, reply)
    return await _stream_reply(provider, request, sink, idle)


async def _stream_reply(
    provider: Provider,
    request: ModelRequest,
    sink: Sink | None,
    idle: _IdleClock | None,
) -> AssistantMessage:
    """Forward deltas and hold the provider to the grammar: deltas, then one message."""
    reading = _Reading(provider)
    stream = await _opened(provider, request)
    try:
        async for given in stream:
            event = reading.take(given)
            if event is not None and sink is not None and sink.emit(event):
                if idle is not None:
                    idle.stop()  # the consumer is slow now, not the model
                await sink.room()
            if idle is not None:
                idle.start()
    finally:
        await close_stream(stream)
    return reading.end()


_Shown = TextDelta | ReasoningDelta | ToolCallDelta | HostedToolItem
_TEXTS = TextDelta, ReasoningDelta  # `|` would make a new union for each event
_OTHERS = ToolCallDelta, HostedToolItem


class _Reading:
    """The events of one reply: each is checked, and the message is kept."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._message: AssistantMessage | None = None
        self._number = 0

    def take(self, event: object) -> _Shown | None:
        """Return the event if a consumer shall see it."""
        self._number += 1
        if self._message is not None:
            raise self._broken(
                event, " after its message; the message must come last, and once"
            )
        if isinstance(event, _TEXTS):
            text: object = event.text
            if not isinstance(text, str):
                raise self._broken(event, f" whose text is {type(text).__name__}")
            return event if text else None
        if isinstance(event, _OTHERS):
            return event
        if isinstance(event, MessageEvent):
            self._message = _checked_reply(self._provider, event.message, self._number)
            return None
        raise self._broken(
            event, "; yield TextDelta, ReasoningDelta and one MessageEvent"
        )

    def end(self) -> AssistantMessage:
        """Return the message."""
        if self._message is None:
            what = "ended its stream without a complete message"
            raise _broken(self._provider, what, self._number + 1)
        return self._message

    def _broken(self, event: object, what: str) -> ProviderContractError:
        return _broken(
            self._provider, f"yielded a {type(event).__name__}{what}", self._number
        )


async def _opened(provider: Provider, request: ModelRequest) -> AsyncIterable[object]:
    stream: object = provider.stream(request)
    if isinstance(stream, AsyncIterable):
        return cast("AsyncIterable[object]", stream)
    await close_stream(stream)
    what = f"stream() gave a {type(stream).__name__}: write it as an async generator"
    raise _broken(provider, what, 1)


def _broken(provider: Provider, what: str, number: int) -> ProviderContractError:
    return ProviderContractError(
        f"provider {provider.name!r}, event {number} of its stream: {what}",
        event_number=number,
        provider=provider.name,
    )


def reply_problem(message: AssistantMessage) -> str | None:
    """Return what is wrong with a reply's calls; `None` for nothing."""
    ids = [call.call_id for call in message.tool_calls]
    if "" in ids:
        return "gave a tool call with an empty id"
    if len(set(ids)) < len(ids):
        return "gave two tool calls with one id"
    return None


def _checked_reply(
    provider: Provider, message: object, number: int | None = None
) -> AssistantMessage:
    """Return what a provider gave, by `invoke` or as the event of that number."""
    if isinstance(message, AssistantMessage):
        problem = reply_problem(message)
        if problem is None:
            return message
    else:
        problem = f"gave {type(message).__name__} instead of an AssistantMessage"
    problem += "; nothing was executed"
    if number is not None:
        raise _broken(provider, problem, number)
    raise ProviderContractError(
        f"provider {provider.name!r} {problem}",
        event_number=1,
        provider=provider.name,
    )
