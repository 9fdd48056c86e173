"""Headers that the SDK takes from the environment: where they go, and where not."""

from __future__ import annotations

import json

import httpx2
import pytest
from support import chat_streams, openai_streams
from support.loopback import JSON_TYPE, Answer

from lighter_core import ModelError, ModelRequest, UserMessage
from lighter_core.adapters import split_query
from lighter_openai import OpenAIChatProvider, OpenAIProvider

ASK = ModelRequest([UserMessage("hello")])
HEADERS = {
    "OPENAI_ORG_ID": "org-canary",
    "OPENAI_PROJECT_ID": "proj-canary",
    "OPENAI_CUSTOM_HEADERS": "X-Line: canary\nauthorization: Bearer canary",
}
KINDS = [OpenAIProvider, OpenAIChatProvider]
WHOLE = {
    OpenAIProvider: openai_streams.response([openai_streams.message("Hello!")]),
    OpenAIChatProvider: chat_streams.body({"content": "Hello!"}),
}
OPENAI = "https://api.openai.com/v1"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in HEADERS.items():
        monkeypatch.setenv(name, value)


async def sent(kind, **options) -> httpx2.Headers:
    """The headers of a request, and where it goes, without a network."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, headers=JSON_TYPE, content=json.dumps(WHOLE[kind]))

    transport = httpx2.MockTransport(answer)
    async with httpx2.AsyncClient(transport=transport) as http_client:
        provider = kind(model_id="m", http_client=http_client, **options)
        assert (await provider.invoke(ASK)).content == "Hello!"
    return seen[0].headers


@pytest.mark.parametrize("kind", KINDS)
async def test_a_key_of_the_program_goes_alone(server, kind):
    """To OpenAI and elsewhere: a line of the environment does not replace it."""
    for base_url in (None, OPENAI, server.url):
        headers = await sent(kind, api_key="sk-mine", base_url=base_url)
        assert headers["authorization"] == "Bearer sk-mine"
        assert "canary" not in repr(headers.raw)


async def test_another_endpoint_gets_nothing_of_openais(server, monkeypatch):
    """The key only, as before: Chat Completions does not even send that."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    server.script(Answer(200, JSON_TYPE, json.dumps(WHOLE[OpenAIProvider]).encode()))
    async with OpenAIProvider(model_id="m", base_url=server.url) as provider:
        await provider.invoke(ASK)
    headers = server.requests[0].headers
    assert headers["authorization"] == "Bearer sk-env"
    assert "canary" not in repr(headers)
    headers = await sent(OpenAIChatProvider, base_url=server.url)
    assert "authorization" not in headers
    assert "canary" not in repr(headers.raw)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variable", [None, "http://127.0.0.1:9/v1"])
async def test_the_environment_goes_together(kind, variable, monkeypatch):
    """Its key, its headers and its endpoint are the SDK's affair."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    if variable is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", variable)
    headers = await sent(kind)
    assert headers["openai-organization"] == "org-canary"
    assert headers["openai-project"] == "proj-canary"
    assert headers["x-line"] == "canary"
    assert headers["authorization"] == "Bearer canary"


@pytest.mark.parametrize(
    "tail", ["", "/", "//", "/v1", "/v1/", "/a b/ä", "/%2F", "/v1?x=1&y=%2F", "/v1/?x"]
)
async def test_the_address_is_what_the_sdk_makes_of_base_url(tail):
    """It is put together once here, and for each request there."""
    import openai

    seen: list[str] = []

    async def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(str(request.url))
        return httpx2.Response(404)

    transport = httpx2.MockTransport(answer)
    url = f"http://127.0.0.1:9{tail}"
    async with httpx2.AsyncClient(transport=transport) as http_client:
        base, query = split_query(url)
        client = openai.AsyncOpenAI(
            api_key="k",
            base_url=base,
            default_query=query,
            http_client=http_client,
            max_retries=0,
        )
        for options in ({"http_client": http_client}, {"client": client}):
            if "client" not in options:
                options |= {"api_key": "k", "base_url": url, "max_retries": 0}
            provider = OpenAIProvider(model_id="m", **options)
            with pytest.raises(ModelError):
                await provider.invoke(ASK)
    assert seen[0] == seen[1]


async def test_openais_own_url_is_the_default(monkeypatch):
    """However it is written."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    headers = await sent(OpenAIProvider, base_url=f"{OPENAI}/")
    assert headers["openai-organization"] == "org-canary"


@pytest.mark.parametrize("kind", KINDS)
async def test_headers_of_the_program_are_sent(kind):
    """Also by a name that the environment has."""
    given = {"X-Line": "mine", "OpenAI-Organization": "org-mine"}
    headers = await sent(kind, api_key="sk-mine", extra_headers=given)
    assert headers["x-line"] == "mine"
    assert headers["openai-organization"] == "org-mine"
    assert headers["authorization"] == "Bearer sk-mine"
