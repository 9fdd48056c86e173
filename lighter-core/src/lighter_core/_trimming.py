"""Leaving out the oldest part of a history that has become too long."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ._dataclass import dataclass
from .messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)

__all__ = ["TrimmedHistory", "size_of", "trim"]

_MEDIA = 4000  # characters for an image or a file; services count about 1,000 tokens


@dataclass(frozen=True, slots=True)
class TrimmedHistory:
    """A history that fits, and what went.

    Attributes:
        messages: What is kept, in order.
        dropped: What was left out, in order.
        notes: One sentence for each kind of loss, empty when there was none.
    """

    messages: list[Message]
    dropped: list[Message]
    notes: list[str]


def size_of(message: Message) -> int:
    """Return the size of a message in characters; four are about one token.

    An image or a file counts 4,000, whatever its bytes. Native context does not count
    beyond the reasoning text in it.
    """
    match message:
        case UserMessage(content=content) if not isinstance(content, str):
            return sum(
                len(part.text) if isinstance(part, TextPart) else _MEDIA
                for part in content
            )
        case AssistantMessage():
            calls = sum(
                len(call.tool_name) + len(call.arguments) for call in message.tool_calls
            )
            return len(message.content) + len(message.reasoning or "") + calls
        case ToolMessage():
            return len(message.tool_output)
        case _:
            return len(message.content)


def trim(
    messages: Sequence[Message],
    *,
    max_size: int,
    keep: float = 0.5,
    size: Callable[[Message], int] = size_of,
    bound: Collection[str] = ("claude",),
) -> TrimmedHistory:
    """Return the history without its oldest part, if it is larger than `max_size`.

    Whole turns go, from a user message to the next one; when the last turn alone is too
    large, the oldest rounds of it go, each an assistant message with all its results.
    So a call never loses its result. System messages at the head, the last user message
    and the last round stay, even if they are too large by themselves.

    **The prefix stays the same for as long as possible**, for the services' caches: once
    the history is too large it is cut to `keep` of the size, and then grows again. The
    result depends on the messages alone. Give the whole history each time, best in a
    `before_model` hook: the cuts come out where they were before.

    **Context that is bound to what stood before it** cannot be sent behind a cut. For
    replies of the providers in `bound` that were made before the last cut, native
    context is left out. See "preserved thinking" in the vendor's documentation: thinking
    blocks may be left out as a contiguous head.

    Args:
        messages: A valid history.
        max_size: The largest size of the kept messages, as `size` measures.
        keep: The part of `max_size` that is left after a cut, above 0 and up to 1.
        size: The size of one message, e.g. by counting tokens.
        bound: Names of providers whose native context is bound to the conversation.

    Raises:
        ValueError: For a `max_size` below 1 or a `keep` that is not above 0 and up to 1.
    """
    if max_size < 1:
        raise ValueError(f"max_size must be at least 1, got {max_size!r}")
    if not 0 < keep <= 1:
        raise ValueError(f"keep must be above 0 and at most 1, got {keep!r}")
    history = _Cuts(messages, size, max_size, int(max_size * keep))
    for number, message in enumerate(messages):
        if number >= history.head and isinstance(message, AssistantMessage):
            history.ask()
        history.add(number, message)
    history.ask()
    return _result(messages, history, bound)


class _Cuts:
    """Goes through a history as it grew, and cuts where a request was too large."""

    def __init__(
        self,
        messages: Sequence[Message],
        size: Callable[[Message], int],
        largest: int,
        wanted: int,
    ) -> None:
        self.head = 0
        while self.head < len(messages) and isinstance(
            messages[self.head], SystemMessage
        ):
            self.head += 1
        self.gone: set[int] = set()
        self.whole_since = 0  # replies from here on were made after the last cut
        self._size, self._largest, self._wanted = size, largest, wanted
        self._total = 0
        self._groups: list[_Group] = []  # kept ones behind the head

    def add(self, number: int, message: Message) -> None:
        """Append a message to the group that it belongs to."""
        size = self._size(message)
        self._total += size
        if number < self.head:
            return
        if isinstance(message, UserMessage | AssistantMessage) or not self._groups:
            self._groups.append(_Group(isinstance(message, UserMessage)))
        self._groups[-1].numbers.append(number)
        self._groups[-1].size += size

    def ask(self) -> None:
        """A request is made of what is kept."""
        if self._total <= self._largest:
            return
        cut = self._whole_turns()
        kept = self._groups[cut:]
        self._drop(self._groups[:cut])
        if self._total > self._largest:  # the last turn alone
            first = 1 if kept[0].opens_turn else 0
            end, rest = first, self._total
            while end < len(kept) - 1 and rest > self._wanted:
                rest -= kept[end].size
                end += 1
            self._drop(kept[first:end])
            del kept[first:end]
        self._groups = kept

    def _whole_turns(self) -> int:
        """Return how many groups to drop so that whole turns go, and enough of them."""
        cut, rest = 0, self._total
        for number, group in enumerate(self._groups):
            if group.opens_turn:
                cut = number
                if rest <= self._wanted:
                    break
            rest -= group.size
        return cut

    def _drop(self, groups: Sequence[_Group]) -> None:
        for group in groups:
            self.gone.update(group.numbers)
            self._total -= group.size
        if groups:
            self.whole_since = self._groups[-1].numbers[-1] + 1


class _Group:
    """A user message, or an assistant message with its results."""

    __slots__ = ("numbers", "opens_turn", "size")

    def __init__(self, opens_turn: bool) -> None:
        self.opens_turn = opens_turn
        self.numbers: list[int] = []
        self.size = 0


def _result(
    messages: Sequence[Message], cuts: _Cuts, bound: Collection[str]
) -> TrimmedHistory:
    kept: list[Message] = []
    unbound = 0
    for number, message in enumerate(messages):
        if number in cuts.gone:
            continue
        if (
            number < cuts.whole_since
            and isinstance(message, AssistantMessage)
            and message.native is not None
            and message.native.provider in bound
        ):
            unbound += 1
            message = replace(message, native=None)  # noqa: PLW2901
        kept.append(message)
    dropped = [messages[number] for number in sorted(cuts.gone)]
    notes: list[str] = []
    if dropped:
        notes.append(f"left out the {len(dropped)} oldest messages: too large")
    if unbound:
        notes.append(
            f"left out the native context of {unbound} replies: it is bound to messages"
            " that were left out"
        )
    return TrimmedHistory(kept, dropped, notes)
