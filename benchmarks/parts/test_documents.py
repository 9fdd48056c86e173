"""Messages to their JSON document and back: 400 messages with native context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.parts.interfaces import conversation
from lighter_core import messages_from_json, messages_to_json

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.benchmark(group="400 messages and their document")
def test_write(benchmark: BenchmarkFixture) -> None:
    """To JSON."""
    messages = conversation("responses", 100)
    document = benchmark(lambda: messages_to_json(messages))
    assert messages_from_json(document) == messages


@pytest.mark.benchmark(group="400 messages and their document")
def test_read(benchmark: BenchmarkFixture) -> None:
    """From JSON, with every check."""
    messages = conversation("responses", 100)
    document = messages_to_json(messages)
    assert benchmark(lambda: messages_from_json(document)) == messages
