"""Fixtures of the tests of lighter-claude."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from support.loopback import Loopback

from lighter_claude import ClaudeProvider

VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CONFIG_DIR",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_LOG",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_PROFILE",
    "ANTHROPIC_WEBHOOK_SIGNING_KEY",
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
async def make(server: Loopback) -> AsyncIterator[Callable[..., ClaudeProvider]]:
    """Makes providers that talk to the server; they are closed after the test."""
    made: list[ClaudeProvider] = []

    def make(**options: object) -> ClaudeProvider:
        options = {
            "api_key": "sk-ant-test",
            "model_id": "claude-test",
            "base_url": server.url,
            "max_retries": 0,
            **options,
        }
        provider = ClaudeProvider(**options)  # type: ignore[arg-type]
        made.append(provider)
        return provider

    yield make
    for provider in made:
        await provider.aclose()
