"""What a run writes to the log, tells its journal and its events, to the word."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    LimitExceededError,
    MessageEvent,
    ModelRequest,
    ProviderContractError,
    RunContext,
    RunLimits,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
    hookimpl,
    tool,
)
from lighter_core.sessions import Session, SQLiteStore
from lighter_core.testing import FakeProvider, Pause, Turn

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


LIMITS = [
    (RunLimits(seconds=0.05), "seconds", "seconds"),
    (
        RunLimits(model_call_seconds=0.05),
        "model_call_seconds",
        "seconds for one model call",
    ),
    (
        RunLimits(idle_seconds=0.05),
        "idle_seconds",
        "seconds without anything from the model",
    ),
    (
        RunLimits(idle_seconds=0.05, model_call_seconds=60, seconds=60),
        "idle_seconds",
        "seconds without anything from the model",
    ),
    (
        RunLimits(idle_seconds=60, model_call_seconds=0.05, seconds=60),
        "model_call_seconds",
        "seconds for one model call",
    ),
]


@pytest.mark.parametrize(("limits", "name", "what"), LIMITS)
async def test_the_error_of_a_limit_says_which_and_what_to_do(
    limits: RunLimits, name: str, what: str
) -> None:
    """Its name, its value, and how to raise it; what was under way is its cause."""
    provider = FakeProvider([[Pause(30), MessageEvent(AssistantMessage("late"))]])
    async with asyncio.timeout(20):
        response = await Agent(provider, limits=limits).run("go")
    error = response.error
    assert isinstance(error, LimitExceededError)
    assert (error.limit, error.value) == (name, 0.05)
    assert str(error) == (
        f"the run reached its limit of 0.05 {what}; raise it with"
        f" Agent(limits=RunLimits({name}=…)), or lift it with None"
    )
    assert isinstance(error.__cause__, TimeoutError)


class Odd:
    """A provider that gives what it is told to."""

    name = "odd"

    def __init__(self, given: Any, events: list[Any]) -> None:
        self._given, self._events = given, events

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        return self._given

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        for each in self._events:
            yield each


NOTHING = "; nothing was executed"
EMPTY_ID = AssistantMessage("", tool_calls=[ToolCall("", "work")])
ONE_ID = AssistantMessage("", tool_calls=[ToolCall("c", "work"), ToolCall("c", "work")])


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (EMPTY_ID, "gave a tool call with an empty id" + NOTHING),
        (ONE_ID, "gave two tool calls with one id" + NOTHING),
        (None, "gave NoneType instead of an AssistantMessage" + NOTHING),
        ("Hi", "gave str instead of an AssistantMessage" + NOTHING),
    ],
)
async def test_a_reply_that_is_none_is_told_with_its_provider(
    given: Any, what: str
) -> None:
    """The same words by both ways; a stream says at which event, too."""
    response = await Agent(Odd(given, []), tools=[work]).run("go")
    assert str(response.error) == f"provider 'odd' {what}"
    event = MessageEvent(AssistantMessage(""))
    object.__setattr__(event, "message", given)
    provider = Odd(None, [TextDelta("a"), TextDelta(""), event])
    streamed = await ended(Agent(provider, tools=[work]))
    assert str(streamed.error) == f"provider 'odd', event 3 of its stream: {what}"
    for error, number in ((response.error, 1), (streamed.error, 3)):
        assert isinstance(error, ProviderContractError)
        assert (error.provider, error.event_number) == ("odd", number)


async def ended(agent: Agent) -> AgentResponse[Any]:
    async with agent.stream("go") as stream:
        *_, last = [event async for event in stream]
    assert isinstance(last, AgentResponse)
    return last


DONE = MessageEvent(AssistantMessage("a"))


def broken_delta() -> TextDelta:
    delta = TextDelta("a")
    object.__setattr__(delta, "text", None)
    return delta


@pytest.mark.parametrize(
    ("events", "number", "what"),
    [
        ([TextDelta("a")], 2, "ended its stream without a complete message"),
        ([], 1, "ended its stream without a complete message"),
        ([broken_delta()], 1, "yielded a TextDelta whose text is NoneType"),
        (
            [DONE, TextDelta("b")],
            2,
            "yielded a TextDelta after its message; the message must come last, and once",
        ),
        (
            [TextDelta("a"), "b"],
            2,
            "yielded a str; yield TextDelta, ReasoningDelta and one MessageEvent",
        ),
    ],
)
async def test_a_stream_that_breaks_the_grammar_is_told_with_the_event(
    events: list[Any], number: int, what: str
) -> None:
    """Counted from 1; the end counts as the next one."""
    response = await ended(Agent(Odd(None, events)))
    error = response.error
    assert isinstance(error, ProviderContractError)
    assert str(error) == f"provider 'odd', event {number} of its stream: {what}"
    assert (error.provider, error.event_number) == ("odd", number)
    limited = Agent(Odd(None, events), limits=RunLimits(idle_seconds=60))
    assert str((await limited.run("go")).error) == str(error)


async def test_a_journal_has_everything_before_the_next_thing_happens(
    tmp_path: Path,
) -> None:
    """The reply before its calls, each result before the next call, the rest at last."""
    store = SQLiteStore(tmp_path / "s.db")
    seen: list[list[str]] = []

    async def stored() -> list[str]:
        found = await Session(agent, store, "s").messages()
        return ["open" if getattr(m, "is_error", False) else m.role for m in found]

    @tool
    async def look() -> str:
        """Look into the store."""
        seen.append(await stored())
        return "done"

    turn = Turn(tool_calls=[ToolCall("c1", "look"), ToolCall("c2", "look")])
    agent = Agent(FakeProvider([turn, ValueError("x")]), tools=[look])
    response = await Session(agent, store, "s").run("go")
    assert isinstance(response.error, ValueError)
    assert seen == [
        ["user", "assistant", "open", "open"],
        ["user", "assistant", "tool", "open"],
    ]
    assert await stored() == ["user", "assistant", "tool", "tool"]
    await store.aclose()


async def test_the_log_says_how_each_tool_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A name that the model made up is cut; the model reads which tools there are."""
    ids, name = Ids(), "x" * 90
    turn = Turn(tool_calls=[ToolCall("c1", "work"), ToolCall("c2", name)])
    agent = Agent(FakeProvider([turn, "ok"]), tools=[work], hooks=[ids])
    with caplog.at_level(logging.DEBUG, "lighter.run"):
        handle = agent.start("go")
        response = await handle
    (run_id,) = ids.run_ids
    records = [r for r in caplog.records if "lighter_tool" in vars(r)]
    told = [r.getMessage().rpartition(" after ") for r in records]
    assert [each[0] for each in told] == [
        f"run {run_id}: tool work finished",
        f"run {run_id}: tool {'x' * 64} failed",
    ]
    assert all(0 <= float(each[2].removesuffix(" s")) < 60 for each in told)
    fields = [
        {k: v for k, v in vars(r).items() if k.startswith("lighter_")} for r in records
    ]
    assert fields == [
        {
            "lighter_run_id": run_id,
            "lighter_tool": "work",
            "lighter_tool_failed": False,
        },
        {
            "lighter_run_id": run_id,
            "lighter_tool": "x" * 64,
            "lighter_tool_failed": True,
        },
    ]
    assert handle.receipts == {"c1": "finished", "c2": "finished"}
    result = response.messages[2]
    assert isinstance(result, ToolMessage)
    assert result.tool_output.startswith("there is no tool 'xxx")
    assert result.is_error


async def test_a_model_without_tools_is_told_that_there_are_none() -> None:
    """All of them by name otherwise."""

    @tool
    async def rest() -> str:
        """Rest."""
        return "done"

    for tools, told in (([], "none"), ([work, rest], "work, rest")):
        turn = Turn(tool_calls=[ToolCall("c1", "fly")])
        response = await Agent(FakeProvider([turn, "ok"]), tools=tools).run("go")
        result = response.messages[1]
        assert isinstance(result, ToolMessage)
        assert result.tool_output == (f"there is no tool 'fly'; the tools are: {told}")


async def test_hooks_around_a_tool_get_its_call_and_their_ids_do_not_count() -> None:
    """Each knows the call's id and the tool's name; results answer the model's call."""
    seen: list[tuple[str, str | None, str | None]] = []

    class Hooks:
        @hookimpl
        def before_tool(self, call: ToolCall, run: RunContext[Any]) -> None:
            seen.append(("before", run.call_id, run.tool_name))

        @hookimpl
        async def around_tool(
            self, call: ToolCall, run: RunContext[Any], call_tool: Any
        ) -> Any:
            seen.append(("around", run.call_id, run.tool_name))
            return await call_tool(ToolCall("other", call.tool_name, "{}"))

        @hookimpl
        def after_tool(self, message: ToolMessage, run: RunContext[Any]) -> ToolMessage:
            seen.append(("after", run.call_id, run.tool_name))
            return ToolMessage(
                call_id="another", tool_name="work", tool_output=message.tool_output
            )

    turn = Turn(tool_calls=[ToolCall("c1", "work")])
    agent = Agent(FakeProvider([turn, "ok"]), tools=[work], hooks=[Hooks()])
    handle = agent.start("go")
    response = await handle
    assert seen == [(each, "c1", "work") for each in ("before", "around", "after")]
    assert handle.receipts == {"c1": "finished"}
    assert response.messages[1] == ToolMessage(
        call_id="c1", tool_name="work", tool_output='"done"'
    )
