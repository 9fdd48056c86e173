"""One tool call of a run: the gates before it, its execution, its result."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import partial

from ._setup import LoopSetup
from ._state import Receipt, RunState
from ._tool import Tool
from ._tool_text import shorten
from .messages import ToolCall, ToolMessage
from .pausing import ApprovalRequest

__all__ = ["answered"]

logger: logging.Logger = logging.getLogger("lighter.run")

_NO_ROOM_NEEDED = nullcontext()


async def answered(
    setup: LoopSetup,
    state: RunState,
    call: ToolCall,
    threads: AbstractAsyncContextManager[object] = _NO_ROOM_NEEDED,
) -> ToolMessage | ApprovalRequest:
    """Execute a call between its hooks, and return its result.

    Or what a hook wants a person to approve; then the tool has not run.

    Args:
        setup: The agent's part.
        state: The run's part; its receipts tell how the tool itself ended.
        call: The call.
        threads: Entered around a tool that needs a worker thread.

    Raises:
        BaseException: Whatever a hook raises, and what tools may raise.
    """
    state.check_aborted()
    decided = state.decisions.get(call.call_id)
    if decided is False or isinstance(decided, str):
        told = f"a person denied this call{f': {decided}' if decided else ''}"
        return _refusal(call, told)
    if isinstance(decided, ToolCall):
        call = decided
    started = time.perf_counter()
    result = await _executed(setup, state, call, threads)
    if isinstance(result, ApprovalRequest):
        return result
    state.receipts.setdefault(call.call_id, "finished")
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
    return result


async def _executed(
    setup: LoopSetup,
    state: RunState,
    call: ToolCall,
    threads: AbstractAsyncContextManager[object],
) -> ToolMessage | ApprovalRequest:
    """Ask the hooks about a call, execute it, and let them see the result."""
    chain, context = setup.chain, state.context.for_call(call.call_id, call.tool_name)
    execute = partial(_execute, setup, state, call.call_id, threads)
    decision: ToolCall | ToolMessage | ApprovalRequest = call
    if chain.has("before_tool"):
        approved = call.call_id in state.decisions
        decision = await chain.decide(call, context, approved=approved)
    if isinstance(decision, ApprovalRequest):
        return decision
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


async def _execute(
    setup: LoopSetup,
    state: RunState,
    call_id: str,
    threads: AbstractAsyncContextManager[object],
    call: ToolCall,
) -> ToolMessage:
    """Execute a call that hooks let pass; the receipt says how that ended."""
    tool = setup.tools.get(call.tool_name)
    if tool is None:
        return _unknown_tool(setup, call)
    if call.call_id != call_id:  # an around_tool hook's own call
        call = replace(call, call_id=call_id)
    async with threads if tool.threaded else _NO_ROOM_NEEDED:
        try:
            result = await _in_time(setup, state, tool, call)
        except asyncio.CancelledError:
            state.receipts[call_id] = _left(tool)
            raise
        except BaseException:
            state.receipts[call_id] = "finished"  # by leaving the run
            raise
    if state.receipts.get(call_id) != "unknown":
        state.receipts[call_id] = "finished"  # also when a hook fails now
    return result


async def _in_time(
    setup: LoopSetup, state: RunState, tool: Tool, call: ToolCall
) -> ToolMessage:
    """Execute a tool within its time; after that the model reads that it was over."""
    seconds = setup.limits.tool_seconds if tool.timeout is None else tool.timeout
    if seconds is None:
        return await tool.answer(call, state.context)
    clock = asyncio.timeout(seconds)
    try:
        async with clock:
            return await tool.answer(call, state.context)
    except TimeoutError:  # the clock's own: a tool's errors are results
        state.receipts[call.call_id] = left = _left(tool)
        goes_on = "; it may still be at work" if left == "unknown" else ""
        return _refusal(call, f"the tool timed out after {seconds:g} s{goes_on}")


def _left(tool: Tool) -> Receipt:
    """Return how a call ends that is left: a thread cannot be stopped."""
    return "unknown" if tool.threaded else "cancelled"


def _unknown_tool(setup: LoopSetup, call: ToolCall) -> ToolMessage:
    known = ", ".join(setup.tools) or "none"
    name = shorten(call.tool_name, 80)
    return _refusal(call, f"there is no tool {name!r}; the tools are: {known}")


def _refusal(call: ToolCall, text: str) -> ToolMessage:
    return ToolMessage(
        call_id=call.call_id,
        tool_name=call.tool_name,
        tool_output=shorten(text),
        is_error=True,
    )
