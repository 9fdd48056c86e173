"""Clients, loops and connections: what is shared, what is closed and what is not."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading

import pytest
from support.claude_streams import reply, sse, text
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer
from support.threads import ServerThread

from lighter_claude import ClaudeProvider
from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    TextDelta,
    UserMessage,
)

ASK = ModelRequest([UserMessage("hello")])
GOOD = sse(reply(text("Hello!")))
PART = GOOD[:800]  # ends behind the first delta
STREAM = Answer(headers=EVENT_STREAM, body=GOOD)
KEY = "sk-ant-canary-0123456789abcdef"


async def collect(provider) -> AssistantMessage:
    events = [event async for event in provider.stream(ASK)]
    return events[-1].message


async def test_injected_client_is_used_and_never_closed(server, make):
    """No key is needed then; its own base URL counts."""
    import anthropic

    server.script(STREAM)
    client = anthropic.AsyncAnthropic(
        api_key=KEY,
        base_url=f"{server.url}/own",
        max_retries=0,
        http_client=anthropic.DefaultAsyncHttpxClient(),
    )
    async with ClaudeProvider(model_id="claude-test", client=client) as provider:
        assert (await collect(provider)).native.endpoint == f"{server.url}/own"
    assert not client.is_closed()
    assert server.requests[0].path == "/own/v1/messages"
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
    server.script(Answer(headers=EVENT_STREAM, body=PART, end="stall"))
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
    server.script(Answer(headers=EVENT_STREAM, body=PART, end="stall"))
    async for _ in make().stream(ASK):
        break
    gc.collect()
    await server.until_open(0)


@pytest.mark.parametrize("pause", [0.0, 0.001])
async def test_second_cancel_during_clean_up_leaks_nothing(server, make, pause):
    """Clean-up is shielded: it ends even when its waiter is cancelled again."""
    server.script(Answer(headers=EVENT_STREAM, body=PART, end="stall"))
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
        import anthropic
        import httpx2

        outer = self
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.closed = False

        class Stream(httpx2.AsyncByteStream):
            async def __aiter__(self):
                yield PART
                await asyncio.Event().wait()

            async def aclose(self) -> None:
                outer.entered.set()
                await outer.release.wait()
                outer.closed = True

        class Transport(httpx2.AsyncBaseTransport):
            async def handle_async_request(self, request):
                return httpx2.Response(200, headers=EVENT_STREAM, stream=Stream())

        self.client = anthropic.AsyncAnthropic(
            api_key=KEY,
            base_url="http://loopback.invalid",
            http_client=httpx2.AsyncClient(transport=Transport()),
        )


async def test_close_that_is_cancelled_is_finished_all_the_same():
    """Clean-up does not end with the task that waits for it."""
    slow = SlowlyClosed()
    stream = ClaudeProvider(model_id="m", client=slow.client).stream(ASK)
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
    stream = ClaudeProvider(model_id="m", client=slow.client).stream(ASK)
    await anext(stream)
    slow.release.set()
    await stream.aclose()
    assert slow.closed
    await slow.client.close()


@pytest.mark.parametrize("kind", ["complete", "broken", "failed", "cancelled"])
async def test_fifty_streams_leave_no_more_sockets_than_the_pool(server, make, kind):
    """KF-053: complete, broken, failed and cancelled ones give all sockets back."""
    error = {"type": "error", "error": {"type": "api_error"}}
    server.script(
        {
            "complete": STREAM,
            "broken": Answer(headers=EVENT_STREAM, body=PART, end="cut"),
            "failed": Answer(headers=EVENT_STREAM, body=sse([error])),
            "cancelled": Answer(headers=EVENT_STREAM, body=PART, end="stall"),
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
        provider = ClaudeProvider(KEY, "m", base_url=f"{server.url}", max_retries=0)
        for _ in range(3):
            for _ in range(2):
                assert asyncio.run(collect(provider)).content == "Hello!"
    gc.collect()


def test_one_provider_serves_loops_in_several_threads():
    """KF-060: four loops at once, each with its own client."""
    with ServerThread() as server:
        server.script(STREAM)
        provider = ClaudeProvider(KEY, "m", base_url=f"{server.url}", max_retries=0)
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
    import anthropic

    with ServerThread() as server:
        server.script(STREAM)
        client = anthropic.AsyncAnthropic(
            api_key=KEY,
            base_url=f"{server.url}",
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(),
        )
        provider = ClaudeProvider(model_id="m", client=client)
        assert asyncio.run(collect(provider)).content == "Hello!"
        with pytest.raises(ModelError, match="event loop that it was first") as caught:
            asyncio.run(collect(provider))
        assert caught.value.code == "unknown"
        caught = None  # its traceback holds the dead sockets
        del provider, client
        gc.collect()


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
