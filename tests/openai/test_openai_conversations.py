"""Recorded conversations: the reply fed back gives the recorded second request."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from support.loopback import EVENT_STREAM, Answer
from support.openai_streams import message, reply, sse
from support.recordings import REASON, Exchange, conversations

from lighter_core import MessageEvent, ModelRequest, ToolMessage, UserMessage

pytestmark = pytest.mark.recordings
LAST = Answer(headers=EVENT_STREAM, body=sse(reply(message("ok"))))


def loops() -> list[Any]:
    """Pairs of exchanges whose second request carries calls of the first reply."""
    found = []
    for exchanges in conversations("openai-responses").values():
        for first, second in pairwise(exchanges):
            asked = second.request["json"].get("input")
            if "previous_response_id" in second.request["json"]:
                continue  # such a request leaves the reply's items out
            ids = {i.get("call_id") for i in asked if isinstance(i, dict)}
            ids.discard(None)
            if first.status == 200 and any(i in first.body.decode() for i in ids):
                name = f"{first.conversation}-{first.index}"
                found.append(pytest.param(first, second, id=name))
    return found or [pytest.param(None, None, marks=pytest.mark.skip(reason=REASON))]


def outputs(second: Exchange) -> dict[str, str]:
    """The recorded results by call id."""
    return {
        item["call_id"]: item["output"]
        if isinstance(item["output"], str)
        else json.dumps(item["output"])
        for item in second.request["json"]["input"]
        if item.get("type") == "function_call_output"
    }


@pytest.mark.parametrize(("first", "second"), loops())
async def test_second_request_says_what_the_recorded_one_says(
    server, make, first, second
):
    """KF-063, KF-069: the items of the first reply, its bytes, its results."""
    server.script(first.answer(), LAST)
    provider = make(model_id=first.request["json"]["model"])
    request = ModelRequest([UserMessage("question")])
    if first.streamed:
        events = [event async for event in provider.stream(request)]
        assert isinstance(events[-1], MessageEvent)
        got = events[-1].message
    else:
        got = await provider.invoke(request)
    results = outputs(second)
    history = [
        UserMessage("question"),
        got,
        *(
            ToolMessage(
                call_id=call.call_id,
                tool_name=call.tool_name,
                tool_output=results.get(call.call_id, "none recorded"),
            )
            for call in got.tool_calls
        ),
    ]
    async for _ in provider.stream(ModelRequest(history)):
        pass
    sent = server.requests[1]
    assert got.native is not None
    assert got.native.items[1:-1].encode() in sent.body
    mine = sent.json["input"][1:]
    expect_same_parts(mine, second.request["json"]["input"], first)


def expect_same_parts(mine: list[dict], recorded: list[dict], first: Exchange) -> None:
    """Compare the recorded items that came out of the first reply with ours."""
    compared = 0
    body = first.body.decode()
    for item in recorded:
        kind = item.get("type")
        if kind == "function_call" and item["call_id"] in body:
            twin = find(mine, type=kind, call_id=item["call_id"])
            assert twin["name"] == item["name"]
            # Some recorders wrote the arguments anew; ours are those of the reply.
            assert json.loads(twin["arguments"]) == json.loads(item["arguments"])
        elif kind == "function_call_output" and item["call_id"] in body:
            twin = find(mine, type=kind, call_id=item["call_id"])
            if isinstance(item["output"], str):
                assert twin["output"] == item["output"]
        elif kind == "reasoning" and item.get("encrypted_content", "\0") in body:
            twin = find(mine, encrypted_content=item["encrypted_content"])
            assert twin["id"] == item.get("id", twin["id"])
            assert twin["summary"] == item["summary"]
        elif kind == "message" and item.get("id", "\0") in body:
            twin = find(mine, type=kind, id=item["id"])
            assert twin.get("phase") == item.get("phase")
        else:
            continue
        compared += 1
    assert compared


def find(items: list[dict], **fields: str) -> dict:
    found = [i for i in items if all(i.get(k) == v for k, v in fields.items())]
    assert len(found) == 1, fields
    return found[0]
