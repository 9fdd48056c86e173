"""A streamed Chat Completions reply to events. Pure."""

from __future__ import annotations

from lighter_core import (
    AssistantMessage,
    ModelError,
    ProviderStreamEvent,
    ReasoningDelta,
    TextDelta,
)
from lighter_core.adapters import (
    ShapeError,
    as_list,
    as_object,
    bad_response,
    fast_load,
    is_empty,
)

from ._assembly import Channel
from ._chat_calls import Turn
from ._chat_decode import error_in, require_finish, usage_in
from ._chat_fields import Fields
from ._chat_message import (
    REASONING_KEYS,
    complete_message,
    content_pieces,
    reasoning_piece,
)
from ._chat_pieces import CallPieces
from ._dialect import Target

__all__ = ["ChatStreamDecoder"]

Chunk = dict[str, object]
_PART = 0, 0  # a text has one
_KNOWN = frozenset({"role", "content", "tool_calls", "function_call"})


class ChatStreamDecoder:
    """Turns the events of one reply into Lighter's events and a message.

    The reply is complete once a finish reason has come; its usage may follow, in an
    event without choices. So `message` is set at the event after which nothing more is
    to be expected, or by `finish`, when the stream ends.
    """

    def __init__(self, target: Target, turn: Turn) -> None:
        self.message: AssistantMessage | None = None
        self.ignored = 0
        self._target = target
        self._load = fast_load()
        self._choice: object = None  # the index of the choice that is read
        self._finish: str | None = None
        self._usage: object = None
        self._fields = Fields()
        self._calls = CallPieces(turn)
        self._text, self._reasoning = Channel(""), Channel("")
        self._reasoning_key: str | None = None

    @property
    def finished(self) -> bool:
        """Whether the service has said that the reply is complete."""
        return self._finish is not None

    def feed(self, data: bytes) -> list[ProviderStreamEvent]:
        """Take the data of one event; return the deltas that it brings.

        Raises:
            ModelError: For an error event, for a reply that is incomplete, and for
                events that are not shaped as documented.
        """
        if is_empty(data):
            return self.finish() if data.strip() else []
        try:
            event = as_object(self._load(data))
        except ValueError as err:
            if not self.finished:  # else the usage was cut, and the reply is there
                raise bad_response(self._target, "an event is not JSON") from err
            event = None
        if event is None:
            self.ignored += 1
            return []
        try:
            return self._take(event)
        except (ShapeError, ValueError) as err:
            raise bad_response(self._target, str(err)) from err

    def finish(self) -> list[ProviderStreamEvent]:
        """End the reply: set `message`, return what is still to be shown.

        Raises:
            ModelError: When the service has not said that the reply is complete.
        """
        if self.message is not None:
            return []
        if self._finish is None:
            raise self.ended_early()
        try:
            calls, events = self._calls.finish()
            message = complete_message(
                (self._text.whole, self._reasoning.whole),
                calls,
                self._fields.texts(),
                self._usage,
                self._finish,
                self._target,
            )
            shown = [
                *_reasoning_events(self._reasoning.finish(message.reasoning or "")),
                *_text_events(self._text.finish(message.content)),
                *events,
            ]
        except (ShapeError, ValueError) as err:
            raise bad_response(self._target, str(err)) from err
        self.message = message
        return shown

    def ended_early(self) -> ModelError:
        """Return the error for a stream that ended without saying how."""
        what = "the stream ended before the reply was complete; try again"
        return bad_response(self._target, what)

    def _take(self, event: Chunk) -> list[ProviderStreamEvent]:
        error = None if self.finished else error_in(event, self._target)
        if error is not None:
            raise error
        usage = usage_in(event)
        self._usage = usage or self._usage
        choices = as_list(event.get("choices"))
        events: list[ProviderStreamEvent] = []
        if not choices and not usage:
            self.ignored += 1
        for each in choices or ():
            choice = as_object(each)
            if choice is None:
                raise ShapeError(f"a choice is {type(each).__name__}, not an object")
            if self._is_ours(choice.get("index")) and not self.finished:
                events += self._take_choice(choice)
        if self.finished and usage:
            events += self.finish()
        return events

    def _is_ours(self, index: object) -> bool:
        """Tell whether a choice is the one that is read: the first that came."""
        index = 0 if index is None else index
        if self._choice is None:
            self._choice = index
        return index == self._choice

    def _take_choice(self, choice: Chunk) -> list[ProviderStreamEvent]:
        delta = as_object(choice.get("delta")) or as_object(choice.get("message")) or {}
        events = self._take_delta(delta)
        finish = choice.get("finish_reason")
        if finish is not None and finish != "":
            self._finish = require_finish(finish, choice, self._target)
        else:
            error = error_in(choice, self._target)
            if error is not None:
                raise error
        return events

    def _take_delta(self, delta: Chunk) -> list[ProviderStreamEvent]:
        events = self._reasoning_in(delta)
        content = delta.get("content")
        if isinstance(content, str):  # nearly always: no generator for it
            events += self._said(content)
        elif content is not None:
            events += self._content_parts(content)
        refusal = delta.get("refusal")
        if isinstance(refusal, str):
            events += _text_events(self._text.add(_PART, refusal))
        if delta.get("function_call"):
            events += self._calls.add_legacy(delta["function_call"])
        calls = as_list(delta.get("tool_calls"))
        if calls is None and delta.get("tool_calls"):
            raise ShapeError("the tool_calls are no array")
        for piece in calls or ():
            events += self._calls.add(piece)
        for key, value in delta.items():
            if key not in _KNOWN:
                self._fields.add(key, value)
        return events

    def _said(self, text: str) -> list[ProviderStreamEvent]:
        self._fields.add("content", text)
        return _text_events(self._text.add(_PART, text))

    def _content_parts(self, content: object) -> list[ProviderStreamEvent]:
        events: list[ProviderStreamEvent] = []
        for thought, text in content_pieces(content):
            if not thought:
                events += self._said(text)
            elif self._reasoning_key in {None, "content"}:
                self._reasoning_key = "content"
                events += _reasoning_events(self._reasoning.add(_PART, text))
        return events

    def _reasoning_in(self, delta: Chunk) -> list[ProviderStreamEvent]:
        """Return the deltas of the one field in which the reasoning came first."""
        for key in REASONING_KEYS:
            value = delta.get(key)
            piece = reasoning_piece(value) if value else ""
            if piece and self._reasoning_key in {None, key}:
                self._reasoning_key = key
                return _reasoning_events(self._reasoning.add(_PART, piece))
        return []


def _text_events(text: str) -> list[ProviderStreamEvent]:
    return [TextDelta(text)] if text else []


def _reasoning_events(text: str) -> list[ProviderStreamEvent]:
    return [ReasoningDelta(text)] if text else []
