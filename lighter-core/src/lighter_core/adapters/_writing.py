"""Messages as text for requests: what a run has written once is not written again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from contextlib import contextmanager
from typing import TypeVar

from .._notes import run_memory
from ..history import check_history, require_valid_history
from ..messages import Message
from ._losses import ReplayNotes

__all__ = ["MessageWriter", "check_request", "writer_of_run"]

_CHECKED = "lighter_checked"


class MessageWriter(ABC):
    """Writes the messages of one conversation; a longer one goes on behind them.

    A subclass brings `_write`. What it returns for a message may depend on the messages
    before it, never on those behind it.
    """

    def __init__(self) -> None:
        self._notes = ReplayNotes()
        self._number = 0  # of the message that is written
        self._known: list[Message] = []
        self._texts: list[str] = []

    def texts(self, messages: Sequence[Message], notes: ReplayNotes) -> Sequence[str]:
        """Return the JSON texts of the messages; they begin with those of the last time.

        Args:
            messages: The messages of the request.
            notes: Takes what is lost of those that are new, and where.

        Raises:
            ModelError: `invalid_request` for what the service cannot take; the writer
                is of no use then.
        """
        self._notes = notes
        for number in range(len(self._known), len(messages)):
            self._number = number
            notes.at(number)
            self._texts += self._write(messages[number])
        notes.at(None)
        self._known = list(messages)
        return self._finished()

    def fits(self, messages: Sequence[Message]) -> bool:
        """Tell whether the messages begin with those that were written."""
        return self._known == list(messages[: len(self._known)])

    @abstractmethod
    def _write(self, message: Message) -> Iterable[str]:
        """Yield the texts that a message becomes."""

    def _finished(self) -> Sequence[str]:
        """Return all texts, where the last one needs an end that a longer one has not."""
        return self._texts


_WriterT = TypeVar("_WriterT", bound=MessageWriter)


@contextmanager
def writer_of_run(
    key: Hashable,
    messages: Sequence[Message],
    notes: ReplayNotes,
    make: Callable[[], _WriterT],
) -> Generator[_WriterT]:
    """Give the writer that has written the begin of the messages, else a new one.

    Outside a run, and for a report, it is a new one each time.

    Args:
        key: What else the text depends on, the provider among it.
        messages: The messages of the request.
        notes: Where losses are said.
        make: Makes a writer.
    """
    memory = {} if notes.report else run_memory()
    writer = memory.pop(key, None)  # nobody else has it meanwhile: tools have threads
    if not isinstance(writer, MessageWriter) or not writer.fits(messages):
        writer = make()
    yield writer  # type: ignore[misc]  # pyright: ignore[reportReturnType]
    memory[key] = writer


def check_request(messages: Sequence[Message], *, provider: str) -> None:
    """Refuse a history that services refuse; in a run only what is new is looked at.

    Raises:
        ModelError: `invalid_request`, naming the call id and where it stands.
    """
    memory = run_memory()
    known = memory.pop(_CHECKED, None)
    whole = list(messages)
    if (
        not isinstance(known, list)
        or known != whole[: len(known)]  # pyright: ignore[reportUnknownArgumentType]
        or check_history(whole[len(known) :])  # pyright: ignore[reportUnknownArgumentType]
    ):
        require_valid_history(messages, provider=provider)
    memory[_CHECKED] = whole
