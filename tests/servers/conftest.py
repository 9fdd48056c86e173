"""Fixtures of the tests against strict and independent servers."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.servers_setup import (
    HERE,
    Missing,
    free_port,
    install_aimock,
    install_llmock,
    running,
)

_NAMES = ("API_KEY", "MODEL", "BASE_URL", "CUSTOM_HEADERS", "LOG", "AUTH_TOKEN")


@pytest.fixture(scope="session")
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty folder of certificates: each client would load the system's."""
    return str(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, no_certificates: str) -> None:
    """Nothing of the caller's environment reaches a test."""
    for vendor in ("OPENAI", "ANTHROPIC", "DEEPSEEK"):
        for name in _NAMES:
            monkeypatch.delenv(f"{vendor}_{name}", raising=False)
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", no_certificates)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def _started(command: Callable[[], list[str]], *arguments: str) -> Iterator[str]:
    """Yield the URL of a server that runs for the session, or skip with the reason."""
    port = free_port()
    try:
        whole = [*command(), *(each.format(port=port) for each in arguments)]
        with running(whole, port) as url:
            yield url
    except Missing as err:
        pytest.skip(str(err))


@pytest.fixture(scope="session")
def aimock() -> Iterator[str]:
    """The URL of `@copilotkit/aimock` with our fixtures."""
    fixtures = str(HERE / "aimock" / "fixtures.json")
    arguments = ("-p", "{port}", "-f", fixtures, "--log-level", "warn", "-c", "3")
    yield from _started(install_aimock, *arguments)


@pytest.fixture(scope="session")
def llama() -> Iterator[str]:
    """The URL of llama.cpp's own server with the model that `fetch` keeps."""
    models = pytest.importorskip("lighter_local._models")
    pytest.importorskip("xllamacpp")
    try:
        model = models.find_model(models.SMOLLM2.alias).path
    except Exception as err:
        pytest.skip(f"no local model: run `python -m lighter_local fetch` ({err})")
    command = [sys.executable, str(HERE / "llama" / "serve.py"), str(model)]
    yield from _started(lambda: command, "{port}")


class LLMock:
    """The server `llmock`, scripted over its control interface."""

    def __init__(self, url: str) -> None:
        self.url = url

    def base_url(self, name: str) -> str:
        """Return what a provider takes as its `base_url`."""
        return self.url + ("/anthropic" if name == "claude" else "/v1")

    def script(self, *behaviors: dict[str, Any]) -> None:
        """Say what happens to the next requests."""
        self._call("POST", "scenario", {"behaviors": list(behaviors)})

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests since the test began."""
        return self._call("GET", "requests")["requests"]

    def findings(self) -> list[str]:
        """Return what the server finds wrong with how its client took faults."""
        verdict = self._call("GET", "verdict")
        return [each["code"] for each in verdict["findings"]]

    def reset(self) -> None:
        """Forget requests and what was scripted."""
        self._call("POST", "reset", {})

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        url = f"{self.url}/_llmock/{path}"
        request = urllib.request.Request(url, data, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())


@pytest.fixture(scope="session")
def _llmock_server() -> Iterator[str]:
    arguments = ("serve", "-p", "{port}", "--log-level", "warning")
    yield from _started(install_llmock, *arguments)


@pytest.fixture
def llmock(_llmock_server: str) -> LLMock:
    """The server `llmock`, with nothing scripted."""
    mock = LLMock(_llmock_server)
    mock.reset()
    return mock
