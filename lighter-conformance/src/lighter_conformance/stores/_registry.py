"""What a check of a store is, and how it is tried."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from .._registry import Seen

if TYPE_CHECKING:
    from lighter_core.sessions import Store

__all__ = [
    "Bench",
    "StoreCase",
    "StoreCheck",
    "StoreViolation",
    "all_store_checks",
    "make_store",
    "run_store_check",
    "store_check",
]

_MODULES = (
    "appending",
    "contents",
    "forking",
    "listing",
    "searching",
    "copying",
    "sharing",
    "processes",
)
_CHECK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class StoreCase:
    """A kind of store under test.

    Attributes:
        factory: What makes a store, as `module:callable`. Child processes of the checks
            import it too.
        argument: Returns the one argument of the factory, a path or a URL, for a folder
            that is new for each check. Stores of one argument hold the same sessions, a
            new argument stands for an empty store.
    """

    factory: str
    argument: Callable[[Path], str]


class Bench:
    """What a check works with: stores on one place, closed at its end."""

    def __init__(self, case: StoreCase, folder: Path) -> None:
        self.case = case
        self.argument = case.argument(folder)
        self._open: list[Store] = []

    def open(self) -> Store:
        """Return one more store on the place."""
        store = make_store(self.case.factory, self.argument)
        self._open.append(store)
        return store

    @asynccontextmanager
    async def elsewhere(self, folder: Path) -> AsyncGenerator[Store]:
        """Return a store on another place, closed behind the block."""
        store = make_store(self.case.factory, self.case.argument(folder))
        try:
            yield store
        finally:
            await store.aclose()

    async def child(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start a process that uses the same place; see `_child`."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "lighter_conformance.stores._child",
            self.case.factory,
            self.argument,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    async def aclose(self) -> None:
        """Close what was opened."""
        for store in self._open:
            await store.aclose()


CheckFunction: TypeAlias = Callable[[Bench], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """One rule of the contract, and how it is tried.

    Attributes:
        id: Its name, e.g. `"stale-head-is-a-conflict"`.
        contract: The rule, in one paragraph.
        function: Tries it.
    """

    id: str
    contract: str
    function: CheckFunction

    def __str__(self) -> str:
        return self.id


class StoreViolation(AssertionError):  # noqa: N818 - as `AssertionError` shows
    """A store breaks the contract; the text says how."""


_CHECKS: list[StoreCheck] = []


def store_check(function: CheckFunction) -> CheckFunction:
    """Declare a check: its name is the function's, its contract is the docstring."""
    name: str = getattr(function, "__name__", "").replace("_", "-")
    contract = " ".join(cleandoc(function.__doc__ or "").split())
    _CHECKS.append(StoreCheck(name, contract, function))
    return function


def all_store_checks() -> list[StoreCheck]:
    """Return all checks."""
    for module in _MODULES:
        importlib.import_module(f".{module}", __package__)  # they declare themselves
    return list(_CHECKS)


def make_store(factory: str, argument: str) -> Store:
    """Return a store, made as a case says."""
    module, _, name = factory.partition(":")
    return cast("Store", getattr(importlib.import_module(module), name)(argument))


def run_store_check(
    check: StoreCheck, case: StoreCase, folder: Path, *, seconds: float = _CHECK_SECONDS
) -> None:
    """Try one check on an event loop of its own.

    Args:
        check: The check.
        case: What to try it on.
        folder: An empty folder for it alone.
        seconds: How long it may take.

    Raises:
        StoreViolation: When the store breaks the contract.
    """
    try:
        asyncio.run(_bounded(check, case, folder, seconds))
    except Exception as error:
        seen = str(error)
        if not isinstance(error, Seen):
            where = traceback.extract_tb(error.__traceback__)[-1]
            seen = (
                f"{type(error).__name__}: {error}\n              raised in {where.name}"
                f" at {where.filename}:{where.lineno}"
            )
        raise StoreViolation(
            f"{check.id} does not hold for {case.factory}\n"
            f"\n  contract    {check.contract}\n  seen        {seen}"
        ) from error


async def _bounded(
    check: StoreCheck, case: StoreCase, folder: Path, seconds: float
) -> None:
    bench = Bench(case, folder)
    try:
        async with asyncio.timeout(seconds):
            await check.function(bench)
    finally:
        await bench.aclose()
