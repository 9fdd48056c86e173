"""All tool calls of one reply: in order, or side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from ._channel import Sink
from ._setup import LoopSetup
from ._state import RunState
from ._tool_call import answered
from .errors import LimitExceededError
from .events import ToolCallFinished, ToolCallStarted
from .messages import ToolCall
from .pausing import ApprovalRequest

__all__ = ["answer_calls"]

_END_SECONDS = 5.0  # that tools may take to end when the run has ended


async def answer_calls(setup: LoopSetup, state: RunState, sink: Sink | None) -> None:
    """Answer the calls of the last reply that have no result yet.

    Tools run one after the other. Where the agent runs them in parallel, those that
    stand side by side and allow it run at once; they start in call order, and their
    results stand in call order too.

    Raises:
        BaseException: What ends the run; what was completed is in the state.
    """
    while calls := state.unanswered():
        _note_waiting(setup, state, calls)
        if state.pending:
            return
        batch = _next_batch(setup, state, calls)
        if sink is not None:
            for call in batch:
                sink.emit(ToolCallStarted(call))
            await sink.barrier()
        if len(batch) == 1:
            await _answer(setup, state, sink, batch[0], nullcontext())
        else:
            await _answer_together(setup, state, sink, batch)


def _note_waiting(setup: LoopSetup, state: RunState, calls: Sequence[ToolCall]) -> None:
    """Pause where a hook or the next tool wants a person's approval.

    What else waits for one behind it is told too, so that the person is asked once.
    """
    if not state.pending and not _must_wait(setup, state, calls[0]):
        return
    known = {each.call.call_id for each in state.pending}
    for call in calls:
        if call.call_id not in known and _must_wait(setup, state, call):
            state.wait_for(call, "")


def _must_wait(setup: LoopSetup, state: RunState, call: ToolCall) -> bool:
    tool = setup.tools.get(call.tool_name)
    return tool is not None and tool.approval and call.call_id not in state.decisions


def _next_batch(
    setup: LoopSetup, state: RunState, calls: Sequence[ToolCall]
) -> list[ToolCall]:
    """Return the calls that start now, as many as the limits allow.

    Raises:
        LimitExceededError: When not even one may start.
    """
    batch: list[ToolCall] = []
    for call in calls:
        if batch and not (setup.parallel and _may_join(setup, call)):
            break
        if batch and _must_wait(setup, state, call):
            break
        try:
            state.count_tool_call(setup.limits, call.tool_name)
        except LimitExceededError:
            if not batch:
                raise
            break  # those before it still run
        batch.append(call)
        if not (setup.parallel and _may_join(setup, call)):
            break
    return batch


def _may_join(setup: LoopSetup, call: ToolCall) -> bool:
    tool = setup.tools.get(call.tool_name)
    return tool is None or tool.parallel


async def _answer(
    setup: LoopSetup,
    state: RunState,
    sink: Sink | None,
    call: ToolCall,
    threads: AbstractAsyncContextManager[object],
) -> None:
    result = await answered(setup, state, call, threads)
    if isinstance(result, ApprovalRequest):
        state.uncount_tool_call(call.tool_name)
        state.wait_for(call, result.reason)
        return
    state.add_result(result)
    await state.save()
    if sink is not None:
        sink.emit(ToolCallFinished(call, result))


async def _answer_together(
    setup: LoopSetup, state: RunState, sink: Sink | None, batch: Sequence[ToolCall]
) -> None:
    """Answer the calls at once; when one ends the run, the others are cancelled.

    Also one that is cancelled from inside, by a hook that raises `CancelledError`.
    """
    most = setup.limits.tool_threads
    threads = nullcontext() if most is None else asyncio.Semaphore(most)
    clock = asyncio.timeout(None)
    ender: ToolCall | None = None  # the call that ended the run

    async def one(call: ToolCall) -> BaseException | None:
        nonlocal ender
        try:
            await _answer(setup, state, sink, call, threads)
        except BaseException as error:  # noqa: BLE001 - raised below, in call order
            # As a value: a task would hand KeyboardInterrupt and SystemExit to the loop.
            if ender is None:  # once: the others may be cleaning up by then
                ender = call
                clock.reschedule(asyncio.get_running_loop().time() + _END_SECONDS)
                _cancel(task for task in tasks if task is not asyncio.current_task())
            return error
        return None

    tasks = [asyncio.create_task(one(call)) for call in batch]
    try:
        async with clock:
            await asyncio.wait(tasks)
    except TimeoutError:
        pass  # a tool goes on in spite of its cancellation
    except asyncio.CancelledError:
        ender = batch[0]
        _cancel(tasks)
        await asyncio.wait(tasks, timeout=_END_SECONDS)
        raise
    error: BaseException | None = None
    ends = [(call, _end_of(task)) for call, task in zip(batch, tasks, strict=True)]
    try:
        for call, error in ends:
            # Where one ended the run, others were cancelled for it.
            because = ender is not None and call is not ender
            if error and not (because and isinstance(error, asyncio.CancelledError)):
                raise error
    finally:
        tasks.clear()
        del ends, error  # their tracebacks hold this frame


def _end_of(task: asyncio.Task[BaseException | None]) -> BaseException | None:
    if not task.done():
        return None
    # One that was cancelled before its first step has no result.
    return asyncio.CancelledError() if task.cancelled() else task.result()


def _cancel(tasks: Iterable[asyncio.Task[BaseException | None]]) -> None:
    for task in tasks:
        task.cancel()
