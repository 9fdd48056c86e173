"""The contract of providers, as checks that run against any of them.

```console
$ pytest --lighter-provider NAME
```

pytest loads this package in every run, so nothing here is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._bench import Bench as Bench
    from ._registry import Check as Check
    from ._registry import ContractViolation as ContractViolation
    from ._registry import NotApplicable as NotApplicable
    from ._run import all_checks as all_checks
    from ._run import run_check as run_check
    from .case import Case as Case
    from .case import ClassCase as ClassCase
    from .case import NamedCase as NamedCase
    from .server import Answer as Answer
    from .server import HTTPRequest as HTTPRequest
    from .wires import ChatWire as ChatWire
    from .wires import MessagesWire as MessagesWire
    from .wires import ResponsesWire as ResponsesWire
    from .wires import Wire as Wire

__all__ = [
    "Answer",
    "Bench",
    "Case",
    "ChatWire",
    "Check",
    "ClassCase",
    "ContractViolation",
    "HTTPRequest",
    "MessagesWire",
    "NamedCase",
    "NotApplicable",
    "ResponsesWire",
    "Wire",
    "all_checks",
    "run_check",
]

_PLACES = {
    "Answer": "server",
    "Bench": "_bench",
    "Case": "case",
    "ChatWire": "wires",
    "Check": "_registry",
    "ClassCase": "case",
    "ContractViolation": "_registry",
    "HTTPRequest": "server",
    "MessagesWire": "wires",
    "NamedCase": "case",
    "NotApplicable": "_registry",
    "ResponsesWire": "wires",
    "Wire": "wires",
    "all_checks": "_run",
    "run_check": "_run",
}


def __getattr__(name: str) -> object:
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f".{_PLACES[name]}", __name__), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("lighter-conformance")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
