"""Hooks around model calls and tools, gates before tools, and the end of a run."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

import pytest
from support.waiting import timeout_once, until

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    HookError,
    Model,
    ModelCallRestarted,
    ModelError,
    ModelRequest,
    RunLimits,
    TextDelta,
    ToolCall,
    ToolCallFinished,
    ToolMessage,
    UserMessage,
    check_history,
    hookimpl,
    tool,
)
from lighter_core.testing import FakeProvider, Pause, Turn

CALL = ToolCall("c1", "add", '{"a":1,"b":2}')


def asking(*calls: ToolCall) -> FakeProvider:
    return FakeProvider([Turn(text="let me", tool_calls=calls or (CALL,)), "done"])


class Ledger:
    """A tool that writes down each execution."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, int]] = []

        @tool
        def add(a: int, b: int) -> int:
            """Calculate a sum."""
            self.ran.append((a, b))
            return a + b

        self.add = add


async def finish(agent: Agent, way: str) -> AgentResponse:
    if way == "run":
        return await agent.run("x")
    async with agent.stream("x") as stream:
        events = [event async for event in stream]
    assert isinstance(events[-1], AgentResponse)
    return events[-1]


WAYS = pytest.mark.parametrize("way", ["run", "stream"])


def denial(call: ToolCall) -> ToolMessage:
    return ToolMessage(
        call_id="other",
        tool_name=call.tool_name,
        tool_output="denied by policy",
        is_error=True,
    )


@WAYS
@pytest.mark.parametrize("order", ["allow first", "deny first"])
async def test_a_gate_that_denies_wins_in_every_order(way: str, order: str) -> None:
    """KF-120: the tool does not run, the model reads the denial under its own call id."""

    class Deny:
        @hookimpl
        async def before_tool(self, call):
            return denial(call)

    class Allow:
        @hookimpl
        def before_tool(self, call):
            return replace(call, arguments='{"a":9,"b":9}')

    ledger = Ledger()
    gates = [Allow(), Deny()] if order == "allow first" else [Deny(), Allow()]
    response = await finish(Agent(asking(), tools=[ledger.add], hooks=gates), way)
    assert ledger.ran == []
    result = response.messages[1]
    assert isinstance(result, ToolMessage)
    assert (result.call_id, result.tool_output) == ("c1", "denied by policy")
    assert response.status == "completed"
    assert check_history(response.messages) == []


@WAYS
async def test_a_gate_can_replace_the_call_and_keeps_its_id(way: str) -> None:
    """The tool gets the new arguments; the assistant message stays as it was."""

    class Clamp:
        @hookimpl
        def before_tool(self, call, run):
            assert run.call_id == "c1"
            return ToolCall("made-up", call.tool_name, '{"a":5,"b":5}')

    ledger = Ledger()
    response = await finish(Agent(asking(), tools=[ledger.add], hooks=[Clamp()]), way)
    assert ledger.ran == [(5, 5)]
    assert response.messages[0].tool_calls == (CALL,)
    assert response.messages[1].call_id == "c1"
    assert response.messages[1].tool_output == "10"


@WAYS
@pytest.mark.parametrize("failure", ["raises", "wrong type"])
async def test_a_gate_that_fails_fails_closed(way: str, failure: str) -> None:
    """The run ends, the tool has not run, the history is valid."""
    boom = RuntimeError("gate is down")

    class Gate:
        @hookimpl
        def before_tool(self):
            if failure == "raises":
                raise boom
            return True

    ledger = Ledger()
    response = await finish(Agent(asking(), tools=[ledger.add], hooks=[Gate()]), way)
    assert ledger.ran == []
    assert response.status == "failed"
    if failure == "raises":
        assert response.error is boom
    else:
        assert isinstance(response.error, HookError)
    assert check_history(response.messages) == []


@WAYS
async def test_after_tool_sees_every_result_and_can_replace_it(way: str) -> None:
    """Of tools, of unknown tools and of gates; the last hook of the list first."""
    seen: list[tuple[str, str]] = []

    class Look:
        def __init__(self, name: str) -> None:
            self.name = name

        @hookimpl
        def after_tool(self, message):
            seen.append((self.name, message.tool_output[:7]))
            return replace(message, tool_output=message.tool_output + "!", call_id="z")

    ledger = Ledger()
    provider = asking(CALL, ToolCall("c2", "nope", "{}"))
    agent = Agent(provider, tools=[ledger.add], hooks=[Look("first"), Look("second")])
    response = await finish(agent, way)
    assert seen[:2] == [("second", "3"), ("first", "3!")]
    results = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert [m.call_id for m in results] == ["c1", "c2"]
    assert results[0].tool_output == "3!!"


@WAYS
async def test_around_tool_nests_and_can_answer_by_itself(way: str) -> None:
    """The first hook is the outermost; one that does not call on replaces the tool."""
    steps: list[str] = []

    class Around:
        def __init__(self, name: str, *, cached: bool = False) -> None:
            self.name, self.cached = name, cached

        @hookimpl
        async def around_tool(self, call, call_tool):
            steps.append(f"{self.name} in")
            if self.cached:
                return ToolMessage(call_id="", tool_name="add", tool_output="cached")
            message = await call_tool(call)
            steps.append(f"{self.name} out")
            return message

    ledger = Ledger()
    hooks = [Around("outer"), Around("inner")]
    await finish(Agent(asking(), tools=[ledger.add], hooks=hooks), way)
    assert steps == ["outer in", "inner in", "inner out", "outer out"]
    assert ledger.ran == [(1, 2)]
    hooks = [Around("outer"), Around("cache", cached=True)]
    response = await finish(Agent(asking(), tools=[ledger.add], hooks=hooks), way)
    assert ledger.ran == [(1, 2)]
    assert response.messages[1].tool_output == "cached"
    assert response.messages[1].call_id == "c1"


@WAYS
async def test_around_model_can_retry_and_the_consumer_is_told(way: str) -> None:
    """Each attempt counts as a model call; the reply of the last one is kept."""

    class Retry:
        @hookimpl
        async def around_model(self, request, call_model):
            for _ in range(2):
                with contextlib.suppress(ModelError):
                    return await call_model(request)
            raise AssertionError

    script = [[TextDelta("ha"), ModelError("busy", "server_error")], "hello"]
    agent = Agent(FakeProvider(script), hooks=[Retry()])
    response = await finish(agent, way)
    assert response.text == "hello"
    if way == "stream":
        async with Agent(FakeProvider(script), hooks=[Retry()]).stream("x") as stream:
            events = [event async for event in stream]
        assert events[:2] == [TextDelta("ha"), ModelCallRestarted()]


@WAYS
async def test_repeated_calls_of_around_model_count_against_the_limit(way: str) -> None:
    """A hook cannot go round it."""

    class Greedy:
        @hookimpl
        async def around_model(self, request, call_model):
            await call_model(request)
            return await call_model(request)

    provider = FakeProvider(["a", "b", "c"])
    agent = Agent(provider, hooks=[Greedy()], limits=RunLimits(model_calls=1))
    response = await finish(agent, way)
    assert response.status == "failed"
    assert getattr(response.error, "limit", None) == "model_calls"
    assert len(provider.requests) == 1


@WAYS
@pytest.mark.parametrize("made", [None, "text"])
async def test_around_hooks_must_return_a_message(way: str, made: object) -> None:
    """`None` cannot mean "keep" where the hook holds the call itself."""

    class Silent:
        @hookimpl
        def around_model(self):
            return made

    response = await finish(Agent(FakeProvider(["x"]), hooks=[Silent()]), way)
    assert isinstance(response.error, HookError)
    assert "an AssistantMessage" in str(response.error)


async def test_around_model_works_on_a_model_called_directly() -> None:
    """Invoked and streamed, with the deltas of the call inside."""

    class Shout:
        @hookimpl
        async def around_model(self, request, run, call_model):
            assert run.run_id is None
            message = await call_model(request)
            return AssistantMessage(message.content.upper())

    model = Model(FakeProvider(["hello", "hello"]))
    request = ModelRequest([UserMessage("x")])
    assert (await model.invoke(request, [Shout()])).content == "HELLO"
    events = [event async for event in model.stream(request, [Shout()])]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "hello"
    assert events[-1].message.content == "HELLO"


async def test_leaving_a_hooked_model_stream_early_ends_the_call() -> None:
    """Hook and provider are ended before `aclose()` returns."""
    ended: list[str] = []

    class Around:
        @hookimpl
        async def around_model(self, request, call_model):
            try:
                return await call_model(request)
            finally:
                ended.append("hook")

    provider = FakeProvider([[TextDelta("a"), Pause(10)]])
    stream = Model(provider).stream(ModelRequest([UserMessage("x")]), [Around()])
    assert await anext(stream) == TextDelta("a")
    await stream.aclose()
    assert ended == ["hook"]
    assert provider.closed_streams == 1


class End:
    """Writes down how runs end."""

    def __init__(self) -> None:
        self.responses: list[AgentResponse] = []

    @hookimpl
    async def on_run_end(self, response, run):
        await asyncio.sleep(0)
        assert run.run_id
        self.responses.append(response)


@WAYS
async def test_on_run_end_runs_after_success_and_failure(way: str) -> None:
    """It gets the very response that the caller gets."""
    end = End()
    good = await finish(Agent(FakeProvider(["x"]), hooks=[end]), way)
    bad = await finish(
        Agent(FakeProvider([ModelError("no", "rate_limit")]), hooks=[end]), way
    )
    assert end.responses == [good, bad]
    assert [each.status for each in end.responses] == ["completed", "failed"]


@pytest.mark.parametrize("way", ["cancel", "handle", "break", "timeout"])
async def test_on_run_end_runs_after_cancellation(way: str) -> None:
    """With a failed response whose error is the cancellation, and valid messages."""
    end = End()

    begun: list[bool] = []

    @tool
    async def hang() -> None:
        """Never return."""
        begun.append(True)
        await asyncio.sleep(60)

    provider = asking(ToolCall("c1", "hang", "{}"))
    agent = Agent(provider, tools=[hang], hooks=[end])
    if way == "cancel":
        task = asyncio.create_task(agent.run("x"))
        await until(lambda: begun)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    elif way == "handle":
        handle = agent.start("x")
        await until(lambda: begun)
        handle.cancel()
        assert (await handle).status == "failed"
    elif way == "timeout":
        with pytest.raises(TimeoutError):
            async with timeout_once(lambda: begun):
                await agent.run("x")
    else:
        async with agent.stream("x") as stream:
            async for _ in stream:
                break
    assert len(end.responses) == 1
    assert isinstance(end.responses[0].error, asyncio.CancelledError)
    assert check_history(end.responses[0].messages) == []


async def test_on_run_end_changes_nothing_when_it_fails(caplog) -> None:
    """What it raises is logged, and the other hooks run."""

    class Broken:
        @hookimpl
        def on_run_end(self):
            raise RuntimeError("disk full")

    end = End()
    agent = Agent(FakeProvider(["x"]), hooks=[end, Broken()])
    with caplog.at_level("ERROR", logger="lighter"):
        response = await agent.run("x")
    assert response.status == "completed"
    assert end.responses == [response]
    assert "disk full" in caplog.text


async def test_on_run_end_has_bounded_time(monkeypatch, caplog) -> None:
    """A hook that hangs does not keep the caller."""
    monkeypatch.setattr("lighter_core._loop._END_SECONDS", 0.05)

    class Slow:
        @hookimpl
        async def on_run_end(self):
            await asyncio.sleep(60)

    with caplog.at_level("WARNING", logger="lighter"):
        response = await Agent(FakeProvider(["x"]), hooks=[Slow()]).run("x")
    assert response.status == "completed"
    assert "were cancelled" in caplog.text


async def test_the_started_event_comes_before_the_gate_and_the_finished_one_after() -> (
    None
):
    """A consumer that leaves at `ToolCallStarted` keeps the gate from running too."""
    asked: list[str] = []

    class Gate:
        @hookimpl
        def before_tool(self, call):
            asked.append(call.call_id)

    ledger = Ledger()
    agent = Agent(asking(), tools=[ledger.add], hooks=[Gate()])
    async with agent.stream("x") as stream:
        async for event in stream:
            if event.type == "tool_call_started":
                break
    assert asked == []
    async with agent.stream("x") as stream:
        async for event in stream:
            if isinstance(event, ToolCallFinished):
                assert asked == ["c1"]
