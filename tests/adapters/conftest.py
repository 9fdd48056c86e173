"""What holds for every adapter is tested once, with each of them."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable

import pytest
from support.interfaces import BOTH, INTERFACES, Interface
from support.loopback import Loopback

VARIABLES = tuple(
    f"{vendor}_{name}"
    for vendor in ("OPENAI", "ANTHROPIC", "DEEPSEEK")
    for name in (
        "API_KEY",
        "ADMIN_KEY",
        "AUTH_TOKEN",
        "BASE_URL",
        "CONFIG_DIR",
        "CUSTOM_HEADERS",
        "LOG",
        "MODEL",
        "ORG_ID",
        "PROFILE",
        "PROJECT_ID",
    )
)


@pytest.fixture(scope="session")
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty folder of certificates: each client would load the system's."""
    return str(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session", autouse=True)
def sdks() -> None:
    """Imported before any test measures a time: it takes seconds."""
    for each in INTERFACES:
        importlib.import_module(each.sdk)


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


@pytest.fixture(params=BOTH, ids=lambda each: each.id)
def interface(request: pytest.FixtureRequest) -> Interface:
    """One adapter after the other, two of them over aiohttp too."""
    return request.param


@pytest.fixture
async def make(
    server: Loopback, interface: Interface
) -> AsyncIterator[Callable[..., object]]:
    """Makes providers that talk to the server; they are closed after the test."""
    made: list = []

    def make(**options: object):
        defaults = {
            "api_key": "sk-test",
            "model_id": "test",
            "base_url": server.url,
            "max_retries": 0,
        }
        if "client" in options:
            defaults = {"model_id": "test"}
        provider = interface.provider(**{**defaults, **options})
        made.append(provider)
        return provider

    yield make
    for provider in made:
        await provider.aclose()
