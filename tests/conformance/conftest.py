"""Fixtures of the tests of lighter-conformance."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty folder of certificates: each client would load the system's."""
    return str(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def few_certificates(monkeypatch: pytest.MonkeyPatch, no_certificates: str) -> None:
    """Make clients cheap; the checks make hundreds."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", no_certificates)
