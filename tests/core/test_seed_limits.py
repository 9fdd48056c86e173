"""Limits of a run, and what stays the application's."""

from __future__ import annotations

import asyncio
import os

import pytest
from support.waiting import timeout_once

from lighter_core import (
    Agent,
    AgentResponse,
    BeforeModelHook,
    LimitExceededError,
    ModelRequest,
    RunLimits,
    ToolCall,
    check_history,
    tool,
)
from lighter_core.testing import FakeProvider, Turn


def endless(turns: int) -> FakeProvider:
    """Make a provider that asks for the tool again and again, then answers."""
    asking = [Turn(tool_calls=[ToolCall(f"c{n}", "ping")]) for n in range(turns)]
    return FakeProvider([*asking, "done"])


@tool(thread=False)
def ping() -> str:
    """Answer."""
    return "pong"


async def finish(agent: Agent, way: str) -> AgentResponse:
    if way == "run":
        return await agent.run("x")
    last = [event async for event in agent.stream("x")][-1]
    assert isinstance(last, AgentResponse)
    return last


BOTH = pytest.mark.parametrize("way", ["run", "stream"])


@BOTH
async def test_a_run_makes_at_most_100_model_calls_by_default(way: str) -> None:
    """The limit fails the run, keeps every round, and says which limit it was."""
    provider = endless(150)
    response = await finish(Agent(provider, tools=[ping]), way)
    assert response.status == "failed"
    assert isinstance(response.error, LimitExceededError)
    assert response.error.limit == "model_calls"
    assert response.error.value == 100
    assert "100" in str(response.error)
    assert len(provider.requests) == 100
    assert len(response.messages) == 200
    assert check_history(response.messages) == []


@BOTH
async def test_a_run_of_exactly_100_model_calls_completes(way: str) -> None:
    """The hundredth call is allowed."""
    provider = endless(99)
    response = await finish(Agent(provider, tools=[ping]), way)
    assert response.status == "completed"
    assert len(provider.requests) == 100


@BOTH
@pytest.mark.parametrize("limits", [None, RunLimits(model_calls=None)])
async def test_the_limit_can_be_lifted(way: str, limits: RunLimits | None) -> None:
    """`None` means no limit."""
    provider = endless(120)
    agent = Agent(provider, tools=[ping], limits=limits)
    response = await finish(agent, way)
    assert response.status == "completed"
    assert len(provider.requests) == 121


@BOTH
async def test_an_own_limit_counts_for_each_run_alone(way: str) -> None:
    """A second run starts from zero."""
    agent = Agent(endless(1), tools=[ping], limits=RunLimits(model_calls=2))
    assert (await finish(agent, way)).status == "completed"
    provider = FakeProvider(["a", "b", "c"])
    agent = Agent(provider, limits=RunLimits(model_calls=1))
    for _ in range(3):
        assert (await finish(agent, way)).status == "completed"


@BOTH
async def test_a_failed_limit_undoes_nothing(way: str) -> None:
    """Tools that ran have run."""
    ran: list[int] = []

    @tool(thread=False)
    def act() -> int:
        """Have an effect."""
        ran.append(1)
        return len(ran)

    asking = [Turn(tool_calls=[ToolCall(f"c{n}", "act")]) for n in range(5)]
    agent = Agent(FakeProvider(asking), tools=[act], limits=RunLimits(model_calls=2))
    response = await finish(agent, way)
    assert response.status == "failed"
    assert ran == [1, 1]


@BOTH
async def test_a_hook_can_limit_model_calls(way: str) -> None:
    """Raising before the ninth call fails the run with that very error."""
    calls = 0
    limit = RuntimeError("eight calls are enough")

    def count(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > 8:
            raise limit

    hook = BeforeModelHook(hook_name="limit", hook_function=count)
    provider = endless(20)
    response = await finish(Agent(provider, tools=[ping], hooks=[hook]), way)
    assert response.status == "failed"
    assert response.error is limit
    assert len(provider.requests) == 8
    assert len(response.messages) == 16


@BOTH
async def test_a_failed_call_is_not_tried_again(way: str) -> None:
    """The loop has no retries of its own: the failing call is the last."""
    error = OSError("down")
    provider = FakeProvider([error, "never"])
    response = await finish(Agent(provider), way)
    assert response.error is error
    assert len(provider.requests) == 1


@BOTH
async def test_a_timeout_around_a_run_ends_it(way: str) -> None:
    """Time limits are asyncio's: the call in flight is cancelled."""
    begun: list[bool] = []
    ended: list[str] = []

    @tool
    async def wait() -> None:
        """Wait for ever."""
        begun.append(True)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "wait")]), "never"])
    with pytest.raises(TimeoutError):
        async with timeout_once(lambda: begun):
            await finish(Agent(provider, tools=[wait]), way)
    assert ended == ["ended"]
    assert len(provider.requests) == 1


async def test_tools_run_inside_the_applications_process() -> None:
    """There is no sandbox: a tool can do what the application can."""

    @tool
    def where() -> int:
        """Tell the process."""
        return os.getpid()

    message = await where.execute({}, call_id="c")
    assert message.tool_output == str(os.getpid())


async def test_hooks_and_tools_are_shared_by_the_runs_of_an_agent() -> None:
    """Their state is the application's to guard; messages are each run's own."""
    calls: list[int] = []

    def count(request: ModelRequest) -> None:
        calls.append(len(request.messages))

    hook = BeforeModelHook(hook_name="count", hook_function=count)
    agent = Agent(FakeProvider(["a", "b", "c"]), hooks=[hook])
    await asyncio.gather(*(agent.run("x") for _ in range(3)))
    assert calls == [2, 2, 2]
