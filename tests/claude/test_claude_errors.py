"""Failures of the service and of the transport, over the loopback server."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket

import pytest
from support.claude_streams import body, call, reply, sse, text, thinking
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer

from lighter_core import (
    Agent,
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
)

ASK = ModelRequest([UserMessage("hello")])
GOOD = sse(reply(text("Hello!")))
STREAM = Answer(headers=EVENT_STREAM, body=GOOD)
CODES = {
    400: "invalid_request",
    401: "auth_error",
    402: "auth_error",
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
REPORT = {"type": "error", "error": {"type": "some_error", "message": "It broke."}}
BODIES = {
    "json": (JSON_TYPE, json.dumps(REPORT).encode()),
    "html": ({"content-type": "text/html"}, b"<html><h1>Bad gateway</h1></html>"),
    "empty": ({}, b""),
    "truncated": (JSON_TYPE, json.dumps(REPORT).encode()[:20]),
}


def told(kind: str, message: str = "No.", **fields) -> bytes:
    error = {"type": kind, "message": message}
    return json.dumps({"type": "error", "error": error, **fields}).encode()


async def run(provider, *, streamed: bool = True, request: ModelRequest = ASK):
    """Return the message, by either way."""
    if not streamed:
        return await provider.invoke(request)
    events = [event async for event in provider.stream(request)]
    assert isinstance(events[-1], MessageEvent)
    return events[-1].message


async def failure(provider, *, streamed: bool = True, request=ASK) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await run(provider, streamed=streamed, request=request)
    assert caught.value.provider == "claude"
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize("kind", BODIES)
async def test_statuses_map_to_codes_whatever_the_body(server, make, kind):
    """KF-122: 15 statuses with JSON, HTML, empty and truncated bodies."""
    headers, data = BODIES[kind]
    provider = make()
    for status, code in CODES.items():
        server.script(Answer(status, {**headers, "request-id": "req_7"}, data))
        for streamed in (True, False):
            error = await failure(provider, streamed=streamed)
            assert (error.code, error.http_status) == (code, status)
            assert error.request_id == "req_7"
            assert error.vendor_code == ("some_error" if kind == "json" else None)
            assert error.__cause__ is not None
            assert str(status) in error.message


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "authentication_error", "auth_error"),
        (400, "billing_error", "auth_error"),
        (400, "rate_limit_error", "rate_limit"),
        (400, "overloaded_error", "invalid_request"),
        (404, "not_found_error", "invalid_request"),
        (413, "request_too_large", "invalid_request"),
        (500, "authentication_error", "server_error"),
        (529, "overloaded_error", "server_error"),
    ],
)
async def test_known_types_refine_a_refused_request(server, make, status, kind, code):
    """The status decides; a known type only tells what a 4xx is about."""
    server.script(Answer(status, JSON_TYPE, told(kind, request_id="req_9")))
    error = await failure(make())
    assert (error.code, error.vendor_code) == (code, kind)
    assert error.request_id == "req_9"


async def test_sentences_say_what_happened_where_and_what_to_do(server, make):
    """A wrong key, an unknown model, a closed port, a cut stream."""
    key = "sk-ant-canary-123456"
    server.script(Answer(401, JSON_TYPE, told("authentication_error", f"bad {key}")))
    error = await failure(make(api_key=key))
    assert "ANTHROPIC_API_KEY" in error.message
    assert server.url in error.message
    assert key not in error.message
    server.script(Answer(404, JSON_TYPE, told("not_found_error", "model: claude-x")))
    message = (await failure(make(model_id="claude-x"))).message
    assert "'claude-x'" in message
    assert "Messages API" in message
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = await failure(make(base_url=f"http://127.0.0.1:{port}"))
    assert error.code == "network_error"
    assert f"127.0.0.1:{port}" in error.message
    server.script(Answer(headers=EVENT_STREAM, body=GOOD[:700]))
    error = await failure(make())
    assert error.code == "bad_response"
    assert "ended before" in error.message


@pytest.mark.parametrize("end", ["cut", "reset"])
async def test_broken_connections_are_network_errors(server, make, end):
    """KF-008, KF-123: before the headers, after each event, by EOF and by RST."""
    provider = make()
    server.script(Answer(end=end, before_headers=True))
    for streamed in (True, False):
        assert (await failure(provider, streamed=streamed)).code == "network_error"
    blocks = GOOD.split(b"\n\n")
    for count in range(len(blocks) - 1):
        part = b"".join(block + b"\n\n" for block in blocks[:count])
        server.script(Answer(headers=EVENT_STREAM, body=part, end=end))
        error = await failure(provider)
        assert error.code == "network_error"
        assert error.http_status is None
        assert error.__cause__ is not None
    data = json.dumps(body(text("x"))).encode()
    for chunked in (True, False):
        server.script(
            Answer(headers=JSON_TYPE, body=data[:-9], end=end, chunked=chunked)
        )
        assert (await failure(provider, streamed=False)).code == "network_error"


@pytest.mark.parametrize("chunked", [True, False])
async def test_cut_after_the_last_event_does_not_matter(server, make, chunked):
    """The terminal event makes the reply complete."""
    server.script(Answer(headers=EVENT_STREAM, body=GOOD, end="cut", chunked=chunked))
    assert (await run(make())).content == "Hello!"


async def test_undecodable_bytes_are_a_bad_response(server, make):
    """KF-008: a broken compression, invalid UTF-8."""
    squeezed = {**EVENT_STREAM, "content-encoding": "gzip"}
    server.script(Answer(headers=squeezed, body=gzip.compress(GOOD)))
    provider = make()
    assert (await run(provider)).content == "Hello!"
    for answer in (
        Answer(headers=squeezed, body=b"\x00\x01no gzip" + GOOD),
        Answer(headers=EVENT_STREAM, body=GOOD.replace(b"Hell", b"\xff\xfe")),
    ):
        server.script(answer)
        assert (await failure(provider)).code == "bad_response"


async def test_a_whole_reply_in_place_of_a_stream_is_taken(server, make):
    """Some servers ignore that a stream was asked for."""
    data = json.dumps(body(text("x"))).encode()
    server.script(Answer(headers=JSON_TYPE, body=data))
    assert (await run(make())).content == "x"


@pytest.mark.parametrize(
    ("headers", "data", "code"),
    [
        ({"content-type": "text/html"}, b"<html>Sign in</html>", "bad_response"),
        (JSON_TYPE, b"", "bad_response"),
        (JSON_TYPE, b"null", "bad_response"),
        (JSON_TYPE, told("overloaded_error"), "server_error"),
        (JSON_TYPE, told("rate_limit_error"), "rate_limit"),
        ({}, b"", "bad_response"),
        (EVENT_STREAM, b"<html>Sign in</html>", "bad_response"),
        ({"content-type": "text/html"}, b"x" * 300_000, "bad_response"),
    ],
)
async def test_good_status_with_another_body_is_classified(
    server, make, headers, data, code
):
    """KF-122: a gateway's page or report with status 200, never reported as 200."""
    server.script(Answer(headers=headers, body=data))
    error = await failure(make())
    assert (error.code, error.http_status) == (code, None)
    assert len(error.message) < 400


async def test_body_errors_with_good_status_reach_invoke(server, make):
    """The same for a reply that comes whole."""
    provider = make()
    for data, code in (
        (told("api_error"), "server_error"),
        (b"<html>", "bad_response"),
        (GOOD, "bad_response"),
    ):
        server.script(Answer(headers=JSON_TYPE, body=data))
        assert (await failure(provider, streamed=False)).code == code


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("overloaded_error", "server_error"),
        ("rate_limit_error", "rate_limit"),
        ("authentication_error", "auth_error"),
        ("invalid_request_error", "invalid_request"),
        ("api_error", "server_error"),
    ],
)
async def test_error_events_map_by_type_and_keep_no_partial_text(
    server, make, kind, code
):
    """KF-006, KF-123: after a delta, through an agent, never as status 200."""
    events = [*reply(text("Hello!"))[:4], {"type": "error", "error": {"type": kind}}]
    server.script(Answer(headers=EVENT_STREAM, body=sse(events)))
    async with Agent(make()).stream("x") as stream:
        seen = [event async for event in stream]
    got = seen[-1]
    assert (got.status, got.error.code, got.error.http_status) == ("failed", code, None)
    assert isinstance(seen[0], TextDelta)
    assert got.messages == []


@pytest.mark.parametrize(
    "answer",
    [
        Answer(end="stall", before_headers=True),
        Answer(headers=EVENT_STREAM, end="stall"),
        Answer(headers=EVENT_STREAM, body=GOOD[:150], end="stall"),
        Answer(headers=EVENT_STREAM, body=GOOD[: GOOD.find(b"\n\n") + 2], end="stall"),
    ],
    ids=["before headers", "after headers", "in an event", "between events"],
)
async def test_stalls_end_by_the_timeout_or_by_cancellation(server, make, answer):
    """KF-095: a timeout bounds each wait, retries included; cancelling always works."""
    server.script(answer)
    provider = make(timeout=0.2, max_retries=2)
    async with asyncio.timeout(5):
        assert (await failure(provider)).code == "network_error"
    patient = make()
    task = asyncio.create_task(run(patient))
    seen = len(server.requests)
    await server.until(lambda: len(server.requests) > seen)
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.until_open(0)


async def test_silent_connection_after_the_reply_does_not_hold_it_up(server, make):
    """KF-094: the terminal event ends the reply, the connection is given up."""
    server.script(Answer(headers=EVENT_STREAM, body=GOOD, end="stall"))
    async with asyncio.timeout(5):
        assert (await run(make())).content == "Hello!"
    await server.until_open(0)


@pytest.mark.parametrize(
    ("history", "call_id"),
    [
        ([AssistantMessage(tool_calls=[ToolCall("c7", "t", "")])], "c7"),
        ([ToolMessage(call_id="c8", tool_name="t", tool_output="")], "c8"),
    ],
)
async def test_doomed_histories_are_not_sent(server, make, history, call_id):
    """KF-047: refused with the call id, without any request."""
    for streamed in (True, False):
        error = await failure(
            make(),
            streamed=streamed,
            request=ModelRequest([*history, UserMessage("x")]),
        )
        assert error.code == "invalid_request"
        assert call_id in error.message
    assert server.requests == []


async def test_deltas_before_a_failure_are_shown_but_no_message(server, make):
    """KF-007: partial text is seen in the stream and never in a message."""
    server.script(Answer(headers=EVENT_STREAM, body=sse(reply(text("Hello!"))[:-2])))
    seen = []

    async def watch() -> None:
        async for event in make().stream(ASK):
            seen.append(event)

    with pytest.raises(ModelError):
        await watch()
    assert seen
    assert all(isinstance(event, TextDelta) for event in seen)


BOUND = "messages.1.content.0: the thinking block is bound to a different conversation"
UNSIGNED = "messages.1.content.0: Invalid `signature` in `thinking` block"


@pytest.fixture
async def history(server, make):
    """A conversation whose reply holds thinking."""
    blocks = [thinking("r"), text("x"), call("t", {"a": 1})]
    data = sse(reply(*blocks, stop="tool_use"))
    server.script(Answer(headers=EVENT_STREAM, body=data))
    first = await run(make())
    server.requests.clear()
    result = ToolMessage(call_id="toolu_1", tool_name="t", tool_output="1")
    return ModelRequest([UserMessage("a"), first, result])


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("words", [BOUND, UNSIGNED])
async def test_refused_thinking_is_left_out_once(
    server, make, history, words, streamed
):
    """A changed prefix or account must not end a conversation for ever."""
    refused = Answer(400, JSON_TYPE, told("invalid_request_error", words))
    whole = Answer(headers=JSON_TYPE, body=json.dumps(body(text("Hello!"))).encode())
    server.script(refused, STREAM if streamed else whole)
    got = await run(make(), streamed=streamed, request=history)
    assert got.content == "Hello!"
    with_it, without_it = server.requests
    kinds = [b["type"] for b in with_it.json["messages"][1]["content"]]
    assert kinds == ["thinking", "text", "tool_use"]
    kinds = [b["type"] for b in without_it.json["messages"][1]["content"]]
    assert kinds == ["text", "tool_use"]
    assert with_it.json["messages"][2] == without_it.json["messages"][2]


async def test_refused_thinking_is_reported(server, make, history):
    """The run's response says that something was left out."""
    refused = Answer(400, JSON_TYPE, told("invalid_request_error", BOUND))
    whole = json.dumps(body(text("Hello!"))).encode()
    server.script(refused, Answer(headers=JSON_TYPE, body=whole))
    response = await Agent(make()).run(history.messages)
    assert response.raise_if_failed().text == "Hello!"
    assert any("refused the thinking" in note for note in response.notes)


async def test_recovery_is_tried_once_and_can_be_switched_off(server, make, history):
    """Sending the same again never works, and not everybody wants it sent changed."""
    refused = Answer(400, JSON_TYPE, told("invalid_request_error", BOUND))
    server.script(refused)
    assert (await failure(make(), request=history)).http_status == 400
    assert len(server.requests) == 2
    await failure(make(recover=False), request=history)
    assert len(server.requests) == 3
    await failure(make())  # a history without thinking gains nothing by it
    assert len(server.requests) == 4
    other = Answer(400, JSON_TYPE, told("invalid_request_error", "something else"))
    server.script(other)
    await failure(make(), request=history)
    assert len(server.requests) == 5


async def test_thinking_that_was_refused_is_not_sent_again(server, make, history):
    """Putting it back would be refused again, at every later call."""
    refused = Answer(400, JSON_TYPE, told("invalid_request_error", BOUND))
    whole = Answer(headers=JSON_TYPE, body=json.dumps(body(text("Hello!"))).encode())
    server.script(refused, whole, whole)
    provider = make()
    await run(provider, streamed=False, request=history)
    later = ModelRequest([*history.messages, UserMessage("And?")])
    await run(provider, streamed=False, request=later)
    assert len(server.requests) == 3
    for sent in server.requests[1:]:
        kinds = [b["type"] for b in sent.json["messages"][1]["content"]]
        assert kinds == ["text", "tool_use"]
