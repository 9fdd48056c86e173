"""T8: every status, transport failure and malformed reply has its code."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from support.interfaces import BOTH, INTERFACES, Interface, ask, failure
from support.loopback import EVENT_STREAM, JSON_TYPE, Loopback
from support.torture import Results
from support.wire import Wire, wired

from . import seeds

each = pytest.mark.parametrize("interface", INTERFACES, ids=lambda each: each.name)
CODES = {
    400: "invalid_request",
    401: "auth_error",
    403: "auth_error",
    404: "invalid_request",
    408: "network_error",
    409: "invalid_request",
    413: "invalid_request",
    422: "invalid_request",
    429: "rate_limit",
    500: "server_error",
    502: "server_error",
    503: "server_error",
    504: "server_error",
    529: "server_error",
}
_REPORT = json.dumps({"error": {"type": "t", "message": "It broke.", "code": None}})
BODIES: dict[str, tuple[dict[str, str], bytes]] = {
    "json": (JSON_TYPE, _REPORT.encode()),
    "html": ({"content-type": "text/html"}, b"<html><h1>Bad gateway</h1></html>"),
    "empty": ({}, b""),
    "truncated": (JSON_TYPE, _REPORT.encode()[:20]),
}
TRANSPORT: dict[str, Callable[[], Exception]] = {
    name: lambda name=name: getattr(httpx2, name)("gone")
    for name in (
        "ConnectError",
        "ConnectTimeout",
        "ReadTimeout",
        "WriteTimeout",
        "PoolTimeout",
        "ReadError",
        "WriteError",
        "CloseError",
        "ProxyError",
        "RemoteProtocolError",
    )
}
TRANSPORT["OSError"] = lambda: ConnectionResetError("reset")
TRANSPORT["TLS"] = lambda: httpx2.ConnectError(str(ssl.SSLError(1, "bad certificate")))
MALFORMED: dict[str, bytes] = {
    "empty": b"",
    "null": b"null",
    "number": b"17",
    "text": b'"Hello!"',
    "list": b"[]",
    "empty object": b"{}",
    "html": b"<html>Sign in</html>",
    "half": b'{"id": "x", "output": [',
    "no utf-8": b'{"a": "\xff"}',
    "deep": b'{"a": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
}


async def statuses(provider: Any, wire: Any) -> int:
    """Each status with each body, whole and streamed."""
    count = 0
    for status, code in CODES.items():
        for kind, (headers, body) in BODIES.items():
            for streamed in (True, False):
                wire.script(Wire(body, status=status, headers=dict(headers)))
                error = await failure(provider, streamed=streamed)
                found = (error.code, error.http_status)
                assert found == (code, status), f"{status} {kind} {streamed}: {found}"
                assert error.__cause__ is not None
                count += 1
    return count


async def transport(provider: Any, wire: Any) -> int:
    """Each failure, before the reply and inside it."""
    count = 0
    for name, make in TRANSPORT.items():
        for inside in (False, True):
            for streamed in (True, False):
                headers = dict(EVENT_STREAM if streamed else JSON_TYPE)
                wire.script(
                    Wire(b" \n", error=make(), headers=headers)
                    if inside
                    else Wire(refused=make())
                )
                error = await failure(provider, streamed=streamed)
                assert error.code == "network_error", f"{name}: {error.code} {error}"
                assert error.http_status is None
                assert error.__cause__ is not None
                count += 1
    return count


async def malformed(provider: Any, wire: Any) -> int:
    """Each body with a good status, as JSON and as events."""
    count = 0
    for name, body in MALFORMED.items():
        for streamed, headers, sent in (
            (False, JSON_TYPE, body),
            (True, EVENT_STREAM, b"data: " + body + b"\n\n"),
            (True, JSON_TYPE, body),
        ):
            wire.script(Wire(sent, headers=dict(headers)))
            error = await failure(provider, streamed=streamed)
            # A stream that holds nothing known has ended early: like a connection.
            allowed = {"bad_response", "network_error"}
            if not streamed or headers is JSON_TYPE:
                allowed = {"bad_response"}
            assert error.code in allowed, f"{name} {streamed}: {error.code} {error}"
            count += 1
    return count


@each
async def test_T8_statuses(interface: Interface, results: Results) -> None:
    """R12: 14 statuses with 4 bodies."""
    async with wired(interface) as (provider, wire):
        count = await statuses(provider, wire)
        assert wire.open == 0
    results.add("T8", f"statuses, {interface.name}", count, "100 % as expected")


@each
async def test_T8_transport(interface: Interface, results: Results) -> None:
    """R12: 12 failures of the transport."""
    async with wired(interface) as (provider, wire):
        count = await transport(provider, wire)
    results.add("T8", f"transport failures, {interface.name}", count, "network_error")


@each
async def test_T8_malformed(interface: Interface, results: Results) -> None:
    """R12: 10 malformed replies with a good status."""
    async with wired(interface) as (provider, wire):
        count = await malformed(provider, wire)
    results.add("T8", f"malformed replies, {interface.name}", count, "bad_response")


@pytest.mark.parametrize("interface", BOTH, ids=lambda each: each.id)
async def test_T8_real_sockets(interface: Interface, results: Results) -> None:
    """R12: nobody listens, no such host, no TLS, a reset at once."""
    async with Loopback() as server:
        gone = server.port
        urls = {"TLS": f"https://127.0.0.1:{server.port}/v1"}
        provider = interface.provider(
            api_key="k-0123456", model_id="m", base_url=urls["TLS"], max_retries=0
        )
        assert (await failure(provider, streamed=True)).code == "network_error"
        await provider.aclose()
    for url in (f"http://127.0.0.1:{gone}/v1", "http://no-such-host.invalid/v1"):
        provider = interface.provider(
            api_key="k-0123456", model_id="m", base_url=url, max_retries=0, timeout=1
        )
        assert (await failure(provider, streamed=True)).code == "network_error"
        await provider.aclose()
    results.add("T8", f"sockets, {interface.id}", 3, "network_error")


class ByTheBody(seeds.Around):
    """Believes a body's word over the status."""

    async def invoke(self, request: Any) -> Any:
        from lighter_core import ModelError

        try:
            return await super().invoke(request)
        except ModelError as error:
            raise ModelError(str(error), "server_error", provider="x") from error


async def test_T8_finds_it() -> None:
    """An error whose code does not follow its status; a reply made of nothing."""

    class Believes(seeds.SwallowsErrors):
        pass

    async with wired(INTERFACES[0]) as (provider, wire):
        with pytest.raises(AssertionError):
            await statuses(ByTheBody(provider), wire)
        for table in (transport, malformed, statuses):
            with pytest.raises(AssertionError, match="succeeded"):
                await table(Believes(provider), wire)
        wire.script(Wire(INTERFACES[0].streamed))
        assert (await ask(provider, streamed=True)).content == "Hello!"
