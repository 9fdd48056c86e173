"""Failures of the service and of the transport, over the loopback server."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket

import pytest
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer
from support.openai_streams import message, reply, response, sse

from lighter_core import (
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
GOOD = sse(reply(message("Hello!")))
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
REPORT = {"error": {"message": "It broke.", "type": "some_error", "code": "some_code"}}
BODIES = {
    "json": (JSON_TYPE, json.dumps(REPORT).encode()),
    "html": ({"content-type": "text/html"}, b"<html><h1>Bad gateway</h1></html>"),
    "empty": ({}, b""),
    "truncated": (JSON_TYPE, json.dumps(REPORT).encode()[:20]),
}


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
    assert caught.value.provider == "openai"
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize("kind", BODIES)
async def test_statuses_map_to_codes_whatever_the_body(server, make, kind):
    """KF-122: 14 statuses with JSON, HTML, empty and truncated bodies."""
    headers, body = BODIES[kind]
    provider = make()
    for status, code in CODES.items():
        server.script(Answer(status, {**headers, "x-request-id": "req_7"}, body))
        for streamed in (True, False):
            error = await failure(provider, streamed=streamed)
            assert (error.code, error.http_status) == (code, status)
            assert error.request_id == "req_7"
            assert error.vendor_code == ("some_code" if kind == "json" else None)
            assert error.__cause__ is not None
            assert str(status) in error.message


@pytest.mark.parametrize(
    ("status", "vendor_code", "code"),
    [
        (400, "invalid_api_key", "auth_error"),
        (400, "insufficient_quota", "rate_limit"),
        (429, "insufficient_quota", "rate_limit"),
        (404, "model_not_found", "invalid_request"),
        (400, "context_length_exceeded", "invalid_request"),
        (402, None, "auth_error"),
        (500, "invalid_api_key", "server_error"),
    ],
)
async def test_known_vendor_codes_refine_a_refused_request(
    server, make, status, vendor_code, code
):
    """The status decides; a known code only tells what a 4xx is about."""
    body = json.dumps({"error": {"code": vendor_code, "message": "No."}}).encode()
    server.script(Answer(status, JSON_TYPE, body))
    error = await failure(make())
    assert (error.code, error.vendor_code) == (code, vendor_code)


async def test_sentences_say_what_happened_where_and_what_to_do(server, make):
    """A wrong key, an unknown model, a closed port, a cut stream."""
    key = "sk-canary-123456"
    told = {"error": {"code": "invalid_api_key", "message": f"Incorrect key: {key}"}}
    server.script(Answer(401, JSON_TYPE, json.dumps(told).encode()))
    error = await failure(make(api_key=key))
    assert "OPENAI_API_KEY" in error.message
    assert server.url in error.message
    assert key not in error.message
    told = {"error": {"code": "model_not_found", "message": "No such model."}}
    server.script(Answer(400, JSON_TYPE, json.dumps(told).encode()))
    assert "'gpt-nope'" in (await failure(make(model_id="gpt-nope"))).message
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = await failure(make(base_url=f"http://127.0.0.1:{port}/v1"))
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
        body = b"".join(block + b"\n\n" for block in blocks[:count])
        server.script(Answer(headers=EVENT_STREAM, body=body, end=end))
        error = await failure(provider)
        assert error.code == "network_error"
        assert error.http_status is None
        assert error.__cause__ is not None
    body = json.dumps(response([message("x")])).encode()
    for chunked in (True, False):
        server.script(
            Answer(headers=JSON_TYPE, body=body[:-9], end=end, chunked=chunked)
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


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({"content-type": "text/html"}, b"<html>Sign in</html>", "bad_response"),
        (JSON_TYPE, b"", "bad_response"),
        (JSON_TYPE, b"null", "bad_response"),
        (JSON_TYPE, json.dumps(response([], "failed")).encode(), "bad_response"),
        (JSON_TYPE, b'{"object":"list","data":[]}', "bad_response"),
        (JSON_TYPE, b'{"error":{"code":"server_error"}}', "server_error"),
        (JSON_TYPE, b'{"error":{"type":"rate_limit_error"}}', "rate_limit"),
        ({}, b"", "bad_response"),
        (EVENT_STREAM, b"<html>Sign in</html>", "bad_response"),
        ({"content-type": "text/html"}, b"x" * 300_000, "bad_response"),
    ],
)
async def test_good_status_with_another_body_is_classified(
    server, make, headers, body, code
):
    """KF-122: a gateway's page or report with status 200, never reported as 200."""
    server.script(Answer(headers=headers, body=body))
    error = await failure(make())
    assert (error.code, error.http_status) == (code, None)
    assert len(error.message) < 400


async def test_body_of_another_kind_that_never_ends_is_classified(
    server, make, monkeypatch
):
    """A page that stays open is not waited for."""
    monkeypatch.setattr("lighter_core.adapters._sender._LOOK_SECONDS", 0.05)
    body = b'{"error":{"code":"server_error"}}'
    server.script(Answer(headers=JSON_TYPE, body=body, end="stall"))
    assert (await failure(make())).code == "server_error"
    await server.until_open(0)


async def test_body_errors_with_good_status_reach_invoke(server, make):
    """The same for a reply that comes whole."""
    provider = make()
    for body, code in (
        (b'{"error":{"code":"server_error","message":"x"}}', "server_error"),
        (b"<html>", "bad_response"),
        (GOOD, "bad_response"),
    ):
        server.script(Answer(headers=JSON_TYPE, body=body))
        assert (await failure(provider, streamed=False)).code == code


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
    provider = make()
    async with asyncio.timeout(5):
        assert (await run(provider)).content == "Hello!"
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
    server.script(Answer(headers=EVENT_STREAM, body=sse(reply(message("Hello!"))[:-2])))
    seen = []

    async def watch() -> None:
        async for event in make().stream(ASK):
            seen.append(event)

    with pytest.raises(ModelError):
        await watch()
    assert seen
    assert all(isinstance(event, TextDelta) for event in seen)


async def test_reasoning_of_another_account_is_left_out_once(server, make):
    """A changed key or organisation must not end a conversation for ever."""
    from support.openai_streams import reasoning

    server.script(
        Answer(headers=EVENT_STREAM, body=sse(reply(reasoning("r"), message("x"))))
    )
    provider = make()
    first = await run(provider)
    told = {"error": {"code": "invalid_encrypted_content", "message": "No."}}
    refused = Answer(400, JSON_TYPE, json.dumps(told).encode())
    server.script(refused, Answer(headers=EVENT_STREAM, body=GOOD))
    request = ModelRequest([UserMessage("a"), first, UserMessage("b")])
    assert (await run(provider, request=request)).content == "Hello!"
    with_it, without_it = server.requests[1:]
    assert [i.get("type") for i in with_it.json["input"]][1:3] == [
        "reasoning",
        "message",
    ]
    assert without_it.json["input"][1] == {
        "type": "message",
        "role": "assistant",
        "content": "x",
    }
    server.script(refused)
    assert (await failure(provider)).vendor_code == "invalid_encrypted_content"
    assert len(server.requests) == 4
