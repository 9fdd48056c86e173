"""Replies and errors in shapes that other servers and gateways choose."""

from __future__ import annotations

import json
import sys

import pytest
from support import chat_streams as chat
from support import openai_streams as responses
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer, bytewise

from lighter_claude import ClaudeProvider
from lighter_core import (
    MessageEvent,
    ModelError,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    UserMessage,
)
from lighter_core.adapters import LateDecoder

ASK = ModelRequest([UserMessage("hello")])
TEXT_TYPE = {"content-type": "text/plain"}


@pytest.fixture
async def providers(server, make, make_chat):
    """One provider of each interface."""
    claude = ClaudeProvider(
        api_key="sk-test",
        model_id="claude-test",
        base_url=server.url,
        max_retries=0,
    )
    yield [make(), make_chat(), claude]
    await claude.aclose()


async def run(provider, *, streamed: bool):
    """Return the events; those of `invoke` are its message alone."""
    if streamed:
        return [event async for event in provider.stream(ASK)]
    return [await provider.invoke(ASK)]


async def failure(provider, *, streamed: bool) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await run(provider, streamed=streamed)
    return caught.value


MISSING = {"msg": "field required", "loc": ["body", "model"]}
PULL = "model 'x' not found, try pulling it first"


@pytest.mark.parametrize(
    ("status", "headers", "body", "end"),
    [
        (400, JSON_TYPE, {"error": PULL}, f": {PULL}"),
        (404, JSON_TYPE, {"error": PULL}, f": {PULL}"),
        (422, JSON_TYPE, {"detail": [MISSING]}, ": body.model: field required"),
        (
            422,
            JSON_TYPE,
            {"detail": [MISSING, {"msg": "not a number"}]},
            ": body.model: field required; not a number",
        ),
        (422, JSON_TYPE, {"detail": "too long"}, ": too long"),
        (429, JSON_TYPE, {"message": "slow\ndown"}, ": slow down"),
        (500, JSON_TYPE, {"error": {"message": "[x] broke"}}, ": [x] broke"),
        (503, TEXT_TYPE, b"upstream is away\n", ": upstream is away"),
        (400, JSON_TYPE, {"error": "x" * 500}, f": {'x' * 300}…"),
        (400, {"content-type": "text/html"}, b" <html>No</html>", "(HTTP 400)"),
        (400, JSON_TYPE, b'{"error": {"mess', "(HTTP 400)"),
        (400, JSON_TYPE, [MISSING], ": body.model: field required"),
        (400, JSON_TYPE, {"error": [1, None]}, "(HTTP 400)"),
        (400, JSON_TYPE, b'{"error":' * 900 + b"1" + b"}" * 900, "(HTTP 400)"),
    ],
)
async def test_words_of_errors_are_kept_in_each_shape(
    server, providers, status, headers, body, end
):
    """The sentence ends with what the service says, wherever it says it."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    server.script(Answer(status, headers, raw))
    for provider in providers:
        for streamed in (True, False):
            error = await failure(provider, streamed=streamed)
            assert error.message.endswith(end)
            assert error.http_status == status
            assert error.vendor_code is None


async def test_words_in_other_shapes_are_redacted(server, make):
    """The key is taken out of any text."""
    key = "sk-canary-123456"
    told = {"error": f"no access with {key}"}
    server.script(Answer(403, JSON_TYPE, json.dumps(told).encode()))
    error = await failure(make(api_key=key), streamed=True)
    assert "no access with" in error.message
    assert key not in error.message


@pytest.mark.parametrize("code", [["invalid_api_key"], {"a": 1}, [[]], None, 7, True])
async def test_codes_of_other_kinds_count_as_absent(server, providers, code):
    """Lists and objects are never looked up."""
    told = {"error": {"code": code, "type": code, "message": "No."}}
    server.script(Answer(400, JSON_TYPE, json.dumps(told).encode()))
    for provider in providers:
        for streamed in (True, False):
            error = await failure(provider, streamed=streamed)
            assert (error.code, error.vendor_code) == ("invalid_request", None)
            assert error.message.endswith(": No.")


STREAM = responses.sse(responses.reply(responses.message("Hello!")))


@pytest.mark.parametrize("kind", ["text/plain", "application/json", ""])
@pytest.mark.parametrize(
    "begin", [b"", b": hi\n\n", b"\xef\xbb\xbf", b"\r\n \n", b"retry: 1\n", b"id: 1\n"]
)
async def test_event_streams_are_known_by_their_begin(server, make, kind, begin):
    """Another content type does not hide what the body is, wherever it is cut."""
    headers = {"content-type": kind} if kind else {}
    body = begin + STREAM
    for pieces in (body, bytewise(body)):
        server.script(Answer(headers=headers, body=pieces))
        events = await run(make(), streamed=True)
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Hello!"
        assert events[-1].message.content == "Hello!"


def whole_bodies(text: str, thought: str) -> list[dict]:
    """One whole reply of each interface."""
    return [
        responses.response([responses.reasoning(thought), responses.message(text)]),
        {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {
                        "role": "assistant",
                        "content": text,
                        "reasoning_content": thought,
                    },
                }
            ]
        },
    ]


@pytest.mark.parametrize("size", [1, 200_000])
@pytest.mark.parametrize("end", ["complete", "stall"])
async def test_whole_replies_in_place_of_streams_are_decoded(
    server, providers, monkeypatch, size, end
):
    """A server that ignores `stream`: the deltas joined still equal the content."""
    monkeypatch.setattr("lighter_core.adapters._sender._LOOK_SECONDS", 0.2)
    bodies = whole_bodies("Hi " * size, "hm")
    for provider, body in zip(providers[:2], bodies, strict=True):
        raw = json.dumps(body).encode()
        server.script(
            Answer(headers=JSON_TYPE, body=[b"\n", raw[:9], raw[9:]], end=end)
        )
        thought, text, last = await run(provider, streamed=True)
        assert thought == ReasoningDelta("hm")
        assert text == TextDelta("Hi " * size)
        assert isinstance(last, MessageEvent)
        assert (last.message.reasoning, last.message.content) == ("hm", "Hi " * size)
        server.script(Answer(headers=JSON_TYPE, body=raw))
        assert await run(provider, streamed=False) == [last.message]


async def test_calls_of_whole_replies_in_place_of_streams_are_shown(server, providers):
    """Their fragments, joined, are the arguments here too; no text is no fragment."""
    arguments = '{"a": 1}'
    asked = [("add", arguments), ("now", "")]
    items = [responses.call(*each, n) for n, each in enumerate(asked, 1)]
    calls = [
        {"id": f"call_{n}", "function": {"name": name, "arguments": text}}
        for n, (name, text) in enumerate(asked, 1)
    ]
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": said}
    bodies = [responses.response(items), {"choices": [choice]}]
    for provider, body in zip(providers[:2], bodies, strict=True):
        server.script(Answer(headers=JSON_TYPE, body=json.dumps(body).encode()))
        delta, last = await run(provider, streamed=True)
        assert delta == ToolCallDelta("call_1", "add", arguments)
        assert [c.arguments for c in last.message.tool_calls] == [arguments, ""]


async def test_slow_whole_replies_are_waited_for(server, make, monkeypatch):
    """Silence inside an unfinished value is no end."""
    monkeypatch.setattr("lighter_core.adapters._sender._LOOK_SECONDS", 0.01)
    raw = json.dumps(responses.response([responses.message("Hi")])).encode()
    pieces = [raw[:5], raw[5:50], raw[50:]]
    server.script(Answer(headers=JSON_TYPE, body=pieces, gap=0.05))
    assert (await run(make(), streamed=True))[0] == TextDelta("Hi")


async def test_texts_as_errors_in_good_replies_are_told(server, providers):
    """`{"error": "text"}` with status 200."""
    server.script(Answer(headers=JSON_TYPE, body=b'{"error":"no memory"}'))
    for provider in providers:
        for streamed in (True, False):
            error = await failure(provider, streamed=streamed)
            assert (error.code, error.http_status) == ("bad_response", None)
            assert error.message.endswith(": no memory")


async def test_a_decoder_is_asked_once_whether_it_is_late(server, make_chat):
    """Checks of a run-time protocol are slow: there is none for each piece."""
    asked = []

    def watch(frame, event, _):
        # Of the protocol's own: on some versions it asks that of its base in turn.
        here = frame.f_globals.get("__name__") == "typing"
        if event == "call" and here and frame.f_code.co_name == "__instancecheck__":
            asked.append(frame.f_locals.get("cls"))

    raw = chat.sse(chat.reply({"content": "Hello!"}))
    pieces = [raw[at : at + 20] for at in range(0, len(raw), 20)]
    server.script(*[Answer(headers=EVENT_STREAM, body=pieces)] * 2)
    provider = make_chat()
    await run(provider, streamed=True)  # imports the SDK, which nobody need watch
    sys.setprofile(watch)
    try:
        events = await run(provider, streamed=True)
    finally:
        sys.setprofile(None)
    assert events[-1].message.content == "Hello!"
    assert asked.count(LateDecoder) == 1
