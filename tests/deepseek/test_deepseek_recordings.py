"""Recorded DeepSeek exchanges, served by the loopback server, through the real SDK."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer, bytewise, cut_randomly
from support.openai_streams import message as message_item
from support.openai_streams import reply as reply_events
from support.openai_streams import sse
from support.recordings import REASON, Exchange, conversations, exchanges, parameters

from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)

pytestmark = pytest.mark.recordings
VENDOR = "deepseek-responses"
ASK = ModelRequest([UserMessage("hello")])
SPEC = ToolSpec("get_temperature", "Get it.", {"type": "object", "properties": {}})


def events_of(body: bytes) -> list[dict]:
    lines = body.decode().split("\n")
    return [json.loads(line[5:]) for line in lines if line.startswith("data:")]


def final_object(exchange: Exchange) -> dict:
    if not exchange.streamed:
        return json.loads(exchange.body)
    return events_of(exchange.body)[-1]["response"]


def good(exchange: Exchange) -> bool:
    if exchange.status != 200:
        return False
    # The event that ends a stream has no status inside its response object.
    return final_object(exchange).get("status", "completed") == "completed"


def expect_message(response: dict, got: AssistantMessage) -> None:
    items = response["output"]
    texts = [p["text"] for i in items if i["type"] == "message" for p in i["content"]]
    assert got.content == "".join(texts)
    plain = [p["text"] for i in items if i["type"] == "reasoning" for p in i["content"]]
    assert got.reasoning == ("\n\n".join(plain) or None)
    assert [(c.call_id, c.tool_name, c.arguments) for c in got.tool_calls] == [
        (i["call_id"], i["name"], i["arguments"])
        for i in items
        if i["type"] == "function_call"
    ]
    usage = response["usage"]
    assert got.usage == Usage(
        usage["input_tokens"],
        usage["output_tokens"],
        usage["input_tokens_details"]["cached_tokens"],
        0,
        usage["output_tokens_details"]["reasoning_tokens"],
    )
    assert got.stop_reason == "completed"


def expect_native(items: list[dict], got: AssistantMessage) -> None:
    """All items, in order; of reasoning the status goes."""
    assert got.native is not None
    assert (got.native.provider, got.native.api) == ("deepseek", "responses")
    assert got.native_intact()
    dropped = {"reasoning": {"status"}}
    assert json.loads(got.native.items) == [
        {k: v for k, v in item.items() if k not in dropped.get(item["type"], ())}
        for item in items
    ]


async def stream(provider, request=ASK) -> tuple[list, AssistantMessage]:
    events = [event async for event in provider.stream(request)]
    assert isinstance(events[-1], MessageEvent)
    return events[:-1], events[-1].message


def expect_deltas(deltas: list, got: AssistantMessage) -> None:
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == got.content
    thought = "".join(d.text for d in deltas if isinstance(d, ReasoningDelta))
    assert thought == (got.reasoning or "")
    pieces = [d.arguments for d in deltas if isinstance(d, ToolCallDelta)]
    assert "".join(pieces) == "".join(c.arguments for c in got.tool_calls)


@pytest.mark.parametrize("exchange", parameters(VENDOR))
async def test_recorded_exchange_gives_the_recorded_reply_or_error(
    server, make, exchange
):
    """KF-001, KF-002, KF-020: text, reasoning, calls and usage, whatever the cuts."""
    provider = make(model_id=exchange.request["json"]["model"])
    cuts: list = [None, cut_randomly(exchange.body, seed=7), bytewise(exchange.body)]
    results: list = []
    for cut in cuts:
        server.script(exchange.answer(cut))
        call = stream(provider) if exchange.streamed else provider.invoke(ASK)
        if not good(exchange):
            with pytest.raises(ModelError) as caught:
                await call
            expect_error(exchange, caught.value)
            results.append((caught.value.code, caught.value.message))
            continue
        result = await call
        deltas, got = result if exchange.streamed else (None, result)
        results.append(got)
        response = final_object(exchange)
        expect_message(response, got)
        expect_native(response["output"], got)
        if deltas is not None:
            expect_deltas(deltas, got)
    assert results == results[:1] * len(cuts)


def expect_error(exchange: Exchange, error: ModelError) -> None:
    assert error.provider == "deepseek"
    if exchange.status == 400:
        assert (error.code, error.http_status) == ("invalid_request", 400)
        assert error.vendor_code == "invalid_request_error"
        assert "deepseek-nope" in error.message
        return
    assert (error.code, error.response_status) == ("bad_response", "incomplete")
    assert error.vendor_code == "max_output_tokens"


@pytest.mark.parametrize(
    "exchange",
    [p for p in parameters(VENDOR) if not p.values[0] or p.values[0].streamed],
)
async def test_invoke_equals_stream_for_a_recorded_reply(server, make, exchange):
    """KF-018, KF-020: the last event's object, sent whole, gives the equal message."""
    whole = {"status": "completed", **final_object(exchange)}
    body = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
    server.script(exchange.answer(), Answer(headers=JSON_TYPE, body=body))
    provider = make()
    _, streamed = await stream(provider)
    got = await provider.invoke(ASK)
    assert json.loads(got.native.items) == json.loads(streamed.native.items)
    for name in ("content", "reasoning", "tool_calls", "usage", "stop_reason"):
        assert getattr(got, name) == getattr(streamed, name)


def loops() -> list[Any]:
    """Pairs of exchanges of one conversation that both went well."""
    found = [
        pytest.param(first, second, id=f"{first.conversation}-{first.index}")
        for each in conversations(VENDOR).values()
        for first, second in pairwise(each)
        if first.status == 200
    ]
    return found or [pytest.param(None, None, marks=pytest.mark.skip(reason=REASON))]


@pytest.mark.parametrize(("first", "second"), loops())
async def test_second_request_says_what_the_recorded_one_says(
    server, make, first, second
):
    """KF-065: reasoning before its calls, the same call, the same result."""
    last = Answer(headers=EVENT_STREAM, body=sse(reply_events(message_item("ok"))))
    server.script(first.answer(), last)
    provider = make(model_id=first.request["json"]["model"])
    asked = first.request["json"]["input"]
    history: list = [UserMessage(item["content"]) for item in asked]
    specs = [SPEC] if "tools" in first.request["json"] else []
    request = ModelRequest(history, tool_specs=specs)
    if first.streamed:
        _, got = await stream(provider, request)
    else:
        got = await provider.invoke(request)
    recorded = second.request["json"]["input"]
    history.append(got)
    for item in recorded[len(asked) :]:
        if item.get("type") == "function_call_output":
            (call,) = [c for c in got.tool_calls if c.call_id == item["call_id"]]
            history.append(
                ToolMessage(
                    call_id=call.call_id,
                    tool_name=call.tool_name,
                    tool_output=item["output"],
                )
            )
        elif item.get("role") == "user":
            history.append(UserMessage(item["content"]))
    await stream(provider, ModelRequest(history, tool_specs=specs))
    sent = server.requests[1].json
    assert got.native.items[1:-1].encode() in server.requests[1].body
    assert [said(item) for item in sent["input"]] == [said(item) for item in recorded]
    for field in ("model", "stream", "tools", "reasoning"):
        if field == "stream":
            continue
        assert (field in sent) == (field in second.request["json"])
    assert not {"store", "include"} & set(sent)


def said(item: dict) -> list:
    """What an item says: ids, empty fields and notations of a text apart."""
    kind = item.get("type", "message")
    content = item.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content)
    arguments = item.get("arguments")
    parsed = json.loads(arguments) if arguments else None
    return [
        kind,
        item.get("role"),
        content,
        item.get("call_id"),
        parsed,
        item.get("output"),
    ]


def test_all_recorded_exchanges_are_found():
    """The folder holds what its README counts."""
    if not exchanges(VENDOR):
        pytest.skip("no recordings")
    assert len(exchanges(VENDOR)) == 13
