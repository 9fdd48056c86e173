"""A provider of another service on the Responses codec, as a third party writes it."""

from __future__ import annotations

from support.loopback import EVENT_STREAM, Answer
from support.openai_streams import message, reply, sse

from lighter_core import ModelRequest, UserMessage
from lighter_openai.responses import Connection, Dialect, ResponsesProvider

ACME = Dialect(
    name="acme",
    label="Acme",
    key_variable="ACME_API_KEY",
    model_variable="ACME_MODEL",
    base_url_variable=None,
    base_url="https://api.acme.example",
    isolated=True,
)


class AcmeProvider(ResponsesProvider):
    def __init__(self, api_key=None, model_id=None, base_url=None) -> None:
        connection = Connection(api_key=api_key, base_url=base_url)
        super().__init__(ACME, model_id, connection, fields={"region": "moon"})


async def test_another_service_needs_constants_only(server, monkeypatch):
    """Name, variables, endpoint and fields are its own; the codec is shared."""
    monkeypatch.setenv("ACME_API_KEY", "sk-acme")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    assert "https://api.acme.example" in repr(AcmeProvider(model_id="a-1"))
    server.script(Answer(headers=EVENT_STREAM, body=sse(reply(message("Hello!")))))
    async with AcmeProvider(model_id="a-1", base_url=server.url) as provider:
        request = ModelRequest([UserMessage("hello")])
        *_, last = [event async for event in provider.stream(request)]
    sent = server.requests[0]
    assert sent.headers["authorization"] == "Bearer sk-acme"
    assert sent.json == {
        "model": "a-1",
        "stream": True,
        "region": "moon",
        "input": [{"role": "user", "content": "hello"}],
    }
    assert last.message.native.provider == "acme"
