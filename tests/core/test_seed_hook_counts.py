"""How often each hook runs, in each kind of run."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from lighter_core import (
    AfterAgentHook,
    AfterModelHook,
    Agent,
    AgentResponse,
    AssistantMessage,
    BeforeAgentHook,
    BeforeModelHook,
    MessageEvent,
    ModelError,
    TextDelta,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    hookimpl,
    tool,
)
from lighter_core.testing import FakeProvider, Pause, Turn


@tool(thread=False)
def ping() -> str:
    """Answer."""
    return "pong"


@tool(thread=False)
def fail() -> str:
    """Fail."""
    raise ValueError("no")


def asking(name: str, number: int = 0) -> Turn:
    return Turn(text="Wait.", tool_calls=[ToolCall(f"c{number}", name)])


def counting(counts: Counter[str]) -> list[object]:
    """Return all four hooks, as classes and as a plugin."""

    def count(event: str) -> Any:
        return lambda _: counts.update([f"{event} class"])

    class Plugin:
        @hookimpl
        def before_agent(self) -> None:
            counts.update(["before_agent plugin"])

        @hookimpl
        async def before_model(self) -> None:
            counts.update(["before_model plugin"])

        @hookimpl
        def after_model(self) -> None:
            counts.update(["after_model plugin"])

        @hookimpl
        async def after_agent(self) -> None:
            counts.update(["after_agent plugin"])

    return [
        BeforeAgentHook(hook_name="1", hook_function=count("before_agent")),
        BeforeModelHook(hook_name="2", hook_function=count("before_model")),
        AfterModelHook(hook_name="3", hook_function=count("after_model")),
        AfterAgentHook(hook_name="4", hook_function=count("after_agent")),
        Plugin(),
    ]


def table(counts: Counter[str]) -> tuple[int, int, int, int]:
    """Return the four counts, which must be the same for both forms."""
    events = ("before_agent", "before_model", "after_model", "after_agent")
    by_class = tuple(counts[f"{event} class"] for event in events)
    by_plugin = tuple(counts[f"{event} plugin"] for event in events)
    assert by_class == by_plugin
    return by_class  # type: ignore[return-value]


DOWN = ModelError("down", "server_error")

# script, (before_agent, before_model, after_model, after_agent), status
RUNS: dict[str, tuple[list[Any], tuple[int, int, int, int], str]] = {
    "plain reply": (["hi"], (1, 1, 1, 1), "completed"),
    "three tool turns": (
        [asking("ping", 1), asking("ping", 2), asking("ping", 3), "hi"],
        (1, 4, 4, 1),
        "completed",
    ),
    "several calls in one turn": (
        [Turn(tool_calls=[ToolCall("a", "ping"), ToolCall("b", "ping")]), "hi"],
        (1, 2, 2, 1),
        "completed",
    ),
    "tool error": ([asking("fail"), "hi"], (1, 2, 2, 1), "completed"),
    "unknown tool": ([asking("nope"), "hi"], (1, 2, 2, 1), "completed"),
    "provider failure": ([DOWN], (1, 1, 0, 0), "failed"),
    "later provider failure": ([asking("ping"), DOWN], (1, 2, 1, 0), "failed"),
    "half a reply": ([[TextDelta("h"), DOWN]], (1, 1, 0, 0), "failed"),
}


@pytest.mark.parametrize("way", ["run", "stream", "start", "run_sync", "stream_sync"])
@pytest.mark.parametrize(
    ("script", "expected", "status"), RUNS.values(), ids=RUNS.keys()
)
async def test_hook_counts(
    script: list[Any], expected: tuple[int, int, int, int], status: str, way: str
) -> None:
    """The same for every way to run: once a run, once a model call, on success."""
    counts: Counter[str] = Counter()
    agent = Agent(FakeProvider(script), tools=[ping, fail], hooks=counting(counts))
    response: Any
    if way == "run":
        response = await agent.run("x")
    elif way == "start":
        response = await agent.start("x")
    elif way == "run_sync":
        response = agent.run_sync("x")
    elif way == "stream_sync":
        with agent.stream_sync("x") as stream:
            response = list(stream)[-1]
    else:
        response = [event async for event in agent.stream("x")][-1]
    assert isinstance(response, AgentResponse)
    assert response.status == status
    assert table(counts) == expected


# where the consumer leaves, the counts
BREAKS: dict[str, tuple[type, tuple[int, int, int, int]]] = {
    "at a text delta": (TextDelta, (1, 1, 0, 0)),
    "before the tool": (ToolCallStarted, (1, 1, 1, 0)),
    "after the tool": (ToolCallFinished, (1, 1, 1, 0)),
    "at the response": (AgentResponse, (1, 2, 2, 1)),
}


@pytest.mark.parametrize(("kind", "expected"), BREAKS.values(), ids=BREAKS.keys())
async def test_hook_counts_of_a_stream_left_early(
    kind: type, expected: tuple[int, int, int, int]
) -> None:
    """`after_agent` does not run; nothing that was not asked for does."""
    counts: Counter[str] = Counter()
    first = [TextDelta("Wait."), Pause(), *_reply()]
    provider = FakeProvider([first, "hi"])
    agent = Agent(provider, tools=[ping], hooks=counting(counts))
    async with agent.stream("x") as stream:
        async for event in stream:
            if isinstance(event, kind) and (kind is not TextDelta or event.text):
                break
    for _ in range(5):
        await asyncio.sleep(0)
    assert table(counts) == expected


def _reply() -> list[Any]:
    call = ToolCall("c", "ping")
    return [MessageEvent(AssistantMessage("Wait.", tool_calls=[call]))]


async def test_hook_counts_of_a_cancelled_run() -> None:
    """Cancellation is no success."""
    counts: Counter[str] = Counter()
    arrived, never = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait for ever."""
        arrived.set()
        await never.wait()

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "wait")])])
    agent = Agent(provider, tools=[wait], hooks=counting(counts))
    task = asyncio.ensure_future(agent.run("x"))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert table(counts) == (1, 1, 1, 0)


async def test_hook_counts_of_a_stream_never_read() -> None:
    """No hook runs."""
    counts: Counter[str] = Counter()
    Agent(FakeProvider(["hi"]), hooks=counting(counts)).stream("x")
    await asyncio.sleep(0)
    assert table(counts) == (0, 0, 0, 0)
