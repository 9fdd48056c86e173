"""What code deep inside a provider tells the run, and keeps for it.

Notes say what had to be changed or could not be kept; the run's response shows them. The
memory holds what the next request of the run needs not be made again. A context variable
carries both, so no signature has to.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Hashable
from contextlib import contextmanager, suppress
from contextvars import ContextVar

__all__ = ["collect_notes", "note", "run_memory"]

logger: logging.Logger = logging.getLogger("lighter.notes")

_Memory = dict[Hashable, object]

_run: ContextVar[tuple[list[str], _Memory] | None] = ContextVar("lighter", default=None)


@contextmanager
def collect_notes(notes: list[str]) -> Generator[None]:
    """Let notes made inside the block go to the list, and let it have a memory."""
    memory: _Memory = {}
    token = _run.set((notes, memory))
    try:
        yield
    finally:
        memory.clear()  # tasks that tools have left behind keep the context
        with suppress(ValueError):  # a lost run is closed in the collector's context
            _run.reset(token)


def run_memory() -> _Memory:
    """Return what lives as long as the run; outside a run a memory that nobody keeps.

    Tools on threads share it: take a value out while it is changed.
    """
    run = _run.get()
    return {} if run is None else run[1]


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
    run = _run.get()
    if run is not None:
        if text in run[0]:
            return
        run[0].append(text)
    logger.warning("%s", text, extra={"lighter_provider": provider})
