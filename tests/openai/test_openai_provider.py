"""Construction, clients and loops, secrets, what is closed and what is not."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import json
import logging
import pickle
import subprocess
import sys
import threading
import traceback

import pytest
from support.ids import stable
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer
from support.openai_streams import message, reasoning, reply, response, sse
from support.threads import ServerThread

import lighter_openai
from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    Provider,
    SupportsAclose,
    TextDelta,
    UserMessage,
)
from lighter_openai import OpenAIChatProvider, OpenAIProvider
from lighter_openai.plugin import create_provider

ASK = ModelRequest([UserMessage("hello")])
GOOD = sse(reply(message("Hello!")))
STREAM = Answer(headers=EVENT_STREAM, body=GOOD)
KEY = "sk-canary-0123456789abcdef"


async def collect(provider) -> AssistantMessage:
    events = [event async for event in provider.stream(ASK)]
    return events[-1].message


def test_exports_are_sorted_and_versioned():
    """The package shows its class, its options and its version."""
    assert sorted(lighter_openai.__all__) == lighter_openai.__all__
    assert lighter_openai.__version__.count(".") == 2
    with pytest.raises(AttributeError):
        lighter_openai.nothing  # noqa: B018


def test_provider_has_the_documented_surface():
    """A name that cannot be set, capabilities, the two protocols."""
    provider = OpenAIProvider(KEY, "gpt-test")
    assert isinstance(provider, Provider)
    assert isinstance(provider, SupportsAclose)
    assert provider.name == "openai"
    assert provider.model_id == "gpt-test"
    assert "tool_choice" in provider.capabilities
    with pytest.raises(AttributeError):
        provider.name = "other"  # type: ignore[misc]


def test_key_and_model_come_from_the_environment(monkeypatch):
    """An argument wins over its variable."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_MODEL", "gpt-env")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://host/v9/")
    assert OpenAIProvider().model_id == "gpt-env"
    assert "http://host/v9" in repr(OpenAIProvider())
    assert OpenAIProvider(model_id="gpt-arg").model_id == "gpt-arg"
    assert "http://other/v1" in repr(OpenAIProvider(base_url="http://other/v1"))
    monkeypatch.setenv("OPENAI_BASE_URL", " ")
    assert "https://api.openai.com/v1" in repr(OpenAIProvider())


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ({"api_key": None}, "auth_error", "OPENAI_API_KEY"),
        ({"api_key": ""}, "auth_error", "OPENAI_API_KEY"),
        ({"api_key": "  "}, "auth_error", "OPENAI_API_KEY"),
        ({"api_key": b"sk-canary"}, "invalid_request", "api_key"),
        ({"api_key": ["sk-canary"]}, "invalid_request", "api_key"),
        ({"api_key": "sk-canary\n"}, "invalid_request", "api_key"),
        ({"api_key": "sk-canary-é"}, "invalid_request", "api_key"),
        ({"model_id": None}, "invalid_request", "OPENAI_MODEL"),
        ({"model_id": ""}, "invalid_request", "OPENAI_MODEL"),
        ({"max_output_tokens": 0}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": True}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": 1.5}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": 2**53}, "invalid_request", "max_output_tokens"),
        ({"max_retries": -1}, "invalid_request", "max_retries"),
        ({"max_retries": False}, "invalid_request", "max_retries"),
        ({"timeout": 0}, "invalid_request", "timeout"),
        ({"timeout": True}, "invalid_request", "timeout"),
        ({"timeout": "5"}, "invalid_request", "timeout"),
        ({"timeout": float("inf")}, "invalid_request", "timeout"),
        ({"base_url": "no url sk-canary"}, "invalid_request", "base_url"),
        ({"base_url": "ftp://host"}, "invalid_request", "base_url"),
        ({"base_url": "http://host:port/sk-canary"}, "invalid_request", "base_url"),
        ({"base_url": 5}, "invalid_request", "base_url"),
        ({"reasoning": "high"}, "invalid_request", "reasoning"),
        ({"reasoning": {"effort": object()}}, "invalid_request", "reasoning"),
        ({"extra_body": {"x": float("nan")}}, "invalid_request", "extra_body"),
        ({"extra_body": {"input": []}}, "invalid_request", "extra_body"),
        ({"extra_body": {"stream": False}}, "invalid_request", "extra_body"),
        ({"extra_body": []}, "invalid_request", "extra_body"),
        ({"extra_headers": []}, "invalid_request", "extra_headers"),
        ({"extra_headers": {"a b": "x"}}, "invalid_request", "a b"),
        ({"extra_headers": {1: "x"}}, "invalid_request", "extra_headers"),
        ({"extra_headers": {"X-A": "sk-canary\n"}}, "invalid_request", "X-A"),
        ({"extra_headers": {"X-A": 5}}, "invalid_request", "X-A"),
        ({"extra_headers": {"Content-Type": "x"}}, "invalid_request", "Content-Type"),
        ({"client": object()}, "invalid_request", "client"),
    ],
    ids=stable,
)
def test_values_that_cannot_work_are_refused_at_construction(options, code, named):
    """KF-112: the error names parameter or variable, never a key."""
    with pytest.raises(ModelError) as caught:
        OpenAIProvider(**{"api_key": KEY, "model_id": "gpt-test", **options})
    assert caught.value.code == code
    assert caught.value.provider == "openai"
    assert named in caught.value.message
    assert "canary" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("make", [OpenAIProvider, OpenAIChatProvider])
def test_one_error_names_all_that_is_missing(make):
    """Else the second one shows only after the first was mended."""
    with pytest.raises(ModelError) as caught:
        make()
    for named in ("OPENAI_MODEL", "model_id", "OPENAI_API_KEY", "api_key"):
        assert named in caught.value.message
    with pytest.raises(ModelError) as caught:
        make(api_key=KEY)
    assert "API key" not in caught.value.message


def test_options_are_copied():
    """What the application changes later does not reach the provider."""
    extra = {"metadata": {"a": "1"}}
    provider = OpenAIProvider(KEY, "m", extra_body=extra, reasoning={"effort": "low"})
    extra["metadata"]["a"] = "2"
    assert provider._options["metadata"] == {"a": "1"}


def test_plugin_makes_the_provider_and_refuses_unknown_options():
    """A misspelled option is a TypeError that lists the real ones."""
    provider = create_provider("openai", {"api_key": KEY, "model_id": "gpt-test"})
    assert provider.name == "openai"
    with pytest.raises(TypeError, match=r"max_tokens.*max_output_tokens") as caught:
        create_provider("openai", {"api_key": KEY, "max_tokens": 1})
    assert KEY not in str(caught.value)


def test_nothing_heavy_is_imported_before_the_first_request():
    """Neither the SDK nor its transport, at import, lookup and construction."""
    script = (
        "import sys, lighter_openai, lighter_openai.plugin\n"
        "lighter_openai.plugin.create_provider('openai', {'api_key': 'k',"
        " 'model_id': 'm', 'timeout': 3.0, 'extra_body': {'a': 1}})\n"
        "heavy = {'openai', 'httpx2', 'anyio', 'pydantic', 'jiter', 'httpcore2'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_providers_cannot_be_copied_or_pickled():
    """KF-104: a plain sentence instead of an error about locks."""
    provider = OpenAIProvider(KEY, "gpt-test")
    for action in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            action(provider)


async def test_fields_of_the_request_arrive(server, make):
    """Options, headers and path as the service documents them."""
    server.script(STREAM)
    provider = make(
        reasoning={"summary": "auto"},
        max_output_tokens=64,
        extra_body={"metadata": {"a": "1"}},
    )
    await collect(provider)
    request = server.requests[0]
    assert (request.method, request.path) == ("POST", "/v1/responses")
    assert request.headers["authorization"] == "Bearer sk-test"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept"] == "text/event-stream"
    assert request.json == {
        "model": "gpt-test",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
        "max_output_tokens": 64,
        "metadata": {"a": "1"},
        "input": [{"role": "user", "content": "hello"}],
    }
    server.script(Answer(headers=JSON_TYPE, body=json.dumps(response([])).encode()))
    await provider.invoke(ASK)
    assert server.requests[1].json == {**request.json, "stream": False}


async def test_base_url_may_have_a_query(server, make):
    """Gateways want a version or a key there; it is sent and never shown."""
    server.script(STREAM)
    provider = make(base_url=f"{server.url}/v1?api-version=7&token=canary")
    got = await collect(provider)
    assert server.requests[0].path == "/v1/responses?api-version=7&token=canary"
    assert "canary" not in repr(provider)
    assert got.native.endpoint == f"{server.url}/v1"


async def test_invoke_equals_stream(server, make):
    """KF-018: one message, whichever way it came."""
    items = [reasoning("why", "how"), message("Hello!")]
    body = json.dumps(response(items), ensure_ascii=False).encode()
    server.script(
        Answer(headers=EVENT_STREAM, body=sse(reply(*items))),
        Answer(headers=JSON_TYPE, body=body),
    )
    provider = make()
    assert await collect(provider) == await provider.invoke(ASK)


async def test_second_request_carries_the_first_reply(server, make):
    """KF-063, KF-069: the recorded bytes of the items stand in the next body."""
    items = [reasoning("why"), message("Hello!", phase="final_answer")]
    server.script(Answer(headers=EVENT_STREAM, body=sse(reply(*items))))
    provider = make()
    first = await collect(provider)
    again = pickle.loads(pickle.dumps(first))
    for history in ([first], [again]):
        async for _ in provider.stream(ModelRequest([*history, UserMessage("more")])):
            pass
    assert server.requests[1].body == server.requests[2].body
    raw = json.dumps(items[0], ensure_ascii=False).encode()
    assert raw in server.requests[1].body
    assert first.native is not None
    assert first.native.endpoint == f"{server.url}/v1"
    assert first.native.items[1:-1].encode() in server.requests[1].body


async def test_injected_client_is_used_and_never_closed(server, make):
    """No key is needed then; its own base URL counts."""
    import openai

    server.script(STREAM)
    client = openai.AsyncOpenAI(
        api_key=KEY,
        base_url=f"{server.url}/own/v1",
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(),
    )
    async with OpenAIProvider(model_id="gpt-test", client=client) as provider:
        assert (await collect(provider)).native.endpoint == f"{server.url}/own/v1"
    assert not client.is_closed()
    assert server.requests[0].path == "/own/v1/responses"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    await client.close()


async def test_close_is_idempotent_and_leaves_no_socket(server, make):
    """KF-056: after aclose nothing is open; the provider can be used again."""
    server.script(STREAM)
    provider = make()
    await collect(provider)
    assert server.open == 1
    await provider.aclose()
    await provider.aclose()
    await server.until_open(0)
    assert (await collect(provider)).content == "Hello!"


async def test_connection_is_reused(server, make):
    """The body is read to its end, so one connection serves all requests."""
    server.script(STREAM)
    provider = make()
    for _ in range(4):
        await collect(provider)
    assert server.connections == 1


async def test_connection_is_free_before_the_message_is_seen(server, make):
    """A tool that calls the model again finds the connection released."""
    server.script(STREAM)
    provider = make()
    async for event in provider.stream(ASK):
        if isinstance(event, MessageEvent):
            await collect(provider)
    assert server.connections == 1


@pytest.mark.parametrize("when", ["first", "message", "never"])
async def test_leaving_a_stream_closes_its_connection(server, make, when):
    """KF-056, KF-058: aclose at any point, and a stream that never began."""
    server.script(Answer(headers=EVENT_STREAM, body=GOOD[:700], end="stall"))
    if when == "message":
        server.script(STREAM)
    stream = make().stream(ASK)
    if when == "first":
        assert isinstance(await anext(stream), TextDelta)
    elif when == "message":
        while not isinstance(await anext(stream), MessageEvent):
            pass
    await stream.aclose()
    await stream.aclose()
    await server.until_open(1 if when == "message" else 0)
    if when == "never":
        assert server.requests == []


async def test_dropped_stream_is_closed_by_the_collector(server, make):
    """A bare break: the connection goes when the generator goes."""
    server.script(Answer(headers=EVENT_STREAM, body=GOOD[:700], end="stall"))
    async for _ in make().stream(ASK):
        break
    gc.collect()
    await server.until_open(0)


@pytest.mark.parametrize("pause", [0.0, 0.001])
async def test_second_cancel_during_clean_up_leaks_nothing(server, make, pause):
    """Clean-up is shielded: it ends even when its waiter is cancelled again."""
    server.script(Answer(headers=EVENT_STREAM, body=GOOD[:700], end="stall"))
    provider = make()
    for _ in range(5):
        begun = asyncio.Event()

        async def consume(begun: asyncio.Event = begun) -> None:
            async with contextlib.aclosing(provider.stream(ASK)) as stream:
                async for _ in stream:
                    begun.set()

        task = asyncio.create_task(consume())
        await begun.wait()
        task.cancel()
        await asyncio.sleep(pause)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await server.until_open(0)


class SlowlyClosed:
    """A client whose reply begins, then hangs, and takes its time to close."""

    def __init__(self) -> None:
        import httpx2
        import openai

        outer = self
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.closed = False

        class Stream(httpx2.AsyncByteStream):
            async def __aiter__(self):
                yield GOOD[:700]
                await asyncio.Event().wait()

            async def aclose(self) -> None:
                outer.entered.set()
                await outer.release.wait()
                outer.closed = True

        class Transport(httpx2.AsyncBaseTransport):
            async def handle_async_request(self, request):
                return httpx2.Response(200, headers=EVENT_STREAM, stream=Stream())

        self.client = openai.AsyncOpenAI(
            api_key=KEY,
            base_url="http://loopback.invalid/v1",
            http_client=httpx2.AsyncClient(transport=Transport()),
        )


async def test_close_that_is_cancelled_is_finished_all_the_same():
    """Clean-up does not end with the task that waits for it."""
    slow = SlowlyClosed()
    stream = OpenAIProvider(model_id="m", client=slow.client).stream(ASK)
    await anext(stream)
    task = asyncio.ensure_future(stream.aclose())
    await slow.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not slow.closed
    slow.release.set()
    await asyncio.sleep(0.01)
    assert slow.closed
    await slow.client.close()


async def test_close_returns_when_the_reply_is_closed():
    """Not when the collector happens to come by."""
    slow = SlowlyClosed()
    stream = OpenAIProvider(model_id="m", client=slow.client).stream(ASK)
    await anext(stream)
    slow.release.set()
    await stream.aclose()
    assert slow.closed
    await slow.client.close()


@pytest.mark.parametrize("kind", ["complete", "broken", "failed", "cancelled"])
async def test_fifty_streams_leave_no_more_sockets_than_the_pool(server, make, kind):
    """KF-053: complete, broken, failed and cancelled ones give all sockets back."""
    error = {"type": "error", "code": "server_error", "message": "x"}
    part = GOOD[:700]
    server.script(
        {
            "complete": STREAM,
            "broken": Answer(headers=EVENT_STREAM, body=part, end="cut"),
            "failed": Answer(headers=EVENT_STREAM, body=part[:0] + sse([error])),
            "cancelled": Answer(headers=EVENT_STREAM, body=part, end="stall"),
        }[kind]
    )
    provider = make()
    for _ in range(50):
        if kind == "complete":
            await collect(provider)
        elif kind == "cancelled":
            stream = provider.stream(ASK)
            await anext(stream)
            task = asyncio.ensure_future(anext(stream))
            while not task.done():
                await asyncio.sleep(0)
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await stream.aclose()
        else:
            with pytest.raises(ModelError):
                await collect(provider)
    await server.until_open(1)
    assert len(server.requests) == 50


def test_one_provider_serves_one_loop_after_the_other():
    """KF-059: asyncio.run three times against a server that keeps connections."""
    with ServerThread() as server:
        server.script(STREAM)
        provider = OpenAIProvider(KEY, "m", base_url=f"{server.url}/v1", max_retries=0)
        for _ in range(3):
            for _ in range(2):
                assert asyncio.run(collect(provider)).content == "Hello!"
    gc.collect()


def test_one_provider_serves_loops_in_several_threads():
    """KF-060: four loops at once, each with its own client."""
    with ServerThread() as server:
        server.script(STREAM)
        provider = OpenAIProvider(KEY, "m", base_url=f"{server.url}/v1", max_retries=0)
        results: list[str] = []

        async def several() -> None:
            for _ in range(5):
                results.append((await collect(provider)).content)

        threads = [
            threading.Thread(target=asyncio.run, args=(several(),)) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == ["Hello!"] * 20
    gc.collect()


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_injected_client_on_a_second_loop_fails_with_a_sentence():
    """KF-060: a client of one's own belongs to one loop; its sockets are its owner's."""
    import openai

    with ServerThread() as server:
        server.script(STREAM)
        client = openai.AsyncOpenAI(
            api_key=KEY,
            base_url=f"{server.url}/v1",
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(),
        )
        provider = OpenAIProvider(model_id="m", client=client)
        assert asyncio.run(collect(provider)).content == "Hello!"
        with pytest.raises(ModelError, match="event loop that it was first") as caught:
            asyncio.run(collect(provider))
        assert caught.value.code == "unknown"
        caught = None  # its traceback holds the dead sockets
        del provider, client
        gc.collect()


@pytest.mark.parametrize("key", ["x", "none"])
async def test_placeholder_keys_do_not_mangle_messages(server, make, key):
    """Local servers need no key: a word given in its place is no secret."""
    server.script(Answer(500, JSON_TYPE, b'{"error":{"message":"none of next text"}}'))
    with pytest.raises(ModelError, match="none of next text"):
        await make(api_key=key).invoke(ASK)


@pytest.mark.parametrize("streamed", [True, False])
async def test_secrets_stay_inside(server, make, caplog, streamed):
    """KF-105, KF-108, KF-109, KF-112: not in errors, their chain, logs, pickles."""
    caplog.set_level(logging.DEBUG)
    told = {"error": {"message": f"key {KEY} is wrong at http://u:p@h/x?k={KEY}"}}
    answers = [
        Answer(status, {"x-request-id": KEY[:3]}, json.dumps(told).encode())
        for status in (400, 401, 403, 404, 429, 500)
    ]
    answers += [
        Answer(200, {"content-type": "text/plain"}, KEY.encode()),
        Answer(200, EVENT_STREAM, sse([{"type": "error", **told}])),
        Answer(200, JSON_TYPE, json.dumps({**told, "status": "failed"}).encode()),
        Answer(end="cut", before_headers=True),
    ]
    server.script(*answers)
    provider = make(api_key=KEY, base_url=f"{server.url}/v1?token={KEY}")
    texts = [repr(provider), str(provider)]
    for _ in answers:
        with pytest.raises(ModelError) as caught:
            await (collect(provider) if streamed else provider.invoke(ASK))
        error = caught.value
        texts += [repr(error), str(error), *map(str, getattr(error, "__notes__", ()))]
        texts.append("".join(traceback.format_exception(error)))
        texts.append(repr(pickle.dumps(error)))
        twin = pickle.loads(pickle.dumps(error))
        assert (twin.message, twin.code, twin.http_status, twin.response_status) == (
            error.message,
            error.code,
            error.http_status,
            error.response_status,
        )
        assert twin.__cause__ is None
    ours = [r for r in caplog.records if r.name.startswith("lighter")]
    assert ours
    texts += [repr(vars(record)) for record in ours]
    for text in texts:
        assert KEY not in text
    assert not [r for r in ours if r.levelno > logging.DEBUG]


async def test_log_records_are_structured_and_hold_no_content(server, make, caplog):
    """KF-109: begin and end at DEBUG, fields with a prefix, no prompt, no reply."""
    caplog.set_level(logging.DEBUG, logger="lighter.openai")
    events = [{"type": "response.brand_new"}, *reply(message("the secret answer"))]
    server.script(
        Answer(headers={**EVENT_STREAM, "x-request-id": "r1"}, body=sse(events))
    )
    request = ModelRequest([UserMessage("the secret question")])
    async for _ in make().stream(request):
        pass
    records = [r for r in caplog.records if r.name == "lighter.openai"]
    assert len(records) == 2
    last = vars(records[-1])
    assert last["lighter_model"] == "gpt-test"
    assert last["lighter_endpoint"] == f"{server.url}/v1"
    assert last["lighter_status"] == 200
    assert last["lighter_request_id"] == "r1"
    assert last["lighter_seconds"] > 0
    assert last["lighter_ignored_events"] >= 1
    assert "secret" not in "".join(repr(vars(r)) for r in records)


async def test_extra_headers_go_out_and_are_not_shown(server, make, caplog):
    """With own clients and a given one; a secret among them is taken out of errors."""
    import openai

    caplog.set_level(logging.DEBUG)
    given = openai.AsyncOpenAI(
        api_key="sk-test", base_url=f"{server.url}/v1", max_retries=0
    )
    headers = {"X-Team": "blue", "X-Gateway-Key": KEY}
    for client in (None, given):
        server.script(
            Answer(400, JSON_TYPE, json.dumps({"error": {"message": KEY}}).encode())
        )
        own = {} if client is None else {"api_key": None, "base_url": None}
        provider = make(extra_headers=headers, client=client, **own)
        with pytest.raises(ModelError) as caught:
            await provider.invoke(ASK)
        sent = server.requests[-1].headers
        assert (sent["x-team"], sent["x-gateway-key"]) == ("blue", KEY)
        assert sent["content-type"] == "application/json"
        shown = "".join(traceback.format_exception(caught.value))
        assert KEY not in shown + repr(provider) + caplog.text
    await given.close()


async def test_given_http_client_is_used_and_never_closed(server, make):
    """A transport with settings of its own, such as a proxy."""
    import httpx2

    server.script(STREAM)
    async with httpx2.AsyncClient(headers={"x-mine": "1"}) as transport:
        provider = make(http_client=transport)
        assert (await collect(provider)).content == "Hello!"
        assert server.requests[0].headers["x-mine"] == "1"
        await provider.aclose()
        assert not transport.is_closed
        assert (await collect(provider)).content == "Hello!"


async def test_missing_sdk_is_said_in_a_sentence(make, monkeypatch):
    """An environment that lost the SDK: what to install, no traceback needed."""

    async def broken(_: str) -> None:
        raise ImportError("No module named 'openai'")

    monkeypatch.setattr("lighter_core.adapters._sender.import_sdk", broken)
    with pytest.raises(ModelError, match="pip install openai") as caught:
        await make().invoke(ASK)
    assert caught.value.code == "unknown"


async def test_cancellation_is_never_caught(server, make):
    """Neither while the request is on its way nor while the reply is read."""
    server.script(
        Answer(end="stall", before_headers=True),
        Answer(headers=JSON_TYPE, body=b"{", end="stall"),
    )
    provider = make()
    for number in (1, 2):
        task = asyncio.create_task(provider.invoke(ASK))
        await server.until(lambda number=number: len(server.requests) == number)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await server.until_open(0)
