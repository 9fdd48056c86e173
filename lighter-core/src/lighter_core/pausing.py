"""Runs that wait for a person: what is pending, what was decided, and going on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias, cast

from ._content import need_kind, need_text
from ._dataclass import dataclass
from ._json import dump_json, escape_surrogates, load_json
from .errors import HistoryError
from .messages import (
    MESSAGE_CLASSES,
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    Usage,
)

__all__ = ["ApprovalRequest", "Decision", "PausedRun", "PendingCall", "Resumption"]

WAITING = "waiting: a person has not decided about this call yet"
"""The text of the result that closes a pending call in a paused response's messages."""

_VERSION = 1


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a `before_tool` hook returns for a call that a person must approve.

    Attributes:
        reason: Why, for that person.

    Raises:
        TypeError: When the reason is no text.
    """

    reason: str = ""

    def __post_init__(self) -> None:
        need_text(self, "reason", self.reason)


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for a decision.

    Attributes:
        call: The call.
        reason: Why it waits, in the hook's words.
    """

    call: ToolCall
    reason: str = ""

    def __post_init__(self) -> None:
        _need(self, "call", self.call, ToolCall)
        need_text(self, "reason", self.reason)


Decision: TypeAlias = bool | str | ToolCall
"""`True` executes the call, `False` denies it, a text denies it and says why to the model,
and a `ToolCall` of the same tool executes that instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedRun:
    """Everything that a paused run needs to go on, in another process too.

    It holds what the run was given and what it has made, so treat it as the conversation
    itself. Go on with it once: each time executes what was approved.

    Attributes:
        run_id: The run's id; it stays the same.
        input: What the run was given.
        messages: What it has made, up to the reply whose calls wait.
        results: Results of calls of that reply that stand behind one that waits.
        pending: The calls that wait for a decision.
        decided: What was decided earlier about calls that have not had their turn yet.
        model_calls: How many model calls it has made.
        calls_by_name: How many calls of each tool it has made.
        usage: The tokens used so far.
        stop_reason: Why the last model call stopped.
        notes: What Lighter had to change or could not keep.

    Raises:
        TypeError: When a field holds what no document can.
        ValueError: When a count is no number from 0.
    """

    run_id: str
    input: tuple[Message, ...]
    messages: tuple[Message, ...]
    results: tuple[ToolMessage, ...] = ()
    pending: tuple[PendingCall, ...]
    decided: Mapping[str, Decision] = field(
        default_factory=dict[str, "Decision"], hash=False
    )
    model_calls: int = 0
    calls_by_name: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    usage: Usage | None = None
    stop_reason: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        need_text(self, "run_id", self.run_id)
        for name, kinds in _HOLD.items():
            for each in _need(self, name, getattr(self, name), tuple):
                _need(self, name, each, kinds)
        for name in ("decided", "calls_by_name"):
            for key in _need(self, name, getattr(self, name), Mapping):
                _need(self, name, key, str)
        for each in self.decided.values():
            _need(self, "decided", each, _DECISION)
        for name, counts in (
            ("model_calls", (self.model_calls,)),
            ("calls_by_name", self.calls_by_name.values()),
        ):
            for each in counts:
                _need_count(name, each)
        need_kind(self, "usage", self.usage, Usage)
        need_kind(self, "stop_reason", self.stop_reason, str)

    def decide(self, decisions: Mapping[str, Decision]) -> Resumption:
        """Return what to give to `run`, `stream` or `start` of an agent to go on.

        Args:
            decisions: A decision for each pending call, by its call id.

        Raises:
            ValueError: When a pending call has no decision, a decision belongs to no
                pending call, or another call names another tool.
        """
        calls = {each.call.call_id: each.call for each in self.pending}
        if missing := [each for each in calls if each not in decisions]:
            raise ValueError(f"there is no decision about the calls {missing}")
        if foreign := [each for each in decisions if each not in calls]:
            raise ValueError(
                f"no such calls are pending: {foreign}; pending are {list(calls)}"
            )
        made: dict[str, Decision] = {}
        for call_id, decision in decisions.items():
            given: object = decision
            if isinstance(given, ToolCall):
                if given.tool_name != calls[call_id].tool_name:
                    raise ValueError(
                        f"the call {call_id!r} is one of {calls[call_id].tool_name!r};"
                        f" {given.tool_name!r} was decided"
                    )
                given = replace(given, call_id=call_id)
            if not isinstance(given, _DECISION):
                raise TypeError(
                    f"a decision is True, False, a text or a ToolCall, got"
                    f" {type(given).__name__} for the call {call_id!r}"
                )
            made[call_id] = given
        return Resumption(self, {**self.decided, **made})

    @property
    def open_calls(self) -> list[ToolCall]:
        """The calls of the last reply that have no result among `messages`."""
        for position in range(len(self.messages) - 1, -1, -1):
            message = self.messages[position]
            if isinstance(message, AssistantMessage):
                answered = {
                    each.call_id
                    for each in self.messages[position:]
                    if isinstance(each, ToolMessage)
                }
                return [c for c in message.tool_calls if c.call_id not in answered]
        return []

    def to_json(self) -> str:
        """Return the run as a JSON document, versioned; `from_json` reads it."""
        from .documents import messages_to_data

        usage = self.usage and messages_to_data(
            [AssistantMessage("", usage=self.usage)]
        )
        data = {
            "lighter_paused_run": _VERSION,
            "run_id": self.run_id,
            "input": messages_to_data(self.input),
            "messages": messages_to_data(self.messages),
            "results": messages_to_data(self.results),
            "pending": [
                {"call_id": each.call.call_id, "reason": each.reason}
                for each in self.pending
            ],
            "decided": {
                call_id: [each.tool_name, each.arguments]
                if isinstance(each, ToolCall)
                else each
                for call_id, each in self.decided.items()
            },
            "model_calls": self.model_calls,
            "calls_by_name": dict(self.calls_by_name),
            "usage": usage,
            "stop_reason": self.stop_reason,
            "notes": list(self.notes),
        }
        return escape_surrogates(dump_json(data))

    @classmethod
    def from_json(cls, document: str | bytes) -> PausedRun:
        """Return the run that a document holds.

        Raises:
            HistoryError: When it is no such document, or of another version.
        """
        try:
            return _read(cls, load_json(document))
        except HistoryError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            told = f"{type(error).__name__}: {error}"
            raise HistoryError(f"this is no document of a paused run: {told}") from None


def _need_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"PausedRun.{name} takes whole numbers from 0, got {value!r}")


@dataclass(frozen=True, slots=True)
class Resumption:
    """A paused run with a decision about each pending call; `PausedRun.decide` makes it."""

    paused: PausedRun
    decisions: Mapping[str, Decision] = field(hash=False)

    def __post_init__(self) -> None:
        _need(self, "paused", self.paused, PausedRun)
        for call_id, each in _need(self, "decisions", self.decisions, Mapping).items():
            _need(self, "decisions", call_id, str)
            _need(self, "decisions", each, _DECISION)


_DECISION = (bool, str, ToolCall)
_HOLD: Mapping[str, type | tuple[type, ...]] = {
    "input": MESSAGE_CLASSES,
    "messages": MESSAGE_CLASSES,
    "results": ToolMessage,
    "pending": PendingCall,
    "notes": str,
}


def _need(
    owner: object, name: str, value: object, kinds: type | tuple[type, ...]
) -> Any:
    """Return the value; found here, since a document is often written much later."""
    if not isinstance(value, kinds):
        told = kinds if isinstance(kinds, tuple) else (kinds,)
        raise TypeError(
            f"{type(owner).__name__}.{name} takes"
            f" {' or '.join(each.__name__ for each in told)}, got {type(value).__name__}"
        )
    return value


def _read(cls: type[PausedRun], value: object) -> PausedRun:
    from .documents import messages_from_data

    data = cast("Mapping[str, object]", value)
    version = data["lighter_paused_run"]
    if version != _VERSION or isinstance(version, bool):
        raise HistoryError(
            f"the paused run has version {version!r}; this version of lighter-core reads"
            f" {_VERSION}",
            path="lighter_paused_run",
        )
    messages = messages_from_data(data["messages"])
    results = messages_from_data(data["results"])
    usage = None
    if data["usage"] is not None:
        (holder,) = messages_from_data(data["usage"])
        usage = cast("AssistantMessage", holder).usage
    run = cls(
        run_id=_text(data["run_id"]),
        input=tuple(messages_from_data(data["input"])),
        messages=tuple(messages),
        results=tuple(cast("list[ToolMessage]", results)),
        pending=(),
        decided={
            call_id: _decision(call_id, each)
            for call_id, each in cast("Mapping[str, object]", data["decided"]).items()
        },
        model_calls=cast("int", data["model_calls"]),
        calls_by_name=dict(cast("Mapping[str, int]", data["calls_by_name"])),
        usage=usage,
        stop_reason=None if data["stop_reason"] is None else _text(data["stop_reason"]),
        notes=tuple(_text(each) for each in cast("Sequence[object]", data["notes"])),
    )
    calls = {call.call_id: call for call in run.open_calls}
    pending = [
        PendingCall(calls[_text(each["call_id"])], _text(each["reason"]))
        for each in cast("Sequence[Mapping[str, object]]", data["pending"])
    ]
    if not pending:
        raise ValueError("nothing is pending")
    return replace(run, pending=tuple(pending))


def _decision(call_id: str, value: object) -> Decision:
    if isinstance(value, list):
        tool_name, arguments = cast("Sequence[object]", value)
        return ToolCall(call_id, _text(tool_name), _text(arguments))
    return value if isinstance(value, bool) else _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value
