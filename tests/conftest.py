"""What all tests share."""

from __future__ import annotations

import gc
import signal
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.faults import keywords
from support.torture import FULL, RESULTS, size

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a shell's background: the programs that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine makes no test fail: how long an example takes says nothing here.
settings.register_profile(
    "suite",
    max_examples=size(50, 100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the developer's own keys, endpoints and plugin switches from every test."""
    for name in (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_CUSTOM_HEADERS",
        "ANTHROPIC_MODEL",
        "DEEPSEEK_API_KEY",
        "DEEPSEEK_MODEL",
        "OPENAI_API_KEY",
        "OPENAI_MODEL",
        "OPENAI_BASE_URL",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
        "OPENAI_CUSTOM_HEADERS",
        "OPENAI_ADMIN_KEY",
        "OPENAI_LOG",
        "LIGHTER_LOCAL_MODEL",
        "LIGHTER_PLUGINS_ALLOW",
        "LIGHTER_PLUGINS_BLOCK",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module", autouse=True)
def _small_heap() -> None:
    """Keep collections quick: what is there before a file's tests need not be looked at.

    Many tests collect, to find what they left; looking at all modules takes 0.3 s.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item):
    """Collect before the next test, so that a leak fails the test that made it."""
    result = yield
    gc.collect(0)
    # It has looked already; the next test would be blamed for what it finds later.
    item.config.pluginmanager.get_plugin("unraisableexception").pytest_runtest_teardown(
        item
    )
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what the harnesses found in a worker."""
    RESULTS.merge(getattr(node, "workeroutput", {}).get("results", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what the harnesses found, or write it down."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["results"] = RESULTS.rows
    elif FULL and RESULTS.rows:
        RESULTS.write()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the harnesses found."""
    for line in RESULTS.lines():
        terminalreporter.write_line(line)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let `-k KF_046` find the tests of a known fault."""
    item.extra_keyword_matches |= keywords(item.nodeid)
