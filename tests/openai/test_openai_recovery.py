"""Reasoning that the service cannot read, reported inside a reply."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer
from support.openai_streams import (
    added,
    created,
    end,
    item_events,
    message,
    reasoning,
    response,
    sse,
)

from lighter_core import (
    Agent,
    MessageEvent,
    Model,
    ModelError,
    ModelRequest,
    UserMessage,
)
from lighter_openai._decode import decode_body
from lighter_openai._dialect import OPENAI, Target

ERROR = {"code": "invalid_encrypted_content", "message": "It could not be verified."}
FAILED = end([], "failed", error=ERROR)
WAYS: dict[str, list[Any]] = {
    "failed": [created(), FAILED],
    "error": [{"type": "error", "param": None, **ERROR}],
    "nested": [created(), {"type": "error", "error": ERROR}],
    "in progress": [created(), {"type": "response.in_progress"}, FAILED],
    "begun": [created(), added(0, message(id_="msg_9")), FAILED],
}
GOOD = sse([created(), *item_events(0, message("Hi")), end([message("Hi")])])
WHOLE = json.dumps(response([message("Hi")])).encode()
WHOLE_FAILED = json.dumps(response([], "failed", error=ERROR)).encode()


def stream_of(body: bytes, cut: int | None = None) -> Answer:
    pieces = [body[i : i + cut] for i in range(0, len(body), cut)] if cut else body
    return Answer(headers=EVENT_STREAM, body=pieces)


def request_to(server: Any, *more: str) -> ModelRequest:
    """A request whose history has a reply with encrypted reasoning."""
    target = Target(OPENAI, f"{server.url}/v1", "gpt-test")
    body = json.dumps(response([reasoning("r"), message("Ho")])).encode()
    own = decode_body(body, target)
    asked = [UserMessage(text) for text in ("b", *more)]
    return ModelRequest([UserMessage("a"), own, *asked])


async def streamed(provider: Any, request: ModelRequest, shown: Any = None) -> None:
    shown = [] if shown is None else shown
    async for event in provider.stream(request):
        shown.append(event)


async def invoked(provider: Any, request: ModelRequest) -> None:
    await provider.invoke(request)


def kinds(server: Any) -> list[bool]:
    """Tell for each request whether it held reasoning."""
    return [
        any(item.get("type") == "reasoning" for item in request.json["input"])
        for request in server.requests
    ]


@pytest.mark.parametrize("cut", [None, 1])
@pytest.mark.parametrize("way", WAYS)
async def test_refusal_inside_a_stream_is_recovered_once_and_remembered(
    server, make, way, cut
):
    """As if it were the status: sent again without, and never with it later."""
    refused = stream_of(sse(WAYS[way]), cut)
    server.script(refused, stream_of(GOOD, cut))
    provider = make()
    *_, last = [event async for event in provider.stream(request_to(server))]
    assert isinstance(last, MessageEvent)
    assert last.message.content == "Hi"
    _ = [event async for event in provider.stream(request_to(server, "c"))]
    assert kinds(server) == [True, False, False]
    assert server.open <= 1, "the connections of refused replies are given back"


async def test_refusal_inside_a_whole_reply_is_recovered(server, make):
    """A failed response with status 200."""
    server.script(
        Answer(headers=JSON_TYPE, body=WHOLE_FAILED),
        Answer(headers=JSON_TYPE, body=WHOLE),
    )
    assert (await make().invoke(request_to(server))).content == "Hi"
    assert kinds(server) == [True, False]


async def test_agent_sees_one_note_and_no_failure(server, make):
    """The run goes on; its notes tell what was lost."""
    server.script(stream_of(sse(WAYS["failed"])), stream_of(GOOD))
    history = request_to(server).messages
    *_, last = [event async for event in Agent(Model(make())).stream(history)]
    (note,) = last.raise_if_failed().notes
    assert "invalid_encrypted_content" in note


@pytest.mark.parametrize("stream", [True, False])
async def test_nothing_is_sent_a_third_time(server, make, stream):
    """Without reasoning there is nothing left to leave out."""
    status = Answer(400, JSON_TYPE, json.dumps({"error": ERROR}).encode())
    body = Answer(headers=JSON_TYPE, body=WHOLE_FAILED)
    inside = stream_of(sse(WAYS["failed"])) if stream else body
    for first in (status, inside):
        server.script(first, inside, inside)
        before, ask = len(server.requests), streamed if stream else invoked
        with pytest.raises(ModelError) as caught:
            await ask(make(), request_to(server))
        assert caught.value.vendor_code == ERROR["code"]
        assert len(server.requests) == before + 2


async def test_option_switches_it_off(server, make):
    """The error is the caller's then."""
    server.script(stream_of(sse(WAYS["failed"])), stream_of(GOOD))
    with pytest.raises(ModelError) as caught:
        _ = [e async for e in make(recover=False).stream(request_to(server))]
    assert caught.value.vendor_code == ERROR["code"]
    assert kinds(server) == [True]


async def test_reply_that_was_handed_on_in_part_is_not_begun_anew(server, make):
    """A consumer would see its text twice."""
    begun = item_events(0, message("Half"))[:-1]
    server.script(stream_of(sse([created(), *begun, FAILED])), stream_of(GOOD))
    shown: list[Any] = []
    with pytest.raises(ModelError) as caught:
        await streamed(make(), request_to(server), shown)
    assert shown
    assert caught.value.vendor_code == ERROR["code"]
    assert kinds(server) == [True]


async def test_other_failures_inside_a_stream_are_not_repeated(server, make):
    """Only this one is helped by leaving something out."""
    failed = end([], "failed", error={"code": "server_error", "message": "Oops."})
    server.script(stream_of(sse([created(), failed])), stream_of(GOOD))
    with pytest.raises(ModelError) as caught:
        _ = [event async for event in make().stream(request_to(server))]
    assert caught.value.code == "server_error"
    assert kinds(server) == [True]


async def test_requests_on_their_way_at_the_same_time_recover_each(server, make):
    """What one of them has learned takes nothing away from the other."""
    refused = Answer(
        headers=EVENT_STREAM, body=sse(WAYS["failed"]), delay=0.2, chunked=True
    )
    server.script(refused, refused, stream_of(GOOD))
    provider = make()

    async def ask() -> str:
        *_, last = [event async for event in provider.stream(request_to(server))]
        return last.message.content

    assert await asyncio.gather(ask(), ask()) == ["Hi", "Hi"]
    assert kinds(server) == [True, True, False, False]
