"""Recorded exchanges, served by the loopback server, through the real SDK."""

from __future__ import annotations

import json

import pytest
from support.claude_streams import block_events, end, sse, started
from support.loopback import JSON_TYPE, Answer, bytewise, cut_randomly
from support.recordings import exchanges, parameters
from support.torture import size

from lighter_core import (
    AssistantMessage,
    HostedToolItem,
    MessageEvent,
    ModelError,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UserMessage,
)

pytestmark = pytest.mark.recordings
VENDOR = "anthropic-messages"
BYTEWISE = size(800, 12_000)  # bytes sent one by one; in full all of most recordings
ASK = ModelRequest([UserMessage("hello")])
ACCEPTED = {"end_turn", "tool_use", "stop_sequence", "refusal"}
STATUS_CODES = {
    400: "invalid_request",
    401: "auth_error",
    404: "invalid_request",
    413: "invalid_request",
    429: "rate_limit",
    500: "server_error",
    529: "server_error",
}


def events_of(body: bytes) -> list[dict]:
    """The events, read the simple way: the recordings have one data line each."""
    lines = body.decode().replace("\r\n", "\n").split("\n")
    data = [line[5:].strip() for line in lines if line.startswith("data:")]
    return [json.loads(text) for text in data if text]


def assembled(events: list[dict]) -> dict | None:
    """The reply that the events add up to; `None` without a good end."""
    blocks: dict[int, dict] = {}
    inputs: dict[int, str] = {}
    usage: dict = {}
    ending: dict = {}
    for event in events:
        match event["type"]:
            case "message_start":
                usage |= event["message"]["usage"]
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                block, delta = blocks[event["index"]], dict(event["delta"])
                kind = delta.pop("type")
                if kind == "input_json_delta":
                    known = inputs.get(event["index"], "")
                    inputs[event["index"]] = known + delta["partial_json"]
                elif kind == "citations_delta":
                    block["citations"] = [
                        *(block.get("citations") or []),
                        delta["citation"],
                    ]
                elif kind == "compaction_delta":
                    block.update(delta)
                else:
                    (key,) = delta
                    block[key] = (block.get(key) or "") + delta[key]
            case "message_delta":
                ending = event["delta"]
                usage |= {k: v for k, v in event["usage"].items() if v is not None}
            case "error":
                return None
    if events[-1]["type"] != "message_stop":
        return None
    if ending["stop_reason"] in ACCEPTED:
        for index, text in inputs.items():
            blocks[index]["input"] = json.loads(text or "{}")
    content = [blocks[index] for index in sorted(blocks)]
    return {"content": content, "usage": usage, **ending}


def recorded_reply(exchange) -> dict | None:
    """The recorded reply, if one came whole."""
    if exchange.status != 200:
        return None
    if exchange.streamed:
        return assembled(events_of(exchange.body))
    return json.loads(exchange.body)


def complete(exchange) -> bool:
    reply = recorded_reply(exchange)
    return reply is not None and reply["stop_reason"] in ACCEPTED


def expect_message(reply: dict, got: AssistantMessage) -> None:
    blocks = reply["content"]
    said = "".join(b["text"] for b in blocks if b["type"] == "text")
    if reply["stop_reason"] == "refusal" and not said:
        said = reply["stop_details"]["explanation"]
    assert got.content == said
    thoughts = [b["thinking"] for b in blocks if b["type"] == "thinking"]
    assert got.reasoning == ("\n\n".join(t for t in thoughts if t) or None)
    assert [
        (c.call_id, c.tool_name, json.loads(c.arguments)) for c in got.tool_calls
    ] == [(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"]
    usage = reply["usage"]
    read = usage.get("cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    details = usage.get("output_tokens_details") or {}
    assert got.usage == Usage(
        usage["input_tokens"] + read + written,
        usage["output_tokens"],
        read,
        written,
        details.get("thinking_tokens", 0),
    )
    assert got.stop_reason == reply["stop_reason"]


def expect_native(exchange, reply: dict, got: AssistantMessage) -> None:
    """The kept blocks are the recorded ones; untouched ones with the same bytes."""
    assert got.native is not None
    assert got.native_intact()
    kept = json.loads(got.native.items)
    expected = [] if reply["stop_reason"] == "refusal" else reply["content"]
    expected = [b for b in expected if b["type"] != "text" or b["text"].strip()]
    if reply.get("container") and reply["stop_reason"] != "refusal":
        id_ = reply["container"]["id"]
        assert kept.pop() == {"type": "lighter_container", "id": id_}
    assert kept == expected
    if not exchange.streamed:
        position = 1
        for _ in kept:
            _, stop = json.JSONDecoder().raw_decode(got.native.items, position)
            assert got.native.items[position:stop] in exchange.body.decode()
            position = stop + 1


def expect_error(exchange, error: ModelError) -> None:
    assert error.provider == "claude"
    assert len(error.message) < 700
    if exchange.status != 200:
        body = json.loads(exchange.body)
        assert error.code == STATUS_CODES[exchange.status]
        assert error.http_status == exchange.status
        assert error.vendor_code == body["error"]["type"]
        expected = exchange.headers.get("request-id") or body.get("request_id")
        assert error.request_id == expected
        seconds = exchange.headers.get("retry-after")
        assert error.retry_after == (float(seconds) if seconds else None)
        return
    assert error.http_status is None
    reply = recorded_reply(exchange)
    if reply is not None:
        assert error.code == "bad_response"
        assert error.response_status == reply["stop_reason"]
        return
    if "stream-error-event" in exchange.tags:
        (event,) = [e for e in events_of(exchange.body) if e["type"] == "error"]
        assert error.code == "server_error"
        assert error.vendor_code == event["error"]["type"] == "overloaded_error"
        assert error.request_id == event["request_id"]
        return
    assert "stream-cut" in exchange.tags
    assert error.code == ("network_error" if exchange.abrupt else "bad_response")


async def stream(provider) -> tuple[list, AssistantMessage]:
    events = [event async for event in provider.stream(ASK)]
    assert [type(e) for e in events].count(MessageEvent) == 1
    return events[:-1], events[-1].message


def expect_deltas(reply: dict, deltas: list, got: AssistantMessage) -> None:
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == got.content
    thought = "".join(d.text for d in deltas if isinstance(d, ReasoningDelta))
    assert thought == (got.reasoning or "")
    for call in got.tool_calls:
        shown = [
            d.arguments
            for d in deltas
            if isinstance(d, ToolCallDelta) and d.call_id == call.call_id
        ]
        assert "".join(shown) == call.arguments
    hosted = [json.loads(d.item) for d in deltas if isinstance(d, HostedToolItem)]
    ours = {
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "compaction",
        "fallback",
    }
    assert hosted == [b for b in reply["content"] if b["type"] not in ours]


@pytest.mark.parametrize("exchange", parameters(VENDOR))
async def test_recorded_exchange_gives_the_recorded_reply_or_error(
    server, make, exchange
):
    """KF-001, KF-002, KF-006, KF-012: replies and errors, however bytes are cut."""
    provider = make(model_id=exchange.request["json"].get("model") or "unknown")
    reply = recorded_reply(exchange)
    good = reply is not None and reply["stop_reason"] in ACCEPTED
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
        expect_message(reply, got)
        expect_native(exchange, reply, got)
        if deltas is not None:
            expect_deltas(reply, deltas, got)
    assert results == results[:1] * len(cuts)


@pytest.mark.parametrize(
    "exchange",
    [p for p in parameters(VENDOR) if not p.values[0] or complete(p.values[0])],
)
async def test_invoke_equals_stream_for_a_recorded_reply(server, make, exchange):
    """KF-018, KF-020: the recorded reply in the other form gives the equal message."""
    reply = recorded_reply(exchange)
    assert reply is not None
    events = [
        event
        for index, block in enumerate(reply["content"])
        for event in block_events(index, block)
    ]
    details = {key: reply.get(key) for key in ("stop_details", "container")}
    last = end(reply["stop_reason"], **details)
    last[0]["usage"] = reply["usage"]
    first = {**started(), "message": {"usage": reply["usage"]}}
    body = sse([first, *events, *last])
    whole = json.dumps(reply, ensure_ascii=False).encode()
    server.script(Answer(headers={}, body=body), Answer(headers=JSON_TYPE, body=whole))
    provider = make()
    deltas, streamed = await stream(provider)
    invoked = await provider.invoke(ASK)
    assert (streamed.content, streamed.reasoning, streamed.usage) == (
        invoked.content,
        invoked.reasoning,
        invoked.usage,
    )
    assert streamed.tool_calls == invoked.tool_calls
    assert streamed.stop_reason == invoked.stop_reason
    assert json.loads(streamed.native.items) == json.loads(invoked.native.items)
    expect_deltas(reply, deltas, streamed)


def test_all_recorded_exchanges_are_found():
    """The folder holds what its README counts."""
    if not exchanges(VENDOR):
        pytest.skip("no recordings")
    assert len(exchanges(VENDOR)) == 79
