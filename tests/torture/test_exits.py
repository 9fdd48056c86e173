"""T4: the early exit matrix, with a scripted provider and over real connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import product

import pytest
from support.interfaces import BOTH, Interface
from support.loopback import EVENT_STREAM, Answer, Loopback
from support.replies import FINAL, STREAMS
from support.torture import Results, sample

from lighter_core import Agent
from lighter_core.testing import FakeProvider

from .exits import STYLES, WAYS, exit_once
from .scenarios import Watch, script, tools_of

EVENTS = 13  # of the script; more are read as none


def scripted() -> tuple[Agent, Callable[[], Awaitable[None]]]:
    watch, provider = Watch(), FakeProvider(script())

    async def check() -> None:
        for _ in range(200):
            if provider.closed_streams == len(provider.requests) and not watch.inside:
                break
            await asyncio.sleep(0.005)
        assert provider.closed_streams == len(provider.requests), "a stream is open"
        assert watch.inside == 0, "a tool runs on"
        before = len(provider.requests), len(watch.ran)
        await asyncio.sleep(0)
        assert (len(provider.requests), len(watch.ran)) == before, "it goes on"

    return Agent(provider, tools=tools_of(watch)), check


async def test_T4_leaving_a_stream_everywhere(results: Results) -> None:
    """R3: no exception, no leak, nothing more happens."""
    cases = sample(product(WAYS, STYLES, range(EVENTS + 1)), 40)
    for way, style, k in cases:
        try:
            await exit_once(scripted, way, style, k)
        except AssertionError as wrong:
            raise AssertionError(f"{way}, {style}, event {k}: {wrong}") from wrong
    results.add("T4", "left in 5 ways and 5 styles", len(cases), "0 leaks")


@pytest.mark.parametrize("interface", BOTH, ids=lambda each: each.id)
async def test_T4_leaving_a_stream_closes_its_socket(
    interface: Interface, results: Results
) -> None:
    """R3: within a second the connection is closed or back in the pool, reply or not."""
    stream = next(
        s for s in STREAMS if s.interface.name == interface.name and s.calls == 1
    )
    third = len(stream.body) // 3
    pieces = [stream.body[:third], stream.body[third : 2 * third]]
    combinations = sample(product(WAYS, STYLES, (0, 1, 3)), 4)
    async with Loopback() as server:
        provider = interface.provider(
            api_key="sk-test", model_id="test", base_url=server.url, max_retries=0
        )
        try:
            for number, (way, style, k) in enumerate(combinations):
                server.script(
                    Answer(headers=EVENT_STREAM, body=pieces, end="stall")
                    if number % 2
                    else Answer(headers=EVENT_STREAM, body=stream.body),
                    Answer(headers=EVENT_STREAM, body=FINAL[interface.name]),
                )

                def make() -> tuple[Agent, Callable[[], Awaitable[None]]]:
                    async def check() -> None:
                        await server.until(lambda: server.open <= 1, 1.0)

                    return Agent(provider, tools=tools_of(Watch())), check

                async with asyncio.timeout(10):
                    await exit_once(make, way, style, _reachable(k, number))
        finally:
            await provider.aclose()
        await server.until_open(0)
    results.add(
        "T4", f"sockets of {interface.id}", len(combinations), "closed within 1 s"
    )


def _reachable(k: int, number: int) -> int:
    """A stalled reply has its reasoning only; more events would never come."""
    return min(k, 1) if number % 2 else k


def test_the_matrix_is_as_large_as_it_says() -> None:
    assert len(list(product(WAYS, STYLES, range(EVENTS + 1)))) == 350
