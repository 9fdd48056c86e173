"""Whether a message history is acceptable, and how to make it so. Pure functions.

A history is acceptable when each tool call is answered exactly once, in call order,
directly after its assistant message, and each tool message answers such a call. Every
model service refuses anything else, for ever: the faulty part is sent again each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .errors import ModelError
from .messages import AssistantMessage, Message, ToolCall, ToolMessage

__all__ = [
    "INTERRUPTED",
    "HistoryProblem",
    "RepairedHistory",
    "check_history",
    "interrupted_result",
    "repair_history",
    "require_valid_history",
]

INTERRUPTED = "interrupted: the run ended before this call had a result"
"""The text of the result that closes a call without one."""


@dataclass(frozen=True, slots=True)
class HistoryProblem:
    """One reason why services would refuse a history.

    Attributes:
        path: Where, e.g. `"messages[3].tool_calls[0]"`.
        text: What is wrong, in one sentence.
        call_id: The call id that the problem is about.
    """

    path: str
    text: str
    call_id: str


@dataclass(frozen=True, slots=True)
class RepairedHistory:
    """A history that passes `check_history`.

    Attributes:
        messages: The messages; those that needed no change are the same objects.
        notes: One sentence for each change, empty when there was none.
    """

    messages: list[Message]
    notes: list[str]


def interrupted_result(call: ToolCall) -> ToolMessage:
    """Return the error result that closes a call which never got one."""
    return ToolMessage(
        call_id=call.call_id,
        tool_name=call.tool_name,
        tool_output=INTERRUPTED,
        is_error=True,
    )


def check_history(messages: Sequence[Message]) -> list[HistoryProblem]:
    """Return why services would refuse the history; empty when they would not."""
    problems: list[HistoryProblem] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        if isinstance(message, AssistantMessage) and message.tool_calls:
            index = _check_round(messages, index, message, problems)
            continue
        if isinstance(message, ToolMessage):
            problems.append(_stray(index, message))
        index += 1
    return problems


def _stray(index: int, message: ToolMessage) -> HistoryProblem:
    return HistoryProblem(
        f"messages[{index}]",
        f"the tool result {message.call_id!r} answers no call that waits for one here",
        message.call_id,
    )


def _check_round(
    messages: Sequence[Message],
    start: int,
    assistant: AssistantMessage,
    problems: list[HistoryProblem],
) -> int:
    """Check one assistant message with calls; return the index after its results."""
    seen: set[str] = set()
    for number, call in enumerate(assistant.tool_calls):
        path = f"messages[{start}].tool_calls[{number}]"
        if not call.call_id:
            problems.append(HistoryProblem(path, "a tool call has an empty id", ""))
        elif call.call_id in seen:
            text = f"the call id {call.call_id!r} is used twice in one message"
            problems.append(HistoryProblem(path, text, call.call_id))
        seen.add(call.call_id)
    expected = list(assistant.tool_calls)
    index = start + 1
    while index < len(messages):
        message = messages[index]
        if not isinstance(message, ToolMessage):
            break
        if expected and message.call_id == expected[0].call_id:
            del expected[0]
        else:
            problems.append(_stray(index, message))
        index += 1
    for call in expected:
        number = assistant.tool_calls.index(call)
        text = f"the tool call {call.call_id!r} has no result directly after it"
        path = f"messages[{start}].tool_calls[{number}]"
        problems.append(HistoryProblem(path, text, call.call_id))
    return index


def require_valid_history(messages: Sequence[Message], *, provider: str) -> None:
    """Refuse a history that the service would refuse, before anything is sent.

    Raises:
        ModelError: `invalid_request`, naming the call id and where it stands.
    """
    problems = check_history(messages)
    if problems:
        first = problems[0]
        raise ModelError(
            f"{first.text} ({first.path}): every service refuses such a history; pass it"
            " through lighter_core.repair_history first, or let Agent.run do so",
            "invalid_request",
            provider=provider,
        )


def repair_history(messages: Iterable[Message]) -> RepairedHistory:
    """Return the history with each call answered once and in place.

    Results that stand elsewhere are moved to their call, calls without a result get an
    "interrupted" one, results without a call and second results go, empty or repeated
    call ids within one message are renamed. Deterministic and idempotent; a valid
    history comes back as it is, message by message.
    """
    source = list(messages)
    out: list[Message] = []
    notes: list[str] = []
    taken: set[int] = set()  # positions of tool messages already placed
    for index, message in enumerate(source):
        if isinstance(message, ToolMessage):
            if index not in taken:
                notes.append(f"dropped: {_stray(index, message).text}")
        elif isinstance(message, AssistantMessage) and message.tool_calls:
            _repair_round(source, index, message, taken, out, notes)
        else:
            out.append(message)
    return RepairedHistory(out, notes)


def _repair_round(
    source: list[Message],
    index: int,
    message: AssistantMessage,
    taken: set[int],
    out: list[Message],
    notes: list[str],
) -> None:
    results: list[ToolMessage] = []
    calls: list[ToolCall] = []
    used: set[str] = set()
    for call in message.tool_calls:
        found = _find_result(source, index + 1, call.call_id, taken)
        fresh = _fresh_id(call.call_id, used)
        used.add(fresh)
        if fresh != call.call_id:
            notes.append(f"renamed: the call id {call.call_id!r} became {fresh!r}")
            call = replace(call, call_id=fresh)  # noqa: PLW2901
        if found is None:
            notes.append(f"closed: the call {fresh!r} had no result")
            result = interrupted_result(call)
        else:
            position, result = found
            taken.add(position)
            if result.call_id != fresh:
                result = replace(result, call_id=fresh)
            if position != index + 1 + len(results):
                notes.append(f"moved: the result {fresh!r} stands behind its call now")
        calls.append(call)
        results.append(result)
    if tuple(calls) != message.tool_calls:
        message = replace(message, tool_calls=tuple(calls))
    out.append(message)
    out.extend(results)


def _find_result(
    source: list[Message], start: int, call_id: str, taken: set[int]
) -> tuple[int, ToolMessage] | None:
    for position in range(start, len(source)):
        message = source[position]
        if isinstance(message, AssistantMessage):
            if any(call.call_id == call_id for call in message.tool_calls):
                return None  # the id belongs to a later call from here on
        elif (
            isinstance(message, ToolMessage)
            and position not in taken
            and message.call_id == call_id
        ):
            return position, message
    return None


def _fresh_id(call_id: str, used: set[str]) -> str:
    fresh, number = call_id or "call", 1
    while fresh in used or (not call_id and number == 1):
        fresh, number = f"{call_id or 'call'}_{number}", number + 1
    return fresh
