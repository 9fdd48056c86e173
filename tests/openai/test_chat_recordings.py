"""Recorded Chat Completions exchanges of OpenAI and DeepSeek, through the real SDK."""

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
    ToolCallDelta,
    Usage,
    UserMessage,
)

pytestmark = pytest.mark.recordings
VENDORS = {"openai-chat": 38, "deepseek-chat": 43}
BYTEWISE = size(800, 6_000)  # bytes sent one by one; in full all of many recordings
ASK = ModelRequest([UserMessage("hello")])
ENDS = {"stop", "tool_calls", "function_call"}
STATUS_CODES = {
    400: "invalid_request",
    401: "auth_error",
    402: "auth_error",
    404: "invalid_request",
    429: "rate_limit",
    500: "server_error",
}


def every() -> list:
    return [each for vendor in VENDORS for each in parameters(vendor)]


def events_of(body: bytes) -> list[dict]:
    """The events, read the simple way: the recordings have one data line each."""
    lines = body.decode().replace("\r\n", "\n").split("\n")
    data = [line[5:].strip() for line in lines if line.startswith("data:")]
    return [json.loads(text) for text in data if text and text != "[DONE]"]


def joined(events: list[dict]) -> dict:
    """A streamed reply as the whole one that it stands for; the first choice."""
    message: dict = {}
    calls: dict[int, dict] = {}
    finish = usage = None
    for event in events:
        usage = event.get("usage") or usage
        for choice in event.get("choices", []):
            if choice["index"] != 0:
                continue
            finish = choice.get("finish_reason") or finish
            for key in ("content", "refusal", "reasoning_content"):
                if choice["delta"].get(key) is not None:
                    message[key] = message.get(key, "") + choice["delta"][key]
            for piece in choice["delta"].get("tool_calls") or []:
                call = calls.setdefault(
                    piece["index"], {"function": {"name": "", "arguments": ""}}
                )
                call["id"] = call.get("id") or piece.get("id")
                for key in ("name", "arguments"):
                    call["function"][key] += piece["function"].get(key) or ""
    if calls:
        message["tool_calls"] = [call for _, call in sorted(calls.items())]
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def final_reply(exchange) -> dict | None:
    """The reply as a whole one, if the service sent one."""
    if exchange.status != 200:
        return None
    if not exchange.streamed:
        return json.loads(exchange.body)
    events = events_of(exchange.body)
    return None if any("error" in event for event in events) else joined(events)


def completed(exchange) -> bool:
    reply = final_reply(exchange)
    return reply is not None and reply["choices"][0]["finish_reason"] in ENDS


def expect_message(reply: dict, got: AssistantMessage) -> None:
    choice = reply["choices"][0]
    message, usage = choice["message"], reply["usage"]
    said = (message.get("content") or "") + (message.get("refusal") or "")
    assert got.content == said
    assert got.reasoning == (message.get("reasoning_content") or None)
    calls = [(c["id"], c["function"]) for c in message.get("tool_calls") or []]
    if message.get("function_call"):
        calls = [(got.tool_calls[0].call_id, message["function_call"])]
    assert [(c.call_id, c.tool_name, c.arguments) for c in got.tool_calls] == [
        (id_, function["name"], function["arguments"]) for id_, function in calls
    ]
    read = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    thought = usage.get("completion_tokens_details") or {}
    assert got.usage == Usage(
        usage["prompt_tokens"],
        usage["completion_tokens"],
        read or usage.get("prompt_cache_hit_tokens", 0),
        0,
        thought.get("reasoning_tokens", 0),
    )
    refused = bool(message.get("refusal"))
    assert got.stop_reason == ("refusal" if refused else choice["finish_reason"])


def expect_native(message: dict, got: AssistantMessage) -> None:
    """The kept message says what the service's said, without what is empty."""
    assert got.native is not None
    assert got.native.api == "chat"
    assert got.native_intact()
    (kept,) = json.loads(got.native.items)
    assert kept.pop("role") == "assistant"
    calls = kept.pop("tool_calls", [])
    assert [(c["id"], c["type"], c["function"]) for c in calls] == [
        (c["id"], "function", c["function"]) for c in message.get("tool_calls") or []
    ]
    assert all("index" not in call for call in calls)
    mine = {k: v for k, v in kept.items() if v}
    theirs = {k: v for k, v in message.items() if v and k not in {"role", "tool_calls"}}
    assert mine == theirs


def expect_error(exchange, error: ModelError) -> None:
    assert error.provider == "openai-chat"
    assert len(error.message) < 700
    if exchange.status != 200:
        reported = json.loads(exchange.body)["error"]
        assert error.code == STATUS_CODES[exchange.status]
        assert error.http_status == exchange.status
        assert error.vendor_code == (reported.get("code") or reported.get("type"))
        assert error.request_id == exchange.headers.get("x-request-id")
        return
    assert error.http_status is None
    reply = final_reply(exchange)
    if reply is None:
        assert "stream-error-event" in exchange.tags
        assert (error.code, error.vendor_code) == ("server_error", "server_error")
        return
    finish = reply["choices"][0]["finish_reason"]
    assert error.response_status == finish
    overloaded = finish == "insufficient_system_resource"
    assert error.code == ("server_error" if overloaded else "bad_response")


async def stream(provider) -> tuple[list, AssistantMessage]:
    events = [event async for event in provider.stream(ASK)]
    assert [type(e) for e in events].count(MessageEvent) == 1
    return events[:-1], events[-1].message


def expect_deltas(deltas: list, got: AssistantMessage) -> None:
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == got.content
    thought = "".join(d.text for d in deltas if isinstance(d, ReasoningDelta))
    assert thought == (got.reasoning or "")
    for call in got.tool_calls:
        pieces = [d for d in deltas if isinstance(d, ToolCallDelta)]
        mine = [d.arguments for d in pieces if d.call_id == call.call_id]
        assert "".join(mine) == call.arguments


@pytest.mark.parametrize("exchange", every())
async def test_recorded_exchange_gives_the_recorded_reply_or_error(
    server, make_chat, exchange
):
    """KF-001, KF-002, KF-016, KF-020: text, calls, usage, errors, whatever the cuts."""
    provider = make_chat(model_id=exchange.request["json"].get("model") or "unknown")
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
        if not completed(exchange):
            with pytest.raises(ModelError) as caught:
                await call
            expect_error(exchange, caught.value)
            results.append((caught.value.code, caught.value.message))
            continue
        result = await call
        deltas, got = result if exchange.streamed else (None, result)
        results.append(got)
        reply = final_reply(exchange)
        assert reply is not None
        expect_message(reply, got)
        expect_native(reply["choices"][0]["message"], got)
        if deltas is not None:
            expect_deltas(deltas, got)
    assert results == results[:1] * len(cuts)


@pytest.mark.parametrize(
    "exchange",
    [
        p
        for p in every()
        if not p.values[0] or (p.values[0].streamed and completed(p.values[0]))
    ],
)
async def test_invoke_equals_stream_for_a_recorded_reply(server, make_chat, exchange):
    """KF-018, KF-020: the joined reply, sent whole, gives the equal message."""
    provider = make_chat()
    reply = json.dumps(final_reply(exchange), ensure_ascii=False)
    server.script(exchange.answer(), Answer(headers=JSON_TYPE, body=reply.encode()))
    _, streamed = await stream(provider)
    whole = await provider.invoke(ASK)
    assert json.loads(whole.native.items) == json.loads(streamed.native.items)
    public = ("content", "reasoning", "tool_calls", "usage", "stop_reason")
    for name in public:
        assert getattr(whole, name) == getattr(streamed, name)


@pytest.mark.parametrize("vendor", VENDORS)
def test_all_recorded_exchanges_are_found(vendor):
    """The folder holds what its README counts."""
    if not exchanges(vendor):
        pytest.skip("no recordings")
    assert len(exchanges(vendor)) == VENDORS[vendor]
