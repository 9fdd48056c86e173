"""What runs do at the edges: errors that look like clocks, cancellations half swallowed."""

from __future__ import annotations

import asyncio
import json

import pytest

from lighter_core import (
    Agent,
    ApprovalRequest,
    HistoryError,
    PausedRun,
    RunLimits,
    ToolCall,
    ToolMessage,
    UserMessage,
    hookimpl,
    tool,
)
from lighter_core.testing import FakeProvider, Turn

pytestmark = pytest.mark.usefixtures("no_leaks")


def calls(*names: str) -> Turn:
    return Turn(
        tool_calls=[ToolCall(f"c{n}", name, "{}") for n, name in enumerate(names, 1)]
    )


@tool
async def work() -> str:
    """Work."""
    return "done"


@pytest.mark.parametrize(
    "limits",
    [
        RunLimits(),
        RunLimits(seconds=60),
        RunLimits(model_call_seconds=60),
        RunLimits(idle_seconds=60),
        RunLimits(seconds=60, model_call_seconds=60, idle_seconds=60),
    ],
)
async def test_a_timeout_of_the_providers_own_is_no_limit(limits: RunLimits) -> None:
    """The clocks stood far from their ends: the error is the one that was raised."""
    own = TimeoutError("the service's own")
    response = await Agent(FakeProvider([own]), limits=limits).run("go")
    assert response.error is own


class Deaf:
    """A gate that swallows the cancellation that reaches it."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    @hookimpl
    async def before_tool(self, call: ToolCall) -> None:
        self.asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return


@pytest.mark.parametrize("parallel", [False, True])
async def test_a_gate_that_swallows_a_cancellation_lets_no_tool_run(
    parallel: bool,
) -> None:
    """The run's task was cancelled: nothing of it may start behind that."""
    started: list[str] = []

    @tool
    async def act() -> str:
        """Act."""
        started.append("act")
        return "done"

    gate = Deaf()
    provider = FakeProvider([calls("act", "act"), "ok"])
    agent = Agent(provider, tools=[act], hooks=[gate], parallel_tools=parallel)
    task = asyncio.create_task(agent.run("go"))
    await gate.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started == []
    assert len(provider.requests) == 1


async def test_a_tool_that_swallows_a_cancellation_is_the_last_thing() -> None:
    """Its result is kept; no model call follows."""
    begun = asyncio.Event()

    @tool
    async def deaf() -> str:
        """Work on."""
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "went on"
        return "never"

    provider = FakeProvider([calls("deaf"), "ok"])
    handle = Agent(provider, tools=[deaf]).start("go")
    await begun.wait()
    handle.cancel()
    response = await handle
    assert response.status == "failed"
    assert len(provider.requests) == 1
    assert handle.receipts == {"c1": "finished"}
    (result,) = (m for m in response.messages if isinstance(m, ToolMessage))
    assert result.tool_output == '"went on"'


async def test_an_error_raised_again_and_again_names_its_hook_once() -> None:
    """A hook may raise one and the same exception object in every run."""
    error = ValueError("closed today")

    class Gate:
        @hookimpl
        def before_tool(self) -> None:
            raise error

    for _ in range(3):
        provider = FakeProvider([calls("work")])
        response = await Agent(provider, tools=[work], hooks=[Gate()]).run("go")
        assert response.error is error
    (note,) = error.__notes__
    assert note.startswith("raised by the before_tool hook of plugin ")


async def test_an_edited_call_decided_early_is_kept_through_json() -> None:
    """It waits behind a call that a hook stops; then it runs as it was decided."""
    done: list[str] = []

    @tool(approval=True)
    async def delete(name: str) -> str:
        """Delete a file."""
        done.append(name)
        return "deleted"

    @tool
    async def read(name: str) -> str:
        """Read a file."""
        done.append(f"read {name}")
        return name

    class Careful:
        @hookimpl
        def before_tool(self, call: ToolCall) -> ApprovalRequest | None:
            return ApprovalRequest("look") if call.tool_name == "read" else None

    turn = Turn(
        tool_calls=[
            ToolCall(f"c{number}", name, json.dumps({"name": name}))
            for number, name in enumerate(["delete", "read", "delete"], 1)
        ]
    )
    agent = Agent(FakeProvider([turn, "ok"]), tools=[delete, read], hooks=[Careful()])
    paused = (await agent.run("go")).paused
    assert paused is not None
    assert [each.call.call_id for each in paused.pending] == ["c1", "c3"]
    edited = ToolCall("", "delete", '{"name": "another"}')
    paused = (await agent.resume(paused, {"c1": True, "c3": edited})).paused
    assert paused is not None
    assert [each.call.call_id for each in paused.pending] == ["c2"]
    again = PausedRun.from_json(paused.to_json())
    assert again == paused
    assert again.decided == {"c3": ToolCall("c3", "delete", '{"name": "another"}')}
    response = await agent.resume(again, {"c2": True})
    assert response.text == "ok"
    assert done == ["delete", "read read", "another"]


async def test_documents_of_paused_runs_must_fit_together() -> None:
    """Results are results of tools, and what is pending is a call of the last reply."""

    @tool(approval=True)
    async def delete() -> str:
        """Delete."""
        return "deleted"

    agent = Agent(FakeProvider([calls("delete")]), tools=[delete])
    paused = (await agent.run("go")).paused
    assert paused is not None
    whole = json.loads(paused.to_json())
    for name, value, told in (
        ("results", whole["input"], "PausedRun.results takes ToolMessage"),
        ("messages", whole["input"], "c1"),
    ):
        with pytest.raises(HistoryError, match=told):
            PausedRun.from_json(json.dumps({**whole, name: value}))
    assert (
        PausedRun(
            run_id="r", input=(UserMessage("go"),), messages=(), results=(), pending=()
        ).open_calls
        == []
    )
