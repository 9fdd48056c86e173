"""What the SDKs call a failed connection, and is a fault of the program."""

from __future__ import annotations

import ssl

import httpx2
import pytest
from support.interfaces import failure

both = pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])


class Broken(httpx2.AsyncBaseTransport):
    """A transport of an application's own that raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.calls += 1
        raise self.error


@both
@pytest.mark.parametrize(
    "fault",
    [
        TypeError("got an unexpected keyword"),
        ValueError("no such option"),
        AttributeError("no attribute 'x'"),
        KeyError("proxy"),
        NotImplementedError("not yet"),
        UnicodeError("label too long"),
    ],
    ids=repr,
)
async def test_a_fault_of_the_program_is_told_as_one(make, fault, streamed):
    """With its own words, not as a network that cannot be reached; and told at once."""
    transport = Broken(fault)
    async with httpx2.AsyncClient(transport=transport) as http_client:
        provider = make(http_client=http_client, max_retries=2)
        error = await failure(provider, streamed=streamed)
    assert error.code == "unknown"
    assert f"({type(fault).__name__}: {fault})" in error.message
    assert "fault of the program" in error.message
    assert "cannot reach" not in error.message
    assert "works only on" not in error.message
    assert transport.calls == 1


@both
async def test_an_option_that_the_transport_refuses_is_named(server, make, streamed):
    """A hook that takes no argument: found by the transport itself, when it sends."""

    async def hook() -> None:
        return

    hooks = {"request": [hook]}
    async with httpx2.AsyncClient(event_hooks=hooks) as http_client:  # type: ignore[dict-item]
        error = await failure(make(http_client=http_client), streamed=streamed)
    assert error.code == "unknown"
    assert "TypeError" in error.message
    assert "takes 0 positional arguments" in error.message
    assert server.requests == []


@both
@pytest.mark.parametrize(
    "fault",
    [
        httpx2.ConnectError("refused"),
        ssl.SSLCertVerificationError("expired"),  # a ValueError as well
    ],
    ids=repr,
)
async def test_a_fault_of_the_network_stays_one(make, fault, streamed):
    """It is worth another try, and base_url worth a look."""
    transport = Broken(fault)
    async with httpx2.AsyncClient(transport=transport) as http_client:
        provider = make(http_client=http_client)
        error = await failure(provider, streamed=streamed)
    assert error.code == "network_error"
    assert "fault of the program" not in error.message


@both
async def test_a_client_on_a_foreign_loop_is_told_as_before(make, streamed):
    """Both SDKs hide it in an error of the connection."""
    transport = Broken(RuntimeError("bound to a different event loop"))
    async with httpx2.AsyncClient(transport=transport) as http_client:
        provider = make(http_client=http_client, max_retries=2)
        error = await failure(provider, streamed=streamed)
    assert error.code == "unknown"
    assert "works only on the event loop" in error.message
    assert transport.calls == 1
