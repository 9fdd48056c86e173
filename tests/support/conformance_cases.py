"""Providers without a service, as cases of the conformance suite."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from lighter_conformance import Case
from lighter_core import Provider
from lighter_core.testing import FakeProvider, Turn

ECHO_SOURCES = Path(__file__).parents[2] / "docs" / "examples" / "lighter-echo" / "src"


class FakeCase(Case):
    """The scripted provider of lighter-core, or something around it.

    Args:
        make: Makes the provider from a scripted one.
        kind: The scripted provider's class.
        fields: As in `Case`.
    """

    def __init__(
        self,
        make: Callable[[FakeProvider], Provider] = lambda provider: provider,
        *,
        name: str = "fake",
        kind: type[FakeProvider] = FakeProvider,
        lacks: Iterable[str] = (),
    ) -> None:
        super().__init__(name, lacks=lacks)
        self._make = make
        self._kind = kind

    def make(self, **options: object) -> Provider:
        return self._make(self._kind(["Hello!"] * 50))

    def scripted(self, turns: Sequence[object]) -> Provider:
        def answer(turn):
            if isinstance(turn, Turn):
                return turn
            return lambda request: turn(request.messages[-1].text)

        replies = [answer(turn) for turn in turns]
        return self._make(self._kind([*replies, *[replies[-1]] * 100]))


def echo_class() -> Callable[..., Provider]:
    """The example provider of the documentation, from its sources."""
    if str(ECHO_SOURCES) not in sys.path:
        sys.path.append(str(ECHO_SOURCES))
    from lighter_echo import EchoProvider

    return EchoProvider
