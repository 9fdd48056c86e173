"""Logging: silent unless asked, structured, without content and keys."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest

from lighter_core import (
    Agent,
    AssistantMessage,
    ModelError,
    ToolCall,
    UserMessage,
    tool,
)
from lighter_core.testing import FakeProvider, Turn

SECRET = "sk-very-secret-key"
WORDS = ("question-words", "answer-words", "tool-input-words", "tool-output-words")

SILENT = """
import lighter_core
from lighter_core import Agent, ToolCall, UserMessage, AssistantMessage, tool
from lighter_core.testing import FakeProvider, Turn

@tool
def fail():
    "Fail."
    raise ValueError("no")

@tool
def Fail():
    "Differs by case only, which is logged as a warning."

turns = [Turn(tool_calls=[ToolCall("c", "fail")]), OSError("down")]
broken = [AssistantMessage(tool_calls=[ToolCall("o", "fail")]), UserMessage("x")]
response = Agent(FakeProvider(turns), tools=[fail, Fail]).run_sync(broken)
assert response.status == "failed" and response.notes
"""


@tool
def look(what: str) -> str:
    """Look something up."""
    return "tool-output-words"


@tool
def fail(what: str) -> str:
    """Fail."""
    raise ValueError(f"tool-output-words {what}")


def test_nothing_is_printed_by_default() -> None:
    """Warnings, failures and repairs write nothing to stdout or stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SILENT],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def busy_agent() -> Agent:
    arguments = '{"what":"tool-input-words"}'
    calls = [
        ToolCall("1", "look", arguments),
        ToolCall("2", "fail", arguments),
        ToolCall("3", "look", '{"other":"tool-input-words"}'),
        ToolCall("4", "gone", arguments),
    ]
    turns = [
        Turn(text="answer-words", reasoning="answer-words", tool_calls=calls),
        ModelError("answer-words " + SECRET, "server_error"),
    ]
    return Agent(FakeProvider(turns), tools=[look, fail])


def broken_history() -> list[Any]:
    return [
        UserMessage("question-words"),
        AssistantMessage("answer-words", tool_calls=[ToolCall("o", "look")]),
        UserMessage("question-words"),
    ]


async def test_a_run_is_logged_under_lighter_with_fields(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One INFO record says how it ended; DEBUG records follow calls and tools."""
    caplog.set_level(logging.DEBUG, logger="lighter")
    await busy_agent().run("question-words", deps=SECRET)
    records = [r for r in caplog.records if r.name.startswith("lighter")]
    [end] = [r for r in records if r.levelno == logging.INFO]
    fields = vars(end)
    assert fields["lighter_status"] == "failed"
    assert fields["lighter_model_calls"] == 2
    assert fields["lighter_tool_calls"] == 4
    assert fields["lighter_seconds"] >= 0
    run_id = fields["lighter_run_id"]
    assert run_id
    assert run_id in end.getMessage()
    calls = [vars(r) for r in records if hasattr(r, "lighter_model_call")]
    assert [c["lighter_model_call"] for c in calls] == [1]
    assert calls[0]["lighter_provider"] == "fake"
    tools = [vars(r) for r in records if hasattr(r, "lighter_tool")]
    assert [(t["lighter_tool"], t["lighter_tool_failed"]) for t in tools] == [
        ("look", False),
        ("fail", True),
        ("look", True),
        ("gone", True),
    ]
    assert {each["lighter_run_id"] for each in [*calls, *tools]} == {run_id}


@pytest.mark.parametrize("way", ["run", "stream"])
async def test_no_message_content_above_debug_and_no_keys_at_all(
    caplog: pytest.LogCaptureFixture, way: str
) -> None:
    """INFO and WARNING records tell what happened, not what was said."""
    caplog.set_level(logging.DEBUG, logger="lighter")
    agent = busy_agent()
    if way == "run":
        response: Any = await agent.run(broken_history(), deps=SECRET)
    else:
        response = [e async for e in agent.stream(broken_history(), deps=SECRET)][-1]
    assert response.status == "failed"
    records = [r for r in caplog.records if r.name.startswith("lighter")]
    assert {r.levelno for r in records} >= {logging.INFO, logging.WARNING}
    formatter = logging.Formatter("%(message)s")
    for record in records:
        text = formatter.format(record) + repr(vars(record))
        assert SECRET not in text
        if record.levelno > logging.DEBUG:
            assert not any(word in text for word in WORDS), text


async def test_the_whole_of_a_tools_error_is_in_the_log_at_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The model reads a short text, the log has the traceback."""
    caplog.set_level(logging.DEBUG, logger="lighter.tools")
    await fail.execute({"what": "x"}, call_id="c")
    [record] = [r for r in caplog.records if r.exc_info]
    assert record.levelno == logging.DEBUG
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


async def test_a_repaired_history_is_logged_as_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With the run's id and the call's, as the response's notes say."""
    caplog.set_level(logging.WARNING, logger="lighter")
    await Agent(FakeProvider(["x"])).run(broken_history())
    [record] = caplog.records
    assert record.name == "lighter.run"
    assert record.levelno == logging.WARNING
    assert "'o'" in record.getMessage()
    assert vars(record)["lighter_run_id"]
