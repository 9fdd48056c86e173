"""Recorded conversations: the reply fed back gives the recorded second request."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from support.claude_streams import reply, sse, text
from support.loopback import EVENT_STREAM, Answer
from support.recordings import REASON, Exchange, conversations

from lighter_claude._blocks import sent_and_container
from lighter_core import MessageEvent, ModelRequest, ToolMessage, UserMessage

pytestmark = pytest.mark.recordings
LAST = Answer(headers=EVENT_STREAM, body=sse(reply(text("ok"))))
DERIVED = {"caller", "citations"}  # some recorders left these keys out


def blocks_of(turn: dict) -> list[dict]:
    content = turn["content"]
    return [text(content)] if isinstance(content, str) else content


def marks(block: dict) -> set[str]:
    """Values by which a recorded block is known to come out of a reply."""
    names = ("id", "signature", "data", "tool_use_id")
    return {block[n] for n in names if isinstance(block.get(n), str) and block[n]}


def loops() -> list[Any]:
    """Pairs of exchanges whose second request carries blocks of the first reply."""
    found = []
    for exchanges in conversations("anthropic-messages").values():
        for first, second in pairwise(exchanges):
            said = first.body.decode()
            carried = any(
                mark in said
                for turn in second.request["json"]["messages"]
                if turn["role"] == "assistant"
                for block in blocks_of(turn)
                for mark in marks(block)
            )
            if first.status == 200 and carried:
                name = f"{first.conversation}-{first.index}"
                found.append(pytest.param(first, second, id=name))
    return found or [pytest.param(None, None, marks=pytest.mark.skip(reason=REASON))]


def results(second: Exchange) -> dict[str, dict]:
    """The recorded results by call id."""
    return {
        block["tool_use_id"]: block
        for turn in second.request["json"]["messages"]
        for block in blocks_of(turn)
        if turn["role"] == "user" and block["type"] == "tool_result"
    }


def output(block: dict | None) -> str:
    content = (block or {}).get("content", "none recorded")
    if isinstance(content, str):
        return content
    if [part["type"] for part in content] == ["text"]:
        return content[0]["text"]
    return json.dumps(content)


@pytest.mark.parametrize(("first", "second"), loops())
async def test_second_request_says_what_the_recorded_one_says(
    server, make, first, second
):
    """KF-063, KF-069: the blocks of the first reply, its bytes, its results."""
    server.script(first.answer(), LAST)
    hosted = [{"type": "x", "name": "x"}] if b'"pause_turn"' in first.body else []
    if hosted:
        server.script(first.answer(), second.answer())
    provider = make(model_id=first.request["json"]["model"], hosted_tools=hosted)
    request = ModelRequest([UserMessage("question")])
    if first.streamed:
        events = [event async for event in provider.stream(request)]
        assert isinstance(events[-1], MessageEvent)
        got = events[-1].message
    else:
        got = await provider.invoke(request)
    recorded = results(second)
    if not hosted:
        history = [
            UserMessage("question"),
            got,
            *(
                ToolMessage(
                    call_id=call.call_id,
                    tool_name=call.tool_name,
                    tool_output=output(recorded.get(call.call_id)),
                    is_error=recorded.get(call.call_id, {}).get("is_error", False),
                )
                for call in got.tool_calls
            ),
            UserMessage("more"),
        ]
        async for _ in provider.stream(ModelRequest(history)):
            pass
        sent, _ = sent_and_container(got.native.items)
        assert sent.encode() in server.requests[1].body
    container = server.requests[1].json.get("container")
    assert container == second.request["json"].get("container")
    mine = server.requests[1].json["messages"]
    expect_same_parts(mine, second.request["json"]["messages"], first.body.decode())


def expect_same_parts(mine: list[dict], recorded: list[dict], said: str) -> None:
    """Compare the recorded blocks that came out of the first reply with ours."""
    own = [block for turn in mine for block in blocks_of(turn)]
    compared: list[dict] = []
    for turn in recorded:
        for block in blocks_of(turn):
            known = {mark for mark in marks(block) if mark in said}
            if not known:
                continue
            (twin,) = [
                b for b in own if b["type"] == block["type"] and marks(b) & known
            ]
            compared.append(twin)
            if block["type"] == "tool_result":
                if not isinstance(block.get("content"), list):
                    assert twin.get("content", "") == block.get("content", "")
                assert twin.get("is_error", False) == block.get("is_error", False)
                continue
            strip = DERIVED | {"cache_control"}
            assert {k: v for k, v in twin.items() if k not in strip} == {
                k: v for k, v in block.items() if k not in strip
            }
    assert compared
    assert compared == [block for block in own if block in compared]  # the same order
