"""Fixtures of the tests of lighter-openai."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from support.loopback import Loopback

from lighter_openai import OpenAIChatProvider, OpenAIProvider

VARIABLES = (
    "OPENAI_API_KEY",
    "OPENAI_MODEL",
    "OPENAI_BASE_URL",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "OPENAI_ADMIN_KEY",
    "OPENAI_CUSTOM_HEADERS",
    "OPENAI_LOG",
)


@pytest.fixture(scope="session")
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty folder of certificates: each client would load the system's."""
    return str(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, no_certificates: str) -> None:
    """Nothing of the caller's environment reaches a test."""
    for name in (*VARIABLES, "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", no_certificates)


@pytest.fixture
async def server() -> AsyncIterator[Loopback]:
    """A scripted server."""
    async with Loopback() as server:
        yield server


@pytest.fixture
async def make(server: Loopback) -> AsyncIterator[Callable[..., OpenAIProvider]]:
    """Makes providers that talk to the server; they are closed after the test."""
    made: list[OpenAIProvider] = []

    def make(**options: object) -> OpenAIProvider:
        provider = OpenAIProvider(**{**defaults(server), **options})  # type: ignore[arg-type]
        made.append(provider)
        return provider

    yield make
    for provider in made:
        await provider.aclose()


@pytest.fixture
async def make_chat(
    server: Loopback,
) -> AsyncIterator[Callable[..., OpenAIChatProvider]]:
    """The same for Chat Completions."""
    made: list[OpenAIChatProvider] = []

    def make(**options: object) -> OpenAIChatProvider:
        provider = OpenAIChatProvider(**{**defaults(server), **options})  # type: ignore[arg-type]
        made.append(provider)
        return provider

    yield make
    for provider in made:
        await provider.aclose()


def defaults(server: Loopback) -> dict[str, object]:
    """The options that the tests do not care about."""
    return {
        "api_key": "sk-test",
        "model_id": "gpt-test",
        "base_url": f"{server.url}/v1",
        "max_retries": 0,
    }
