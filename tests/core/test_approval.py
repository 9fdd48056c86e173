"""Runs that wait for a person, in this process and in another one."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from support.torture import examples

from lighter_core import (
    Agent,
    AgentResponse,
    ApprovalRequest,
    AssistantMessage,
    HistoryError,
    HookError,
    LimitExceededError,
    Message,
    PausedRun,
    PendingCall,
    RunContext,
    RunLimits,
    SystemMessage,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    ToolMessage,
    Usage,
    UserMessage,
    check_history,
    hookimpl,
    tool,
)
from lighter_core.adapters import note
from lighter_core.pausing import Resumption
from lighter_core.sessions import Session, SQLiteStore
from lighter_core.testing import FakeProvider, Turn

pytestmark = pytest.mark.usefixtures("no_leaks")


class Desk:
    """Tools that note what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []
        desk = self

        @tool
        async def read(name: str) -> str:
            """Read a file."""
            desk.done.append(f"read {name}")
            return f"text of {name}"

        @tool(approval=True)
        async def delete(name: str) -> str:
            """Delete a file."""
            desk.done.append(f"delete {name}")
            return "deleted"

        self.tools = [read, delete]


def calling(*calls: str) -> Turn:
    """Return a turn with calls such as `"delete a"`; their ids are c1, c2, …."""
    made = [
        ToolCall(f"c{number}", name, json.dumps({"name": argument}))
        for number, (name, _, argument) in enumerate(
            (each.partition(" ") for each in calls), 1
        )
    ]
    return Turn(tool_calls=made, usage=Usage(10, 1))


def results(response: AgentResponse[Any]) -> list[tuple[str, bool]]:
    return [
        (m.tool_output, m.is_error)
        for m in response.messages
        if isinstance(m, ToolMessage)
    ]


DONE = ('"deleted"', False)


async def test_a_run_pauses_before_a_tool_that_wants_approval() -> None:
    desk = Desk()
    provider = FakeProvider([calling("read a", "delete a", "read b"), "ok"])
    response = await Agent(provider, tools=desk.tools).run("go")
    assert response.status == "paused"
    assert response.error is None
    assert response.raise_if_failed() is response
    assert response.usage == Usage(10, 1)
    assert desk.done == ["read a"]
    call = ToolCall("c2", "delete", '{"name": "a"}')
    assert response.pending == (PendingCall(call),)
    assert check_history(response.messages) == []
    told = [text for text, _ in results(response)]
    assert told[0] == '"text of a"'
    assert "a person has not decided" in told[1]
    assert len(provider.requests) == 1


@pytest.mark.parametrize("how", ["same", "json"])
async def test_an_approved_call_runs_and_the_run_goes_on(how: str) -> None:
    desk = Desk()
    first = Agent(
        FakeProvider([calling("read a", "delete a", "read b")]), tools=desk.tools
    )
    paused = await first.run([UserMessage("go")])
    assert paused.paused is not None
    state = paused.paused
    provider = FakeProvider(["ok"])
    second = Agent(provider, tools=desk.tools)
    if how == "json":
        state = PausedRun.from_json(state.to_json())
        assert state == paused.paused
    response = await second.resume(state, {"c2": True})
    assert response.status == "completed"
    assert response.text == "ok"
    assert desk.done == ["read a", "delete a", "read b"]
    assert results(response) == [
        ('"text of a"', False),
        DONE,
        ('"text of b"', False),
    ]
    assert response.usage == Usage(10, 1)
    assert [m.role for m in response.messages] == [
        *("assistant", "tool", "tool", "tool"),
        "assistant",
    ]
    sent = provider.requests[0].messages
    assert sent == [
        SystemMessage("You are a helpful assistant."),
        UserMessage("go"),
        *response.messages[:-1],
    ]


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (False, "a person denied this call"),
        ("not on Fridays", "a person denied this call: not on Fridays"),
    ],
)
async def test_a_denied_call_never_runs(decision: bool | str, text: str) -> None:
    desk = Desk()
    agent = Agent(FakeProvider([calling("delete a"), "pity"]), tools=desk.tools)
    response = await agent.resume(await agent.run("go"), {"c1": decision})
    assert desk.done == []
    assert results(response) == [(text, True)]
    assert response.text == "pity"


async def test_another_call_can_be_approved_instead() -> None:
    desk = Desk()
    agent = Agent(FakeProvider([calling("delete a"), "ok"]), tools=desk.tools)
    other = ToolCall("any", "delete", '{"name": "b"}')
    response = await agent.resume(await agent.run("go"), {"c1": other})
    assert desk.done == ["delete b"]
    result = response.messages[1]
    assert isinstance(result, ToolMessage)
    assert result.call_id == "c1"


async def test_all_that_wait_are_asked_about_at_once() -> None:
    desk = Desk()
    agent = Agent(
        FakeProvider([calling("delete a", "read b", "delete c"), "ok"]),
        tools=desk.tools,
    )
    paused = await agent.run("go")
    assert [each.call.call_id for each in paused.pending] == ["c1", "c3"]
    assert desk.done == []
    response = await agent.resume(paused, {"c1": True, "c3": False})
    assert desk.done == ["delete a", "read b"]
    assert [error for _, error in results(response)] == [False, False, True]


async def test_a_run_can_pause_again_and_again() -> None:
    desk = Desk()
    turns = [calling("delete a"), calling("delete b"), "ok"]
    agent = Agent(FakeProvider(turns), tools=desk.tools)
    response = await agent.run("go")
    for count in (1, 2):
        assert response.status == "paused"
        assert len(desk.done) == count - 1
        response = await agent.resume(response, {"c1": True})
    assert response.text == "ok"
    assert desk.done == ["delete a", "delete b"]
    assert response.usage == Usage(20, 2)


class Careful:
    """A gate that wants approval for deletions, and says why."""

    def __init__(self, *answers: object) -> None:
        self.asked: list[str] = []
        self._answers = answers

    @hookimpl
    def before_tool(self, call: ToolCall) -> Any:
        self.asked.append(call.call_id)
        if call.tool_name == "read" and "secret" in call.arguments:
            return ApprovalRequest("it is secret")
        return None


async def test_a_hook_can_ask_for_approval() -> None:
    desk, gate = Desk(), Careful()
    agent = Agent(
        FakeProvider([calling("read a", "read secret", "delete a"), "ok"]),
        tools=desk.tools,
        hooks=[gate],
    )
    paused = await agent.run("go")
    assert [(each.call.call_id, each.reason) for each in paused.pending] == [
        ("c2", "it is secret"),
        ("c3", ""),
    ]
    assert desk.done == ["read a"]
    response = await agent.resume(paused, {"c2": True, "c3": True})
    assert response.status == "completed"
    assert desk.done == ["read a", "read secret", "delete a"]
    assert gate.asked == ["c1", "c2", "c2", "c3"]  # gates hold for approved calls too


async def test_who_denies_wins_over_who_asks() -> None:
    class Deny:
        @hookimpl
        def before_tool(self, call: ToolCall) -> ToolMessage:
            return ToolMessage(
                call_id=call.call_id,
                tool_name=call.tool_name,
                tool_output="never",
                is_error=True,
            )

    desk = Desk()
    for hooks in ([Careful(), Deny()], [Deny(), Careful()]):
        agent = Agent(
            FakeProvider([calling("read secret"), "ok"]), tools=desk.tools, hooks=hooks
        )
        response = await agent.run("go")
        assert results(response) == [("never", True)]
    assert desk.done == []


async def test_an_approved_call_runs_in_the_form_that_gates_gave_it() -> None:
    class Rewrite:
        @hookimpl
        def before_tool(self, call: ToolCall) -> ToolCall:
            return ToolCall(call.call_id, call.tool_name, '{"name": "secret copy"}')

    desk = Desk()
    agent = Agent(
        FakeProvider([calling("read secret"), "ok"]),
        tools=desk.tools,
        hooks=[Rewrite(), Careful()],
    )
    paused = await agent.run("go")
    assert paused.status == "paused"
    await agent.resume(paused, {"c1": True})
    assert desk.done == ["read secret copy"]


async def test_a_gate_that_breaks_still_fails_closed() -> None:
    class Broken:
        @hookimpl
        def before_tool(self, call: ToolCall) -> object:
            return "yes"

    desk = Desk()
    agent = Agent(
        FakeProvider([calling("delete a")]), tools=desk.tools, hooks=[Broken()]
    )
    paused = await agent.run("go")
    assert paused.status == "paused"  # nothing was asked before the person
    response = await agent.resume(paused, {"c1": True})
    assert isinstance(response.error, HookError)
    assert desk.done == []


# Parallel tools.


async def test_parallel_tools_before_a_waiting_one_run_and_are_kept() -> None:
    desk = Desk()
    agent = Agent(
        FakeProvider([calling("read a", "read b", "delete a", "read c"), "ok"]),
        tools=desk.tools,
        parallel_tools=True,
    )
    paused = await agent.run("go")
    assert sorted(desk.done) == ["read a", "read b"]
    response = await agent.resume(paused, {"c3": True})
    assert sorted(desk.done) == ["delete a", "read a", "read b", "read c"]
    assert [m.call_id for m in response.messages if isinstance(m, ToolMessage)] == [
        "c1",
        "c2",
        "c3",
        "c4",
    ]


async def test_results_behind_a_waiting_call_are_kept_through_json() -> None:
    """A hook stops the first of three parallel calls; the others have run."""
    desk = Desk()
    agent = Agent(
        FakeProvider([calling("read secret", "read b", "read c"), "ok"]),
        tools=desk.tools,
        hooks=[Careful()],
        parallel_tools=True,
    )
    paused = await agent.run("go")
    assert sorted(desk.done) == ["read b", "read c"]
    assert [t for t, _ in results(paused)][1:] == ['"text of b"', '"text of c"']
    assert paused.paused is not None
    state = PausedRun.from_json(paused.paused.to_json())
    assert [each.call_id for each in state.results] == ["c2", "c3"]
    response = await agent.resume(state, {"c1": "no"})
    assert sorted(desk.done) == ["read b", "read c"]
    assert [error for _, error in results(response)] == [True, False, False]


# Every way to run.


async def test_streams_pause_and_go_on() -> None:
    desk = Desk()
    agent = Agent(FakeProvider([calling("delete a"), "ok"]), tools=desk.tools)
    async with agent.stream("go") as stream:
        events = [event async for event in stream]
    (paused,) = events
    assert isinstance(paused, AgentResponse)
    assert paused.paused is not None
    again = agent.stream(paused.paused.decide({"c1": True}))
    async with again as stream:
        kinds = [type(event) async for event in stream]
    assert kinds[:2] == [ToolCallStarted, ToolCallFinished]
    assert desk.done == ["delete a"]


def test_synchronous_code_pauses_and_goes_on() -> None:
    desk = Desk()
    agent = Agent(FakeProvider([calling("delete a"), "ok"]), tools=desk.tools)
    paused = agent.run_sync("go").paused
    assert paused is not None
    assert agent.run_sync(paused.decide({"c1": True})).text == "ok"


async def test_output_and_deps_are_given_again() -> None:
    class Sum(BaseModel):
        """A sum."""

        value: int

    @tool(approval=True)
    async def ask(run: RunContext[int]) -> int:
        """Ask."""
        return run.deps

    agent = Agent(
        FakeProvider(
            [
                calling("ask").__class__(tool_calls=[ToolCall("c1", "ask", "{}")]),
                '{"value": 7}',
            ]
        ),
        tools=[ask],
    )
    paused = await agent.run("go", output=Sum, deps=7)
    assert paused.output is None
    response = await agent.resume(paused, {"c1": True}, output=Sum, deps=7)
    assert response.output == Sum(value=7)


async def test_limits_count_over_the_pause() -> None:
    desk = Desk()
    turns = [calling("delete a"), calling("delete b"), "never"]
    agent = Agent(
        FakeProvider(turns), tools=desk.tools, limits=RunLimits(model_calls=2)
    )
    paused = await agent.run("go")
    paused = await agent.resume(paused, {"c1": True})
    response = await agent.resume(paused, {"c1": True})
    assert isinstance(response.error, LimitExceededError)
    assert desk.done == ["delete a", "delete b"]


async def test_hooks_see_a_paused_run_end_and_go_on() -> None:
    seen: list[tuple[str, str | None]] = []

    class Watch:
        @hookimpl
        def on_run_end(
            self, response: AgentResponse[object], run: RunContext[Any]
        ) -> None:
            seen.append((response.status, run.run_id))

        @hookimpl
        def before_agent(self) -> None:
            seen.append(("begins", None))

        @hookimpl
        def after_agent(self) -> None:
            seen.append(("succeeds", None))

    desk = Desk()
    agent = Agent(
        FakeProvider([calling("delete a"), "ok"]), tools=desk.tools, hooks=[Watch()]
    )
    paused = await agent.run("go")
    await agent.resume(paused, {"c1": True})
    assert [status for status, _ in seen] == [
        *("begins", "paused"),
        *("succeeds", "completed"),
    ]
    assert seen[1][1] == seen[3][1]


# Sessions.


async def test_a_session_pauses_and_goes_on(tmp_path: Any) -> None:
    desk = Desk()
    turns = [calling("read a", "delete a"), "ok", "bye"]
    agent = Agent(FakeProvider(turns), tools=desk.tools)
    async with SQLiteStore(tmp_path / "s.db") as store:
        session = Session(agent, store, "one")
        paused = await session.run("go")
        assert paused.paused is not None
        state = PausedRun.from_json(paused.paused.to_json())
        response = await Session(agent, store, "one").run(state.decide({"c2": True}))
        assert response.text == "ok"
        await session.run("and?")
        stored = await session.messages()
    assert stored == [
        UserMessage("go"),
        *response.messages,
        UserMessage("and?"),
        AssistantMessage("bye", stop_reason="end_turn"),
    ]
    assert desk.done == ["read a", "delete a"]


async def test_a_session_that_has_gone_on_is_not_taken_up(tmp_path: Any) -> None:
    desk = Desk()
    agent = Agent(FakeProvider([calling("delete a"), "other"]), tools=desk.tools)
    async with SQLiteStore(tmp_path / "s.db") as store:
        session = Session(agent, store, "one")
        paused = await session.run("go")
        assert paused.paused is not None
        assert (await session.run("never mind")).text == "other"
        response = await session.run(paused.paused.decide({"c1": True}))
    assert isinstance(response.error, HistoryError)
    assert "not where the run paused" in str(response.error)
    assert desk.done == []


# What is refused.


async def test_decisions_must_fit() -> None:
    desk = Desk()
    agent = Agent(
        FakeProvider([calling("delete a", "delete b"), "ok"]), tools=desk.tools
    )
    done = await Agent(FakeProvider(["ok"])).run("go")
    with pytest.raises(ValueError, match="not paused"):
        agent.resume(done, {})
    response = await agent.run("go")
    with pytest.raises(ValueError, match=r"no decision about the calls \['c2'\]"):
        agent.resume(response, {"c1": True})
    with pytest.raises(ValueError, match=r"no such calls are pending: \['c9'\]"):
        agent.resume(response, {"c1": True, "c2": True, "c9": True})
    with pytest.raises(ValueError, match="'read' was decided"):
        agent.resume(response, {"c1": True, "c2": ToolCall("c2", "read", "{}")})
    with pytest.raises(TypeError, match="got int for the call 'c1'"):
        agent.resume(response, {"c1": 1, "c2": True})  # type: ignore[dict-item]
    assert desk.done == []


@pytest.mark.parametrize(
    "document",
    [
        "",
        "[]",
        "{}",
        '{"lighter_paused_run": 2}',
        '{"lighter_paused_run": true}',
        '{"lighter_paused_run": 1, "run_id": 1}',
    ],
)
def test_other_documents_are_refused(document: str) -> None:
    with pytest.raises(HistoryError):
        PausedRun.from_json(document)


async def test_damaged_documents_are_refused_and_run_nothing() -> None:
    desk = Desk()
    agent = Agent(FakeProvider([calling("read a", "delete a")]), tools=desk.tools)
    paused = (await agent.run("go")).paused
    assert paused is not None
    whole = json.loads(paused.to_json())
    for name in whole:
        for value in (None, 1, -1, "x", [], {}, [{}], True):
            if value == whole[name]:
                continue
            try:
                read = PausedRun.from_json(json.dumps({**whole, name: value}))
            except HistoryError:
                continue
            assert read.pending  # a harmless difference
        less = {key: each for key, each in whole.items() if key != name}
        with pytest.raises(HistoryError):
            PausedRun.from_json(json.dumps(less))
    assert desk.done == ["read a"]


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_nothing_runs_twice_however_often_it_pauses(data: st.DataObject) -> None:
    """Random replies and decisions, through JSON each time, in parallel or not."""
    desk = Desk()
    number = 0
    turns: list[Any] = []
    for _ in range(data.draw(st.integers(1, 4))):
        names = data.draw(
            st.lists(
                st.sampled_from(["read", "delete", "read secret-"]),
                min_size=1,
                max_size=4,
            )
        )
        made: list[ToolCall] = []
        for name in names:
            number += 1
            kind, _, extra = name.partition(" ")
            arguments = json.dumps({"name": f"{extra}{number}"})
            made.append(ToolCall(f"c{number}", kind, arguments))
        turns.append(Turn(tool_calls=made))
    provider = FakeProvider([*turns, "end"])
    agent = Agent(
        provider,
        tools=desk.tools,
        hooks=[Careful()],
        parallel_tools=data.draw(st.booleans()),
    )
    response = agent.run_sync("go")
    denied = 0
    while response.paused is not None:
        assert check_history(response.messages) == []
        state = PausedRun.from_json(response.paused.to_json())
        decisions = {
            each.call.call_id: data.draw(st.booleans()) for each in state.pending
        }
        denied += list(decisions.values()).count(False)
        response = agent.run_sync(state.decide(decisions))
    assert response.status == "completed"
    assert len(set(desk.done)) == len(desk.done) == number - denied
    history: list[Message] = [UserMessage("go"), *response.messages]
    assert check_history(history) == []
    assert [t for t, _ in results(response) if "has not decided" in t] == []


WAITS = ToolCall("c1", "delete", "{}")
PAUSED: dict[str, Any] = {
    "run_id": "r",
    "input": (UserMessage("go"),),
    "messages": (AssistantMessage(tool_calls=[WAITS]),),
    "pending": (PendingCall(WAITS),),
}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (ApprovalRequest, "ApprovalRequest.reason must be a str"),
        (lambda bad: PendingCall(WAITS, bad), "PendingCall.reason must be a str"),
        (PendingCall, "PendingCall.call takes ToolCall, got object"),
        (lambda bad: Resumption(bad, {}), "Resumption.paused takes PausedRun"),
        *[
            (
                lambda bad, make=make: Resumption(PausedRun(**PAUSED), make(bad)),
                f"Resumption.decisions takes {says}, got object",
            )
            for make, says in (
                (lambda bad: bad, "Mapping"),
                (lambda bad: {bad: True}, "str"),
                (lambda bad: {"c1": bad}, "bool or str or ToolCall"),
            )
        ],
        *[
            (
                lambda bad, name=name, make=make: PausedRun(
                    **{**PAUSED, name: make(bad)}
                ),
                f"PausedRun.{name} ",
            )
            for name, make in (
                ("run_id", lambda bad: bad),
                ("input", lambda bad: (bad,)),
                ("messages", lambda bad: bad),
                ("results", lambda bad: (UserMessage("no result"),)),
                ("pending", lambda bad: (WAITS,)),
                ("decided", lambda bad: {"c1": bad}),
                ("decided", lambda bad: {7: True}),
                ("model_calls", lambda bad: bad),
                ("model_calls", lambda bad: True),
                ("calls_by_name", lambda bad: {"x": -1}),
                ("calls_by_name", lambda bad: {7: 1}),
                ("usage", lambda bad: bad),
                ("stop_reason", lambda bad: bad),
                ("notes", lambda bad: (bad,)),
            )
        ],
        (lambda bad: note(bad, provider="x"), "a note is a str, got object"),
    ],
)
def test_what_no_document_can_hold_is_refused_where_it_is_given(
    make: Any, says: str
) -> None:
    """And not when the paused run is written, long after."""
    with pytest.raises((TypeError, ValueError), match=re.escape(says)):
        make(object())


async def test_a_gate_whose_reason_is_no_text_fails_the_run() -> None:
    class Gate:
        @hookimpl
        def before_tool(self, call: ToolCall) -> ApprovalRequest:
            return ApprovalRequest(["secret"])  # type: ignore[arg-type]

    desk = Desk()
    agent = Agent(FakeProvider([calling("read a")]), tools=desk.tools, hooks=[Gate()])
    response = await agent.run("go")
    assert response.status == "failed"
    assert "ApprovalRequest.reason must be a str, got list" in str(response.error)
    assert desk.done == []


@pytest.mark.parametrize(
    "decided",
    [{}, {"c1": True}, {"c1": False}, {"c1": "not now"}, {"c1": WAITS}],
    ids=["nothing", "yes", "no", "words", "call"],
)
def test_a_paused_run_of_the_least_comes_back(decided: Any) -> None:
    """With what was decided about calls that have not had their turn."""
    paused = PausedRun(**PAUSED, decided=decided)
    read = PausedRun.from_json(paused.to_json())
    assert read == paused
    assert read.decided == decided
