"""The loop between the model and the tools: one coroutine for every way to run it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace

from ._chain import HookChain
from ._channel import Sink
from ._closing import close_stream
from ._notes import collect_notes
from ._state import RunState
from ._tool_text import shorten
from .errors import HookError, ProviderContractError
from .events import (
    HostedToolItem,
    MessageEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from .history import repair_history, require_valid_history
from .limits import RunLimits
from .messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage
from .provider import Provider
from .requests import AgentRequest, ModelRequest, ToolSpec
from .results import AgentResponse
from .tools import Tool

__all__ = ["LoopSetup", "run_loop"]

logger: logging.Logger = logging.getLogger("lighter.run")


@dataclass(frozen=True, slots=True)
class LoopSetup:
    """What an agent brings into every run; shared by its runs, never changed."""

    provider: Provider
    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    system: SystemMessage | None
    chain: HookChain
    limits: RunLimits


async def run_loop(
    setup: LoopSetup, state: RunState, sink: Sink | None
) -> AgentResponse[object]:
    """Run until the model asks for no more tools; return the response.

    Only `Exception` becomes a failed response. Cancellation and other BaseExceptions
    pass; `state` then still has every completed message.

    Args:
        setup: The agent's part.
        state: The run's part; its messages are valid at every moment.
        sink: Where events go; `None` for a run without a stream.
    """
    started = time.perf_counter()
    try:
        with collect_notes(state.notes):
            await _rounds(setup, state, sink)
        if setup.chain.has("after_agent"):
            messages = await setup.chain.run(
                "after_agent", state.messages(), state.context
            )
            state.replace_messages(list(messages))
    except Exception as error:  # noqa: BLE001 - a declared border: the run
        # Not in a local variable: the error's traceback holds this frame.
        return _ended(state, state.response("failed", error), started)
    return _ended(state, state.response("completed"), started)


async def _rounds(setup: LoopSetup, state: RunState, sink: Sink | None) -> None:
    await _take_input(setup, state)
    while True:
        state.check_aborted()
        setup.limits.check_model_calls(state.progress.model_calls)
        if sink is not None:
            await sink.barrier()
        message = await _call_model(setup, state, sink)
        state.add_reply(message)
        if not message.tool_calls and state.take_output(message):
            return
        for call in message.tool_calls:
            await _answer(setup, state, sink, call)


async def _take_input(setup: LoopSetup, state: RunState) -> None:
    if setup.chain.has("before_agent"):
        request = AgentRequest(state.input)
        request = await setup.chain.run("before_agent", request, state.context)
        state.input = list(request.messages)
    repaired = repair_history(state.input)
    state.input = repaired.messages
    state.notes.extend(repaired.notes)
    state.progress.input = state.input
    if repaired.notes:
        logger.warning(
            "run %s: the input history was repaired: %s",
            state.context.run_id,
            "; ".join(repaired.notes),
            extra={"lighter_run_id": state.context.run_id},
        )


async def _call_model(
    setup: LoopSetup, state: RunState, sink: Sink | None
) -> AssistantMessage:
    state.progress.model_calls += 1
    request = _next_request(setup, state)
    if setup.chain.has("before_model"):
        request = await setup.chain.run("before_model", request, state.context)
        # Hooks may also edit the list in place: made anew, it is checked again.
        request = replace(request, messages=request.messages)
        require_valid_history(request.messages, provider=setup.provider.name)
    started = time.perf_counter()
    if sink is None:
        message = await setup.provider.invoke(request)
    else:
        message = await _stream_reply(setup.provider, request, sink)
    message = _checked_reply(setup.provider, message)
    state.count_call(message)
    logger.debug(
        "run %s: model call %d took %.3f s and asked for %d tool calls",
        state.context.run_id,
        state.progress.model_calls,
        time.perf_counter() - started,
        len(message.tool_calls),
        extra={
            "lighter_run_id": state.context.run_id,
            "lighter_provider": setup.provider.name,
            "lighter_model_call": state.progress.model_calls,
            "lighter_seconds": time.perf_counter() - started,
        },
    )
    if setup.chain.has("after_model"):
        replaced = await setup.chain.run("after_model", message, state.context)
        if problem := _reply_problem(replaced):
            raise HookError(
                f"an after_model hook {problem}; nothing was executed",
                event="after_model",
            )
        message = replaced
    return message


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
    if setup.chain.has("before_model"):  # hooks may edit what they get in place
        specs = tuple(deepcopy(each) for each in specs)
    return ModelRequest(messages, tool_specs=specs, output=spec)


async def _stream_reply(
    provider: Provider, request: ModelRequest, sink: Sink
) -> AssistantMessage:
    """Forward deltas and hold the provider to the grammar: deltas, then one message."""
    message: AssistantMessage | None = None
    number = 0
    stream = provider.stream(request)
    try:
        async for event in stream:
            number += 1
            if message is not None:
                raise ProviderContractError(
                    f"provider {provider.name!r} yielded a {type(event).__name__} after"
                    f" its message (event {number}); the message must come last, and once",
                    event_number=number,
                    provider=provider.name,
                )
            if isinstance(event, TextDelta | ReasoningDelta):
                if event.text and sink.emit(event):
                    await sink.room()
            elif isinstance(event, MessageEvent):
                message = event.message
            elif isinstance(event, ToolCallDelta | HostedToolItem):
                if sink.emit(event):
                    await sink.room()
            else:
                raise ProviderContractError(
                    f"provider {provider.name!r} yielded a {type(event).__name__} (event"
                    f" {number}); yield TextDelta, ReasoningDelta and one MessageEvent",
                    event_number=number,
                    provider=provider.name,
                )
    finally:
        await close_stream(stream)
    if message is None:
        raise ProviderContractError(
            f"the stream of provider {provider.name!r} ended without a complete message",
            event_number=number + 1,
            provider=provider.name,
        )
    return message


def _reply_problem(message: AssistantMessage) -> str | None:
    ids = [call.call_id for call in message.tool_calls]
    if "" in ids:
        return "gave a tool call with an empty id"
    if len(set(ids)) < len(ids):
        return "gave two tool calls with one id"
    return None


def _checked_reply(provider: Provider, message: object) -> AssistantMessage:
    if isinstance(message, AssistantMessage):
        problem = _reply_problem(message)
        if problem is None:
            return message
    else:
        problem = f"gave {type(message).__name__} instead of an AssistantMessage"
    raise ProviderContractError(
        f"provider {provider.name!r} {problem}; nothing was executed",
        event_number=1,
        provider=provider.name,
    )


async def _answer(
    setup: LoopSetup, state: RunState, sink: Sink | None, call: ToolCall
) -> None:
    if sink is not None:
        sink.emit(ToolCallStarted(call))
        await sink.barrier()
    state.check_aborted()
    state.progress.tool_calls += 1
    started = time.perf_counter()
    tool = setup.tools.get(call.tool_name)
    if tool is None:
        result = _unknown_tool(setup, call)
    else:
        try:
            result = await tool.answer(call, state.context)
        except asyncio.CancelledError:
            state.receipts[call.call_id] = "unknown" if tool.threaded else "cancelled"
            raise
        except BaseException:
            state.receipts[call.call_id] = "finished"  # by leaving the run
            raise
    state.receipts[call.call_id] = "finished"
    state.add_result(result)
    logger.debug(
        "run %s: tool %s %s after %.3f s",
        state.context.run_id,
        call.tool_name[:64],
        "failed" if result.is_error else "finished",
        time.perf_counter() - started,
        extra={
            "lighter_run_id": state.context.run_id,
            "lighter_tool": call.tool_name[:64],
            "lighter_tool_failed": result.is_error,
        },
    )
    if sink is not None:
        sink.emit(ToolCallFinished(call, result))


def _unknown_tool(setup: LoopSetup, call: ToolCall) -> ToolMessage:
    known = ", ".join(setup.tools) or "none"
    name = shorten(call.tool_name, 80)
    return ToolMessage(
        call_id=call.call_id,
        tool_name=call.tool_name,
        tool_output=shorten(f"there is no tool {name!r}; the tools are: {known}"),
        is_error=True,
    )


def _ended(
    state: RunState, response: AgentResponse[object], started: float
) -> AgentResponse[object]:
    seconds = time.perf_counter() - started
    extra = {
        "lighter_run_id": state.context.run_id,
        "lighter_status": response.status,
        "lighter_model_calls": state.progress.model_calls,
        "lighter_tool_calls": state.progress.tool_calls,
        "lighter_seconds": seconds,
    }
    logger.info(
        "run %s %s after %.3f s: %d model calls, %d tool calls%s",
        state.context.run_id,
        response.status,
        seconds,
        state.progress.model_calls,
        state.progress.tool_calls,
        "" if response.error is None else f" ({type(response.error).__name__})",
        extra=extra,
    )
    return response
