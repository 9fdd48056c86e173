"""The provider of Chat Completions: options, keys, endpoints, failures, clients."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import pickle
import traceback

import pytest
from support.chat_streams import body, call, chunk, reply, sse
from support.ids import stable
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer
from support.threads import ServerThread

from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    Provider,
    SupportsAclose,
    TextDelta,
    ToolCall,
    UserMessage,
)
from lighter_core.adapters import ReplayNotes
from lighter_openai import OpenAIChatProvider
from lighter_openai.plugin import create_provider

ASK = ModelRequest([UserMessage("hello")])
GOOD = sse(reply({"content": "Hello!"}))
STREAM = Answer(headers=EVENT_STREAM, body=GOOD)
WHOLE = Answer(headers=JSON_TYPE, body=json.dumps(body({"content": "Hello!"})).encode())
KEY = "sk-canary-0123456789abcdef"
URL = "http://localhost:11434/v1"


async def run(provider, *, streamed: bool = True) -> AssistantMessage:
    if not streamed:
        return await provider.invoke(ASK)
    events = [event async for event in provider.stream(ASK)]
    assert isinstance(events[-1], MessageEvent)
    return events[-1].message


async def failure(provider, *, streamed: bool = True) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await run(provider, streamed=streamed)
    assert caught.value.provider == "openai-chat"
    assert "\n" not in caught.value.message
    return caught.value


def test_provider_has_the_documented_surface():
    """A Provider with a read-only name, a model id and capabilities."""
    provider = OpenAIChatProvider(model_id="m", base_url=URL)
    assert isinstance(provider, Provider)
    assert isinstance(provider, SupportsAclose)
    assert (provider.name, provider.model_id) == ("openai-chat", "m")
    assert provider.capabilities == {"output", "tool_choice", "image", "file"}
    assert repr(provider) == f"OpenAIChatProvider(model_id='m', base_url={URL!r})"
    made = create_provider(
        name="openai-chat", options={"model_id": "m", "base_url": URL}
    )
    assert type(made) is OpenAIChatProvider
    with pytest.raises(TypeError, match="no option 'reasoning'"):
        create_provider(name="openai-chat", options={"reasoning": {}})


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ({"base_url": None, "api_key": None}, "auth_error", "OPENAI_API_KEY"),
        ({"base_url": None, "api_key": " "}, "auth_error", "OPENAI_API_KEY"),
        ({"api_key": b"sk-canary"}, "invalid_request", "api_key"),
        ({"api_key": "sk-canary\n"}, "invalid_request", "api_key"),
        ({"model_id": ""}, "invalid_request", "OPENAI_MODEL"),
        ({"max_output_tokens": 0}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": True}, "invalid_request", "max_output_tokens"),
        ({"max_tokens_field": "tokens"}, "invalid_request", "max_tokens_field"),
        ({"replay_reasoning": True}, "invalid_request", "replay_reasoning"),
        ({"reasoning_effort": 3}, "invalid_request", "reasoning_effort"),
        ({"reasoning_effort": " "}, "invalid_request", "reasoning_effort"),
        ({"base_url": "no url sk-canary"}, "invalid_request", "base_url"),
        ({"timeout": 0}, "invalid_request", "timeout"),
        ({"max_retries": -1}, "invalid_request", "max_retries"),
        ({"extra_body": {"messages": []}}, "invalid_request", "messages"),
        ({"extra_body": {"stream": True}}, "invalid_request", "stream"),
        ({"extra_headers": {"a b": "x"}}, "invalid_request", "a b"),
        ({"client": object()}, "invalid_request", "client"),
    ],
    ids=stable,
)
def test_values_that_cannot_work_are_refused_at_construction(options, code, named):
    """KF-112: the error names parameter or variable, never a key."""
    with pytest.raises(ModelError) as caught:
        OpenAIChatProvider(**{"model_id": "m", "base_url": URL, **options})
    assert (caught.value.code, caught.value.provider) == (code, "openai-chat")
    assert named in caught.value.message
    assert "canary" not in "".join(traceback.format_exception(caught.value))


# --- keys and endpoints ---------------------------------------------------------------


async def test_no_key_is_needed_with_a_base_url(server, make_chat, monkeypatch):
    """Local servers: no Authorization header; OpenAI's key never goes elsewhere."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    server.script(STREAM)
    for key in (None, "", " "):
        await run(make_chat(api_key=key))
    await run(make_chat(api_key="sk-other"))
    seen = [request.headers.get("authorization") for request in server.requests]
    assert seen == [None, None, None, "Bearer sk-other"]


async def test_environment_names_endpoint_and_key(server, make_chat, monkeypatch):
    """OPENAI_BASE_URL and OPENAI_API_KEY belong together; the key may be missing."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("OPENAI_MODEL", "m-env")
    server.script(STREAM)
    provider = make_chat(api_key=None, base_url=None, model_id=None)
    assert provider.model_id == "m-env"
    await run(provider)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    await run(make_chat(api_key=None, base_url=None))
    seen = [request.headers.get("authorization") for request in server.requests]
    assert seen == [None, f"Bearer {KEY}"]


async def test_environment_headers_stay_with_openai(server, make_chat, monkeypatch):
    """With base_url= neither organisation, project nor custom headers are sent."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-canary")
    lines = "X-Canary: 1\nAuthorization: Bearer canary\nX-Mine: canary"
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", lines)
    server.script(STREAM)
    for key in (None, "sk-mine"):
        await run(make_chat(api_key=key, extra_headers={"X-Mine": "mine"}))
        headers = server.requests[-1].headers
        assert "canary" not in repr(headers)
        assert headers["x-mine"] == "mine"
        assert headers.get("authorization") == (key and f"Bearer {key}")


async def test_own_authorization_header_wins(server, make_chat):
    """A gateway with another scheme."""
    server.script(STREAM)
    for key in (None, "sk-mine"):
        await run(make_chat(api_key=key, extra_headers={"authorization": "Basic eA=="}))
        assert server.requests[-1].headers["authorization"] == "Basic eA=="


async def test_fields_of_the_request_arrive(server, make_chat):
    """Path, query, options; nothing that was not asked for."""
    server.script(STREAM, WHOLE)
    await run(make_chat(base_url=f"{server.url}/v1?version=7"))
    assert server.requests[0].path == "/v1/chat/completions?version=7"
    assert server.requests[0].json == {
        "model": "gpt-test",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "hello"}],
    }
    provider = make_chat(
        reasoning_effort="low",
        max_output_tokens=9,
        include_usage=False,
        extra_body={"top_k": 4, "tools": [{"type": "x"}]},
    )
    await run(provider, streamed=False)
    assert server.requests[1].json == {
        "model": "gpt-test",
        "stream": False,
        "max_tokens": 9,
        "reasoning_effort": "low",
        "top_k": 4,
        "tools": [{"type": "x"}],
        "messages": [{"role": "user", "content": "hello"}],
    }


@pytest.mark.parametrize(
    ("url", "choice", "want"),
    [
        ("https://api.openai.com/v1", "auto", "max_completion_tokens"),
        ("https://api.groq.com/openai/v1", "auto", "max_tokens"),
        (URL, "auto", "max_tokens"),
        (URL, "max_completion_tokens", "max_completion_tokens"),
        ("https://api.openai.com/v1", "max_tokens", "max_tokens"),
    ],
)
def test_name_of_the_limit(url, choice, want):
    """The newer name at OpenAI, the older one, which every server knows, elsewhere."""
    provider = OpenAIChatProvider(
        "k", "m", base_url=url, max_output_tokens=5, max_tokens_field=choice
    )
    sent = json.loads(provider._encode(ASK, ReplayNotes(), stream=False))
    assert {k: v for k, v in sent.items() if k.startswith("max")} == {want: 5}


@pytest.mark.parametrize(
    ("url", "choice", "want"),
    [
        (URL, "auto", [None, "Mine."]),
        (URL, "never", [None, None]),
        (URL, "always", ["(", "Mine."]),
        ("https://api.deepseek.com", "auto", ["(", "Mine."]),
        ("https://api.deepseek.com/v1", "never", [None, None]),
    ],
)
def test_reasoning_is_sent_back_where_it_is_wanted(url, choice, want):
    """KF-065: DeepSeek demands it in tool loops, others get their own back."""
    provider = OpenAIChatProvider("k", "m", base_url=url, replay_reasoning=choice)
    said = {"reasoning_content": "Mine.", "tool_calls": [call("t", "{}")]}
    text = json.dumps(body(said, "tool_calls")).encode()
    own = provider._codec(ASK).decode_body(text)
    foreign = AssistantMessage("", tool_calls=[ToolCall("call_2", "t")])
    request = ModelRequest([foreign, own])
    sent = json.loads(provider._encode(request, ReplayNotes(), stream=False))
    found = [m.get("reasoning_content") for m in sent["messages"]]
    assert [f and f[: len(w or "")] for f, w in zip(found, want, strict=True)] == want


# --- failures -------------------------------------------------------------------------

STATUSES = {
    400: "invalid_request",
    401: "auth_error",
    402: "auth_error",
    403: "auth_error",
    404: "invalid_request",
    408: "network_error",
    409: "invalid_request",
    413: "invalid_request",
    422: "invalid_request",
    429: "rate_limit",
    500: "server_error",
    503: "server_error",
    529: "server_error",
}
REPORTS = [
    b'{"error":{"message":"It broke.","type":"t","code":"c"}}',
    b'{"error":"It broke."}',
    b'{"object":"error","message":"It broke.","code":400}',
    b"<html>",
    b"",
]


@pytest.mark.parametrize("report", REPORTS)
async def test_statuses_map_to_codes_whatever_the_body(server, make_chat, report):
    """KF-122: JSON of several shapes, HTML, nothing."""
    provider = make_chat()
    for status, code in STATUSES.items():
        server.script(Answer(status, {"x-request-id": "r7"}, report))
        for streamed in (True, False):
            error = await failure(provider, streamed=streamed)
            assert (error.code, error.http_status) == (code, status)
            assert error.request_id == "r7"
            assert str(status) in error.message


async def test_sentences_name_endpoint_and_what_to_do(server, make_chat):
    """A wrong key, an unknown path, a server that is not there."""
    server.script(Answer(401, JSON_TYPE, b'{"error":{"message":"bad sk-test"}}'))
    error = await failure(make_chat(api_key=KEY))
    assert server.url in error.message
    assert error.message.endswith("check api_key")
    server.script(Answer(404, JSON_TYPE, b'{"detail":"Not Found"}'))
    assert "Chat Completions API" in (await failure(make_chat())).message
    error = await failure(make_chat(base_url="http://127.0.0.1:9/v1"))
    assert error.code == "network_error"


async def test_stream_cut_anywhere_is_an_error_or_the_whole_reply(server, make_chat):
    """KF-007, KF-008, KF-024: by a clean end and by a broken connection.

    At some of the bytes here; the harness T1 cuts at every one.
    """
    raw = sse(reply({"content": "Hé", "tool_calls": [call("t", "{}")]}, "tool_calls"))
    end = raw.index(b"\n\n", raw.index(b'"finish_reason": "tool_calls"'))
    provider = make_chat()
    near = range(end - 20, end + 20)
    for size in sorted({*range(1, len(raw), 11), *near, len(raw) - 1}):
        for kind in ("complete", "cut") if size % 2 == 0 else ("complete",):
            server.script(Answer(headers=EVENT_STREAM, body=raw[:size], end=kind))
            if size < (end + 2 if kind == "cut" else end):  # the blank line is missing
                code = "network_error" if kind == "cut" else "bad_response"
                assert (await failure(provider)).code == code
            else:
                got = await run(provider)
                assert (got.content, len(got.tool_calls)) == ("Hé", 1)


async def test_silence_after_the_finish_reason_does_not_hold_the_reply_up(
    server, make_chat
):
    """KF-094: no usage, no [DONE], and a connection that stays open."""
    events = reply({"content": "Hello!"})[:-1]
    server.script(
        Answer(headers=EVENT_STREAM, body=sse(events, done=False), end="stall")
    )
    async with asyncio.timeout(8):
        assert (await run(make_chat())).content == "Hello!"
    await server.until_open(0)


@pytest.mark.parametrize(
    ("kind", "raw", "code"),
    [
        ("application/json", b'{"error":{"message":"x","code":429}}', "rate_limit"),
        ("text/html", b"<html>", "bad_response"),
    ],
)
async def test_body_of_another_kind_is_classified(server, make_chat, kind, raw, code):
    """KF-122: a stream was asked for and something else came."""
    server.script(Answer(headers={"content-type": kind}, body=raw))
    assert (await failure(make_chat())).code == code


async def test_a_whole_reply_in_place_of_a_stream_is_taken(server, make_chat):
    """Some servers ignore that a stream was asked for."""
    whole = json.dumps(body()).encode()
    server.script(*[Answer(headers=JSON_TYPE, body=whole)] * 2)
    got = await run(make_chat())
    assert got == await make_chat().invoke(ASK)


async def test_deltas_before_a_failure_are_shown_but_no_message(server, make_chat):
    """KF-007: partial text is seen in the stream and never in a message."""
    events = [chunk({"content": "Hel"}), {"error": {"message": "x"}}]
    server.script(Answer(headers=EVENT_STREAM, body=sse(events)))
    seen = []

    async def watch() -> None:
        async for event in make_chat().stream(ASK):
            seen.append(event)

    with pytest.raises(ModelError):
        await watch()
    assert seen == [TextDelta("Hel")]


# --- clients and secrets --------------------------------------------------------------


@pytest.mark.parametrize("streamed", [True, False])
async def test_secrets_stay_inside(server, make_chat, caplog, streamed):
    """KF-105, KF-108, KF-109, KF-112: not in errors, their chain, logs, pickles."""
    caplog.set_level(logging.DEBUG)
    told = {"error": {"message": f"key {KEY} is wrong at http://u:p@h/x?k={KEY}"}}
    raw = json.dumps(told).encode()
    answers = [Answer(status, JSON_TYPE, raw) for status in (400, 401, 404, 429, 500)]
    answers += [
        Answer(200, {"content-type": "text/plain"}, KEY.encode()),
        Answer(200, EVENT_STREAM, sse([told])),
        Answer(200, JSON_TYPE, raw),
        Answer(end="cut", before_headers=True),
    ]
    server.script(*answers)
    provider = make_chat(api_key=KEY, base_url=f"{server.url}/v1?token={KEY}")
    texts = [repr(provider)]
    for _ in answers:
        error = await failure(provider, streamed=streamed)
        texts += [repr(error), "".join(traceback.format_exception(error))]
        texts.append(repr(pickle.dumps(error)))
    ours = [r for r in caplog.records if r.name.startswith("lighter")]
    assert ours
    texts += [repr(vars(record)) for record in ours]
    assert [text for text in texts if KEY in text] == []


def test_one_provider_serves_one_loop_after_the_other():
    """KF-059: asyncio.run three times against a server that keeps connections."""
    with ServerThread() as server:
        server.script(STREAM)
        provider = OpenAIChatProvider(None, "m", base_url=f"{server.url}/v1")
        for _ in range(3):
            for _ in range(2):
                assert asyncio.run(run(provider)).content == "Hello!"
    gc.collect()


async def test_connection_is_reused_and_given_back(server, make_chat):
    """KF-053: complete streams share a connection; one that is left gives it back."""
    server.script(STREAM)
    provider = make_chat()
    for _ in range(5):
        await run(provider)
    assert server.connections == 1
    stream = provider.stream(ASK)
    await anext(stream)
    await stream.aclose()
    await provider.aclose()
    await server.until_open(0)


async def test_given_client_is_used_as_it_is(server, make_chat):
    """Its key, its endpoint, and it stays open."""
    import openai

    client = openai.AsyncOpenAI(api_key=KEY, base_url=f"{server.url}/mine")
    server.script(STREAM)
    provider = make_chat(api_key=None, base_url=None, client=client)
    assert (await run(provider)).content == "Hello!"
    await provider.aclose()
    assert server.requests[0].path == "/mine/chat/completions"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert not client.is_closed()
    await client.close()
