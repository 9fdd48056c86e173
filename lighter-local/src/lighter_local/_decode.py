"""Chunks of a streamed chat completion → events and the message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lighter_core.adapters import clean_text
from lighter_core.errors import ModelError
from lighter_core.events import ReasoningDelta, TextDelta
from lighter_core.messages import AssistantMessage, Message, ToolCall, Usage

from ._errors import token_limit
from ._values import as_list, as_mapping

__all__ = ["Reply", "new_call_ids", "usage_of"]


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def usage_of(chunk: Mapping[str, object]) -> Usage | None:
    """Return the usage that a chunk reports, if it does."""
    usage = as_mapping(chunk.get("usage"))
    if not usage:
        return None
    details = as_mapping(usage.get("prompt_tokens_details"))
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cache_read_tokens=_count(details.get("cached_tokens")),
    )


class Reply:
    """Collects one reply.

    Args:
        spent: Tokens of requests that prepared the reply.
    """

    def __init__(self, spent: Usage | None = None) -> None:
        self.text = ""
        self.finish: str | None = None
        self.usage = spent or Usage()
        self._reasoning = ""
        self._names: list[str] = []
        self._arguments: list[str] = []

    def feed(self, chunk: Mapping[str, object]) -> Iterator[TextDelta | ReasoningDelta]:
        """Take a chunk in and yield its deltas."""
        self.usage += usage_of(chunk) or Usage()
        for item in as_list(chunk.get("choices")):
            choice = as_mapping(item)
            finish = choice.get("finish_reason")
            if isinstance(finish, str):
                self.finish = finish
            delta = as_mapping(choice.get("delta"))
            self._feed_calls(delta)
            reasoning = delta.get("reasoning_content")
            if isinstance(reasoning, str) and reasoning:
                reasoning = clean_text(reasoning)
                self._reasoning += reasoning
                yield ReasoningDelta(reasoning)
            text = delta.get("content")
            if isinstance(text, str) and text:
                text = clean_text(text)
                self.text += text
                yield TextDelta(text)

    def _feed_calls(self, delta: Mapping[str, object]) -> None:
        for item in as_list(delta.get("tool_calls")):
            call = as_mapping(item)
            index = _count(call.get("index"))
            while len(self._names) <= index:
                self._names.append("")
                self._arguments.append("")
            function = as_mapping(call.get("function"))
            self._names[index] += str(function.get("name") or "")
            self._arguments[index] += str(function.get("arguments") or "")

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Name and arguments of each call that the library parsed."""
        return list(zip(self._names, self._arguments, strict=True))

    def check_complete(self) -> None:
        """Refuse a reply that was cut.

        Raises:
            ModelError: `bad_response`; a call in it may be half a call.
        """
        if self.finish == "length":
            raise token_limit()
        if self.finish is None:
            raise ModelError(
                "the local model's reply ended early", "bad_response", provider="local"
            )

    def message(
        self, messages: Sequence[Message], calls: Sequence[tuple[str, str]] = ()
    ) -> AssistantMessage:
        """Return the finished reply to a conversation.

        Args:
            messages: The conversation; its call ids are not used again.
            calls: The calls of a reply that a grammar made; its text is theirs.
        """
        self.check_complete()
        found = list(calls) or self.calls
        ids = new_call_ids(messages, len(found))
        return AssistantMessage(
            "" if calls else self.text,
            reasoning=self._reasoning or None,
            tool_calls=[
                ToolCall(call_id, name, arguments)
                for call_id, (name, arguments) in zip(ids, found, strict=True)
            ],
            usage=self.usage,
            stop_reason="tool_calls" if found else self.finish,
        )


def new_call_ids(messages: Sequence[Message], count: int) -> list[str]:
    """Return ids that no call of the conversation has.

    They follow from the conversation: the same request gives the same message.
    """
    used = {
        call.call_id
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    }
    fresh: list[str] = []
    number = len(used)
    while len(fresh) < count:
        number += 1
        if f"call_{number}" not in used:
            fresh.append(f"call_{number}")
    return fresh
