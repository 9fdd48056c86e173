"""What a run may use up, and how long its parts may take."""

from __future__ import annotations

import asyncio
import pickle
import threading
from typing import Any

import pytest

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    LimitExceededError,
    MessageEvent,
    RunLimits,
    TextDelta,
    Tool,
    ToolCall,
    ToolDefinitionError,
    ToolMessage,
    Usage,
    check_history,
    tool,
)
from lighter_core.testing import FakeProvider, Pause, Turn

WAYS = pytest.mark.parametrize("way", ["run", "stream"])


async def going(agent: Agent, way: str, text: str = "go") -> AgentResponse:
    if way == "run":
        return await agent.run(text)
    last: object = None
    async with agent.stream(text) as stream:
        async for event in stream:
            last = event
    assert isinstance(last, AgentResponse)
    return last


def calls(*names: str, start: int = 1) -> Turn:
    return Turn(
        tool_calls=[
            ToolCall(f"c{n}", name, "{}") for n, name in enumerate(names, start)
        ],
        usage=Usage(100, 10),
    )


@tool
def work() -> str:
    """Work."""
    return "done"


@tool
def other() -> str:
    """Do other work."""
    return "done"


def limit_of(response: AgentResponse) -> str:
    assert response.status == "failed"
    assert isinstance(response.error, LimitExceededError)
    assert check_history(response.messages) == []
    return response.error.limit


@WAYS
async def test_tool_calls_are_limited_before_the_next_one(way: str) -> None:
    provider = FakeProvider([calls("work", "other"), calls("work", start=3), "never"])
    limits = RunLimits(tool_calls=2)
    response = await going(Agent(provider, tools=[work, other], limits=limits), way)
    assert limit_of(response) == "tool_calls"
    results = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert [m.is_error for m in results] == [False, False, True]
    assert "interrupted" in results[-1].tool_output
    assert "2 tool calls" in str(response.error)


@WAYS
@pytest.mark.parametrize("parallel", [False, True])
async def test_calls_before_the_limit_still_run(way: str, parallel: bool) -> None:
    provider = FakeProvider([calls("work", "work", "work")])
    agent = Agent(
        provider,
        tools=[work],
        limits=RunLimits(tool_calls=2),
        parallel_tools=parallel,
    )
    response = await going(agent, way)
    assert limit_of(response) == "tool_calls"
    results = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert [m.is_error for m in results] == [False, False, True]


@WAYS
async def test_single_tools_are_limited_by_name(way: str) -> None:
    provider = FakeProvider([calls("work", "other", "other"), calls("work", start=4)])
    limits = RunLimits(tool_calls_by_name={"work": 1})
    response = await going(Agent(provider, tools=[work, other], limits=limits), way)
    assert limit_of(response) == "tool_calls_by_name['work']"


@WAYS
@pytest.mark.parametrize(("most", "model_calls"), [(110, 1), (111, 2), (220, 2)])
async def test_tokens_are_checked_before_the_next_request(
    way: str, most: int, model_calls: int
) -> None:
    provider = FakeProvider([calls("work", start=n) for n in range(1, 9)])
    limits = RunLimits(total_tokens=most)
    response = await going(Agent(provider, tools=[work], limits=limits), way)
    assert limit_of(response) == "total_tokens"
    assert len(provider.requests) == model_calls
    assert response.usage == Usage(100 * model_calls, 10 * model_calls)


@WAYS
@pytest.mark.parametrize("where", ["model", "tool"])
async def test_the_wall_clock_ends_what_is_in_flight(way: str, where: str) -> None:
    ended = asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait."""
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return "never"

    turns: list[Any] = [calls("work", "slow")]
    if where == "model":
        turns = [calls("work"), [TextDelta("..."), Pause(60)]]
    provider = FakeProvider(turns)
    agent = Agent(provider, tools=[work, slow], limits=RunLimits(seconds=0.5))
    async with asyncio.timeout(5):
        response = await going(agent, way)
    assert limit_of(response) == "seconds"
    assert ended.is_set() == (where == "tool")
    assert ToolMessage(call_id="c1", tool_name="work", tool_output='"done"') in (
        response.messages
    )


@WAYS
async def test_one_model_call_may_take_so_long(way: str) -> None:
    provider = FakeProvider([calls("work"), [TextDelta("..."), Pause(60)]])
    agent = Agent(provider, tools=[work], limits=RunLimits(model_call_seconds=0.4))
    async with asyncio.timeout(5):
        response = await going(agent, way)
    assert limit_of(response) == "model_call_seconds"
    if way == "stream":
        assert provider.closed_streams == 2


@WAYS
async def test_silence_ends_a_model_call_and_slow_progress_does_not(way: str) -> None:
    steady: list[Any] = []
    for _ in range(6):
        steady += [TextDelta("a"), Pause(0.12)]
    steady.append(MessageEvent(AssistantMessage("a" * 6)))
    limits = RunLimits(idle_seconds=0.5)
    response = await going(Agent(FakeProvider([steady]), limits=limits), way)
    assert response.text == "a" * 6
    silent = FakeProvider([[TextDelta("a"), Pause(60)]])
    async with asyncio.timeout(5):
        response = await going(Agent(silent, limits=limits), way)
    assert limit_of(response) == "idle_seconds"


async def test_a_slow_consumer_is_not_the_models_silence() -> None:
    events = [TextDelta("a")] * 80
    provider = FakeProvider([[*events, MessageEvent(AssistantMessage("a" * 80))]])
    agent = Agent(provider, limits=RunLimits(idle_seconds=0.05))
    async with agent.stream("go") as stream:
        assert await anext(stream) == TextDelta("a")
        await asyncio.sleep(0.2)  # 64 events are read ahead, then the model is not read
        rest = [event async for event in stream]
    assert isinstance(rest[-1], AgentResponse)
    assert rest[-1].status == "completed"


@WAYS
async def test_a_tool_that_takes_too_long_fails_alone(way: str) -> None:
    @tool(timeout=0.05)
    async def slow() -> str:
        """Wait."""
        await asyncio.sleep(60)
        return "never"

    provider = FakeProvider([calls("slow", "work"), "ok"])
    async with asyncio.timeout(5):
        response = await going(Agent(provider, tools=[slow, work]), way)
    assert response.status == "completed"
    first, second = (m for m in response.messages if isinstance(m, ToolMessage))
    assert first.is_error
    assert first.tool_output == "the tool timed out after 0.05 s"
    assert not second.is_error


async def test_a_thread_that_takes_too_long_is_told_as_unknown() -> None:
    let_go = threading.Event()

    @tool
    def slow() -> str:
        """Wait."""
        let_go.wait(10)
        return "late"

    agent = Agent(
        FakeProvider([calls("slow"), "ok"]),
        tools=[slow],
        limits=RunLimits(tool_seconds=0.05),
    )
    handle = agent.start("go")
    response = await handle
    let_go.set()
    result = response.messages[1]
    assert isinstance(result, ToolMessage)
    assert result.tool_output == (
        "the tool timed out after 0.05 s; it may still be at work"
    )
    assert handle.receipts == {"c1": "unknown"}
    assert response.text == "ok"


async def test_a_tools_own_time_goes_before_the_runs() -> None:
    @tool(timeout=5)
    async def steady() -> str:
        """Wait a little."""
        await asyncio.sleep(0.1)
        return "fine"

    limits = RunLimits(tool_seconds=0.01)
    provider = FakeProvider([calls("steady"), "ok"])
    response = await Agent(provider, tools=[steady], limits=limits).run("go")
    assert response.messages[1] == ToolMessage(
        call_id="c1", tool_name="steady", tool_output='"fine"'
    )


async def test_a_tools_own_timeout_error_is_its_error() -> None:
    @tool(timeout=5)
    async def inner() -> str:
        """Time out inside."""
        raise TimeoutError("the database")

    response = await Agent(FakeProvider([calls("inner"), "ok"]), tools=[inner]).run(
        "go"
    )
    result = response.messages[1]
    assert isinstance(result, ToolMessage)
    assert result.tool_output == "TimeoutError: the database"


@pytest.mark.parametrize("value", [0, -1, True, float("nan"), float("inf"), "1"])
def test_senseless_times_and_counts_are_refused(value: Any) -> None:
    for name in ("seconds", "model_call_seconds", "idle_seconds", "tool_seconds"):
        with pytest.raises(ValueError, match=name):
            RunLimits(**{name: value})
    for name in ("model_calls", "tool_calls", "total_tokens", "tool_threads"):
        with pytest.raises(ValueError, match=name):
            RunLimits(**{name: value})
    with pytest.raises(ValueError, match="tool_calls_by_name"):
        RunLimits(tool_calls_by_name={"x": value})
    with pytest.raises((ValueError, ToolDefinitionError), match="timeout of tool 'x'"):
        Tool(
            name="x",
            description="",
            parameters={"type": "object"},
            func=print,
            timeout=value,
        )


def test_limits_are_values() -> None:
    limits = RunLimits(tool_calls_by_name={"x": 2}, seconds=1.5)
    assert pickle.loads(pickle.dumps(limits)) == limits
    assert hash(limits) == hash(RunLimits(seconds=1.5, tool_calls_by_name={"x": 2}))
    with pytest.raises(TypeError):
        limits.tool_calls_by_name["x"] = 3  # type: ignore[index]
