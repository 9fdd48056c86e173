"""Notes of a run: what had to be changed or could not be kept.

Code deep inside a provider says it, the run's response shows it. A context variable
carries the list, so no signature has to.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

__all__ = ["collect_notes", "note"]

logger: logging.Logger = logging.getLogger("lighter.notes")

_notes: ContextVar[list[str] | None] = ContextVar("lighter_notes", default=None)


@contextmanager
def collect_notes(notes: list[str]) -> Generator[None]:
    """Let notes made inside the block go to the list."""
    token = _notes.set(notes)
    try:
        yield
    finally:
        with suppress(ValueError):  # a lost run is closed in the collector's context
            _notes.reset(token)


def note(text: str, *, provider: str) -> None:
    """Say in one sentence what was changed or lost; never any message content.

    It becomes a log record at WARNING and an entry in the `notes` of the run's
    response, once for each text and run.

    Raises:
        TypeError: When it is no text: notes travel in documents of paused runs.
    """
    given: object = text
    if not isinstance(given, str):
        raise TypeError(f"a note is a str, got {type(given).__name__}")
    notes = _notes.get()
    if notes is not None:
        if text in notes:
            return
        notes.append(text)
    logger.warning("%s", text, extra={"lighter_provider": provider})
