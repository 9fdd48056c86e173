"""Running checks."""

from __future__ import annotations

import asyncio
import traceback
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from ._registry import CHECKS, Check, ContractViolation, NotApplicable, Seen

if TYPE_CHECKING:
    from .case import Case

__all__ = ["all_checks", "run_check"]


def all_checks() -> list[Check]:
    """Return all checks, in the order of the documentation."""
    import_module(".checks", __package__)  # they declare themselves

    return list(CHECKS)


def run_check(
    check: Check, case: Case, *, seconds: float = 60.0, patience: float = 5.0
) -> None:
    """Try one check on an event loop of its own.

    Args:
        check: The check.
        case: What to try it on.
        seconds: How long it may take.
        patience: How many seconds to wait for what should happen at once.

    Raises:
        NotApplicable: When it says nothing about this provider.
        ContractViolation: When the provider breaks the contract.
        TypeError: When it is called inside a running event loop.
    """
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise TypeError("run_check makes a loop of its own: call it from a plain def")
    for trait in check.needs:
        if reason := case.why_not(trait):
            raise NotApplicable(reason)
    try:
        asyncio.run(_bounded(check, case, seconds, patience))
    except NotApplicable:
        raise
    except Seen as seen:
        cause = seen.__cause__
        raise ContractViolation(check, case.name, str(seen)) from cause
    except (Exception, asyncio.CancelledError) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        seen_text = (
            f"{type(error).__name__}: {error}\nraised in {where.name} at"
            f" {where.filename}:{where.lineno}"
        )
        raise ContractViolation(check, case.name, seen_text) from error


async def _bounded(check: Check, case: Case, seconds: float, patience: float) -> None:
    from ._bench import Bench

    bench = Bench(case, patience=patience)
    try:
        async with asyncio.timeout(seconds):
            await check.function(bench)
    finally:
        await bench.aclose()
