"""The provider of DeepSeek: options, environment, failures, the tool loop."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import subprocess
import sys
import traceback

import pytest
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer
from support.openai_streams import call, message, reply, response, sse, thought
from support.threads import ServerThread

import lighter_deepseek
from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    MessageEvent,
    Model,
    ModelError,
    ModelRequest,
    Provider,
    ReasoningDelta,
    SupportsAclose,
    UserMessage,
    tool,
)
from lighter_deepseek import DeepSeekProvider
from lighter_deepseek.plugin import create_provider

ASK = ModelRequest([UserMessage("hello")])
GOOD = sse(reply(thought("Hm."), message("Hello!")))
STREAM = Answer(headers=EVENT_STREAM, body=GOOD)
WHOLE = Answer(
    headers=JSON_TYPE,
    body=json.dumps(response([thought("Hm."), message("Hello!")])).encode(),
)
KEY = "sk-canary-0123456789abcdef"
OCTETS = {"content-type": "application/octet-stream"}


async def run(provider, *, streamed: bool = True) -> AssistantMessage:
    if not streamed:
        return await provider.invoke(ASK)
    events = [event async for event in provider.stream(ASK)]
    assert isinstance(events[-1], MessageEvent)
    return events[-1].message


async def failure(provider, *, streamed: bool = True) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await run(provider, streamed=streamed)
    assert caught.value.provider == "deepseek"
    return caught.value


def test_exports_are_sorted_and_versioned():
    """The public surface of the distribution."""
    assert lighter_deepseek.__all__ == sorted(lighter_deepseek.__all__)
    assert lighter_deepseek.__version__ == "0.1.0"
    with pytest.raises(AttributeError):
        lighter_deepseek.nothing  # noqa: B018


def test_provider_has_the_documented_surface(monkeypatch):
    """A Provider; the model is deepseek-flash unless something else is said."""
    provider = DeepSeekProvider("sk-test")
    assert isinstance(provider, Provider)
    assert isinstance(provider, SupportsAclose)
    assert (provider.name, provider.model_id) == ("deepseek", "deepseek-flash")
    assert "https://api.deepseek.com" in repr(provider)
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    monkeypatch.setenv("DEEPSEEK_MODEL", "deepseek-v4-pro")
    assert DeepSeekProvider().model_id == "deepseek-v4-pro"
    assert DeepSeekProvider(model_id="any-other").model_id == "any-other"
    monkeypatch.setenv("DEEPSEEK_MODEL", " ")
    assert DeepSeekProvider().model_id == "deepseek-flash"
    made = create_provider(name="deepseek", options={"reasoning_effort": "none"})
    assert type(made) is DeepSeekProvider
    with pytest.raises(TypeError, match="no option 'hosted_tools'"):
        create_provider(name="deepseek", options={"hosted_tools": []})


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ({"api_key": None}, "auth_error", "DEEPSEEK_API_KEY"),
        ({"api_key": ""}, "auth_error", "DEEPSEEK_API_KEY"),
        ({"api_key": "sk-canary\n"}, "invalid_request", "api_key"),
        ({"model_id": ""}, "invalid_request", "DEEPSEEK_MODEL"),
        ({"reasoning_effort": ""}, "invalid_request", "reasoning_effort"),
        (
            {"reasoning_effort": {"effort": "low"}},
            "invalid_request",
            "reasoning_effort",
        ),
        ({"max_output_tokens": True}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": 0}, "invalid_request", "max_output_tokens"),
        ({"base_url": "sk-canary"}, "invalid_request", "base_url"),
        ({"timeout": -1}, "invalid_request", "timeout"),
        ({"extra_body": {"input": []}}, "invalid_request", "input"),
    ],
    ids=str,
)
def test_values_that_cannot_work_are_refused_at_construction(
    monkeypatch, options, code, named
):
    """KF-112: the error names parameter or variable; OpenAI's key is no substitute."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(ModelError) as caught:
        DeepSeekProvider(**{"api_key": "sk-test", **options})
    assert (caught.value.code, caught.value.provider) == (code, "deepseek")
    assert named in caught.value.message
    assert "canary" not in "".join(traceback.format_exception(caught.value))


HOSTILE = {
    "OPENAI_API_KEY": "sk-canary-openai",
    "OPENAI_ADMIN_KEY": "sk-canary-admin",
    "OPENAI_ORG_ID": "org-canary",
    "OPENAI_PROJECT_ID": "proj-canary",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/canary",
    "OPENAI_CUSTOM_HEADERS": (
        "Authorization: Bearer sk-canary-line\nX-Canary: 1\nopenai-organization: canary"
    ),
}


async def test_nothing_of_openai_reaches_the_service(server, make, monkeypatch):
    """KF-108: hostile values in all six variables that the SDK reads."""
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    server.script(STREAM, WHOLE)
    provider = make(api_key="sk-deepseek")
    for streamed in (True, False):
        await run(provider, streamed=streamed)
    assert len(server.requests) == 2
    for request in server.requests:
        assert request.path == "/responses"
        assert request.headers["authorization"] == "Bearer sk-deepseek"
        assert "canary" not in repr(request.headers)
        assert "openai-organization" not in request.headers
        assert "openai-project" not in request.headers
    assert "https://api.deepseek.com" in repr(DeepSeekProvider("sk-deepseek"))


async def test_environment_headers_are_read_when_the_client_is_made(
    server, make, monkeypatch
):
    """Values that come after construction do not reach the service either."""
    server.script(STREAM)
    provider = make()
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    await run(provider)
    await provider.aclose()
    await run(provider)
    assert "canary" not in repr([r.headers for r in server.requests])


# --- failures -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_request"),
        (401, "auth_error"),
        (402, "auth_error"),
        (422, "invalid_request"),
        (429, "rate_limit"),
        (500, "server_error"),
        (503, "server_error"),
    ],
)
@pytest.mark.parametrize("headers", [JSON_TYPE, OCTETS, {}])
async def test_documented_statuses_map_to_codes(server, make, status, code, headers):
    """KF-122: JSON errors count whatever their content type says."""
    told = {"message": "No.", "type": "t", "param": None, "code": "some_code"}
    server.script(Answer(status, headers, json.dumps({"error": told}).encode()))
    for streamed in (True, False):
        error = await failure(make(), streamed=streamed)
        assert (error.code, error.http_status) == (code, status)
        assert error.vendor_code == "some_code"
        assert "DeepSeek" in error.message


async def test_wrong_key_and_empty_balance_say_what_to_do(server, make):
    """The variable's name for the one, the service's words for the other."""
    told = {"error": {"message": "Insufficient Balance", "code": "x"}}
    server.script(Answer(402, JSON_TYPE, json.dumps(told).encode()))
    assert "Insufficient Balance" in (await failure(make())).message
    server.script(Answer(401, JSON_TYPE, b"{}"))
    assert "DEEPSEEK_API_KEY" in (await failure(make())).message


async def test_keep_alives_are_nothing(server, make):
    """KF-003: comments and blank lines while one waits, streamed and not."""
    wait = b": keep-alive\n\n" * 3
    raw = wait + GOOD.replace(b"\n\n", b"\n\n: keep-alive\n\n")
    server.script(
        Answer(
            headers=EVENT_STREAM, body=[raw[i : i + 5] for i in range(0, len(raw), 5)]
        )
    )
    assert (await run(make())).content == "Hello!"
    pieces = [b"\n", b"\n\n", b"\r\n", *WHOLE.pieces]
    server.script(Answer(headers=JSON_TYPE, body=pieces, gap=0.01))
    assert (await run(make(), streamed=False)).content == "Hello!"


async def test_service_that_closes_before_it_begins_is_a_bad_response(server, make):
    """Only keep-alives, then the end: no message."""
    server.script(Answer(headers=EVENT_STREAM, body=b": keep-alive\n\n" * 3))
    assert (await failure(make())).code == "bad_response"
    server.script(Answer(headers=JSON_TYPE, body=b"\n\n\n"))
    assert (await failure(make(), streamed=False)).code == "bad_response"


async def test_stream_cut_anywhere_is_an_error_or_the_whole_reply(server, make):
    """KF-007, KF-024: nothing but the terminal event gives a message.

    At some of the bytes here; the harness T1 cuts at every one.
    """
    raw = sse(reply(thought("Hé"), call("add", "{}")))
    begin = raw.index(b"event: response.completed")
    whole = len(raw.rstrip())
    provider = make()
    for size in [
        *range(1, begin, 25),
        *range(begin, len(raw), 9),
        *range(whole - 9, len(raw)),
    ]:
        server.script(Answer(headers=EVENT_STREAM, body=raw[:size]))
        if size < whole:
            assert (await failure(provider)).code == "bad_response"
        else:
            assert len((await run(provider)).tool_calls) == 1


async def test_unreadable_context_is_not_retried(server, make):
    """There is no encrypted context here: the service's word is reported."""
    told = {"error": {"code": "invalid_encrypted_content", "message": "No."}}
    server.script(Answer(400, JSON_TYPE, json.dumps(told).encode()), STREAM)
    assert (await failure(make())).code == "invalid_request"
    assert len(server.requests) == 1


# --- secrets, clients, loops ----------------------------------------------------------


@pytest.mark.parametrize("streamed", [True, False])
async def test_secrets_stay_inside(server, make, caplog, streamed):
    """KF-105, KF-108, KF-109, KF-112: not in errors, their chain, logs, pickles."""
    caplog.set_level(logging.DEBUG)
    raw = json.dumps({"error": {"message": f"key {KEY} is wrong"}}).encode()
    answers = [Answer(status, OCTETS, raw) for status in (400, 401, 402, 429, 500)]
    answers += [
        Answer(200, {"content-type": "text/plain"}, KEY.encode()),
        Answer(200, EVENT_STREAM, b"data: " + raw + b"\n\n"),
        Answer(end="cut", before_headers=True),
    ]
    server.script(*answers)
    provider = make(api_key=KEY)
    texts = [repr(provider)]
    for _ in answers:
        error = await failure(provider, streamed=streamed)
        texts += [repr(error), "".join(traceback.format_exception(error))]
        texts.append(repr(pickle.dumps(error)))
    ours = [r for r in caplog.records if r.name.startswith("lighter")]
    assert any(r.name == "lighter.deepseek" for r in ours)
    texts += [repr(vars(record)) for record in ours]
    assert [text for text in texts if KEY in text] == []


def test_nothing_heavy_is_imported_before_the_first_request():
    """KF-117: neither SDK nor transport nor pydantic."""
    code = (
        "import sys; from lighter_core import Model;"
        "Model.from_name('deepseek', api_key='k');"
        "print(sorted({'openai', 'httpx2', 'pydantic', 'jiter'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_one_provider_serves_one_loop_after_the_other():
    """KF-059: asyncio.run three times against a server that keeps connections."""
    with ServerThread() as server:
        server.script(STREAM)
        provider = DeepSeekProvider("sk-test", base_url=server.url, max_retries=0)
        for _ in range(3):
            assert asyncio.run(run(provider)).content == "Hello!"


# --- the tool loop ----------------------------------------------------------------------


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_tool_loop_over_the_wire(server):
    """KF-018, KF-065: three turns, reasoning before each turn's calls, both ways."""
    turns = [
        [
            thought("First."),
            call("add", '{"a":19,"b":23}'),
            call("add", '{"a":1,"b":1}', 2),
        ],
        [
            thought("Second.", id_="rs_2"),
            message("So:"),
            call("add", '{"a":2,"b":2}', 3),
        ],
        [thought("Third.", id_="rs_3"), message("42.")],
    ]
    model = Model.from_name("deepseek", api_key="sk-test", base_url=server.url)
    async with Agent(model, tools=[add]) as agent:
        server.script(
            *(Answer(headers=EVENT_STREAM, body=sse(reply(*items))) for items in turns)
        )
        async with agent.stream("Go.") as stream:
            events = [event async for event in stream]
        streamed = events[-1]
        assert isinstance(streamed, AgentResponse)
        streamed.raise_if_failed()
        bodies = [
            Answer(headers=JSON_TYPE, body=json.dumps(response(items)).encode())
            for items in turns
        ]
        server.script(*bodies)
        ran = (await agent.run("Go.")).raise_if_failed()
    assert ran.messages == streamed.messages
    shown = "".join(e.text for e in events if isinstance(e, ReasoningDelta))
    assert shown == "First.Second.Third."
    items = server.requests[2].json["input"]
    assert [i.get("type") or i["role"] for i in items] == [
        "system",
        "user",
        "reasoning",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert [i["output"] for i in items if "output" in i] == ["42", "2", "4"]
    assert server.requests[2].body.startswith(server.requests[1].body[:-2])
    assert streamed.notes == []
