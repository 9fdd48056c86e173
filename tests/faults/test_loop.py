"""Known faults of loops, tools and hooks that no other test names."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import inspect
import json
import threading
import time
from typing import Any

import pytest

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    MessageEvent,
    ModelError,
    ToolCall,
    ToolCallDelta,
    ToolMessage,
    UserMessage,
    hookimpl,
    messages_from_json,
    messages_to_json,
    tool,
)
from lighter_core.testing import FakeProvider, Turn

PARALLEL = "parallel_tools" in inspect.signature(Agent).parameters
both = pytest.mark.parametrize("way", ["run", "stream"])


async def outcome(agent: Agent, way: str) -> AgentResponse:
    if way == "run":
        return await agent.run("go")
    return [e async for e in agent.stream("go")][-1]


@both
async def test_KF_029_shown_calls_run_once(way: str) -> None:
    """Deltas of a call are for the eye; the message alone is executed."""
    ran: list[int] = []

    @tool
    async def add(n: int) -> int:
        """Add."""
        ran.append(n)
        return n

    message = AssistantMessage("", tool_calls=[ToolCall("c", "add", '{"n": 1}')])
    deltas = [ToolCallDelta("c", "add", part) for part in ('{"n"', ": 1}")]
    agent = Agent(FakeProvider([[*deltas, MessageEvent(message)], "done"]), tools=[add])
    assert (await outcome(agent, way)).status == "completed"
    assert ran == [1]


@both
@pytest.mark.parametrize(
    "parallel",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.skipif(
                not PARALLEL, reason="tools do not run side by side yet"
            ),
        ),
    ],
)
async def test_KF_035_no_tool_runs_when_the_run_has_ended(
    way: str, parallel: bool
) -> None:
    """A BaseException of one tool ends the run; its neighbour does nothing behind it."""
    done: list[str] = []

    @tool
    async def quit_() -> str:
        """Quit."""
        raise Quit

    @tool
    async def write() -> str:
        """Write after a while."""
        await asyncio.sleep(0.05)
        done.append("written")
        return "x"

    class Quit(BaseException):
        pass

    calls = [ToolCall("1", "quit_", ""), ToolCall("2", "write", "")]
    options: dict[str, Any] = {"parallel_tools": True} if parallel else {}
    agent = Agent(
        FakeProvider([Turn(tool_calls=calls)]), tools=[quit_, write], **options
    )
    with pytest.raises((Quit, BaseExceptionGroup)):
        await outcome(agent, way)
    await asyncio.sleep(0.1)
    assert done == []


async def test_KF_039_blocking_work_that_gives_an_awaitable_leaves_the_loop() -> None:
    """The function blocks on a thread; what it returns is awaited on the loop."""
    where: dict[str, int] = {}

    def slow() -> Any:
        """Block, then give a coroutine."""
        where["work"] = threading.get_ident()
        time.sleep(0.2)

        async def rest() -> str:
            where["rest"] = threading.get_ident()
            return "x"

        return rest()

    ticks = 0

    async def heartbeat() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    beat = asyncio.create_task(heartbeat())
    call = ToolCall("1", "slow", "")
    response = await Agent(
        FakeProvider([Turn(tool_calls=[call]), "done"]), tools=[tool(slow)]
    ).run("go")
    beat.cancel()
    assert [m.tool_output for m in response.messages if m.role == "tool"] == ['"x"']
    assert where["rest"] == threading.get_ident() != where["work"]
    assert ticks >= 3


async def test_KF_040_a_reply_with_calls_of_every_kind() -> None:
    """Each runs where it can, and the results stand in the order of the calls."""
    here = threading.get_ident()
    where: dict[str, bool] = {}

    @tool
    def blocking() -> str:
        """Block."""
        where["blocking"] = threading.get_ident() == here
        return "1"

    @tool
    def later() -> Any:
        """Give a future of the loop."""

        async def rest() -> str:
            where["later"] = asyncio.get_running_loop() is not None
            return "2"

        return rest()

    @tool
    async def async_() -> str:
        """Work on the loop."""
        where["async_"] = threading.get_ident() == here
        return "3"

    names = ["blocking", "later", "async_", "blocking"]
    calls = [ToolCall(str(n), name, "") for n, name in enumerate(names)]
    response = await Agent(
        FakeProvider([Turn(tool_calls=calls), "done"]), tools=[blocking, later, async_]
    ).run("go")
    results = [m.tool_output for m in response.messages if isinstance(m, ToolMessage)]
    assert results == ['"1"', '"2"', '"3"', '"1"']
    assert where == {"blocking": False, "later": True, "async_": True}


@pytest.mark.parametrize("letter", ["x", "é", "🦊"])
@pytest.mark.parametrize("over", range(-3, 4))
async def test_KF_045_error_texts_are_cut_between_characters(
    letter: str, over: int
) -> None:
    """The bound counts characters; whoever reads can see that something is missing."""
    from lighter_core._tool_text import MAX_ERROR_TEXT

    @tool
    async def fail() -> str:
        """Fail."""
        raise ValueError(text)

    empty = "ValueError: "
    text = letter * (MAX_ERROR_TEXT - len(empty) + over)
    provider = FakeProvider([Turn(tool_calls=[ToolCall("1", "fail", "")]), "done"])
    response = await Agent(provider, tools=[fail]).run("go")
    [result] = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert len(result.tool_output) <= MAX_ERROR_TEXT
    result.tool_output.encode()  # no half of a character
    assert result in provider.requests[1].messages  # what is stored was sent
    whole = text in result.tool_output
    assert whole != result.tool_output.endswith("[cut]")


async def test_KF_045_results_are_never_cut() -> None:
    """There is no bound on results: their size is the application's affair."""

    @tool
    async def tell() -> str:
        """Tell."""
        return "🦊" * 300_000

    provider = FakeProvider([Turn(tool_calls=[ToolCall("1", "tell", "")]), "done"])
    await Agent(provider, tools=[tell]).run("go")
    [sent] = [m for m in provider.requests[1].messages if isinstance(m, ToolMessage)]
    assert json.loads(sent.tool_output) == "🦊" * 300_000


_WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@both
async def test_KF_037_hooks_see_the_callers_context(way: str) -> None:
    """Plugins, hooks and tools of every kind see one value."""
    seen: dict[str, str] = {}

    class Watch:
        @hookimpl
        def before_agent(self, request: Any) -> None:
            seen["before_agent"] = _WHO.get()

        @hookimpl
        async def before_model(self, request: Any) -> None:
            seen["before_model"] = _WHO.get()

        @hookimpl
        def after_model(self, message: Any) -> None:
            seen["after_model"] = _WHO.get()

        @hookimpl
        def before_tool(self, call: Any) -> None:
            seen["before_tool"] = _WHO.get()

        @hookimpl
        async def after_agent(self, messages: Any) -> None:
            seen["after_agent"] = _WHO.get()

    @tool
    def look() -> str:
        """Look from a thread."""
        seen["tool"] = _WHO.get()
        _WHO.set("tool")
        return "x"

    calls = [ToolCall("1", "look", "")]
    agent = Agent(
        FakeProvider([Turn(tool_calls=calls), "done"]), tools=[look], hooks=[Watch()]
    )
    token = _WHO.set("caller")
    try:
        await outcome(agent, way)
        assert _WHO.get() == "caller"
    finally:
        _WHO.reset(token)
    assert set(seen.values()) == {"caller"}
    assert len(seen) == 6


@both
async def test_KF_057_closing_beside_a_pending_step(way: str) -> None:
    """A stop button: one task waits for the next event, another closes."""
    started = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    provider = FakeProvider([Turn(text="a", tool_calls=[ToolCall("1", "wait", "")])])
    stream = Agent(provider, tools=[wait]).stream("go")
    step: asyncio.Future[Any] = asyncio.ensure_future(anext(stream, None))
    while not started.is_set():
        await asyncio.wait(
            {step, asyncio.ensure_future(started.wait())},
            return_when=asyncio.FIRST_COMPLETED,
        )
        if step.done() and not started.is_set():
            step = asyncio.ensure_future(anext(stream, None))
    if way == "run":  # the step is cancelled first
        step.cancel()
        await asyncio.wait([step])
    await stream.aclose()
    await asyncio.wait([step])
    assert step.cancelled() or step.result() is None
    assert [m.role for m in stream.messages] == ["assistant", "tool"]


async def test_KF_071_public_values_have_a_json_form() -> None:
    """Messages come back equal; events, errors and responses are plain fields."""
    calls = [ToolCall("1", "nope", '{"a": 1.0}')]
    agent = Agent(
        FakeProvider(
            [
                Turn(text="é🦊", reasoning="hm", tool_calls=calls),
                ModelError("down", "server_error", http_status=503),
            ]
        )
    )
    events = [e async for e in agent.stream("go")]
    assert len(events) >= 5
    response = events[-1]
    assert isinstance(response, AgentResponse)
    for event in events:
        plain = dataclasses.asdict(event)
        if event is response:
            assert isinstance(plain.pop("error"), ModelError)
        json.dumps(plain)
    error = response.error
    assert isinstance(error, ModelError)
    told = {n: getattr(error, n) for n in ("message", "code", "http_status")}
    assert json.loads(json.dumps(told))["code"] == "server_error"
    again = messages_from_json(messages_to_json(response.messages))
    assert again == response.messages


@both
@pytest.mark.parametrize("event", ["before_agent", "after_model", "before_tool"])
async def test_KF_119_a_guard_ends_before_the_step_it_guards(
    way: str, event: str
) -> None:
    """A slow hook that raises: nothing behind it has begun."""
    ran: list[str] = []

    @tool
    async def act() -> str:
        """Act."""
        ran.append("act")
        return "x"

    async def guard(self: Any, **_: Any) -> None:
        await asyncio.sleep(0.1)
        raise PermissionError("no")

    class Guard:
        @hookimpl
        async def before_agent(self, request: Any) -> None:
            if event == "before_agent":
                await guard(self)

        @hookimpl
        async def after_model(self, message: Any) -> None:
            if event == "after_model":
                await guard(self)

        @hookimpl
        async def before_tool(self, call: Any) -> None:
            if event == "before_tool":
                await guard(self)

    provider = FakeProvider([Turn(tool_calls=[ToolCall("1", "act", "")]), "done"])
    response = await outcome(Agent(provider, tools=[act], hooks=[Guard()]), way)
    assert isinstance(response.error, PermissionError)
    assert ran == []
    assert len(provider.requests) == (0 if event == "before_agent" else 1)


@both
async def test_KF_091_a_failing_model_call_is_repeated_alone(way: str) -> None:
    """The tool of the first turn has run once when the second turn is tried again."""
    from lighter_core.retry import RetryProvider

    ledger: list[str] = []

    @tool
    async def pay() -> str:
        """Pay."""
        ledger.append("paid")
        return "paid"

    inner = FakeProvider(
        [
            Turn(tool_calls=[ToolCall("1", "pay", "")]),
            ModelError("down", "server_error"),
            "done",
        ]
    )
    agent = Agent(RetryProvider(inner, tries=2, wait=0), tools=[pay])
    response = await outcome(agent, way)
    assert response.text == "done"
    assert ledger == ["paid"]
    assert len(inner.requests) == 3


@both
async def test_KF_032_all_calls_of_a_batch_have_results(way: str) -> None:
    """The second of three fails; the others are as they would be without it."""

    @tool
    async def one(n: int) -> int:
        """Give it back."""
        if n == 2:
            raise ValueError("no")
        return n

    calls = [ToolCall(str(n), "one", f'{{"n": {n}}}') for n in (1, 2, 3)]
    response = await outcome(
        Agent(FakeProvider([Turn(tool_calls=calls), "done"]), tools=[one]), way
    )
    results = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert [(m.call_id, m.is_error) for m in results] == [
        ("1", False),
        ("2", True),
        ("3", False),
    ]
    assert response.status == "completed"


@both
async def test_KF_028_an_unknown_tool_is_an_error_result(way: str) -> None:
    """The model reads what it did; the run goes on."""
    calls = [ToolCall("1", "nope", "{}")]
    response = await outcome(Agent(FakeProvider([Turn(tool_calls=calls), "ok"])), way)
    [result] = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert result.is_error
    assert "nope" in result.tool_output
    assert response.status == "completed"
    assert response.text == "ok"


def test_KF_093_ids_that_a_tool_can_learn() -> None:
    """A call's id is the model's and changes when it asks again; the run's id stays."""
    from lighter_core import RunContext

    seen: list[tuple[str, str | None]] = []

    @tool
    async def pay(run: RunContext[Any]) -> str:
        """Pay."""
        seen.append((str(run.run_id), run.call_id))
        return "x"

    turns = [Turn(tool_calls=[ToolCall(i, "pay", "")]) for i in ("a", "b")]
    Agent(FakeProvider([*turns, "done"]), tools=[pay]).run_sync([UserMessage("go")])
    assert [call for _, call in seen] == ["a", "b"]
    assert seen[0][0] == seen[1][0]
