"""The seal of native context, and the check that a message still fits it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.parts.interfaces import reply
from lighter_core import AssistantMessage, messages_from_json, messages_to_json
from lighter_core.adapters import seal_native

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.benchmark(group="native context")
def test_seal(benchmark: BenchmarkFixture) -> None:
    """Of a reply with a tool call."""
    message = reply("responses")
    assert message.native is not None
    items = message.native.items
    bare = replace(message, native=None)

    def seal() -> bool:
        return (
            seal_native(
                bare,
                provider="openai",
                endpoint="http://127.0.0.1:9",
                api="responses",
                model="model",
                items=items,
            ).native
            is not None
        )

    assert benchmark(seal)


@pytest.mark.benchmark(group="native context")
@pytest.mark.parametrize("loaded", [False, True], ids=["decoded", "loaded"])
def test_check(benchmark: BenchmarkFixture, *, loaded: bool) -> None:
    """Of a reply as it was decoded, or loaded from a document."""
    document = messages_to_json([reply("responses")])

    def setup() -> tuple[tuple[object], dict[str, object]]:
        message = messages_from_json(document)[0] if loaded else reply("responses")
        return (message,), {}

    def check(message: AssistantMessage) -> bool:
        return message.native_intact

    assert benchmark.pedantic(check, setup=setup, rounds=200)
