"""Many requests at a time: how they are spread over clients, and what bounds them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from support.interfaces import ASK, INTERFACES, Interface, ask, failure
from support.loopback import Answer, Loopback

from lighter_core.adapters import _lanes

WIDTH = _lanes._WIDTH


def clients(provider: Any) -> list[_lanes.Lane]:
    """The clients of the only loop that there is."""
    ((lanes, _),) = provider._sender._pool._clients.values()
    return lanes._lanes


def stalled(interface: Interface) -> Answer:
    """A stream that begins and never ends."""
    good = interface.good(streamed=True)
    return replace(good, body=good.body[:-40], end="stall")


async def opened(provider: Any, stack: AsyncExitStack) -> None:
    """A stream whose first event has come."""
    stream = await stack.enter_async_context(aclosing(provider.stream(ASK)))
    await anext(stream)


@pytest.fixture(params=[INTERFACES[0], INTERFACES[-1]], ids=lambda each: each.id)
def interface(request: pytest.FixtureRequest) -> Interface:
    """One interface of each SDK, on the transport that is spread."""
    return request.param


async def test_a_client_gets_a_few_requests_at_a_time(server, interface, make):
    """The pool of each stays short, and what comes later uses the first ones again."""
    server.script(stalled(interface))
    provider = make()
    async with AsyncExitStack() as stack:
        for number in range(1, 3 * WIDTH):
            await opened(provider, stack)
            assert len(clients(provider)) == -(-number // WIDTH)
        assert [each.taken for each in clients(provider)] == [WIDTH, WIDTH, WIDTH - 1]
        assert server.open == server.connections == 3 * WIDTH - 1
    assert [each.taken for each in clients(provider)] == [0, 0, 0]
    server.script(interface.good(streamed=False))
    for _ in range(3):
        await ask(provider, streamed=False)
    assert server.connections == 3 * WIDTH  # one after the other share one
    await provider.aclose()
    await server.until_open(0)


async def test_what_nobody_uses_any_more_is_closed(
    server, interface, make, monkeypatch
):
    """As the connections of one pool are: at the next requests."""
    server.script(interface.good(streamed=False))
    provider = make()
    await asyncio.gather(*(ask(provider, streamed=False) for _ in range(3 * WIDTH)))
    assert len(clients(provider)) == 3
    await ask(provider, streamed=False)
    assert len(clients(provider)) == 3  # not at once: there may be more requests soon
    monkeypatch.setattr(_lanes, "_IDLE_SECONDS", 0.0)
    for _ in range(3):
        await ask(provider, streamed=False)
    assert len(clients(provider)) == 1
    await server.until_open(WIDTH)


ENDS: dict[str, Callable[[Answer], Answer]] = {
    "complete": lambda good: good,
    "refused": lambda _: Answer(status=400, body=b"{}"),
    "cut": lambda good: replace(good, body=good.body[:-40], end="cut"),
    "reset": lambda good: replace(good, body=good.body[:-40], end="reset"),
    "no reply": lambda _: Answer(end="cut", before_headers=True),
    "no answer": lambda _: Answer(body=b"<html>"),
    "cancelled": lambda good: replace(good, body=good.body[:-40], end="stall"),
    "cancelled at once": lambda _: Answer(end="stall", before_headers=True),
}


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("end", ENDS)
async def test_a_place_is_given_back_however_a_request_ends(
    server, interface, make, monkeypatch, end, streamed
):
    """With room for two, the third would wait for ever."""
    monkeypatch.setattr(_lanes, "_MOST", 2)
    good = interface.good(streamed=streamed)
    server.script(ENDS[end](good))
    provider = make()
    for number in range(1, 6):
        task = asyncio.ensure_future(ask(provider, streamed=streamed))
        if end.startswith("cancelled"):
            await server.until(lambda n=number: len(server.requests) >= n)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    server.script(good)
    async with asyncio.timeout(10):
        assert (await ask(provider, streamed=streamed)).content == "Hello!"
    assert [each.taken for each in clients(provider)] == [0]


async def test_a_place_of_a_stream_that_is_left_is_given_back(
    server, interface, make, monkeypatch
):
    """Its connection is closed, since the rest of the reply has not come."""
    monkeypatch.setattr(_lanes, "_MOST", 2)
    server.script(stalled(interface))
    provider = make()
    for _ in range(5):
        async with AsyncExitStack() as stack:
            await opened(provider, stack)
    server.script(interface.good(streamed=True))
    async with asyncio.timeout(10):
        assert (await ask(provider, streamed=True)).content == "Hello!"
    assert [each.taken for each in clients(provider)] == [0]


async def test_what_is_too_much_waits_its_turn(server, interface, make, monkeypatch):
    """In the order in which it came; one that is cancelled leaves its place."""
    monkeypatch.setattr(_lanes, "_MOST", 2)
    server.script(stalled(interface))
    provider = make()
    async with AsyncExitStack() as first, AsyncExitStack() as second:
        await opened(provider, first)
        await opened(provider, second)
        server.script(interface.good(streamed=False))
        waiting = [
            asyncio.ensure_future(ask(provider, streamed=False)) for _ in range(4)
        ]
        done: list[int] = []
        for number, task in enumerate(waiting):
            task.add_done_callback(lambda _, number=number: done.append(number))
        await asyncio.sleep(0.05)
        assert len(server.requests) == 2
        waiting[1].cancel()
        await first.aclose()
        await asyncio.wait(waiting)
        assert done == [1, 0, 2, 3]
        assert len(server.requests) == 5
    assert sum(each.taken for each in clients(provider)) == 0


async def test_waiting_for_a_place_is_bounded(server, interface, make, monkeypatch):
    """By the timeout that says so, or by the one for everything."""
    monkeypatch.setattr(_lanes, "_MOST", 1)
    server.script(stalled(interface))
    for timeout in (httpx2.Timeout(5, pool=0.05), 0.05):
        provider = make(timeout=timeout)
        async with aclosing(make().stream(ASK)) as held:
            await anext(held)  # another provider has places of its own
            before = len(server.requests)
            async with AsyncExitStack() as stack:
                await opened(provider, stack)
                error = await failure(provider, streamed=False)
                assert error.code == "network_error"
                assert "in time (TimeoutError)" in str(error)
        assert len(server.requests) == before + 1


async def test_a_client_that_cannot_be_made_takes_no_place(
    server, interface, make, monkeypatch
):
    """The next request finds as many as before."""
    monkeypatch.setattr(_lanes, "_WIDTH", 1)
    monkeypatch.setattr(_lanes, "_MOST", 2)
    server.script(stalled(interface))
    provider = make()
    made = provider._sender.make
    async with AsyncExitStack() as stack:
        await opened(provider, stack)
        lanes = provider._sender._pool.known()
        lanes._make = broken
        for _ in range(3):
            with pytest.raises(Exception, match="no more clients"):
                await ask(provider, streamed=False)
        lanes._make = made
        server.script(interface.good(streamed=False))
        async with asyncio.timeout(5):
            await ask(provider, streamed=False)


def broken() -> None:
    """A client that cannot be made."""
    raise RuntimeError("no more clients")


@pytest.mark.parametrize("option", ["client", "http_client", "transport"])
async def test_what_an_application_brings_is_one_client(
    server: Loopback, interface, make, option
):
    """Its limits hold, and aiohttp's pool does not grow slow."""
    server.script(stalled(interface))
    async with httpx2.AsyncClient(verify=False) as transport:
        given: dict[str, Any] = {option: transport, "timeout": 5}
        if option == "client":
            client = interface.make_client(
                api_key="k", base_url=server.url, http_client=transport
            )
            given = {"client": client}
        elif option == "transport":
            given = {"transport": "aiohttp"}
        provider = make(**given)
        async with AsyncExitStack() as stack:
            for _ in range(WIDTH + 1):
                await opened(provider, stack)
            if option != "client":
                assert len(clients(provider)) == 1
            assert server.open == WIDTH + 1
