"""What of a history a request changes or leaves out."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

from ..errors import ModelError
from ..messages import AssistantMessage
from ..provider import ReplayFinding
from ._raw import as_object, elements

__all__ = ["ReplayNotes", "loss_of"]

_HARMLESS = frozenset({"message", "function_call", "text", "tool_use"})
_REASONING = frozenset({"reasoning", "thinking", "redacted_thinking"})
_REASONING_KEYS = frozenset({"reasoning_content", "reasoning", "reasoning_details"})


class ReplayNotes:
    """Takes what an encoder says while it writes a request, and where that stands.

    One code says it for both: the notes of a run, each sentence once, and the report of
    `replay_report`, each place.

    Args:
        report: Go on behind what the service cannot take, to name all of it, instead of
            raising the first error.

    Attributes:
        findings: What was said of the history, with its places.
        texts: The sentences about the history and the rest of the request, once each.
        report: As given.
    """

    def __init__(self, *, report: bool = False) -> None:
        self.findings: list[ReplayFinding] = []
        self.texts: list[str] = []
        self.report = report
        self._number: int | None = None

    def at(self, number: int | None) -> None:
        """Say which message is written now; `None` for none."""
        self._number = number

    def _place(self, number: int | None) -> str:
        return "messages" if number is None else f"messages[{number}]"

    def add(
        self,
        text: str,
        kind: Literal["dropped", "rewritten"],
        *,
        part: str = "",
        number: int | None = None,
    ) -> None:
        """Say what becomes of a message.

        Args:
            text: One sentence, without any content.
            kind: Whether it goes or takes another form.
            part: The place inside the message, e.g. `".tool_calls[0]"`.
            number: The message; the one that is written now unless given.
        """
        place = self._place(self._number if number is None else number)
        self.findings.append(ReplayFinding(f"{place}{part}", kind, text))
        self.say(text)

    def say(self, text: str) -> None:
        """Say something about the request that is not about its messages."""
        if text not in self.texts:
            self.texts.append(text)

    @property
    def refused(self) -> bool:
        """Whether something was refused."""
        return any(each.kind == "refused" for each in self.findings)

    @contextmanager
    def needed(self, part: str = "") -> Generator[None]:
        """Take what raises `ModelError` inside the block as refused, in a report.

        Args:
            part: The place inside the message, e.g. `".content[1]"`.
        """
        try:
            yield
        except ModelError as err:
            if not self.report:
                raise
            path = f"{self._place(self._number)}{part}"
            self.findings.append(ReplayFinding(path, "refused", err.message))


def loss_of(
    message: AssistantMessage, provider: str, why: str, *, reasoning_kept: bool = False
) -> str | None:
    """Return one sentence about what a rebuilt message lacks; `None` for nothing.

    Args:
        message: A message that is rebuilt from its public fields.
        provider: The provider that the request is for.
        why: Why it is rebuilt.
        reasoning_kept: Whether its reasoning text is sent nevertheless.
    """
    if message.native is None and (reasoning_kept or not message.reasoning):
        return None
    lost: list[str] = []
    kinds = _kinds(message)
    if not reasoning_kept and (kinds & _REASONING or message.reasoning):
        lost.append("its reasoning")
    if kinds - _REASONING - _HARMLESS:
        lost.append("what tools of the service did")
    if not lost:
        return None
    return (
        f"an earlier reply was sent to {provider!r} without {' and '.join(lost)}: {why}"
    )


def _kinds(message: AssistantMessage) -> set[str]:
    """Return the kinds of items in the native context."""
    found: set[str] = set()
    try:
        items = elements(message.native.items) if message.native else []
    except ValueError:
        return found  # an edited context: nothing can be said of it
    for value, _ in items:
        item = as_object(value) or {}
        kind = item.get("type")
        if isinstance(kind, str):
            found.add(kind)
        if any(item.get(key) for key in _REASONING_KEYS):
            found.add("reasoning")
    return found
