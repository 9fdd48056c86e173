"""When a failed request is sent again, and what is told when it is not."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from email.utils import formatdate
from types import SimpleNamespace

import pytest
from support.interfaces import ask, failure
from support.loopback import JSON_TYPE, Answer

from lighter_core.adapters._retries import pause_before_retry

SLOW_DOWN = json.dumps({"error": {"message": "slow down"}}).encode()
BACKOFF = (0.375, 0.5)
both = pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])


def limited(**headers: str) -> Answer:
    """A refusal with an order to wait."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(429, {**JSON_TYPE, **named}, SLOW_DOWN)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pauses that no service asked for are short."""
    monkeypatch.setattr("lighter_core.adapters._retries._FIRST_SECONDS", 0.01)
    return


@both
async def test_a_pause_that_does_not_fit_is_told_at_once(
    server, interface, make, streamed
):
    """Not as silence after the timeout: the refusal and the pause that it asks for."""
    server.script(
        limited(retry_after="60", request_id="r1"), interface.good(streamed=streamed)
    )
    provider = make(timeout=1, max_retries=2)
    began = time.perf_counter()
    error = await failure(provider, streamed=streamed)
    assert time.perf_counter() - began < 0.9
    assert (error.code, error.http_status) == ("rate_limit", 429)
    assert error.retry_after == 60
    assert error.message.endswith(": slow down")
    assert len(server.requests) == 1


@both
async def test_a_pause_that_fits_is_kept(server, interface, make, streamed):
    """Then the same bytes go out again, counted as the SDK counts."""
    server.script(limited(retry_after="0.05"), interface.good(streamed=streamed))
    provider = make(timeout=2, max_retries=2)
    began = time.perf_counter()
    assert (await ask(provider, streamed=streamed)).content == "Hello!"
    assert time.perf_counter() - began >= 0.05
    first, second = server.requests
    assert first.body == second.body
    counts = [each.headers["x-stainless-retry-count"] for each in server.requests]
    assert counts == ["0", "1"]


@both
async def test_two_faults_of_the_service_are_survived(
    server, interface, make, streamed, quick
):
    """By the SDK's own default of two repetitions."""
    server.script(Answer(503), Answer(503), interface.good(streamed=streamed))
    provider = make(max_retries=None)
    assert (await ask(provider, streamed=streamed)).content == "Hello!"
    assert len(server.requests) == 3
    server.script(Answer(503))
    assert (await failure(provider, streamed=streamed)).http_status == 503
    assert len(server.requests) == 6


@both
@pytest.mark.parametrize("end", ["cut", "reset"])
async def test_a_connection_that_drops_before_the_reply_is_tried_again(
    server, interface, make, streamed, end, quick
):
    """Nothing was handed on yet."""
    dropped = Answer(end=end, before_headers=True)
    server.script(dropped, interface.good(streamed=streamed))
    provider = make(max_retries=1)
    assert (await ask(provider, streamed=streamed)).content == "Hello!"
    server.script(dropped)
    assert (await failure(provider, streamed=streamed)).code == "network_error"
    assert len(server.requests) == 4


@both
async def test_a_reply_that_breaks_is_not_tried_again(
    server, interface, make, streamed
):
    """Once a reply has begun, its deltas may have been shown."""
    good = interface.good(streamed=streamed)
    server.script(Answer(headers=good.headers, body=good.body[:100], end="cut"))
    error = await failure(make(max_retries=3), streamed=streamed)
    assert error.code == "network_error"
    assert len(server.requests) == 1


@both
async def test_silence_is_told_after_one_timeout(server, interface, make, streamed):
    """Not after three; and a later attempt that is met by silence says so."""
    server.script(Answer(end="stall", before_headers=True))
    began = time.perf_counter()
    error = await failure(make(timeout=0.2, max_retries=2), streamed=streamed)
    assert time.perf_counter() - began < 1.5
    assert (error.code, error.http_status) == ("network_error", None)


@both
async def test_cancelling_ends_a_pause_at_once(server, interface, make, streamed):
    """And sends nothing more."""
    server.script(limited(retry_after="60"))
    task = asyncio.create_task(ask(make(max_retries=2), streamed=streamed))
    await server.until(lambda: len(server.requests) == 1)
    await asyncio.sleep(0.1)
    began = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - began < 0.5
    assert len(server.requests) == 1


@both
async def test_a_given_client_keeps_its_own_number(
    server, interface, make, streamed, quick
):
    """And is not changed."""
    client = interface.make_client(
        api_key="sk-test", base_url=server.url, max_retries=4
    )
    server.script(Answer(503))
    await failure(make(client=client), streamed=streamed)
    assert len(server.requests) == 5
    await failure(make(client=client, max_retries=1), streamed=streamed)
    assert len(server.requests) == 7
    assert client.max_retries == 4
    await client.close()


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
async def test_what_is_wrong_is_not_sent_again(server, make, status):
    """It stays wrong."""
    server.script(Answer(status, JSON_TYPE, b"{}"))
    await failure(make(max_retries=3), streamed=True)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "4000000"}, 4e6),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
    ids=str,
)
async def test_seconds_that_are_asked_for_are_on_the_error(
    server, make, headers, seconds
):
    """KF-092: whatever the policy does with them."""
    server.script(Answer(429, headers))
    assert (await failure(make(), streamed=False)).retry_after == seconds


@both
async def test_a_date_that_is_too_far_is_on_the_error(
    server, interface, make, streamed
):
    """The adapter does not wait for it; who repeats the request later can."""
    date = formatdate(time.time() + 60, usegmt=True)
    server.script(limited(retry_after=date))
    error = await failure(make(timeout=1, max_retries=2), streamed=streamed)
    assert error.retry_after is not None
    assert 55 < error.retry_after <= 60
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({}, BACKOFF),
        ({"retry-after": "0"}, BACKOFF),
        ({"retry-after": "-3"}, BACKOFF),
        ({"retry-after": "nan"}, BACKOFF),
        ({"retry-after": "soon"}, BACKOFF),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, BACKOFF),
        ({"retry-after": "Wed, 99 Oct 999999999 07:28:00 GMT"}, BACKOFF),
        ({"retry-after-ms": "", "retry-after": ""}, BACKOFF),
        ({"retry-after": "1"}, (1, 1)),
        ({"retry-after": "120"}, (120, 120)),
        ({"retry-after-ms": "1500", "retry-after": "9"}, (1.5, 1.5)),
        ({"retry-after-ms": "x", "retry-after": "9"}, (9, 9)),
        ({"retry-after": "121"}, None),
        ({"retry-after": "1e400"}, BACKOFF),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}, None),
        ({"x-should-retry": "false", "retry-after": "1"}, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("status", [408, 409, 429, 500, 529])
def test_pauses(status, headers, pause):
    """KF-092: as the service asks, up to two minutes."""
    found = pause_before_retry(refusal(status, headers), "openai", 0)
    if pause is None:
        assert found is None
    else:
        assert pause[0] <= found <= pause[1]


def test_pauses_are_those_of_the_sdks():
    """The same answers as the functions of both SDKs give."""
    import anthropic
    import httpx2
    import openai

    for sdk, client in ((openai, "AsyncOpenAI"), (anthropic, "AsyncAnthropic")):
        theirs = getattr(sdk, client)(api_key="x", base_url="http://h")
        for status in (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503, 529):
            for told in (None, "true", "false", "maybe"):
                headers = {} if told is None else {"x-should-retry": told}
                reply = httpx2.Response(status, headers=headers)
                ours = pause_before_retry(refusal(status, headers), sdk.__name__, 0)
                assert (ours is not None) == theirs._should_retry(reply)
        name = sdk.__name__
        request = httpx2.Request("POST", "http://h")
        for broken in (
            sdk.APIConnectionError(request=request),
            sdk.APITimeoutError(request=request),
        ):
            assert pause_before_retry(broken, name, 0) is not None
        assert pause_before_retry(ValueError(), name, 0) is None


def test_pauses_grow_and_end_growing():
    """0.5 s doubled up to 8 s, less up to a quarter."""
    for taken, seconds in enumerate((0.5, 1, 2, 4, 8, 8, 8)):
        found = {pause_before_retry(refusal(500, {}), "openai", taken) for _ in "12345"}
        assert all(0.75 * seconds <= each <= seconds for each in found)
        assert len(found) > 1
    assert pause_before_retry(refusal(500, {}), "openai", 10**9) <= 8


def refusal(status: int, headers: dict[str, str]) -> Exception:
    error = Exception()
    error.response = SimpleNamespace(status_code=status, headers=headers)  # type: ignore[attr-defined]
    return error
