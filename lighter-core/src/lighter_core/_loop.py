"""The loop between the model and the tools: one coroutine for every way to run it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from ._channel import Sink, teller
from ._model_call import call_model
from ._notes import collect_notes
from ._setup import LoopSetup
from ._state import RunState
from ._tool_calls import answer_calls
from .errors import HistoryError
from .events import MessageAdded, TurnEnded, TurnStarted
from .history import repair_history
from .limits import reached
from .messages import AssistantMessage, UserMessage
from .requests import AgentRequest
from .results import AgentResponse, RunStatus

__all__ = ["run_loop"]

logger: logging.Logger = logging.getLogger("lighter.run")

_END_SECONDS = 5  # for all on_run_end hooks of a run together


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
    if not setup.chain.has("on_run_end"):
        return await _recorded(setup, state, sink)
    try:
        response = await _recorded(setup, state, sink)
    except BaseException as error:
        await _tell_end(setup, state, state.response("failed", error))
        raise
    await _tell_end(setup, state, response)
    return response


async def _recorded(
    setup: LoopSetup, state: RunState, sink: Sink | None
) -> AgentResponse[object]:
    if sink is not None:
        state.progress.sink, state.progress.tell = sink, teller(sink)
    try:
        return await _run(setup, state, sink)
    finally:
        state.inbox.close()
        await state.end_journal()


async def _tell_end(
    setup: LoopSetup, state: RunState, response: AgentResponse[object]
) -> None:
    try:
        async with asyncio.timeout(_END_SECONDS):
            await setup.chain.end(response, state.context)
    except TimeoutError:
        logger.warning(
            "run %s: its on_run_end hooks took more than %d s and were cancelled",
            state.context.run_id,
            _END_SECONDS,
        )


async def _run(
    setup: LoopSetup, state: RunState, sink: Sink | None
) -> AgentResponse[object]:
    started = time.perf_counter()
    try:
        with collect_notes(state.notes):
            await _in_time(setup, state, sink)
        if setup.chain.has("after_agent") and not state.pending:
            messages = await setup.chain.run(
                "after_agent", state.messages(), state.context
            )
            state.replace_messages(list(messages))
    except Exception as error:  # noqa: BLE001 - a declared border: the run
        # Not in a local variable: the error's traceback holds this frame.
        return _ended(state, state.response("failed", error), started)
    status: RunStatus = "paused" if state.pending else "completed"
    return _ended(state, state.response(status), started)


async def _in_time(setup: LoopSetup, state: RunState, sink: Sink | None) -> None:
    """Run the rounds within the run's wall clock.

    Raises:
        LimitExceededError: When it is over; what was in flight is cancelled.
    """
    seconds = setup.limits.seconds
    if seconds is None:
        await _rounds(setup, state, sink)
        return
    clock = asyncio.timeout(seconds)
    try:
        async with clock:
            await _rounds(setup, state, sink)
    except TimeoutError as error:
        if not clock.expired():
            raise
        raise reached("seconds", seconds, "seconds") from error


async def _rounds(setup: LoopSetup, state: RunState, sink: Sink | None) -> None:
    await _take_input(setup, state)
    if state.unanswered():  # of a run that was paused
        await answer_calls(setup, state, sink)
    while not state.pending:
        _add_messages(state, sink, state.inbox.take())
        message = await _turn(setup, state, sink)
        if message.tool_calls:
            continue
        if not state.inbox.undelivered and not state.take_output(message):
            continue
        given = state.inbox.take_or_close()
        if not given:
            return
        _add_messages(state, sink, given)


async def _turn(
    setup: LoopSetup, state: RunState, sink: Sink | None
) -> AssistantMessage:
    """Ask the model once and answer its calls; return its reply."""
    state.check_aborted()
    state.check_limits(setup.limits)
    setup.limits.check_model_calls(state.progress.model_calls)
    await state.save()
    state.turns += 1
    if sink is not None:
        await sink.barrier()
    details = sink if state.all_events else None
    if details is not None:
        details.emit(TurnStarted(state.turns))
    message = await call_model(setup, state, sink)
    state.add_reply(message)
    await state.save()  # before anything that it asks for is executed
    if message.tool_calls:
        await answer_calls(setup, state, sink)
    if details is not None and not state.pending:
        for near in state.limits_near(setup.limits):
            details.emit(near)
        details.emit(TurnEnded(state.turns, message))
    return message


def _add_messages(
    state: RunState, sink: Sink | None, given: Sequence[UserMessage]
) -> None:
    for message in given:
        state.add_message(message)
        if sink is not None:
            sink.emit(MessageAdded(message))


async def _take_input(setup: LoopSetup, state: RunState) -> None:
    if state.resumed:
        await _take_up(state)
        return
    given = state.input
    if state.journal is not None:
        state.input = [*await state.journal.load(), *given]
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
    if state.journal is not None:  # behind the hooks: they may refuse the input
        await state.journal.begin(given)


async def _take_up(state: RunState) -> None:
    """Let the journal go on behind what was stored before the run paused.

    Raises:
        HistoryError: When the stored conversation has gone on without it.
    """
    if state.journal is None:
        return
    if await state.journal.load() != state.context_messages():
        raise HistoryError(
            "the stored conversation is not where the run paused: it has gone on, or is"
            " another one"
        )
    state.journal.go_on(len(state.progress.new))


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
