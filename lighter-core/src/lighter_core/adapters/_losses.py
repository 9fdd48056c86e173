"""What of a history a request changes or leaves out."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

from ..errors import ModelError
from ..provider import ReplayFinding

__all__ = ["ReplayNotes"]


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
    """

    def __init__(self, *, report: bool = False) -> None:
        self.findings: list[ReplayFinding] = []
        self.texts: list[str] = []
        self._report = report
        self._place = "messages"

    def at(self, number: int | None) -> None:
        """Say which message is written now; `None` for none."""
        self._place = "messages" if number is None else f"messages[{number}]"

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
        place = self._place if number is None else f"messages[{number}]"
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
            if not self._report:
                raise
            path = f"{self._place}{part}"
            self.findings.append(ReplayFinding(path, "refused", err.message))
