"""One model call of a run: the request, the hooks around it, the reply."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterable
from copy import deepcopy
from dataclasses import replace
from typing import cast

from ._channel import Sink
from ._closing import close_stream
from ._setup import LoopSetup
from ._state import RunState
from .errors import HookError, ProviderContractError
from .events import (
    HostedToolItem,
    MessageEvent,
    ModelCallRestarted,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from .history import require_valid_history
from .messages import AssistantMessage, SystemMessage
from .provider import Provider
from .requests import ModelRequest

__all__ = ["call_model"]

logger: logging.Logger = logging.getLogger("lighter.run")


async def call_model(
    setup: LoopSetup, state: RunState, sink: Sink | None
) -> AssistantMessage:
    state.progress.model_calls += 1
    request = _next_request(setup, state)
    if setup.chain.has("before_model"):
        request = await setup.chain.run("before_model", request, state.context)
        # Hooks may also edit the list in place: made anew, it is checked again.
        request = replace(request, messages=request.messages)
        require_valid_history(request.messages, provider=setup.provider.name)
    once = _Call(setup, state, sink)
    if setup.chain.has("around_model"):
        message: AssistantMessage = await setup.chain.around(
            "around_model", request, state.context, once
        )
        _need_good_ids("around_model", message)
    else:
        message = await once(request)
    if setup.chain.has("after_model"):
        message = await setup.chain.run("after_model", message, state.context)
        _need_good_ids("after_model", message)
    return message


class _Call:
    """The model call itself: what `around_model` hooks call, once or again."""

    def __init__(self, setup: LoopSetup, state: RunState, sink: Sink | None) -> None:
        self._setup, self._state, self._sink = setup, state, sink
        self._made = 0

    async def __call__(self, request: ModelRequest) -> AssistantMessage:
        setup, state, sink = self._setup, self._state, self._sink
        if self._made:
            await self._again()
        self._made += 1
        if setup.chain.has("around_model"):
            request = replace(request, messages=request.messages)
            require_valid_history(request.messages, provider=setup.provider.name)
        started = time.perf_counter()
        if sink is None:
            reply: object = await setup.provider.invoke(request)
            message = _checked_reply(setup.provider, reply)
        else:
            message = await _stream_reply(setup.provider, request, sink)
        state.count_call(message)
        _log_call(setup, state, message, time.perf_counter() - started)
        return message

    async def _again(self) -> None:
        state, sink = self._state, self._sink
        state.check_aborted()
        self._setup.limits.check_model_calls(state.progress.model_calls)
        state.progress.model_calls += 1
        if sink is not None:
            sink.emit(ModelCallRestarted())
            await sink.barrier()


def _need_good_ids(event: str, message: AssistantMessage) -> None:
    if problem := _reply_problem(message):
        raise HookError(f"an {event} hook {problem}; nothing was executed", event=event)


def _log_call(
    setup: LoopSetup, state: RunState, message: AssistantMessage, seconds: float
) -> None:
    logger.debug(
        "run %s: model call %d took %.3f s and asked for %d tool calls",
        state.context.run_id,
        state.progress.model_calls,
        seconds,
        len(message.tool_calls),
        extra={
            "lighter_run_id": state.context.run_id,
            "lighter_provider": setup.provider.name,
            "lighter_model_call": state.progress.model_calls,
            "lighter_seconds": seconds,
        },
    )


def _next_request(setup: LoopSetup, state: RunState) -> ModelRequest:
    messages = state.context_messages()
    system, spec = setup.system, None
    if state.plan is not None:
        if "output" in getattr(setup.provider, "capabilities", ()):
            spec = state.plan.spec
        else:
            prompt = [system.content] if system is not None else []
            system = SystemMessage("\n\n".join([*prompt, state.plan.instruction]))
    if system is not None:
        messages.insert(0, system)
    specs = setup.specs
    # Hooks may edit what they get in place.
    if setup.chain.has("before_model") or setup.chain.has("around_model"):
        specs = tuple(deepcopy(each) for each in specs)
    return ModelRequest(messages, tool_specs=specs, output=spec)


async def _stream_reply(
    provider: Provider, request: ModelRequest, sink: Sink
) -> AssistantMessage:
    """Forward deltas and hold the provider to the grammar: deltas, then one message."""
    message: AssistantMessage | None = None
    number = 0
    stream = await _opened(provider, request)
    try:
        async for event in stream:
            number += 1
            what = f"yielded a {type(event).__name__}"
            if message is not None:
                what += " after its message; the message must come last, and once"
                raise _broken(provider, what, number)
            if isinstance(event, TextDelta | ReasoningDelta):
                text: object = event.text
                if not isinstance(text, str):
                    what += f" whose text is {type(text).__name__}"
                    raise _broken(provider, what, number)
                if text and sink.emit(event):
                    await sink.room()
            elif isinstance(event, MessageEvent):
                message = _checked_reply(provider, event.message, number)
            elif isinstance(event, ToolCallDelta | HostedToolItem):
                if sink.emit(event):
                    await sink.room()
            else:
                what += "; yield TextDelta, ReasoningDelta and one MessageEvent"
                raise _broken(provider, what, number)
    finally:
        await close_stream(stream)
    if message is None:
        what = "ended its stream without a complete message"
        raise _broken(provider, what, number + 1)
    return message


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


def _reply_problem(message: AssistantMessage) -> str | None:
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
        problem = _reply_problem(message)
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
