"""Fixtures of the tests of lighter-deepseek."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from support.loopback import Loopback

from lighter_deepseek import DeepSeekProvider

VARIABLES = (
    "DEEPSEEK_API_KEY",
    "DEEPSEEK_MODEL",
    "DEEPSEEK_BASE_URL",
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
async def make(server: Loopback) -> AsyncIterator[Callable[..., DeepSeekProvider]]:
    """Makes providers that talk to the server; they are closed after the test."""
    made: list[DeepSeekProvider] = []

    def make(**options: object) -> DeepSeekProvider:
        options = {
            "api_key": "sk-test",
            "base_url": server.url,
            "max_retries": 0,
            **options,
        }
        provider = DeepSeekProvider(**options)  # type: ignore[arg-type]
        made.append(provider)
        return provider

    yield make
    for provider in made:
        await provider.aclose()
