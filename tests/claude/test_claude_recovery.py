"""Thinking that the service refuses, reported inside a reply with status 200."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.claude_streams import (
    block_events,
    body,
    call,
    found,
    reply,
    search,
    sse,
    started,
    text,
    thinking,
)
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer

from lighter_core import (
    Agent,
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolMessage,
    UserMessage,
)

BOUND = "messages.1.content.0: the thinking block is bound to a different conversation"
UNSIGNED = "messages.1.content.0: Invalid `signature` in `thinking` block"
HOSTED = [{"type": "web_search_20260209", "name": "web_search"}]


def refusal(words: str = BOUND, kind: str | None = "invalid_request_error") -> dict:
    error = {"message": words} if kind is None else {"type": kind, "message": words}
    return {"type": "error", "error": error}


def stream_of(*events: dict) -> Answer:
    return Answer(headers=EVENT_STREAM, body=sse(events))


def whole(value: dict) -> Answer:
    return Answer(headers=JSON_TYPE, body=json.dumps(value).encode())


GOOD = stream_of(*reply(text("Hello!")))
PING = {"type": "ping"}
BEGINS: dict[str, list[dict]] = {
    "at once": [],
    "after the start": [started(), PING],
    "after an empty block": [started(), *block_events(0, text(""))[:1]],
}


async def collected(provider: Any, request: ModelRequest, seen: list | None = None):
    """The message that a stream ends with."""
    events: list[Any] = [] if seen is None else seen
    async for event in provider.stream(request):
        events.append(event)
    assert isinstance(events[-1], MessageEvent)
    return events[-1].message


def kinds(server: Any, number: int, turn: int = 1) -> list[str]:
    """The kinds of blocks in a turn of the request with this number."""
    turns = server.requests[number].json["messages"]
    return [block["type"] for block in turns[turn]["content"]]


@pytest.fixture
async def history(server, make) -> ModelRequest:
    """A conversation whose reply holds thinking."""
    blocks = [thinking("r"), text("x"), call("t", {"a": 1})]
    server.script(stream_of(*reply(*blocks, stop="tool_use")))
    first: AssistantMessage = await collected(make(), ModelRequest([UserMessage("a")]))
    server.requests.clear()
    result = ToolMessage(call_id="toolu_1", tool_name="t", tool_output="1")
    return ModelRequest([UserMessage("a"), first, result])


@pytest.mark.parametrize("kind", ["invalid_request_error", None])
@pytest.mark.parametrize("words", [BOUND, UNSIGNED])
@pytest.mark.parametrize("begin", BEGINS)
async def test_refusal_inside_a_stream_is_recovered_once_and_remembered(
    server, make, history, begin, words, kind
):
    """As if it were the status: sent again without, and never with it later."""
    server.script(stream_of(*BEGINS[begin], refusal(words, kind)), GOOD)
    provider = make()
    assert (await collected(provider, history)).content == "Hello!"
    await collected(provider, ModelRequest([*history.messages, UserMessage("And?")]))
    assert kinds(server, 0) == ["thinking", "text", "tool_use"]
    assert kinds(server, 1) == kinds(server, 2) == ["text", "tool_use"]
    assert len(server.requests) == 3


@pytest.mark.parametrize("most", [8192, 64_000])
async def test_refusal_inside_a_reply_is_recovered_by_invoke(
    server, make, history, most
):
    """Whether the reply comes whole or, since it may be long, as a stream."""
    if most == 8192:
        server.script(whole(refusal()), whole(body(text("Hello!"))))
    else:
        server.script(stream_of(refusal()), GOOD)
    got = await make(max_output_tokens=most).invoke(history)
    assert got.content == "Hello!"
    assert [kinds(server, n)[0] for n in (0, 1)] == ["thinking", "text"]


async def test_whole_refusal_in_place_of_a_stream_is_recovered(server, make, history):
    """Gateways answer so."""
    server.script(whole(refusal()), GOOD)
    assert (await collected(make(), history)).content == "Hello!"
    assert len(server.requests) == 2


async def test_agent_sees_one_note_and_no_failure(server, make, history):
    """The run goes on; its notes tell what was lost."""
    server.script(stream_of(refusal()), GOOD)
    *_, last = [event async for event in Agent(make()).stream(history.messages)]
    (note,) = last.raise_if_failed().notes
    assert "refused the thinking" in note


async def test_reply_that_was_handed_on_in_part_is_not_begun_anew(
    server, make, history
):
    """A consumer would see its text twice."""
    for block, kind in ((text("Half"), TextDelta), (thinking("Hm"), ReasoningDelta)):
        server.requests.clear()
        server.script(stream_of(started(), *block_events(0, block), refusal()), GOOD)
        seen: list[Any] = []
        with pytest.raises(ModelError) as caught:
            await collected(make(), history, seen)
        assert seen
        assert all(isinstance(event, kind) for event in seen)
        assert caught.value.code == "invalid_request"
        assert len(server.requests) == 1


@pytest.mark.parametrize("streamed", [True, False])
async def test_nothing_is_sent_a_third_time(server, make, history, streamed):
    """Without thinking there is nothing left to leave out; the option tries never."""
    server.script(stream_of(refusal()) if streamed else whole(refusal()))

    async def fails(**options: Any) -> int:
        provider, before = make(**options), len(server.requests)
        ask = collected(provider, history) if streamed else provider.invoke(history)
        with pytest.raises(ModelError, match="bound to a different"):
            await ask
        return len(server.requests) - before

    assert await fails() == 2
    assert await fails(recover=False) == 1


async def test_other_errors_inside_a_stream_are_not_repeated(server, make, history):
    """Only this one is helped by leaving something out."""
    server.script(stream_of(refusal("prompt is too long")), GOOD)
    with pytest.raises(ModelError, match="too long"):
        await collected(make(), history)
    assert len(server.requests) == 1


@pytest.mark.parametrize("streamed", [True, False])
async def test_reply_that_paused_goes_on_after_a_refusal(server, make, streamed):
    """Its first part was handed on and stays; only what goes on is asked for anew.

    All that the first request said, but for the thinking, is said each time.
    """
    part = [thinking("r"), search("x")]
    more = [found(), text("Done.")]
    if streamed:
        first, last = (
            stream_of(*reply(*part, stop="pause_turn")),
            stream_of(*reply(*more)),
        )
        refused = stream_of(refusal(UNSIGNED))
    else:
        first, last = whole(body(*part, stop="pause_turn")), whole(body(*more))
        refused = whole(refusal(UNSIGNED))
    server.script(first, refused, last)
    provider = make(hosted_tools=HOSTED)
    request = ModelRequest([UserMessage("q")], tool_choice="auto")
    got = await (collected(provider, request) if streamed else provider.invoke(request))
    assert got.content == "Done."
    assert got.reasoning == "r"
    assert kinds(server, 1) == ["thinking", "server_tool_use"]
    assert kinds(server, 2) == ["server_tool_use"]
    rests = [{**each.json, "messages": None} for each in server.requests]
    assert rests[0] == rests[1] == rests[2]
    assert rests[0]["tool_choice"] == {"type": "auto"}
