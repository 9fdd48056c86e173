"""The options that say how a service is reached: what is refused, and what wins."""

from __future__ import annotations

import httpx2
import pytest
from support.ids import stable
from support.interfaces import ask

from lighter_core import ModelError


class Timeout:
    """Not the transport's: asyncio and other libraries have one too."""


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"base_url": "http://me:hunter22@host/v1"}, "extra_headers"),
        ({"base_url": "http://hunter22@host/v1"}, "user or a password"),
        ({"base_url": "http://@host"}, "base_url"),
        ({"base_url": "host/v1"}, "base_url"),
        ({"base_url": ""}, "base_url"),  # else the key would go to the default
        ({"base_url": " "}, "base_url"),
        ({"http_client": httpx2.Client(verify=False)}, "httpx2.AsyncClient"),
        ({"http_client": "proxy"}, "httpx2.AsyncClient"),
        ({"client": "client", "base_url": None, "api_key": None}, "client must be"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": Timeout()}, "timeout must be a number of seconds"),
        ({"max_retries": -1}, "max_retries"),
        ({"extra_headers": {"a b": "c"}}, "extra_headers"),
    ],
    ids=stable,
)
def test_values_that_cannot_work_are_refused_at_construction(interface, options, named):
    """With the option's name and without its value."""
    defaults = {"api_key": "sk-test", "model_id": "m", "base_url": "http://host"}
    with pytest.raises(ModelError, match=named) as caught:
        interface.provider(**{**defaults, **options})
    assert caught.value.code == "invalid_request"
    assert "hunter22" not in caught.value.message


def test_the_transports_own_timeout_is_taken(interface):
    """A class that an application made from it, too."""

    class Patient(httpx2.Timeout):
        pass

    for kind in (httpx2.Timeout, Patient):
        assert interface.provider("sk-test", "m", timeout=kind(5)).model_id == "m"


def test_an_empty_url_of_the_environment_is_none(interface, monkeypatch):
    """Shells and compose files set variables that way."""
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, " ")
    assert "https://api." in repr(interface.provider("sk-test", "m"))


def test_urls_of_the_environment_are_held_to_the_same_rule(interface, monkeypatch):
    """A password there would be logged just the same; DeepSeek reads none."""
    variable = {"claude": "ANTHROPIC_BASE_URL"}.get(interface.name, "OPENAI_BASE_URL")
    monkeypatch.setenv(variable, "http://me:hunter22@host")
    if interface.name == "deepseek":
        interface.provider("sk-test", "m")
        return
    with pytest.raises(ModelError, match="extra_headers"):
        interface.provider("sk-test", "m")


@pytest.mark.parametrize("option", ["api_key", "base_url", "http_client"])
async def test_a_client_excludes_what_it_brings_itself(interface, option):
    """Nothing that an application gives is ignored without a word."""
    client = interface.make_client(api_key="sk-own", base_url="http://own")
    transport = httpx2.AsyncClient(verify=False)
    values = {"api_key": "sk-b", "base_url": "http://b", "http_client": transport}
    with pytest.raises(ModelError, match=f"{option} cannot be given beside client"):
        interface.provider(model_id="m", client=client, **{option: values[option]})
    await client.close()
    await transport.aclose()


async def test_what_goes_with_each_request_is_used_beside_a_client(
    server, interface, make
):
    """And the client stays as it was; the environment's key and endpoint are not read."""
    client = interface.make_client(api_key="sk-own", base_url=server.url, timeout=7)
    before = client.max_retries, client.timeout, str(client.base_url)
    server.script(interface.good(streamed=False))
    provider = make(
        client=client,
        timeout=3,
        max_retries=1,
        extra_headers={"x-team": "blue"},
        extra_body={"metadata": {"a": "b"}},
    )
    assert (await ask(provider, streamed=False)).content == "Hello!"
    await client.close()
    request = server.requests[0]
    assert request.headers["x-team"] == "blue"
    assert request.json["metadata"] == {"a": "b"}
    assert float(request.headers.get("x-stainless-read-timeout", 3)) == 3
    sent = request.headers.get("authorization") or request.headers["x-api-key"]
    assert sent.endswith("sk-own")
    assert (client.max_retries, client.timeout, str(client.base_url)) == before
    assert "x-team" not in client.default_headers
