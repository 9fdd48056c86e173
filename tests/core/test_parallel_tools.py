"""The tools of one reply side by side."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from typing import Any

import pytest
from support.waiting import until

from lighter_core import (
    Agent,
    AgentResponse,
    AgentStreamEvent,
    RunContext,
    RunHandle,
    RunLimits,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    ToolMessage,
    check_history,
    hookimpl,
    tool,
)
from lighter_core.testing import FakeProvider, Turn

pytestmark = pytest.mark.usefixtures("no_leaks")


def calls(*names: str) -> Turn:
    return Turn(
        tool_calls=[ToolCall(f"c{n}", name, "{}") for n, name in enumerate(names, 1)]
    )


class Meeting:
    """Async tools that wait until all of them have started."""

    def __init__(self, number: int) -> None:
        self._missing = number
        self._all = asyncio.Event()
        self.order: list[str] = []

    async def arrive(self, name: str) -> None:
        self.order.append(name)
        self._missing -= 1
        if not self._missing:
            self._all.set()
        async with asyncio.timeout(5):
            await self._all.wait()


async def events_of(agent: Agent) -> list[AgentStreamEvent]:
    async with agent.stream("go") as stream:
        return [event async for event in stream]


@pytest.mark.parametrize("way", ["run", "stream"])
async def test_tools_run_at_once_and_results_keep_the_order(way: str) -> None:
    meeting = Meeting(3)

    @tool
    async def meet(run: RunContext[None]) -> str:
        """Meet the others; the first one is the last to end."""
        assert run.call_id is not None
        await meeting.arrive(run.call_id)
        await asyncio.sleep({"c1": 0.03, "c2": 0.02, "c3": 0.0}[run.call_id])
        return run.call_id

    agent = Agent(
        FakeProvider([calls("meet", "meet", "meet"), "ok"]),
        tools=[meet],
        parallel_tools=True,
    )
    if way == "run":
        response = await agent.run("go")
    else:
        events = await events_of(agent)
        last = events[-1]
        assert isinstance(last, AgentResponse)
        response = last
        kinds = [
            type(e) for e in events if isinstance(e, ToolCallStarted | ToolCallFinished)
        ]
        assert kinds == [ToolCallStarted] * 3 + [ToolCallFinished] * 3
        ended = [e.call.call_id for e in events if isinstance(e, ToolCallFinished)]
        assert ended == ["c3", "c2", "c1"]
    results = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert [m.tool_output for m in results] == ['"c1"', '"c2"', '"c3"']
    assert meeting.order == ["c1", "c2", "c3"]
    assert response.text == "ok"


async def test_nothing_starts_before_all_starts_are_taken() -> None:
    ran: list[str] = []

    @tool
    async def note(run: RunContext[None]) -> None:
        """Note."""
        ran.append(str(run.call_id))

    agent = Agent(
        FakeProvider([calls("note", "note"), "ok"]), tools=[note], parallel_tools=True
    )
    async with agent.stream("go") as stream:
        assert isinstance(await anext(stream), ToolCallStarted)
        assert isinstance(await anext(stream), ToolCallStarted)
        await asyncio.sleep(0.02)
        assert ran == []
        await anext(stream)
        assert ran == ["c1", "c2"]


async def test_a_tool_that_must_be_alone_is_alone() -> None:
    running: set[str] = set()
    seen: dict[str, set[str]] = {}

    async def stay(call_id: str) -> None:
        running.add(call_id)
        await asyncio.sleep(0.02)
        seen[call_id] = set(running)
        running.discard(call_id)

    @tool
    async def free(run: RunContext[None]) -> None:
        """Run beside others."""
        await stay(str(run.call_id))

    @tool(parallel=False)
    async def alone(run: RunContext[None]) -> None:
        """Run alone."""
        await stay(str(run.call_id))

    order = calls("free", "free", "alone", "alone", "free", "free")
    agent = Agent(FakeProvider([order, "ok"]), tools=[free, alone], parallel_tools=True)
    response = await agent.run("go")
    assert response.status == "completed"
    assert seen["c3"] == {"c3"}
    assert seen["c4"] == {"c4"}
    assert seen["c1"] | seen["c2"] == {"c1", "c2"}
    assert seen["c5"] | seen["c6"] == {"c5", "c6"}


async def test_without_the_option_tools_run_one_by_one() -> None:
    running = 0

    @tool
    async def count() -> int:
        """Count who runs."""
        nonlocal running
        running += 1
        await asyncio.sleep(0.005)
        now, running = running, running - 1
        return now

    response = await Agent(
        FakeProvider([calls("count", "count"), "ok"]), tools=[count]
    ).run("go")
    results = [m.tool_output for m in response.messages if isinstance(m, ToolMessage)]
    assert results == ["1", "1"]


async def test_one_failing_tool_is_its_own_result() -> None:
    @tool
    async def fail() -> None:
        """Fail."""
        raise ValueError("mine")

    @tool
    async def work() -> str:
        """Work."""
        await asyncio.sleep(0.01)
        return "done"

    agent = Agent(
        FakeProvider([calls("fail", "work", "missing"), "ok"]),
        tools=[fail, work],
        parallel_tools=True,
    )
    response = await agent.run("go")
    results = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert [m.is_error for m in results] == [True, False, True]
    assert response.text == "ok"


class Gate:
    @hookimpl
    def before_tool(self, call: ToolCall) -> None:
        if call.call_id == "c2":
            raise RuntimeError("the gate broke")


@pytest.mark.parametrize("how", ["hook", "exit"])
async def test_what_fails_the_run_cancels_the_others_and_keeps_what_is_done(
    how: str,
) -> None:
    begun: list[str] = []
    ended: list[str] = []

    @tool
    async def quick() -> str:
        """Be quick."""
        return "done"

    @tool
    async def leave() -> None:
        """Leave."""
        await until(lambda: begun or how == "hook")
        await asyncio.sleep(0.01)
        if how == "exit":
            raise SystemExit(3)

    @tool
    async def slow() -> None:
        """Wait."""
        begun.append("slow")
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("slow")

    agent = Agent(
        FakeProvider([calls("quick", "leave", "slow")]),
        tools=[quick, leave, slow],
        parallel_tools=True,
        hooks=[Gate()] if how == "hook" else [],
    )
    handle = agent.start("go")
    async with asyncio.timeout(5):
        if how == "exit":
            with pytest.raises(SystemExit):
                await handle
        else:
            response = await handle
            assert str(response.error) == "the gate broke"
    results = [m for m in handle.messages if isinstance(m, ToolMessage)]
    assert results[0].tool_output == '"done"'
    assert [m.is_error for m in results] == [False, True, True]
    assert check_history(handle.messages) == []
    if how == "exit":
        assert ended == ["slow"]
        assert handle.receipts["c3"] == "cancelled"


class Cancels:
    """A gate that cancels what asks it about the second call."""

    @hookimpl
    async def before_tool(self, call: ToolCall) -> None:
        if call.call_id == "c2":
            await asyncio.sleep(0.01)
            raise asyncio.CancelledError("by the gate")


async def test_a_gate_that_raises_cancelled_ends_the_run_as_cancelled() -> None:
    """As it does where calls run one after the other; the others end with it."""
    ended: list[str] = []

    @tool
    async def slow() -> None:
        """Wait."""
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)  # a second cancellation would show here
            ended.append("slow")

    @tool
    async def quick() -> None:
        """Be quick."""

    for parallel, used in ((False, quick), (True, slow)):
        agent = Agent(
            FakeProvider([calls(*[used.name] * 3), "never"]),
            tools=[used],
            parallel_tools=parallel,
            hooks=[Cancels()],
        )
        stream = agent.stream("go")
        async with asyncio.timeout(5):
            with pytest.raises(asyncio.CancelledError, match="by the gate"):
                async for _ in stream:
                    pass
        assert check_history(stream.messages) == []
        wrong = [m.is_error for m in stream.messages if isinstance(m, ToolMessage)]
        assert wrong == [parallel, True, True]
    assert ended == ["slow", "slow"]


async def test_a_batch_cancelled_before_its_first_step_ends_the_run() -> None:
    """By a gate that does not wait: the calls behind it have not begun."""
    begun: list[str] = []

    @tool
    async def work() -> None:
        """Work."""
        begun.append("work")

    class Gates:
        @hookimpl
        def before_tool(self, call: ToolCall) -> None:
            raise asyncio.CancelledError(call.call_id)

    agent = Agent(
        FakeProvider([calls("work", "work")]),
        tools=[work],
        parallel_tools=True,
        hooks=[Gates()],
    )
    with pytest.raises(asyncio.CancelledError, match="c1"):
        await agent.run("go")
    assert begun == []


async def test_a_tool_that_goes_on_in_spite_of_its_cancellation_holds_up_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lighter_core._tool_calls._END_SECONDS", 0.05)
    release = asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Go on."""
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return "at last"

    agent = Agent(
        FakeProvider([calls("stubborn", "stubborn")]),
        tools=[stubborn],
        parallel_tools=True,
        hooks=[Gate()],
    )
    try:
        async with asyncio.timeout(5):
            response = await agent.run("go")
        assert str(response.error) == "the gate broke"
        assert check_history(response.messages) == []
    finally:
        release.set()
        await asyncio.sleep(0.01)


def outputs(handle: RunHandle) -> list[str]:
    """The results so far."""
    return [m.tool_output for m in handle.messages if isinstance(m, ToolMessage)]


async def test_cancelling_reaches_all_and_keeps_what_is_done() -> None:
    begun: list[str] = []
    cancelled: list[str] = []

    @tool
    async def work(run: RunContext[None]) -> str:
        """Work; the second call is quick."""
        begun.append(str(run.call_id))
        if run.call_id == "c2":
            return "done"
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(str(run.call_id))
            raise
        return "never"

    agent = Agent(
        FakeProvider([calls("work", "work", "work")]),
        tools=[work],
        parallel_tools=True,
    )
    handle = agent.start("go")
    await until(lambda: len(begun) == 3 and '"done"' in outputs(handle))
    handle.cancel()
    async with asyncio.timeout(5):
        response = await handle
    assert response.status == "failed"
    assert cancelled == ["c1", "c3"]
    results = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert [m.tool_output for m in results][1] == '"done"'
    assert [m.call_id for m in results] == ["c1", "c2", "c3"]
    assert handle.receipts == {"c1": "cancelled", "c2": "finished", "c3": "cancelled"}


async def test_context_variables_stay_apart() -> None:
    var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="outside")

    @tool
    async def mark(run: RunContext[None]) -> str:
        """Mark."""
        before = var.get()
        var.set(str(run.call_id))
        await asyncio.sleep(0.01)
        return f"{before}-{var.get()}"

    agent = Agent(
        FakeProvider([calls("mark", "mark"), "ok"]), tools=[mark], parallel_tools=True
    )
    response = await agent.run("go")
    results = [m.tool_output for m in response.messages if isinstance(m, ToolMessage)]
    assert results == ['"outside-c1"', '"outside-c2"']
    assert var.get() == "outside"


@pytest.mark.parametrize(("most", "peak"), [(2, 2), (None, 6)])
async def test_threads_have_a_limit_of_their_own(most: int | None, peak: int) -> None:
    lock = threading.Lock()
    running = highest = 0

    @tool
    def block() -> None:
        """Block a thread."""
        nonlocal running, highest
        with lock:
            running += 1
            highest = max(highest, running)
        deadline = time.monotonic() + 1
        while highest < peak and time.monotonic() < deadline:
            time.sleep(0.005)
        with lock:
            running -= 1

    agent = Agent(
        FakeProvider([calls(*["block"] * 6), "ok"]),
        tools=[block],
        parallel_tools=True,
        limits=RunLimits(tool_threads=most),
    )
    response = await agent.run("go")
    assert response.status == "completed"
    assert highest == peak


async def test_nested_runs_do_not_wait_for_each_others_threads() -> None:
    inner: Any = None

    @tool
    def outer() -> str:
        """Run another agent, synchronously."""
        return str(inner.run_sync("go").text)

    @tool
    def leaf() -> str:
        """Do the work."""
        return "leaf"

    inner = Agent(FakeProvider([calls("leaf"), "inner done"] * 8), tools=[leaf])
    agent = Agent(
        FakeProvider([calls(*["outer"] * 4), "ok"]),
        tools=[outer],
        parallel_tools=True,
        limits=RunLimits(tool_threads=1),
    )
    async with asyncio.timeout(10):
        response = await agent.run("go")
    assert response.text == "ok"
