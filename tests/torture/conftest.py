"""What the harnesses share: the SDKs, a quiet environment, the table of results."""

from __future__ import annotations

import importlib

import pytest
from support.interfaces import INTERFACES
from support.torture import FULL, RESULTS, Results


@pytest.fixture(scope="session", autouse=True)
def sdks() -> None:
    """Imported before any test measures a time: it takes seconds."""
    for each in INTERFACES:
        importlib.import_module(each.sdk)


@pytest.fixture(scope="session")
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty folder of certificates: each client would load the system's."""
    return str(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, no_certificates: str) -> None:
    """Nothing of the caller's environment reaches a test."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", no_certificates)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="session")
def results() -> Results:
    """The table of what the harnesses found."""
    return RESULTS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give full runs the time that they need."""
    if FULL:
        for item in items:
            if "torture" in item.path.parts:
                item.add_marker(pytest.mark.timeout(3_600))
