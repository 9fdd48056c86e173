"""What a run writes to the log, tells its journal and its events, to the word."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    RunContext,
    ToolCall,
    ToolMessage,
    UserMessage,
    hookimpl,
    tool,
)
from lighter_core.testing import FakeProvider, Turn

pytestmark = pytest.mark.usefixtures("no_leaks")

WORK = Turn(tool_calls=[ToolCall("c1", "work", "{}"), ToolCall("c2", "work", "{}")])


@tool
async def work() -> str:
    """Work."""
    return "done"


class Ids:
    """Notes the run's id and how it ended."""

    def __init__(self) -> None:
        self.run_ids: list[str | None] = []
        self.ends: list[AgentResponse[Any]] = []

    @hookimpl
    def before_agent(self, run: RunContext[Any]) -> None:
        self.run_ids.append(run.run_id)

    @hookimpl
    def on_run_end(self, response: AgentResponse[Any]) -> None:
        self.ends.append(response)


@pytest.mark.parametrize("fails", [False, True])
async def test_the_log_says_how_a_run_ended(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """In its text for people, and as fields for machines."""
    ids = Ids()
    provider = FakeProvider([WORK, ValueError("x") if fails else "ok"])
    with caplog.at_level(logging.INFO, "lighter.run"):
        await Agent(provider, tools=[work], hooks=[ids]).run("go")
    (record,) = caplog.records
    (run_id,) = ids.run_ids
    status, what = ("failed", " (ValueError)") if fails else ("completed", "")
    seconds = vars(record)["lighter_seconds"]
    assert 0 <= seconds < 60
    assert record.levelno == logging.INFO
    assert record.getMessage() == (
        f"run {run_id} {status} after {seconds:.3f} s: 2 model calls, 2 tool calls{what}"
    )
    told = {k: v for k, v in vars(record).items() if k.startswith("lighter_")}
    assert told == {
        "lighter_run_id": run_id,
        "lighter_status": status,
        "lighter_model_calls": 2,
        "lighter_tool_calls": 2,
        "lighter_seconds": seconds,
    }


async def test_the_log_says_what_was_repaired(caplog: pytest.LogCaptureFixture) -> None:
    """Each change, and in which run; nothing for a history that was good."""
    ids = Ids()
    lost = ToolMessage(call_id="x", tool_name="t", tool_output="1")
    open_call = AssistantMessage("", tool_calls=[ToolCall("y", "t")])
    agent = Agent(FakeProvider(["ok", "ok"]), hooks=[ids])
    with caplog.at_level(logging.WARNING, "lighter.run"):
        response = await agent.run(
            [UserMessage("a"), lost, open_call, UserMessage("b")]
        )
        await agent.run("good")
    (record,) = caplog.records
    first, second = response.notes
    assert first.startswith("dropped: ")
    assert second == "closed: the call 'y' had no result"
    assert record.getMessage() == (
        f"run {ids.run_ids[0]}: the input history was repaired: {first}; {second}"
    )
    assert vars(record)["lighter_run_id"] == ids.run_ids[0]


async def test_hooks_at_the_end_have_their_time_and_no_more(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response is returned nevertheless, and the log says why a hook is missing."""
    monkeypatch.setattr("lighter_core._loop._END_SECONDS", 0.05)
    ended: list[str] = []

    class Slow(Ids):
        @hookimpl
        async def on_run_end(self, response: AgentResponse[Any]) -> None:
            try:
                await asyncio.sleep(30)
            finally:
                ended.append(response.status)

    slow = Slow()
    with caplog.at_level(logging.WARNING, "lighter.run"):
        async with asyncio.timeout(20):
            response = await Agent(FakeProvider(["ok"]), hooks=[slow]).run("go")
    assert response.text == "ok"
    assert ended == ["completed"]
    (record,) = caplog.records
    assert record.getMessage() == (
        f"run {slow.run_ids[0]}: its on_run_end hooks took more than 0 s and were"
        " cancelled"
    )


async def test_hooks_at_the_end_learn_of_what_passes_through_a_run() -> None:
    """A BaseException is raised, and is the failed response's error for hooks."""
    ids = Ids()
    with pytest.raises(KeyboardInterrupt):
        await Agent(FakeProvider([KeyboardInterrupt()]), hooks=[ids]).run("go")
    (response,) = ids.ends
    assert response.status == "failed"
    assert isinstance(response.error, KeyboardInterrupt)


async def test_a_run_that_ended_takes_no_more_messages() -> None:
    """However it ended: nobody would read them."""
    for last in ("ok", ValueError("x")):
        handle = Agent(FakeProvider([last])).start("go")
        await handle
        with pytest.raises(RuntimeError, match="the run has ended"):
            handle.steer("more")
