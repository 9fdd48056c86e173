"""The encoders of each interface, with replies that carry their native context.

`fresh`: messages that no request held before. `grown`: the same conversation as in the
request before and one more turn, as it is in every loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.parts.interfaces import INTERFACES, conversation, encode
from lighter_core import Message

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

TURNS = 40  # of four messages each
ROUNDS = 20


@pytest.mark.benchmark(group="encode 40 turns")
@pytest.mark.parametrize("interface", INTERFACES)
def test_encode_fresh(benchmark: BenchmarkFixture, interface: str) -> None:
    """All of it for the first time."""

    def setup() -> tuple[tuple[str, list[Message]], dict[str, object]]:
        return (interface, conversation(interface, TURNS)), {}

    written = benchmark.pedantic(encode, setup=setup, rounds=ROUNDS)
    assert b"Is there a bookstore" in written


@pytest.mark.benchmark(group="encode 40 turns")
@pytest.mark.parametrize("interface", INTERFACES)
def test_encode_grown(benchmark: BenchmarkFixture, interface: str) -> None:
    """One turn more than in the request before."""
    messages = conversation(interface, TURNS)
    encode(interface, messages)

    def setup() -> tuple[tuple[str, list[Message]], dict[str, object]]:
        messages.extend(conversation(interface, 1, first=len(messages) // 4))
        return (interface, list(messages)), {}

    written = benchmark.pedantic(encode, setup=setup, rounds=ROUNDS)
    assert b"%d: Is there a bookstore" % (len(messages) // 4 - 1) in written
