"""Construction, options, what is sent, secrets."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import subprocess
import sys
import traceback
from dataclasses import replace

import pytest
from support.claude_streams import body, call, reply, sse, text, thinking
from support.ids import stable
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer

import lighter_claude
from lighter_claude import ClaudeProvider, ClaudeProviderOptions
from lighter_claude.plugin import create_provider
from lighter_core import (
    AssistantMessage,
    FilePart,
    ModelError,
    ModelRequest,
    Provider,
    SupportsAclose,
    UserMessage,
)

ASK = ModelRequest([UserMessage("hello")])
GOOD = sse(reply(text("Hello!")))
STREAM = Answer(headers=EVENT_STREAM, body=GOOD)
WHOLE = Answer(headers=JSON_TYPE, body=json.dumps(body(text("Hello!"))).encode())
KEY = "sk-ant-canary-0123456789abcdef"


async def collect(provider) -> AssistantMessage:
    events = [event async for event in provider.stream(ASK)]
    return events[-1].message


def test_exports_are_sorted_and_versioned():
    """The package shows its class, its options and its version."""
    assert sorted(lighter_claude.__all__) == lighter_claude.__all__
    assert lighter_claude.__version__.count(".") == 2
    with pytest.raises(AttributeError):
        lighter_claude.nothing  # noqa: B018


def test_provider_has_the_documented_surface():
    """A name that cannot be set, capabilities, the two protocols."""
    provider = ClaudeProvider(KEY, "claude-test")
    assert isinstance(provider, Provider)
    assert isinstance(provider, SupportsAclose)
    assert provider.name == "claude"
    assert provider.model_id == "claude-test"
    assert provider.capabilities == {"output", "tool_choice", "image", "file"}
    with pytest.raises(AttributeError):
        provider.name = "other"  # type: ignore[misc]


def test_exported_options_are_those_of_the_constructor():
    """The typed dictionary and the signature tell one story."""
    import inspect

    parameters = inspect.signature(ClaudeProvider).parameters
    names = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    assert list(ClaudeProviderOptions.__annotations__) == names


def test_key_and_model_come_from_the_environment(monkeypatch):
    """An argument wins over its variable."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_MODEL", "claude-env")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://host/v9/")
    assert ClaudeProvider().model_id == "claude-env"
    assert "http://host/v9" in repr(ClaudeProvider())
    assert ClaudeProvider(model_id="claude-arg").model_id == "claude-arg"
    assert "http://other/a" in repr(ClaudeProvider(base_url="http://other/a"))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", " ")
    assert "https://api.anthropic.com" in repr(ClaudeProvider())


ENABLED = {"type": "enabled"}
NAMED = {"type": "web_search_20260209", "name": "web_search"}


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ({"api_key": None}, "auth_error", "ANTHROPIC_API_KEY"),
        ({"api_key": ""}, "auth_error", "ANTHROPIC_API_KEY"),
        ({"api_key": "  "}, "auth_error", "ANTHROPIC_API_KEY"),
        ({"api_key": b"sk-canary"}, "invalid_request", "api_key"),
        ({"api_key": "sk-canary\n"}, "invalid_request", "api_key"),
        ({"api_key": "sk-canary-é"}, "invalid_request", "api_key"),
        ({"model_id": None}, "invalid_request", "ANTHROPIC_MODEL"),
        ({"model_id": ""}, "invalid_request", "ANTHROPIC_MODEL"),
        ({"max_output_tokens": 0}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": -1}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": True}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": 1.5}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": "9"}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": None}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": 2**53}, "invalid_request", "max_output_tokens"),
        ({"thinking": "adaptive"}, "invalid_request", "thinking"),
        ({"thinking": {"type": object()}}, "invalid_request", "thinking"),
        ({"thinking": ENABLED}, "invalid_request", "budget_tokens"),
        ({"thinking": ENABLED | {"budget_tokens": 1023}}, "invalid_request", "1024"),
        ({"thinking": ENABLED | {"budget_tokens": True}}, "invalid_request", "int"),
        ({"thinking": ENABLED | {"budget_tokens": 2e3}}, "invalid_request", "int"),
        ({"thinking": ENABLED | {"budget_tokens": 8192}}, "invalid_request", "8192"),
        (
            {"thinking": ENABLED | {"budget_tokens": 2000}, "max_output_tokens": 2000},
            "invalid_request",
            "max_output_tokens",
        ),
        ({"effort": ""}, "invalid_request", "effort"),
        ({"effort": 3}, "invalid_request", "effort"),
        ({"cache": "10m"}, "invalid_request", "cache"),
        ({"cache": 1}, "invalid_request", "cache"),
        ({"cache": None}, "invalid_request", "cache"),
        ({"cache": []}, "invalid_request", "cache"),
        ({"system_messages": "first"}, "invalid_request", "system_messages"),
        ({"hosted_tools": "web_search"}, "invalid_request", "hosted_tools"),
        ({"hosted_tools": {"type": "x"}}, "invalid_request", "hosted_tools"),
        ({"hosted_tools": ["web_search"]}, "invalid_request", "hosted_tools[0]"),
        ({"hosted_tools": [{"name": "x"}]}, "invalid_request", "'type'"),
        ({"hosted_tools": [{"type": 5, "name": "x"}]}, "invalid_request", "'type'"),
        ({"hosted_tools": [{"type": " "}]}, "invalid_request", "hosted_tools[0]"),
        ({"hosted_tools": [{"type": "custom"}]}, "invalid_request", "functions"),
        ({"hosted_tools": [{"type": "x", "name": 5}]}, "invalid_request", "'name'"),
        ({"hosted_tools": [{"type": "x", "name": ""}]}, "invalid_request", "'name'"),
        ({"hosted_tools": [NAMED, NAMED]}, "invalid_request", "hosted_tools[1]"),
        ({"structured_output": None}, "invalid_request", "structured_output"),
        ({"max_retries": -1}, "invalid_request", "max_retries"),
        ({"timeout": 0}, "invalid_request", "timeout"),
        ({"timeout": "5"}, "invalid_request", "timeout"),
        ({"base_url": "no url sk-canary"}, "invalid_request", "base_url"),
        ({"base_url": 5}, "invalid_request", "base_url"),
        ({"extra_body": {"x": float("nan")}}, "invalid_request", "extra_body"),
        ({"extra_body": {"messages": []}}, "invalid_request", "messages"),
        ({"extra_body": {"system": ""}}, "invalid_request", "system"),
        ({"extra_body": []}, "invalid_request", "extra_body"),
        ({"extra_headers": {"X-A": "sk-canary\n"}}, "invalid_request", "X-A"),
        ({"client": object()}, "invalid_request", "client"),
    ],
    ids=stable,
)
def test_values_that_cannot_work_are_refused_at_construction(options, code, named):
    """KF-112: the error names parameter or variable, never a key."""
    with pytest.raises(ModelError) as caught:
        ClaudeProvider(**{"api_key": KEY, "model_id": "claude-test", **options})
    assert caught.value.code == code
    assert caught.value.provider == "claude"
    assert named in caught.value.message
    assert "canary" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "thinking",
    [
        {"type": "adaptive"},
        {"type": "adaptive", "display": "summarized"},
        {"type": "between_tools"},
        {"type": "disabled"},
        {"type": "brand_new", "budget_tokens": -5},
        {"type": "enabled", "budget_tokens": 1024},
        {"type": "enabled", "budget_tokens": 8191},
    ],
    ids=stable,
)
async def test_thinking_goes_through_as_it_is(server, make, thinking):
    """Which form a model takes, the service knows better; the budget is checked."""
    server.script(STREAM)
    await collect(make(thinking=thinking))
    assert server.requests[0].json["thinking"] == thinking
    assert server.requests[0].json["max_tokens"] == 8192


def test_options_are_copied():
    """What the application changes later does not reach the provider."""
    extra = {"metadata": {"user_id": "1"}}
    hosted = [{"type": "x", "name": "y"}]
    provider = ClaudeProvider(KEY, "m", extra_body=extra, hosted_tools=hosted)
    extra["metadata"]["user_id"] = "2"
    hosted[0]["name"] = "z"
    assert provider._options.fields["metadata"] == {"user_id": "1"}
    assert provider._options.hosted_tools[0]["name"] == "y"


def test_plugin_makes_the_provider_and_refuses_unknown_options():
    """A misspelled option is a TypeError that lists the real ones."""
    provider = create_provider("claude", {"api_key": KEY, "model_id": "claude-test"})
    assert provider.name == "claude"
    with pytest.raises(TypeError, match=r"max_tokens.*max_output_tokens") as caught:
        create_provider("claude", {"api_key": KEY, "max_tokens": 1})
    assert KEY not in str(caught.value)


def test_nothing_heavy_is_imported_before_the_first_request():
    """Neither the SDK nor its transport, at import, lookup and construction by name."""
    script = (
        "import sys, lighter_claude\n"
        "from lighter_core import Agent, Model\n"
        "model = Model.from_name('claude', api_key='k', model_id='m', timeout=3.0,"
        " extra_body={'a': 1}, extra_headers={'X-A': 'b'})\n"
        "Agent(model)\n"
        "heavy = {'anthropic', 'openai', 'lighter_openai', 'httpx2', 'anyio', 'jiter'}\n"
        "print(sorted(heavy & set(sys.modules)), 'lighter_claude' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[] True"


def test_providers_cannot_be_copied_or_pickled():
    """KF-104: a plain sentence instead of an error about locks."""
    provider = ClaudeProvider(KEY, "claude-test")
    for action in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            action(provider)


async def test_fields_of_the_request_arrive(server, make):
    """Options, headers and path as the service documents them."""
    server.script(STREAM, WHOLE)
    provider = make(
        max_output_tokens=64,
        effort="low",
        cache=True,
        hosted_tools=({"type": "web_search_20260209", "name": "web_search"},),
        extra_body={"metadata": {"user_id": "1"}, "output_config": {"x": 1}},
    )
    await collect(provider)
    request = server.requests[0]
    assert (request.method, request.path) == ("POST", "/v1/messages")
    assert request.headers["authorization"] == "Bearer sk-ant-test"
    assert "x-api-key" not in request.headers
    assert request.headers["anthropic-version"]
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept"] == "text/event-stream"
    assert request.json == {
        "model": "claude-test",
        "stream": True,
        "max_tokens": 64,
        "output_config": {"effort": "low", "x": 1},
        "cache_control": {"type": "ephemeral"},
        "metadata": {"user_id": "1"},
        "tools": [{"type": "web_search_20260209", "name": "web_search"}],
        "messages": [{"role": "user", "content": [text("hello")]}],
    }
    await provider.invoke(ASK)
    assert server.requests[1].json == {**request.json, "stream": False}


@pytest.mark.parametrize(
    ("cache", "sent"),
    [
        (False, None),
        (True, {"type": "ephemeral"}),
        ("5m", {"type": "ephemeral", "ttl": "5m"}),
        ("1h", {"type": "ephemeral", "ttl": "1h"}),
    ],
)
async def test_caching_is_an_option(server, make, cache, sent):
    """The service moves the mark along by itself."""
    server.script(STREAM)
    await collect(make(cache=cache))
    assert server.requests[0].json.get("cache_control") == sent


@pytest.mark.parametrize(
    ("tokens", "streamed"), [(8_192, False), (21_333, False), (21_334, True)]
)
async def test_long_replies_are_streamed_inside_invoke(server, make, tokens, streamed):
    """Above the SDK's own guard a silent connection would be cut on the way."""
    server.script(STREAM if streamed else WHOLE)
    for options in (
        {"max_output_tokens": tokens},
        {"extra_body": {"max_tokens": tokens}},
    ):
        got = await make(**options).invoke(ASK)
        assert got.content == "Hello!"
        assert server.requests[-1].json["max_tokens"] == tokens
        assert server.requests[-1].json["stream"] is streamed


async def test_base_url_may_have_a_path_and_a_query(server, make):
    """Gateways want a version or a key there; it is sent and never shown."""
    server.script(STREAM)
    provider = make(base_url=f"{server.url}/gate?version=7&token=canary")
    got = await collect(provider)
    path = server.requests[0].path
    assert path == "/gate/v1/messages?version=7&token=canary"
    assert "canary" not in repr(provider)
    assert got.native.endpoint == f"{server.url}/gate"


async def test_custom_headers_of_the_environment_are_the_sdks(
    server, make, monkeypatch
):
    """They go out with every request, whatever the endpoint."""
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Team: blue\nX-More: 1")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "other")
    server.script(STREAM)
    await collect(make())
    headers = server.requests[0].headers
    assert (headers["x-team"], headers["x-more"]) == ("blue", "1")
    assert headers["authorization"] == "Bearer sk-ant-test"
    lines = "Authorization: Bearer theirs\nX-Api-Key: theirs too"
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", lines)
    await collect(make())
    headers = server.requests[1].headers
    assert headers["authorization"] == "Bearer theirs"
    assert headers["x-api-key"] == "theirs too"


async def test_invoke_equals_stream(server, make):
    """KF-018: one message, whichever way it came."""
    blocks = [thinking("why"), text("Hello!"), thinking(), call("t", {"a": 1})]
    whole = json.dumps(body(*blocks, stop="tool_use")).encode()
    server.script(
        Answer(headers=EVENT_STREAM, body=sse(reply(*blocks, stop="tool_use"))),
        Answer(headers=JSON_TYPE, body=whole),
    )
    provider = make()
    streamed, invoked = await collect(provider), await provider.invoke(ASK)
    assert json.loads(streamed.native.items) == json.loads(invoked.native.items)
    assert replace(streamed, native=None) == replace(invoked, native=None)


async def test_second_request_carries_the_first_reply(server, make):
    """KF-063, KF-069: the bytes of the blocks stand in the next body."""
    blocks = [thinking(""), text("Hello!", citations=None)]
    server.script(Answer(headers=EVENT_STREAM, body=sse(reply(*blocks))))
    provider = make()
    first = await collect(provider)
    again = pickle.loads(pickle.dumps(first))
    for each in (first, again):
        history = [UserMessage("hello"), each, UserMessage("more")]
        async for _ in provider.stream(ModelRequest(history)):
            pass
    opening, second, third = server.requests
    assert second.body == third.body
    assert second.body.startswith(opening.body.removesuffix(b"]}"))
    assert second.json["messages"][1]["content"] == blocks
    assert first.native.items[1:-1].encode() in second.body


async def test_part_that_cannot_be_taken_sends_nothing(server, make):
    """The provider says so by name, before anything is sent."""
    part = FilePart(b"x", media_type="video/mp4")
    with pytest.raises(ModelError, match="video/mp4"):
        await make().invoke(ModelRequest([UserMessage([part])]))
    assert server.requests == []


@pytest.mark.parametrize("key", ["x", "none"])
async def test_placeholder_keys_do_not_mangle_messages(server, make, key):
    """Local servers need no key: a word given in its place is no secret."""
    told = b'{"error":{"message":"none of next text"}}'
    server.script(Answer(500, JSON_TYPE, told))
    with pytest.raises(ModelError, match="none of next text"):
        await make(api_key=key).invoke(ASK)


@pytest.mark.parametrize("streamed", [True, False])
async def test_secrets_stay_inside(server, make, caplog, streamed):
    """KF-105, KF-108, KF-109, KF-112: not in errors, their chain, logs, pickles."""
    caplog.set_level(logging.DEBUG)
    words = f"key {KEY} is wrong at http://u:p@h/x?k={KEY}"
    told = {"type": "error", "error": {"type": "api_error", "message": words}}
    answers = [
        Answer(status, {"request-id": KEY[:3]}, json.dumps(told).encode())
        for status in (400, 401, 402, 403, 404, 429, 500, 529)
    ]
    answers += [
        Answer(200, {"content-type": "text/plain"}, KEY.encode()),
        Answer(200, EVENT_STREAM, sse([told])),
        Answer(200, JSON_TYPE, json.dumps(told).encode()),
        Answer(end="cut", before_headers=True),
    ]
    server.script(*answers)
    provider = make(api_key=KEY, base_url=f"{server.url}?token={KEY}")
    texts = [repr(provider), str(provider)]
    for _ in answers:
        with pytest.raises(ModelError) as caught:
            await (collect(provider) if streamed else provider.invoke(ASK))
        error = caught.value
        texts += [repr(error), str(error), *map(str, getattr(error, "__notes__", ()))]
        texts.append("".join(traceback.format_exception(error)))
        texts.append(repr(pickle.dumps(error)))
        twin = pickle.loads(pickle.dumps(error))
        assert (twin.message, twin.code, twin.http_status, twin.response_status) == (
            error.message,
            error.code,
            error.http_status,
            error.response_status,
        )
        assert twin.__cause__ is None
    ours = [r for r in caplog.records if r.name.startswith("lighter")]
    assert ours
    texts += [repr(vars(record)) for record in ours]
    for each in texts:
        assert KEY not in each
    assert not [r for r in ours if r.levelno > logging.DEBUG]


async def test_sdk_log_shows_prompts_but_no_keys(server, make, caplog):
    """KF-109: what the documentation says about the SDK's logger at DEBUG."""
    import anthropic

    caplog.set_level(logging.DEBUG)
    server.script(WHOLE)
    headers = {"X-Gateway-Key": KEY + "x"}
    given = anthropic.AsyncAnthropic(
        api_key=KEY,
        base_url=server.url,
        http_client=anthropic.DefaultAsyncHttpxClient(),
    )
    for client in (None, given):
        own = (
            {"api_key": KEY} if client is None else {"api_key": None, "base_url": None}
        )
        provider = make(client=client, extra_headers=headers, **own)
        await provider.invoke(ModelRequest([UserMessage("my own prompt")]))
        sent = server.requests[-1].headers
        assert sent["x-gateway-key"] == KEY + "x"
        assert sent["authorization"] == f"Bearer {KEY}"
    await given.close()
    shown = "".join(
        r.getMessage() for r in caplog.records if r.name == "anthropic._base_client"
    )
    assert "my own prompt" in shown
    assert KEY not in caplog.text


async def test_log_records_are_structured_and_hold_no_content(server, make, caplog):
    """KF-109: begin and end at DEBUG, fields with a prefix, no prompt, no reply."""
    caplog.set_level(logging.DEBUG, logger="lighter.claude")
    events = [{"type": "brand_new"}, *reply(text("the secret answer"))]
    server.script(
        Answer(headers={**EVENT_STREAM, "request-id": "r1"}, body=sse(events))
    )
    request = ModelRequest([UserMessage("the secret question")])
    async for _ in make().stream(request):
        pass
    records = [r for r in caplog.records if r.name == "lighter.claude"]
    assert len(records) == 2
    last = vars(records[-1])
    assert last["lighter_model"] == "claude-test"
    assert last["lighter_endpoint"] == server.url
    assert last["lighter_status"] == 200
    assert last["lighter_request_id"] == "r1"
    assert last["lighter_seconds"] > 0
    assert last["lighter_ignored_events"] == 1
    assert "secret" not in "".join(repr(vars(r)) for r in records)


async def test_extra_headers_go_out_and_are_taken_out_of_errors(server, make):
    """A beta header, a gateway's key; the service may repeat the latter."""
    told = json.dumps({"error": {"message": f"bad {KEY}"}}).encode()
    server.script(Answer(400, JSON_TYPE, told))
    headers = {"anthropic-beta": "new-thing", "X-Gateway-Key": KEY}
    provider = make(extra_headers=headers)
    with pytest.raises(ModelError) as caught:
        await provider.invoke(ASK)
    assert server.requests[0].headers["anthropic-beta"] == "new-thing"
    assert KEY not in "".join(traceback.format_exception(caught.value))


async def test_missing_sdk_is_said_in_a_sentence(make, monkeypatch):
    """An environment that lost the SDK: what to install, no traceback needed."""

    async def broken(_: str) -> None:
        raise ImportError("No module named 'anthropic'")

    monkeypatch.setattr("lighter_core.adapters._sender.import_sdk", broken)
    with pytest.raises(ModelError, match="pip install anthropic") as caught:
        await make().invoke(ASK)
    assert caught.value.code == "unknown"
