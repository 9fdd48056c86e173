"""Recorded exchanges, served by the loopback server, through the real SDK."""

from __future__ import annotations

import json

import pytest
from support.loopback import JSON_TYPE, Answer, bytewise, cut_randomly
from support.recordings import exchanges, parameters
from support.torture import size

from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    Usage,
    UserMessage,
)

pytestmark = pytest.mark.recordings
VENDOR = "openai-responses"
BYTEWISE = size(1_500, 24_000)  # bytes sent one by one; in full all of most recordings
ASK = ModelRequest([UserMessage("hello")])
STATUS_CODES = {
    400: "invalid_request",
    401: "auth_error",
    403: "auth_error",
    429: "rate_limit",
    500: "server_error",
}
IN_REPLY = {
    "server_error": "server_error",
    "rate_limit_exceeded": "rate_limit",
    "insufficient_quota": "rate_limit",
}


def events_of(body: bytes) -> list[dict]:
    """The events, read the simple way: the recordings have one data line each."""
    lines = body.decode().replace("\r\n", "\n").split("\n")
    data = [line[5:].strip() for line in lines if line.startswith("data:")]
    return [json.loads(text) for text in data if text and text != "[DONE]"]


def final_object(exchange) -> dict | None:
    """The recorded response object that ended the reply, if one did."""
    if exchange.status != 200:
        return None
    if not exchange.streamed:
        return json.loads(exchange.body)
    ends = ("response.completed", "response.incomplete", "response.failed")
    for event in events_of(exchange.body):
        if event["type"] == "error":
            return None
        if event["type"] in ends:
            return event["response"]
    return None


def completed_stream(exchange) -> bool:
    response = final_object(exchange) if exchange.streamed else None
    return response is not None and response["status"] == "completed"


def parts(items, kind, key):
    return [
        part for item in items if item["type"] == kind for part in item.get(key) or []
    ]


def expect_message(response: dict, got: AssistantMessage) -> None:
    items = response["output"]
    said = parts(items, "message", "content")
    assert got.content == "".join(p.get("text", p.get("refusal")) for p in said)
    summary = [p["text"] for p in parts(items, "reasoning", "summary") if p["text"]]
    plain = [p["text"] for p in parts(items, "reasoning", "content") if p["text"]]
    assert got.reasoning == ("\n\n".join(summary or plain) or None)
    assert [(c.call_id, c.tool_name, c.arguments) for c in got.tool_calls] == [
        (i["call_id"], i["name"], i["arguments"])
        for i in items
        if i["type"] == "function_call"
    ]
    usage = response["usage"]
    details = usage["input_tokens_details"]
    assert got.usage == Usage(
        usage["input_tokens"],
        usage["output_tokens"],
        details["cached_tokens"],
        details.get("cache_write_tokens", 0),
        usage["output_tokens_details"]["reasoning_tokens"],
    )
    refused = any(part["type"] == "refusal" for part in said)
    assert got.stop_reason == ("refusal" if refused else "completed")


def expect_native(exchange, items: list[dict], got: AssistantMessage) -> None:
    """The kept items are the recorded ones, and their text stands in the recording."""
    if not items:
        assert got.native is None
        return
    assert got.native is not None
    assert got.native_intact()
    kept = json.loads(got.native.items)
    lost = any(
        item["type"] == "reasoning" and not item.get("encrypted_content")
        for item in items
    )
    expected = [
        {k: v for k, v in item.items() if not (lost and k == "id")}
        for item in items
        if item["type"] != "reasoning" or item.get("encrypted_content")
    ]
    assert [(i["type"], i.get("id")) for i in kept] == [
        (i["type"], i.get("id")) for i in expected
    ]
    strip = {"encrypted_content"}  # the last event repeats it in other words
    for mine, theirs in zip(kept, expected, strict=True):
        assert {k: v for k, v in mine.items() if k not in strip} == {
            k: v for k, v in theirs.items() if k not in strip
        }
    if not lost:
        text, position = got.native.items, 1
        for _ in kept:
            _, stop = json.JSONDecoder().raw_decode(text, position)
            assert text[position:stop] in exchange.body.decode()
            position = stop + 1


def expect_error(exchange, error: ModelError) -> None:
    assert error.provider == "openai"
    assert len(error.message) < 700
    if exchange.status != 200:
        body = json.loads(exchange.body)
        reported = body.get("error", body)
        assert error.code == STATUS_CODES[exchange.status]
        assert error.http_status == exchange.status
        assert error.vendor_code == (reported.get("code") or reported.get("type"))
        assert error.request_id == exchange.headers.get("x-request-id")
        return
    assert error.http_status is None
    response = final_object(exchange)
    if response is not None and response["status"] in {"incomplete", "queued"}:
        assert error.code == "bad_response"
        assert error.response_status == response["status"]
        return
    for event in events_of(exchange.body):
        found = event.get("error") or (event.get("response") or {}).get("error")
        if event["type"] == "error" or found:
            found = found or event
            vendor_code = found.get("code") or found.get("type")
            assert error.code == IN_REPLY[vendor_code]
            assert error.vendor_code == vendor_code
            assert error.response_status in {"error", "failed"}
            return
    assert "stream-cut" in exchange.tags
    assert error.code in {"bad_response", "network_error"}


async def stream(provider) -> tuple[list, AssistantMessage]:
    events = [event async for event in provider.stream(ASK)]
    assert [type(e) for e in events].count(MessageEvent) == 1
    return events[:-1], events[-1].message


def expect_deltas(deltas: list, got: AssistantMessage) -> None:
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == got.content
    thought = "".join(d.text for d in deltas if isinstance(d, ReasoningDelta))
    assert thought == (got.reasoning or "")


@pytest.mark.parametrize("exchange", parameters(VENDOR))
async def test_recorded_exchange_gives_the_recorded_reply_or_error(
    server, make, exchange
):
    """KF-001, KF-002, KF-020: text, calls, usage and errors, however bytes are cut."""
    provider = make(model_id=exchange.request["json"].get("model") or "unknown")
    response = final_object(exchange)
    good = response is not None and response["status"] == "completed"
    start, rest = exchange.body[:BYTEWISE], exchange.body[BYTEWISE:]
    cuts: list = [
        None,
        cut_randomly(exchange.body, seed=7),
        [*bytewise(start), *cut_randomly(rest, seed=8)],
    ]
    results: list = []
    for cut in cuts:
        server.script(exchange.answer(cut))
        call = stream(provider) if exchange.streamed else provider.invoke(ASK)
        if not good:
            with pytest.raises(ModelError) as caught:
                await call
            expect_error(exchange, caught.value)
            results.append((caught.value.code, caught.value.message))
            continue
        result = await call
        deltas, got = result if exchange.streamed else (None, result)
        results.append(got)
        expect_message(response, got)
        expect_native(exchange, response["output"], got)
        if deltas is not None:
            expect_deltas(deltas, got)
    assert results == results[:1] * len(cuts)


@pytest.mark.parametrize(
    "exchange",
    [p for p in parameters(VENDOR) if not p.values[0] or completed_stream(p.values[0])],
)
async def test_invoke_equals_stream_for_a_recorded_reply(server, make, exchange):
    """KF-018, KF-020: the last event's object, sent whole, gives the equal message."""
    response = final_object(exchange)
    assert response is not None
    provider = make()
    events = [
        {**event, "item": response["output"][event["output_index"]]}
        if event["type"] == "response.output_item.done"
        else event
        for event in events_of(exchange.body)
    ]
    body = "".join(f"data: {json.dumps(e, ensure_ascii=False)}\n\n" for e in events)
    server.script(
        Answer(headers=exchange.headers, body=body.encode()),
        Answer(
            headers=JSON_TYPE, body=json.dumps(response, ensure_ascii=False).encode()
        ),
    )
    _, streamed = await stream(provider)
    assert await provider.invoke(ASK) == streamed


def test_all_recorded_exchanges_are_found():
    """The folder holds what its README counts."""
    if not exchanges(VENDOR):
        pytest.skip("no recordings")
    assert len(exchanges(VENDOR)) == 77
