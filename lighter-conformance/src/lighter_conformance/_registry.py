"""What a check is, how one is declared, and what a broken contract says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import cleandoc
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ._bench import Bench

__all__ = [
    "CHECKS",
    "PAGE",
    "Check",
    "CheckFunction",
    "ContractViolation",
    "NotApplicable",
    "Seen",
    "check",
    "declare",
    "expect",
]

PAGE = "docs/conformance.md"
CheckFunction: TypeAlias = Callable[["Bench"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Check:
    """One rule of the contract, and how it is tried.

    Attributes:
        id: Its name, e.g. `"plain-reply"`.
        number: Its section in the documentation.
        family: The group of rules that it belongs to.
        contract: The rule, in one paragraph.
        needs: The traits that a case must have for it to be tried.
        function: Tries it.
    """

    id: str
    number: int
    family: str
    contract: str
    needs: tuple[str, ...]
    function: CheckFunction

    @property
    def place(self) -> str:
        """Where the rule is documented."""
        return f"{PAGE}#{self.number}-{self.id}"

    def __str__(self) -> str:
        return self.id


CHECKS: list[Check] = []
"""All checks whose modules are imported, in the order of the documentation."""


class NotApplicable(Exception):  # noqa: N818 - it is no error
    """A check says nothing about this provider; the text says why."""


class Seen(AssertionError):  # noqa: N818 - what was seen, on its way to the report
    """Something that the contract does not allow; the runner adds the contract."""


class ContractViolation(AssertionError):  # noqa: N818 - as `AssertionError` shows
    """A provider breaks the contract.

    Attributes:
        check: The check.
        subject: What was checked.
        seen: What was seen.
    """

    def __init__(self, check: Check, subject: str, seen: str) -> None:
        super().__init__(
            f"{check.id} does not hold for {subject}\n"
            f"\n  contract    {_indented(check.contract)}"
            f"\n  documented  {check.place}, section {check.number} of the page"
            ' "Conformance"'
            f"\n  seen        {_indented(seen)}"
        )
        self.check = check
        self.subject = subject
        self.seen = seen


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n" + " " * 14)


def expect(condition: object, seen: str) -> None:
    """Say what was seen, unless the condition holds."""
    if not condition:
        raise Seen(seen)


def declare(
    name: str, family: str, contract: str, needs: tuple[str, ...], run: CheckFunction
) -> None:
    """Add a check."""
    CHECKS.append(Check(name, len(CHECKS) + 1, family, contract, needs, run))


def check(family: str, *needs: str) -> Callable[[CheckFunction], CheckFunction]:
    """Declare a check: its name is the function's, its contract is the docstring."""

    def decorate(function: CheckFunction) -> CheckFunction:
        name: str = getattr(function, "__name__", "").replace("_", "-")
        contract = " ".join(cleandoc(function.__doc__ or "").split())
        declare(name, family, contract, needs, function)
        return function

    return decorate
