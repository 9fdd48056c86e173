"""Agents as tools of other agents."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.waiting import until

from lighter_core import (
    Agent,
    AgentResponse,
    LimitExceededError,
    ModelError,
    NestedEvent,
    RunContext,
    RunLimits,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    ToolMessage,
    TurnStarted,
    Usage,
    UserMessage,
    tool,
)
from lighter_core.testing import FakeProvider, Pause, Turn

pytestmark = pytest.mark.usefixtures("no_leaks")


def asking(*names: str, task: str = "look it up") -> Turn:
    return Turn(
        tool_calls=[
            ToolCall(f"c{n}", name, f'{{"task": "{task} {n}"}}')
            for n, name in enumerate(names, 1)
        ],
        usage=Usage(10, 1),
    )


def result(response: AgentResponse[Any], number: int = 1) -> ToolMessage:
    message = response.messages[number]
    assert isinstance(message, ToolMessage)
    return message


async def test_the_inner_agents_last_text_is_the_result() -> None:
    seen: list[object] = []

    @tool
    async def search(run: RunContext[str]) -> str:
        """Search."""
        seen.append((run.deps, run.run_id))
        return "42"

    inner = FakeProvider(
        [
            Turn(tool_calls=[ToolCall("i1", "search", "{}")], usage=Usage(5, 5)),
            Turn(text="It is 42.", usage=Usage(7, 7)),
        ]
    )
    research = Agent(inner, tools=[search], system_prompt="You look things up.")
    outer = FakeProvider([asking("research"), Turn(text="42!", usage=Usage(20, 2))])
    chief = Agent(outer, tools=[research.as_tool("research", "Look things up.")])
    response = await chief.run("What is it?", deps="library")
    assert response.text == "42!"
    assert result(response).tool_output == '"It is 42."'
    assert response.usage == Usage(42, 15)  # 10 + 5 + 7 + 20, 1 + 5 + 7 + 2
    assert inner.requests[0].messages[1:] == [UserMessage("look it up 1")]
    assert len(seen) == 1
    assert seen[0][0] == "library"  # type: ignore[index]
    spec = outer.requests[0].tool_specs[0]
    assert (spec.name, spec.description) == ("research", "Look things up.")
    assert spec.parameters["required"] == ["task"]


async def test_its_events_are_seen_as_nested_ones() -> None:
    @tool
    async def search() -> str:
        """Search."""
        return "42"

    calls = [ToolCall("i1", "search", "{}")]
    inner = Agent(
        FakeProvider([Turn(tool_calls=calls), Turn(text="found", pieces=1)]),
        tools=[search],
    )
    outer = Agent(
        FakeProvider([asking("find"), Turn(text="ok", pieces=1)]),
        tools=[inner.as_tool("find", "Find.")],
    )
    async with outer.stream("go", all_events=True) as stream:
        events = [event async for event in stream]
    nested = [e for e in events if isinstance(e, NestedEvent)]
    assert {(e.call_id, e.tool_name) for e in nested} == {("c1", "find")}
    kinds = [type(e.event) for e in nested]
    assert kinds == [ToolCallStarted, ToolCallFinished, TextDelta]
    outside = [type(e) for e in events if not isinstance(e, NestedEvent)]
    assert outside.count(TurnStarted) == 2
    assert isinstance(events[-1], AgentResponse)


async def test_nested_tools_start_only_when_the_outer_consumer_asks() -> None:
    ran: list[str] = []

    @tool
    async def act() -> None:
        """Act."""
        ran.append("act")

    inner = Agent(
        FakeProvider([Turn(tool_calls=[ToolCall("i1", "act", "{}")]), "done"]),
        tools=[act],
    )
    outer = Agent(
        FakeProvider([asking("do"), "ok"]), tools=[inner.as_tool("do", "Do.")]
    )
    async with outer.stream("go") as stream:
        async for event in stream:
            if isinstance(event, NestedEvent) and isinstance(
                event.event, ToolCallStarted
            ):
                await asyncio.sleep(0.01)
                break
    assert ran == []


async def test_several_inner_agents_at_once_lose_no_event() -> None:
    agents = [
        Agent(FakeProvider([[*[TextDelta("x")] * 300, *_end("x" * 300)]]))
        for _ in range(4)
    ]
    tools: list[Tool] = [
        each.as_tool(f"a{number}", "Work.") for number, each in enumerate(agents)
    ]
    names = [each.name for each in tools]
    outer = Agent(
        FakeProvider([asking(*names), "ok"]), tools=tools, parallel_tools=True
    )
    counts = dict.fromkeys(names, 0)
    async with asyncio.timeout(20), outer.stream("go") as stream:
        async for event in stream:
            if isinstance(event, NestedEvent) and isinstance(event.event, TextDelta):
                counts[event.tool_name] += 1
    assert counts == dict.fromkeys(names, 300)


def _end(text: str) -> list[Any]:
    from lighter_core import AssistantMessage, MessageEvent

    return [MessageEvent(AssistantMessage(text))]


async def test_a_failure_inside_is_a_failing_tool() -> None:
    inner = Agent(FakeProvider([ModelError("overloaded", "server_error")]))
    outer = Agent(
        FakeProvider([asking("find"), "ok"]), tools=[inner.as_tool("find", "")]
    )
    response = await outer.run("go")
    assert response.status == "completed"
    assert result(response).is_error
    assert result(response).tool_output == "the agent 'find' failed: overloaded"


async def test_a_run_that_needs_approval_inside_is_a_failing_tool() -> None:
    ran: list[str] = []

    @tool(approval=True)
    async def delete() -> None:
        """Delete."""
        ran.append("delete")

    inner = Agent(
        FakeProvider([Turn(tool_calls=[ToolCall("i1", "delete", "{}")])]),
        tools=[delete],
    )
    outer = Agent(
        FakeProvider([asking("tidy"), "ok"]), tools=[inner.as_tool("tidy", "")]
    )
    response = await outer.run("go")
    assert "may not call delete without a person's approval" in (
        result(response).tool_output
    )
    assert ran == []


async def test_inner_tokens_count_for_the_outer_limit() -> None:
    inner = Agent(FakeProvider([Turn(text="long", usage=Usage(900, 100))]))
    outer = Agent(
        FakeProvider([asking("find"), "never"]),
        tools=[inner.as_tool("find", "")],
        limits=RunLimits(total_tokens=1000),
    )
    response = await outer.run("go")
    assert isinstance(response.error, LimitExceededError)
    assert response.usage == Usage(910, 101)


async def test_cancelling_the_outer_run_ends_the_inner_one() -> None:
    provider = FakeProvider([[TextDelta("..."), Pause(60)]])
    outer = Agent(
        FakeProvider([asking("find")]), tools=[Agent(provider).as_tool("find", "")]
    )
    handle = outer.start("go")
    await until(lambda: provider.requests)
    handle.cancel()
    async with asyncio.timeout(5):
        response = await handle
    assert response.status == "failed"
    assert handle.receipts == {"c1": "cancelled"}


@pytest.mark.parametrize(
    "arguments", ["{}", '{"task": " "}', '{"task": 1}', '{"x": "y"}']
)
async def test_a_task_is_needed(arguments: str) -> None:
    inner = FakeProvider([])
    turn = Turn(tool_calls=[ToolCall("c1", "find", arguments)])
    outer = Agent(FakeProvider([turn, "ok"]), tools=[Agent(inner).as_tool("find", "")])
    response = await outer.run("go")
    assert result(response).is_error
    assert "task" in result(response).tool_output
    assert inner.requests == []


async def test_agents_can_be_nested_twice() -> None:
    innermost = Agent(FakeProvider(["deep"]))
    middle = Agent(
        FakeProvider([asking("deep"), "middle"]), tools=[innermost.as_tool("deep", "")]
    )
    outer = Agent(
        FakeProvider([asking("middle"), "ok"]), tools=[middle.as_tool("middle", "")]
    )
    async with outer.stream("go") as stream:
        events = [event async for event in stream]
    inside = [
        e.event.event
        for e in events
        if isinstance(e, NestedEvent) and isinstance(e.event, NestedEvent)
    ]
    assert "".join(e.text for e in inside if isinstance(e, TextDelta)) == "deep"
