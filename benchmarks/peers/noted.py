"""The tool of all peers: it notes its calls for the run that it is called in."""

from __future__ import annotations

from contextvars import ContextVar

from ..compare.work import Outcome, add_up

outcome: ContextVar[Outcome] = ContextVar("outcome")


def begin() -> Outcome:
    """Return the record of a run that begins now."""
    out = Outcome()
    outcome.set(out)
    return out


async def add(a: int, b: int) -> int:
    """Add two numbers to a million."""
    outcome.get().calls.append((a, b))
    return add_up(a, b)
