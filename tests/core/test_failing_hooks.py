"""Every hook fails in every way, at its first and at its second time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.hook_order import hook

from lighter_core import (
    Agent,
    AgentResponse,
    HookError,
    ModelError,
    ToolCall,
    check_history,
    hookimpl,
    tool,
)
from lighter_core.hooks import EVENTS
from lighter_core.testing import FakeProvider, Turn

FAILURES = ("raises", "model error", "cancels itself", "wrong type")
ONCE = ("before_agent", "after_agent", "on_run_end")  # no second time in one run
CASES = [
    (event, failure, time)
    for event in EVENTS
    for failure in FAILURES
    for time in (1, 2)
    if not (time == 2 and event in ONCE)
]


class Run:
    """An agent that makes two tool calls in two rounds, with one failing hook."""

    def __init__(self, event: str, failure: str, time: int, form: str) -> None:
        self.error: BaseException | None = None
        self.failure, self.time, self.seen = failure, time, 0
        self.after_failure: list[str] = []
        self.ends: list[AgentResponse] = []
        around = event.startswith("around")
        function = self.around if around else self.plain

        @tool(thread=False)
        def ping() -> str:
            """Answer."""
            self.note("tool")
            return "pong"

        watching = {
            each: (lambda _, each=each: self.note(each))
            for each in EVENTS
            if not each.startswith("around") and each != "on_run_end"
        }

        @hookimpl.on_run_end
        def end(response: Any) -> None:
            self.ends.append(response)

        turns = [Turn(tool_calls=[ToolCall(f"c{n}", "ping")]) for n in (1, 2)]
        # The first hook of the list is asked first before a step and last after it.
        watcher, failing = (
            hook("Watch", form, **watching),
            hook("F", form, **{event: function}),
        )
        before = event.startswith("before")
        hooks = [failing, watcher, end] if before else [watcher, failing, end]
        self.agent = Agent(FakeProvider([*turns, "done"]), tools=[ping], hooks=hooks)

    def note(self, what: str) -> None:
        if self.error is not None:
            self.after_failure.append(what)

    def fail(self) -> Any:
        """Fail when it is time; return whether it is not."""
        self.seen += 1
        if self.seen != self.time:
            return None
        if self.failure == "wrong type":
            self.error = HookError("stands for the one that Lighter raises")
            return object()
        self.error = {
            "raises": LookupError("no"),
            "model error": ModelError("no", "rate_limit"),
            "cancels itself": asyncio.CancelledError(),
        }[self.failure]
        raise self.error

    def plain(self, _: Any) -> Any:
        return self.fail()

    async def around(self, value: Any, call: Any) -> Any:
        result = await call(value)
        return self.fail() or result


async def outcome(run: Run, way: str) -> AgentResponse | BaseException:
    try:
        if way == "run":
            return await run.agent.run("x")
        async with run.agent.stream("x") as stream:
            events = [event async for event in stream]
    except asyncio.CancelledError as error:
        return error
    return events[-1]


@pytest.mark.parametrize("form", ["sync", "async"])
@pytest.mark.parametrize("way", ["run", "stream"])
@pytest.mark.parametrize(("event", "failure", "time"), CASES)
async def test_a_failing_hook_ends_the_run_in_the_documented_way(
    event: str, failure: str, time: int, way: str, form: str
) -> None:
    """Nothing runs after it but `on_run_end`; what was completed is kept and valid."""
    run = Run(event, failure, time, form)
    got = await outcome(run, way)
    assert run.error is not None
    [end] = run.ends
    if event == "on_run_end":
        assert isinstance(got, AgentResponse)
        assert got.status == "completed"
        return
    if failure == "cancels itself":
        assert isinstance(got, asyncio.CancelledError)
        assert isinstance(end.error, asyncio.CancelledError)
    else:
        assert got == end
        assert end.status == "failed"
        if failure == "wrong type":
            assert isinstance(end.error, HookError)
            assert end.error.event == event
        else:
            assert end.error is run.error
    assert run.after_failure == []
    assert check_history(end.messages) == []
    replies = [m for m in end.messages if m.role == "assistant"]
    expected = {
        "before_agent": 0,
        "after_agent": 3,
        "before_model": time - 1,
        "around_model": time - 1,
        "after_model": time - 1,
    }.get(event, time)
    assert len(replies) == expected
