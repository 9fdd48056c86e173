"""Whether a message history is acceptable, and how to make it so. Pure functions.

A history is acceptable when each tool call is answered exactly once, in call order,
directly after its assistant message, and each tool message answers such a call. Every
model service refuses anything else, for ever: the faulty part is sent again each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ._dataclass import dataclass
from ._trimming import TrimmedHistory, trim
from .errors import ModelError
from .messages import (
    MESSAGE_CLASSES,
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    are_messages,
)

__all__ = [
    "INTERRUPTED",
    "HistoryProblem",
    "RepairedHistory",
    "TrimmedHistory",
    "check_history",
    "interrupted_result",
    "repair_history",
    "repair_with_origins",
    "require_valid_history",
    "trim",
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


def interrupted_result(call: ToolCall, text: str = INTERRUPTED) -> ToolMessage:
    """Return the error result that closes a call which never got one."""
    return ToolMessage(
        call_id=call.call_id,
        tool_name=call.tool_name,
        tool_output=text,
        is_error=True,
    )


def check_history(messages: Sequence[Message]) -> list[HistoryProblem]:
    """Return why services would refuse the history; empty when they would not."""
    _need_messages(messages)
    problems: list[HistoryProblem] = []
    index, end = 0, len(messages)
    while index < end:
        message = messages[index]
        if isinstance(message, AssistantMessage) and message.tool_calls:
            after = _after_good_round(messages, index, message.tool_calls)
            index = after or _check_round(messages, index, message, problems)
            continue
        if isinstance(message, ToolMessage):
            problems.append(_stray(index, message))
        index += 1
    return problems


def _after_good_round(
    messages: Sequence[Message], start: int, calls: Sequence[ToolCall]
) -> int | None:
    """Return the index after calls that have all their results; `None` for others.

    Nearly all have: nothing that words a problem is needed for them.
    """
    index = start
    for index, call in enumerate(calls, start + 1):
        result = messages[index] if index < len(messages) else None
        if not isinstance(result, ToolMessage) or result.call_id != call.call_id:
            return None
    ids = {call.call_id for call in calls}
    if len(ids) < len(calls) or "" in ids:
        return None
    index += 1
    stray = index < len(messages) and isinstance(messages[index], ToolMessage)
    return None if stray else index


def _need_messages(messages: object) -> None:
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise TypeError(
            f"a history is a sequence of messages, got {type(messages).__name__}"
        )
    if are_messages(messages):  # pyright: ignore[reportUnknownArgumentType]
        return
    for each in messages:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(each, MESSAGE_CLASSES):
            kind = type(each).__name__  # pyright: ignore[reportUnknownArgumentType]
            raise TypeError(f"a history holds messages, got {kind}")


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
    answered = len(assistant.tool_calls) - len(expected)
    for number, call in enumerate(expected, answered):
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
    if not check_history(source):
        return RepairedHistory(source, [])
    return repair_with_origins(source)[0]


def repair_with_origins(
    messages: Iterable[Message],
) -> tuple[RepairedHistory, list[str]]:
    """Return the repaired history, and where each of its messages stood before.

    A result that was made up has the place of its call.
    """
    source = list(messages)
    _need_messages(source)
    repaired, origins = RepairedHistory([], []), list[str]()
    results = _Results(source)
    for index, message in enumerate(source):
        if isinstance(message, ToolMessage):
            if index not in results.taken:
                repaired.notes.append(f"dropped: {_stray(index, message).text}")
            continue
        origins.append(f"messages[{index}]")
        if isinstance(message, AssistantMessage) and message.tool_calls:
            origins += _repair_round(index, message, results, repaired)
        else:
            repaired.messages.append(message)
    return repaired, origins


def _repair_round(
    index: int, message: AssistantMessage, source: _Results, repaired: RepairedHistory
) -> list[str]:
    """Add a reply and its results; return where the results come from."""
    notes, origins = repaired.notes, list[str]()
    results: list[ToolMessage] = []
    calls: list[ToolCall] = []
    used: set[str] = set()
    for number, call in enumerate(message.tool_calls):
        found = source.take(call.call_id, index)
        fresh = _fresh_id(call.call_id, used)
        used.add(fresh)
        if fresh != call.call_id:
            notes.append(f"renamed: the call id {call.call_id!r} became {fresh!r}")
            call = replace(call, call_id=fresh)  # noqa: PLW2901
        if found is None:
            notes.append(f"closed: the call {fresh!r} had no result")
            result = interrupted_result(call)
            origins.append(f"messages[{index}].tool_calls[{number}]")
        else:
            position, result = found
            origins.append(f"messages[{position}]")
            if result.call_id != fresh:
                result = replace(result, call_id=fresh)
            if position != index + 1 + len(results):
                notes.append(f"moved: the result {fresh!r} stands behind its call now")
        calls.append(call)
        results.append(result)
    if tuple(calls) != message.tool_calls:
        message = replace(message, tool_calls=tuple(calls))
    repaired.messages.append(message)
    repaired.messages.extend(results)
    return origins


class _Results:
    """The results of a history, by call id: each one found once, in no time."""

    def __init__(self, source: Sequence[Message]) -> None:
        self.taken: set[int] = set()  # positions of results already placed
        self._source = source
        self._results: dict[str, deque[int]] = {}  # positions, by call id
        self._calls: dict[str, deque[int]] = {}
        for position, message in enumerate(source):
            if isinstance(message, ToolMessage):
                self._results.setdefault(message.call_id, deque()).append(position)
            elif isinstance(message, AssistantMessage):
                for call in message.tool_calls:
                    self._calls.setdefault(call.call_id, deque()).append(position)

    def take(self, call_id: str, asked: int) -> tuple[int, ToolMessage] | None:
        """Take the first result behind the call, and before the next one of its id.

        To be asked in the order of the history.
        """
        calls = self._calls.get(call_id, deque())
        while calls and calls[0] <= asked:
            calls.popleft()
        results = self._results.get(call_id, deque())
        while results and results[0] <= asked:
            results.popleft()
        if not results or (calls and calls[0] < results[0]):
            return None  # from there on the id belongs to a later call
        position = results.popleft()
        message = self._source[position]
        assert isinstance(message, ToolMessage)  # noqa: S101 - for the type checkers
        self.taken.add(position)
        return position, message


def _fresh_id(call_id: str, used: set[str]) -> str:
    fresh, number = call_id or "call", 1
    while fresh in used or (not call_id and number == 1):
        fresh, number = f"{call_id or 'call'}_{number}", number + 1
    return fresh
