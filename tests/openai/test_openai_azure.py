"""Azure's service, through the SDK's own client for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import pytest
from support.chat_streams import body, reply, sse
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer, Loopback
from support.openai_streams import message, response

from lighter_core import ModelError, ModelRequest, UserMessage
from lighter_openai import OpenAIChatProvider, OpenAIProvider

KEY = "azure-key-0123456789"
ASK = ModelRequest([UserMessage("Hi")])
STREAM = Answer(headers=EVENT_STREAM, body=sse(reply({"content": "Ho"})))
WHOLE = Answer(headers=JSON_TYPE, body=json.dumps(body({"content": "Ho"})).encode())
ITEMS = Answer(headers=JSON_TYPE, body=json.dumps(response([message("Ho")])).encode())


@pytest.fixture
async def azure(
    server: Loopback,
) -> AsyncIterator[Callable[..., openai.AsyncAzureOpenAI]]:
    """Makes clients of the SDK for an Azure resource; they are closed after the test."""
    made: list[openai.AsyncAzureOpenAI] = []

    def make(**options: Any) -> openai.AsyncAzureOpenAI:
        known = {"api_key": KEY, "azure_endpoint": server.url, "max_retries": 0}
        client = openai.AsyncAzureOpenAI(
            api_version="2026-10-01", **{**known, **options}
        )
        made.append(client)
        return client

    yield make
    for client in made:
        await client.close()


async def texts(provider: Any) -> list[str]:
    """Ask once whole and once streamed."""
    *_, last = [event async for event in provider.stream(ASK)]
    return [(await provider.invoke(ASK)).content, last.message.content]


@pytest.mark.parametrize("deployment", ["gpt-test", "my model/ä", "a?b#c"])
async def test_chat_goes_to_the_deployment_as_the_sdk_itself_sends_it(
    server, azure, deployment
):
    """The path, the version and the key's header, for any name of a deployment."""
    client = azure()
    server.script(WHOLE)
    messages: Any = [{"role": "user", "content": "Hi"}]
    await client.chat.completions.create(model=deployment, messages=messages)
    wanted = server.requests[0].path
    server.script(STREAM, WHOLE)
    provider = OpenAIChatProvider(model_id=deployment, client=client)
    assert await texts(provider) == ["Ho", "Ho"]
    assert [request.path for request in server.requests] == [wanted] * 3
    assert wanted.startswith("/openai/deployments/")
    assert wanted.endswith("/chat/completions?api-version=2026-10-01")
    for request in server.requests[1:]:
        assert request.headers["api-key"] == KEY
        assert "authorization" not in request.headers
        assert request.json["model"] == deployment
    assert not client.is_closed()


async def test_model_of_the_environment_is_the_deployment_too(
    server, azure, monkeypatch
):
    """As with any other client."""
    monkeypatch.setenv("OPENAI_MODEL", "gpt-env")
    server.script(STREAM, WHOLE)
    await texts(OpenAIChatProvider(client=azure()))
    assert server.requests[0].path.startswith("/openai/deployments/gpt-env/chat/")


async def test_deployment_of_the_client_wins(server, azure):
    """It was chosen when the client was made."""
    server.script(STREAM, WHOLE)
    client = azure(azure_deployment="mine")
    await texts(OpenAIChatProvider(model_id="gpt-test", client=client))
    wanted = "/openai/deployments/mine/chat/completions?api-version=2026-10-01"
    assert [request.path for request in server.requests] == [wanted] * 2


@pytest.mark.parametrize("options", [{}, {"azure_deployment": "mine"}])
async def test_responses_have_no_deployment_in_their_path(server, azure, options):
    """The SDK takes it out, where the client has one."""
    server.script(ITEMS)
    provider = OpenAIProvider(model_id="gpt-test", client=azure(**options))
    assert (await provider.invoke(ASK)).content == "Ho"
    (request,) = server.requests
    assert request.path == "/openai/responses?api-version=2026-10-01"
    assert request.headers["api-key"] == KEY
    assert request.json["model"] == "gpt-test"


async def test_tokens_are_asked_for_at_each_request(server, azure):
    """Instead of a key; headers of the application go along."""
    tokens = iter("abc")
    client = azure(api_key=None, azure_ad_token_provider=lambda: next(tokens))
    server.script(STREAM, WHOLE)
    provider = OpenAIChatProvider(
        model_id="m", client=client, extra_headers={"x-team": "blue"}
    )
    await texts(provider)
    sent = [request.headers for request in server.requests]
    assert [each["authorization"] for each in sent] == ["Bearer a", "Bearer b"]
    assert {each["x-team"] for each in sent} == {"blue"}
    assert all("api-key" not in each for each in sent)


async def test_errors_name_the_deployment_and_never_the_key(server, azure):
    """A name that does not exist is the fault that happens most."""
    told = {"error": {"code": "DeploymentNotFound", "message": f"No. {KEY}"}}
    server.script(Answer(404, JSON_TYPE, json.dumps(told).encode()))
    provider = OpenAIChatProvider(model_id="gpt-none", client=azure())
    with pytest.raises(ModelError) as caught:
        await provider.invoke(ASK)
    assert caught.value.code == "invalid_request"
    assert caught.value.vendor_code == "DeploymentNotFound"
    assert "gpt-none" in caught.value.message
    assert KEY not in repr(caught.value) + str(caught.value)


@pytest.mark.parametrize("model", [None, "", " ", 3])
async def test_client_without_a_model_is_refused_as_ever(azure, model):
    """By the name of the option."""
    with pytest.raises(ModelError, match="model"):
        OpenAIChatProvider(model_id=model, client=azure())
