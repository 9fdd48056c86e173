"""One model call of a run: the request, the hooks around it, the reply."""

from __future__ import annotations

import logging
import time
from copy import deepcopy
from dataclasses import replace

from ._channel import Sink
from ._reply import ask, reply_problem
from ._setup import LoopSetup
from ._state import RunState
from .errors import HookError
from .events import (
    ModelCallRestarted,
    UsageUpdated,
)
from .history import require_valid_history
from .messages import AssistantMessage, SystemMessage
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
        message = await ask(setup.provider, request, sink, setup.limits)
        state.count_call(message)
        usage = state.progress.usage
        if sink is not None and state.all_events and usage is not None:
            sink.emit(UsageUpdated(usage))
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
    if problem := reply_problem(message):
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
