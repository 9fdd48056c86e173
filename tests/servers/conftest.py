"""Fixtures of the tests against strict and independent servers."""

from __future__ import annotations

import pytest

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
