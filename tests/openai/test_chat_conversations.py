"""Recorded conversations: the reply fed back gives the recorded second request."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from support.chat_streams import reply, sse
from support.loopback import EVENT_STREAM, Answer
from support.recordings import REASON, Exchange, conversations

from lighter_core import MessageEvent, ModelRequest, ToolMessage, UserMessage

pytestmark = pytest.mark.recordings
LAST = Answer(headers=EVENT_STREAM, body=sse(reply({"content": "ok"})))


def answered(second: Exchange) -> dict[str, str]:
    """The recorded results, by call id or by the name of the older form."""
    found = {}
    for message in second.request["json"]["messages"]:
        if message["role"] in {"tool", "function"}:
            content = message["content"]
            text = content if isinstance(content, str) else json.dumps(content)
            found[message.get("tool_call_id") or message["name"]] = text
    return found


def loops() -> list[Any]:
    """Pairs of exchanges whose second request carries calls of the first reply."""
    found = []
    for vendor in ("openai-chat", "deepseek-chat"):
        for exchanges in conversations(vendor).values():
            for first, second in pairwise(exchanges):
                body = first.body.decode()
                keys = answered(second) if first.status == 200 else ()
                if any(f'"{key}"' in body for key in keys):
                    name = f"{first.conversation}-{first.index}"
                    found.append(pytest.param(first, second, id=name))
    return found or [pytest.param(None, None, marks=pytest.mark.skip(reason=REASON))]


@pytest.mark.parametrize(("first", "second"), loops())
async def test_second_request_says_what_the_recorded_one_says(
    server, make_chat, first, second
):
    """KF-065, KF-069: text, reasoning and calls of the first reply, and its results."""
    server.script(first.answer(), LAST)
    provider = make_chat(model_id=first.request["json"]["model"])
    request = ModelRequest([UserMessage("question")])
    if first.streamed:
        events = [event async for event in provider.stream(request)]
        assert isinstance(events[-1], MessageEvent)
        got = events[-1].message
    else:
        got = await provider.invoke(request)
    results = answered(second)
    history = [
        *request.messages,
        got,
        *(
            ToolMessage(
                call_id=call.call_id,
                tool_name=call.tool_name,
                tool_output=results.get(call.call_id)
                or results.get(call.tool_name)
                or "none recorded",
            )
            for call in got.tool_calls
        ),
    ]
    async for _ in provider.stream(ModelRequest(history)):
        pass
    sent = server.requests[1]
    assert got.native is not None
    assert got.native.items[1:-1].encode() in sent.body
    _, assistant, *tools = sent.json["messages"]
    expect_same(assistant, tools, second.request["json"]["messages"])


def expect_same(assistant: dict, tools: list[dict], recorded: list[dict]) -> None:
    """Find the recorded turn and compare it with ours, in the parts that matter."""
    if "function_call" in assistant:
        asked = [m for m in recorded if m.get("function_call")][-1]
        assert assistant["function_call"] == asked["function_call"]
        assert tools == [m for m in recorded if m["role"] == "function"]
        return
    ids = [call["id"] for call in assistant["tool_calls"]]
    (turn,) = [
        m for m in recorded if [c["id"] for c in m.get("tool_calls") or []] == ids
    ]
    assert (assistant["content"] or "") == (turn.get("content") or "")
    assert assistant.get("reasoning_content") == turn.get("reasoning_content")
    for mine, theirs in zip(assistant["tool_calls"], turn["tool_calls"], strict=True):
        assert mine["type"] == theirs["type"] == "function"
        assert mine["function"]["name"] == theirs["function"]["name"]
        # Some recorders wrote the arguments anew; ours are those of the reply.
        assert json.loads(mine["function"]["arguments"]) == json.loads(
            theirs["function"]["arguments"]
        )
    place = recorded.index(turn) + 1
    assert [(m["tool_call_id"], m["content"]) for m in tools] == [
        (m["tool_call_id"], m["content"]) for m in recorded[place : place + len(ids)]
    ]
