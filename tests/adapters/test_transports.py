"""The SDKs' transports: what is refused, and that one can stand for the other."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import json
import socket
import time
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import httpx2
import pytest
from support.certificates import server_context
from support.interfaces import AIOHTTP, ASK, INTERFACES, Interface, ask, failure
from support.loopback import Answer, Loopback
from support.threads import ServerThread

from lighter_core import MessageEvent, ModelError
from lighter_core.adapters import _transport

both = pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
over_aiohttp = pytest.mark.parametrize("interface", AIOHTTP, ids=lambda i: i.id)
KEY = "sk-canary-0123456789"


def plain(interface: Interface) -> Interface:
    """The same adapter over the default transport."""
    return next(each for each in INTERFACES if each.name == interface.name)


@pytest.mark.parametrize("value", ["httpx", "", 1, True], ids=repr)
def test_what_is_no_transport_is_refused(interface, value):
    """With the words that there are."""
    with pytest.raises(ModelError, match="'httpx2' or 'aiohttp'") as caught:
        interface.provider(api_key=KEY, model_id="m", transport=value)
    assert caught.value.code == "invalid_request"


@pytest.mark.parametrize("option", ["client", "http_client"])
async def test_what_an_application_brings_has_a_transport(interface, option):
    """Nothing that is given is ignored without a word."""
    async with httpx2.AsyncClient(verify=False) as http_client:
        values = {"http_client": http_client, "api_key": KEY}
        if option == "client":
            client = interface.make_client(api_key=KEY, http_client=http_client)
            values = {"client": client}
        for transport in ("httpx2", "aiohttp"):
            with pytest.raises(ModelError, match=f"transport cannot .* {option}"):
                interface.provider(model_id="m", transport=transport, **values)


@over_aiohttp
def test_a_missing_library_is_told_at_construction(interface, monkeypatch):
    """With the command that installs it."""
    monkeypatch.setattr(_transport, "find_spec", lambda name: None)
    monkeypatch.delitem(_transport.sys.modules, "aiohttp")
    with pytest.raises(ModelError) as caught:
        interface.provider(api_key=KEY, model_id="m")
    assert caught.value.code == "invalid_request"
    assert f'pip install "{interface.sdk}[aiohttp]"' in caught.value.message


def test_a_library_that_is_there_is_found_without_an_import(monkeypatch):
    """Constructors import nothing."""
    monkeypatch.delitem(_transport.sys.modules, "aiohttp")
    _transport.need_transport("aiohttp", sdk="openai", provider="openai")
    assert "aiohttp" not in _transport.sys.modules
    assert find_spec("aiohttp") is not None


@over_aiohttp
@both
async def test_a_library_that_is_too_old_is_told_by_each_request(
    interface, make, streamed, monkeypatch
):
    """The SDKs say it when a transport is made; then it is known what to do."""

    def missing(**_: object) -> None:
        raise RuntimeError("To use the aiohttp client you must have installed …")

    sdk = importlib.import_module(interface.sdk)
    monkeypatch.setattr(sdk, "DefaultAioHttpClient", missing)
    provider = make(max_retries=2)
    for error in (await failure(provider, streamed=streamed), await cold(provider)):
        assert (error.code, error.provider) == ("invalid_request", interface.name)
        assert f'pip install "{interface.sdk}[aiohttp]"' in error.message


async def cold(provider: Any) -> ModelError:
    """The error of a warm-up that fails."""
    with pytest.raises(ModelError) as caught:
        await provider.warm_up()
    return caught.value


def faults(good: Answer) -> dict[str, Answer]:
    """What can happen to a request, by name."""
    part: dict[str, Any] = {"headers": good.headers, "body": good.body[:100]}
    return {
        "hangs up": Answer(end="cut", before_headers=True),
        "reset": Answer(end="reset", before_headers=True),
        "silent": Answer(end="stall", before_headers=True),
        "cut in a chunk": Answer(**part, end="cut"),
        "cut before its length": Answer(**part, end="cut", chunked=False),
        "reset inside": Answer(**part, end="reset"),
        "silent inside": Answer(**part, end="stall"),
        "no gzip": Answer(headers={"content-encoding": "gzip"}, body=b"nonsense"),
        "moved for ever": Answer(307, {"location": "/elsewhere"}),
        "no status": Answer(99_999),
        "no header": Answer(headers={"a b": "c"}),
        "no length": Answer(headers={"content-length": "x"}),
        "limited": Answer(429, body=b'{"error": {"message": "slow down"}}'),
        "broken": Answer(500),
    }


async def told(
    interface: Interface, answer: Answer | None, *, streamed: bool
) -> tuple[str, int | None, str]:
    """Code, status and words of an error, without the name of the exception."""
    async with Loopback() as server:
        waits = answer is not None and answer.end == "stall"
        options: dict[str, Any] = {"timeout": 0.3 if waits else 20, "max_retries": 0}
        url = server.url if answer else "http://127.0.0.1:9"
        provider = interface.provider(KEY, "m", base_url=url, **options)
        if answer:
            server.script(answer)
        error = await failure(provider, streamed=streamed)
        await provider.aclose()
        await server.until_open(0)
    words = error.message.replace(url, "URL").split(" (", 1)
    rest = words[1].partition(")")[2] if len(words) > 1 else ""
    return error.code, error.http_status, words[0] + rest


@over_aiohttp
@both
@pytest.mark.parametrize("name", [*faults(Answer(body=b"")), "nobody listens"])
async def test_errors_are_those_of_the_default_transport(interface, name, streamed):
    """The SDKs' own tables call a server that hangs up a timeout, or miss it."""
    answer = faults(interface.good(streamed=streamed)).get(name)
    found = await told(interface, answer, streamed=streamed)
    assert found == await told(plain(interface), answer, streamed=streamed)
    if answer is None or answer.status in {200, 307, 99_999}:
        assert found[0] == ("bad_response" if name == "no gzip" else "network_error")


@both
async def test_what_is_no_http_is_tried_again(
    server, interface, make, streamed, monkeypatch
):
    """As after a connection that broke; it may be a proxy that restarts."""
    monkeypatch.setattr("lighter_core.adapters._retries._FIRST_SECONDS", 0.01)
    server.script(Answer(99_999), interface.good(streamed=streamed))
    assert (await ask(make(max_retries=1), streamed=streamed)).content == "Hello!"


async def test_a_timeout_is_one_of_silence(server, interface, make):
    """A reply may take longer, as long as something comes."""
    good = interface.good(streamed=True)
    size = len(good.body) // 8 + 1
    pieces = [good.body[at : at + size] for at in range(0, len(good.body), size)]
    server.script(Answer(headers=good.headers, body=pieces, gap=0.2))
    began = time.perf_counter()
    provider = make(timeout=httpx2.Timeout(20, read=1))
    assert (await ask(provider, streamed=True)).content == "Hello!"
    assert time.perf_counter() - began > 1.2


@pytest.mark.parametrize("end", ["stall", "cut", "reset"])
async def test_what_waits_while_nobody_reads(server, interface, make, end):
    """As documented: aiohttp gives up what has arrived when something goes wrong then."""
    good = interface.good(streamed=True)
    middle = good.body.index(b"\n\n", len(good.body) // 2) + 2
    pieces = [good.body[:middle], good.body[middle:]]
    server.script(Answer(headers=good.headers, body=pieces, gap=0.05, end=end))
    stream = make(timeout=httpx2.Timeout(20, read=0.4)).stream(ASK)
    await anext(stream)
    await asyncio.sleep(0.9)
    if interface.transport == "aiohttp":
        with pytest.raises(ModelError) as caught:
            [event async for event in stream]
        assert caught.value.code == "network_error"
    else:
        assert isinstance([event async for event in stream][-1], MessageEvent)


@both
async def test_a_transports_own_timeout_is_kept(server, interface, make, streamed):
    """Its times are told apart: reading here."""
    server.script(Answer(end="stall", before_headers=True))
    provider = make(timeout=httpx2.Timeout(60, read=0.2))
    began = time.perf_counter()
    error = await failure(provider, streamed=streamed)
    assert error.code == "network_error"
    assert " in time (" in error.message
    assert time.perf_counter() - began < 5


async def test_a_connection_that_is_not_accepted_is_given_up(interface, make):
    """The time for connecting is one of its own."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        others = [socket.socket() for _ in range(8)]
        try:
            for other in others:
                other.setblocking(False)
                other.connect_ex(full.getsockname())
            await asyncio.sleep(0.05)
            url = f"http://127.0.0.1:{full.getsockname()[1]}"
            times = httpx2.Timeout(60, connect=0.3)
            began = time.perf_counter()
            error = await failure(make(base_url=url, timeout=times), streamed=False)
            assert time.perf_counter() - began < 5
        finally:
            for other in others:
                other.close()
    assert error.code == "network_error"
    assert " in time (" in error.message


ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
}


@both
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_encoded_replies_are_decoded(server, interface, make, streamed, encoding):
    """What is not encoded goes round the decoders; nothing else does."""
    good = interface.good(streamed=streamed)
    body = ENCODINGS[encoding](good.body)
    headers = {**good.headers, "content-encoding": encoding}
    pieces = [body[:7], body[7:]]
    server.script(Answer(headers=headers, body=pieces, gap=0.01))
    assert (await ask(make(), streamed=streamed)).content == "Hello!"
    if streamed and encoding != "identity":
        stream = make().stream(ASK)
        await anext(stream)
        await stream.aclose()


async def test_the_proxy_of_the_environment_is_used(
    server, interface, make, monkeypatch
):
    """By the variable that every HTTP client reads."""
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "")
    server.script(interface.good(streamed=True))
    provider = make(base_url="http://service.invalid/v1")
    assert (await ask(provider, streamed=True)).content == "Hello!"
    assert server.requests[0].path.startswith("http://service.invalid/v1/")


def test_certificates_of_the_environment_are_trusted(interface, monkeypatch, tmp_path):
    """And without them the connection is refused; every loop ends in silence."""
    context, authority = server_context(tmp_path)
    with ServerThread(context) as server:
        server.script(interface.good(streamed=True))
        url = server.url.replace("http:", "https:")
        provider = interface.provider(KEY, "m", base_url=url, max_retries=0)
        error = asyncio.run(failure(provider, streamed=True))
        assert error.code == "network_error"
        assert "cannot reach" in error.message
        monkeypatch.delenv("SSL_CERT_DIR")
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        for _ in range(2):
            assert asyncio.run(ask(provider, streamed=True)).content == "Hello!"


def test_certificates_are_loaded_once(interface, monkeypatch, tmp_path):
    """Not for each client: that takes thirty milliseconds and a megabyte."""
    made: list[object] = []
    make_context = httpx2.create_ssl_context

    def counted(verify: Any = True, **options: Any) -> Any:
        if verify is True:
            made.append(verify)
        return make_context(verify, **options)

    monkeypatch.setattr(httpx2, "create_ssl_context", counted)
    for module in ("httpx2._config", "httpx2._transports.default"):
        found = importlib.import_module(module)
        monkeypatch.setattr(found, "create_ssl_context", counted)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))  # not seen before
    with ServerThread() as server:
        server.script(interface.good(streamed=False))
        for _ in range(2):
            provider = interface.provider(KEY, "m", base_url=server.url)
            for _ in range(2):
                assert asyncio.run(ask(provider, streamed=False)).content == "Hello!"
    assert len(made) == 1


@over_aiohttp
async def test_a_given_client_may_have_the_transport(server, interface):
    """As the SDKs document it; it is never closed here."""
    sdk = importlib.import_module(interface.sdk)
    client = interface.make_client(
        api_key=KEY, base_url=server.url, http_client=sdk.DefaultAioHttpClient()
    )
    server.script(interface.good(streamed=True))
    async with interface.provider(model_id="m", client=client) as provider:
        assert (await ask(provider, streamed=True)).content == "Hello!"
    assert not client.is_closed()
    await client.close()
    await server.until_open(0)


@over_aiohttp
@both
async def test_the_bytes_of_a_request_are_the_same(server, interface, streamed):
    """And so are its headers, but for their order and what names the connection."""
    sent = []
    for each in (plain(interface), interface):
        server.script(each.good(streamed=streamed))
        async with each.provider(KEY, "m", base_url=server.url) as provider:
            await ask(provider, streamed=streamed)
        request = server.requests[-1]
        sent.append((request.method, request.path, request.body, request.headers))
    ours, theirs = sent
    assert ours[:3] == theirs[:3]
    assert json.loads(ours[2])
    differing = {
        n for n in {*ours[3], *theirs[3]} if ours[3].get(n) != theirs[3].get(n)
    }
    assert differing <= {"connection"}
