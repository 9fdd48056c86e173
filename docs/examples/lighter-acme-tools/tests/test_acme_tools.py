"""The plugins, found by their names as applications find them."""

from __future__ import annotations

import logging

import pytest
from lighter_core import Agent, AgentResponse, ToolCall, ToolMessage
from lighter_core.testing import FakeProvider, Turn

ORDER = ToolCall("c1", "order_book", '{"title": "Emma", "copies": 2}')


def ordering() -> Agent:
    """Return an agent whose model orders a book, with all three plugins."""
    return Agent(
        FakeProvider([Turn(tool_calls=[ORDER]), "Done."]),
        tools=["acme-books"],
        hooks=["acme-audit", "acme-policy"],
    )


def result_of(response: AgentResponse) -> ToolMessage:
    """Return the tool's message of a run that went well."""
    [result] = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert response.status == "completed"
    return result


def test_the_tools_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As JSON text, and with an error that helps the model."""
    monkeypatch.delenv("ACME_DENIED_TOOLS", raising=False)
    assert result_of(ordering().run_sync("x")).tool_output == '"2 x Emma: 18 crowns"'
    calls = [
        ToolCall("c1", "find_book", '{"words": "wal"}'),
        ToolCall("c2", "order_book", '{"title": "Wal"}'),
    ]
    provider = FakeProvider([Turn(tool_calls=calls), "Done."])
    agent = Agent(provider, tools=["acme-books"])
    response = agent.run_sync("x")
    found, failed = (m for m in response.messages if isinstance(m, ToolMessage))
    assert found.tool_output == '[{"title":"Walden","price":7}]'
    assert failed.is_error
    assert "find_book shows what there is" in failed.tool_output


@pytest.mark.parametrize("listed", ["order_book", "other, Order_Book "])
def test_the_policy_keeps_a_tool_from_running(
    monkeypatch: pytest.MonkeyPatch, listed: str
) -> None:
    """The model reads why."""
    monkeypatch.setenv("ACME_DENIED_TOOLS", listed)
    result = result_of(ordering().run_sync("x"))
    assert result.is_error
    assert result.tool_output.startswith("denied by policy")


def test_the_audit_tells_what_happened_and_nothing_that_was_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One line for each tool call, one for the run; denials are there too."""
    with caplog.at_level(logging.INFO, logger="lighter_acme_tools.audit"):
        ordering().run_sync("secret wish")
        monkeypatch.setenv("ACME_DENIED_TOOLS", "order_book")
        ordering().run_sync("secret wish")
    lines = [
        record.getMessage().split(": ", 1)[1]
        for record in caplog.records
        if record.name == "lighter_acme_tools.audit"
    ]
    assert lines == [
        "tool order_book answered, 21 characters",
        "completed after 2 model calls and 1 tool calls",
        "tool order_book failed, 49 characters",
        "completed after 2 model calls and 1 tool calls",
    ]
    assert "secret" not in caplog.text.replace("lighter.", "")
    assert "Emma" not in " ".join(lines)
