"""One tool call of a run: the gates before it, its execution, its result."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace

from ._channel import Sink
from ._setup import LoopSetup
from ._state import RunState
from ._tool_text import shorten
from .events import (
    ToolCallFinished,
    ToolCallStarted,
)
from .messages import ToolCall, ToolMessage

__all__ = ["answer_call"]

logger: logging.Logger = logging.getLogger("lighter.run")


async def answer_call(
    setup: LoopSetup, state: RunState, sink: Sink | None, call: ToolCall
) -> None:
    if sink is not None:
        sink.emit(ToolCallStarted(call))
        await sink.barrier()
    state.check_aborted()
    state.progress.tool_calls += 1
    started = time.perf_counter()
    result = await _executed(setup, state, call)
    state.receipts[call.call_id] = "finished"
    state.add_result(result)
    await state.save()
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


async def _executed(setup: LoopSetup, state: RunState, call: ToolCall) -> ToolMessage:
    """Ask the hooks about a call, execute it, and let them see the result."""
    chain, context = setup.chain, state.context.for_call(call.call_id)

    async def execute(call: ToolCall) -> ToolMessage:
        tool = setup.tools.get(call.tool_name)
        if tool is None:
            return _unknown_tool(setup, call)
        if call.call_id != context.call_id:  # an around_tool hook's own call
            call = replace(call, call_id=str(context.call_id))
        try:
            result = await tool.answer(call, state.context)
        except asyncio.CancelledError:
            state.receipts[call.call_id] = "unknown" if tool.threaded else "cancelled"
            raise
        except BaseException:
            state.receipts[call.call_id] = "finished"  # by leaving the run
            raise
        state.receipts[call.call_id] = "finished"  # also when a hook after it fails
        return result

    decision = await chain.decide(call, context) if chain.has("before_tool") else call
    if isinstance(decision, ToolMessage):
        result = decision
    elif chain.has("around_tool"):
        result = await chain.around("around_tool", decision, context, execute)
    else:
        result = await execute(decision)
    if chain.has("after_tool"):
        result = await chain.run("after_tool", result, context)
    if result.call_id != call.call_id:  # a hook's own message
        result = replace(result, call_id=call.call_id)
    return result


def _unknown_tool(setup: LoopSetup, call: ToolCall) -> ToolMessage:
    known = ", ".join(setup.tools) or "none"
    name = shorten(call.tool_name, 80)
    return ToolMessage(
        call_id=call.call_id,
        tool_name=call.tool_name,
        tool_output=shorten(f"there is no tool {name!r}; the tools are: {known}"),
        is_error=True,
    )
