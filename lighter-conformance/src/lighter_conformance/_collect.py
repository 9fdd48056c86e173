"""The checks as pytest items."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ._registry import Check, ContractViolation, NotApplicable
from ._run import all_checks, run_check
from .case import Case, find_case

if TYPE_CHECKING:
    from _pytest._code.code import ExceptionInfo, TerminalRepr
    from _pytest.terminal import TerminalReporter

__all__ = ["Collection"]


class Collection:
    """Adds the checks of one provider to what pytest has collected."""

    def __init__(self, config: pytest.Config) -> None:
        given: list[str] = config.getoption("--lighter-option") or []
        options = dict(map(_option, given))
        try:
            self._case = find_case(
                str(config.getoption("--lighter-provider")),
                options,
                wire=config.getoption("--lighter-wire"),
                lacks=config.getoption("--lighter-lacks") or [],
            )
        except (ImportError, LookupError, TypeError, ValueError) as error:
            raise pytest.UsageError(f"--lighter-provider: {error}") from error
        self._name = f"conformance[{self._case.name}]"

    @pytest.hookimpl(tryfirst=True)  # before -k and -m choose
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add the checks."""
        name = self._name
        parent: _Checks = _Checks.from_parent(session, name=name, nodeid=name)  # pyright: ignore[reportUnknownMemberType]
        found: list[pytest.Item | pytest.Collector] = []
        for each in all_checks():
            item: _Item = _Item.from_parent(  # pyright: ignore[reportUnknownMemberType]
                parent, name=each.id, check=each, case=self._case
            )
            items.append(item)
            found.append(item)
        # pytest has counted before: without this its summary counts too few.
        report = pytest.CollectReport(name, "passed", None, found)
        session.config.hook.pytest_collectreport(report=report)

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Say what was not tried, and why: few checks that hold look like all."""
        reasons = Counter(
            each.longrepr[2].removeprefix("Skipped: ")
            for each in terminalreporter.getreports("skipped")
            if each.nodeid.startswith(f"{self._name}::")
        )
        if reasons:
            terminalreporter.section(f"{self._name}: not tried")
        for reason, count in reasons.most_common():
            terminalreporter.line(f"{count:4} {reason}")


def _option(text: str) -> tuple[str, object]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise pytest.UsageError(f"--lighter-option takes KEY=VALUE, got {text!r}")
    try:
        return key.strip(), json.loads(value)
    except ValueError:
        return key.strip(), value


class _Checks(pytest.Collector):
    def collect(self) -> list[pytest.Item]:
        return []


class _Item(pytest.Item):
    def __init__(self, *, check: Check, case: Case, **rest: Any) -> None:
        super().__init__(**rest)  # pyright: ignore[reportUnknownMemberType]
        self._check, self._case = check, case

    def runtest(self) -> None:
        try:
            run_check(self._check, self._case)
        except NotApplicable as reason:
            pytest.skip(str(reason))

    def repr_failure(
        self,
        excinfo: ExceptionInfo[BaseException],
        style: Any = None,
    ) -> str | TerminalRepr:
        if isinstance(excinfo.value, ContractViolation):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        path = inspect.getsourcefile(self._check.function) or __file__
        _, line = inspect.getsourcelines(self._check.function)
        return Path(path), line - 1, self.name
