"""Histories and whole runs under generated scripts: always valid, once, and the same."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.torture import examples

from lighter_core import (
    AfterAgentHook,
    AfterModelHook,
    Agent,
    AgentRequest,
    AgentResponse,
    AssistantMessage,
    BeforeAgentHook,
    BeforeModelHook,
    LimitExceededError,
    Message,
    Model,
    ModelError,
    ModelRequest,
    ProviderContractError,
    ReasoningDelta,
    RunContext,
    RunLimits,
    SystemMessage,
    TextDelta,
    Tool,
    ToolCall,
    ToolError,
    ToolMessage,
    UserMessage,
    check_history,
    repair_history,
    tool,
)
from lighter_core import MessageEvent as Whole
from lighter_core.testing import FakeProvider, Turn

FAST = settings(
    max_examples=examples(100),
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

# Histories.

IDS = st.sampled_from(["", "a", "b", "c", "a_1", "call_1"])
CALLS = st.builds(ToolCall, IDS, st.just("t"), st.sampled_from(["", "{}"]))
MESSAGES = st.one_of(
    st.builds(UserMessage, st.sampled_from(["u1", "u2"])),
    st.builds(SystemMessage, st.just("s")),
    st.builds(AssistantMessage, st.just("x"), tool_calls=st.lists(CALLS, max_size=3)),
    st.builds(
        ToolMessage, call_id=IDS, tool_name=st.just("t"), tool_output=st.just("1")
    ),
)
HISTORIES = st.lists(MESSAGES, max_size=10)


@FAST
@given(HISTORIES)
def test_repair_makes_any_history_acceptable(history: list[Message]) -> None:
    """KF-047: the result passes the check, and repairing it again changes nothing."""
    before = list(history)
    repaired = repair_history(history)
    assert history == before
    assert check_history(repaired.messages) == []
    again = repair_history(repaired.messages)
    assert again.notes == []
    assert all(a is b for a, b in zip(again.messages, repaired.messages, strict=True))
    assert repair_history(history) == repaired


@FAST
@given(HISTORIES)
def test_repair_changes_exactly_what_the_check_complains_of(
    history: list[Message],
) -> None:
    """A valid history comes back as it is; an invalid one with a note for each change."""
    repaired = repair_history(history)
    if check_history(history):
        assert repaired.notes
    else:
        assert repaired.notes == []
        assert all(a is b for a, b in zip(repaired.messages, history, strict=True))


@FAST
@given(HISTORIES)
def test_repair_keeps_every_message_but_results_and_every_call(
    history: list[Message],
) -> None:
    """KF-047, KF-049: nothing but stray results goes; no result is used twice."""

    def rest(messages: list[Message]) -> list[tuple[str, Any]]:
        return [
            (m.role, [c.tool_name for c in m.tool_calls])
            if isinstance(m, AssistantMessage)
            else (m.role, m.content)
            for m in messages
            if not isinstance(m, ToolMessage)
        ]

    repaired = repair_history(history)
    assert rest(repaired.messages) == rest(history)

    def real(messages: list[Message]) -> int:
        return sum(isinstance(m, ToolMessage) and not m.is_error for m in messages)

    assert real(repaired.messages) <= real(history)


@FAST
@given(st.data())
def test_any_prefix_of_a_valid_history_is_repaired_by_closing_calls_only(
    data: st.DataObject,
) -> None:
    """KF-046: a history cut anywhere, as by a crash, keeps what it has."""
    rounds = data.draw(st.lists(st.integers(0, 3), max_size=4))
    history: list[Message] = []
    for number, calls in enumerate(rounds):
        history.append(UserMessage(f"u{number}"))
        ids = [f"{number}-{each}" for each in range(calls)]
        history.append(AssistantMessage("", tool_calls=[ToolCall(i, "t") for i in ids]))
        history += [ToolMessage(call_id=i, tool_name="t", tool_output="1") for i in ids]
    assert check_history(history) == []
    cut = history[: data.draw(st.integers(0, len(history)))]
    repaired = repair_history(cut)
    assert repaired.messages[: len(cut)] == cut
    assert all(m.is_error for m in repaired.messages[len(cut) :])  # type: ignore[union-attr]
    assert all(note.startswith("closed") for note in repaired.notes)


def _call(*ids: str) -> AssistantMessage:
    return AssistantMessage("", tool_calls=[ToolCall(each, "t") for each in ids])


def _result(call_id: str, output: str = "1") -> ToolMessage:
    return ToolMessage(call_id=call_id, tool_name="t", tool_output=output)


USER = UserMessage("u")
CASES: dict[str, tuple[list[Message], list[str], str]] = {
    "call without result": ([_call("a")], ["assistant", "tool"], "closed"),
    "result without call": ([USER, _result("a")], ["user"], "dropped"),
    "results out of order": (
        [_call("a", "b"), _result("b"), _result("a")],
        ["assistant", "tool", "tool"],
        "moved",
    ),
    "duplicate result": (
        [_call("a"), _result("a"), _result("a")],
        ["assistant", "tool"],
        "dropped",
    ),
    "result after a user message": (
        [_call("a"), USER, _result("a")],
        ["assistant", "tool", "user"],
        "moved",
    ),
    "result before its call": (
        [_result("a"), _call("a")],
        ["assistant", "tool"],
        "dropped",
    ),
    "repeated id": (
        [_call("a", "a"), _result("a", "1"), _result("a", "2")],
        ["assistant", "tool", "tool"],
        "renamed",
    ),
    "empty ids": (
        [_call("", ""), _result("", "1"), _result("", "2")],
        ["assistant", "tool", "tool"],
        "renamed",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_faulty_history_is_repaired_by_runs_and_refused_by_models(
    case: str,
) -> None:
    """KF-046, KF-047: a run reports its repair; a direct call sends nothing."""
    history, roles, note = CASES[case]
    assert check_history(history)
    provider = FakeProvider(["ok"])
    response = await Agent(provider, system_prompt=None).run(history)
    assert [m.role for m in provider.requests[0].messages] == roles
    assert response.notes[0].startswith(note)
    assert [m.role for m in response.messages] == ["assistant"]
    model = Model(provider)
    with pytest.raises(ModelError, match="tool") as caught:
        await model.invoke(ModelRequest(history))
    assert caught.value.code == "invalid_request"
    with pytest.raises(ModelError):
        await anext(model.stream(ModelRequest(history)))
    assert len(provider.requests) == 1


def test_repair_of_a_long_broken_history_is_quick() -> None:
    """KF-107: thousands of unanswered calls are no quadratic trap."""
    history: list[Message] = []
    for number in range(3000):
        history += [UserMessage("u"), _call(f"c{number}")]
    repaired = repair_history(history)
    assert len(repaired.messages) == 9000
    assert check_history(repaired.messages) == []


# Runs under generated scripts.


@dataclass(frozen=True)
class Plan:
    """One turn of a script: its calls, or a failure."""

    calls: tuple[tuple[str, str, str], ...]  # id, tool, arguments
    text: str
    failure: str | None


OUTCOMES = ["ok", "fail", "tool_error", "cancelled", "none", "nan", "thread", "quiet"]


def make_tool(ledger: Counter[str]) -> Tool:
    @tool
    async def act(how: str, run: RunContext[Any]) -> Any:
        """Act."""
        ledger[str(run.call_id)] += 1
        if how == "fail":
            raise ValueError("no")
        if how == "tool_error":
            raise ToolError("no")
        if how == "cancelled":
            raise asyncio.CancelledError
        if how == "thread":
            await asyncio.sleep(0)
        return {"none": None, "nan": float("nan")}.get(how, how)

    return act


def turns() -> st.SearchStrategy[list[Plan]]:
    call = st.tuples(
        st.sampled_from(["1", "2", "3", "1", ""]),
        st.sampled_from(["act", "act", "act", "nope"]),
        st.one_of(
            st.sampled_from([f'{{"how": "{each}"}}' for each in OUTCOMES]),
            st.sampled_from(["", "null", "[1]", '{"how"', '{"how": 3}']),
        ),
    )
    plan = st.builds(
        Plan,
        st.lists(call, max_size=3).map(tuple),
        st.sampled_from(["", "text", "a✓😀"]),
        st.sampled_from(
            [None, None, None, None, "start", "middle", "end", "twice", "late"]
        ),
    )
    return st.lists(plan, min_size=1, max_size=4)


def provider_of(plans: list[Plan]) -> FakeProvider:
    script: list[Any] = []
    for number, plan in enumerate(plans):
        message = AssistantMessage(
            plan.text,
            reasoning="why" if number % 2 else None,
            tool_calls=[
                ToolCall(i and f"{number}-{i}", t, a) for i, t, a in plan.calls
            ],
        )
        deltas: list[Any] = [ReasoningDelta("why")] if number % 2 else []
        deltas += [TextDelta(each) for each in plan.text]
        error = ModelError("down", "server_error")
        steps = {
            "start": [error],
            "middle": [*deltas, error],
            "end": [*deltas],
        }.get(plan.failure or "", [*deltas, Whole(message)])
        script.append(steps)
    return FakeProvider(script)


async def by_run(agent: Agent) -> AgentResponse:
    return await agent.run("go")


async def by_stream(agent: Agent) -> AgentResponse:
    stream = agent.stream("go")
    events = []
    async for event in stream:
        events.append(event)
        assert check_history([UserMessage("go"), *stream.messages]) == []
    assert isinstance(events[-1], AgentResponse)
    text = "".join(e.text for e in events if isinstance(e, TextDelta))
    replies = [m for m in events[-1].messages if isinstance(m, AssistantMessage)]
    if events[-1].status == "completed":
        assert text == "".join(m.content for m in replies)
    assert stream.messages == events[-1].messages
    return events[-1]


@FAST
@given(turns())
async def test_generated_scripts_end_valid_once_and_the_same_in_run_and_stream(
    plans: list[Plan],
) -> None:
    """KF-010, KF-023, KF-027 to KF-030, KF-091: every invariant of a run, for any script."""
    responses: list[AgentResponse] = []
    for door in (by_run, by_stream):
        ledger: Counter[str] = Counter()
        provider = provider_of(plans)
        agent = Agent(provider, tools=[make_tool(ledger)])
        async with asyncio.timeout(10):
            response = await door(agent)
        responses.append(response)
        assert check_history([UserMessage("go"), *response.messages]) == []
        assert all(count == 1 for count in ledger.values())
        answered = {m.call_id for m in response.messages if isinstance(m, ToolMessage)}
        assert set(ledger) <= answered
        replies = [m for m in response.messages if isinstance(m, AssistantMessage)]
        assert len(replies) <= len(provider.requests) <= len(plans) + 1
        assert (response.status == "completed") == (response.error is None)
        if response.status == "completed":
            assert not replies[-1].tool_calls
    first, second = responses
    assert first.messages == second.messages
    assert first.status == second.status
    assert first.usage == second.usage
    if first.error is not None:
        assert isinstance(first.error, ModelError)
        assert isinstance(second.error, ModelError)
        assert first.error.code == second.error.code


@FAST
@given(turns(), st.integers(0, 30))
async def test_leaving_a_generated_stream_anywhere_leaves_a_usable_history(
    plans: list[Plan], k: int
) -> None:
    """KF-046, KF-049, KF-073: what was done is kept, once, and can be continued."""
    ledger: Counter[str] = Counter()
    provider = provider_of(plans)
    agent = Agent(provider, tools=[make_tool(ledger)])
    async with agent.stream("go") as stream:
        while k:
            if await anext(stream, None) is None:
                break
            k -= 1
    messages = [UserMessage("go"), *stream.messages]
    assert check_history(messages) == []
    real = {m.call_id for m in messages if isinstance(m, ToolMessage)}
    assert set(ledger) <= real
    assert all(count == 1 for count in ledger.values())
    assert provider.closed_streams == len(provider.requests)
    follow = FakeProvider(["ok"])
    response = await Agent(follow).run([*messages, UserMessage("on")])
    assert (response.status, response.notes) == ("completed", [])


# The provider's grammar (KF-010, KF-027).

_DONE = Whole(AssistantMessage("x"))
_TWICE = AssistantMessage("", tool_calls=[ToolCall("1", "t"), ToolCall("1", "t")])
BAD_STREAMS: dict[str, tuple[list[Any], int]] = {
    "no message": ([TextDelta("x"), TextDelta("y")], 3),
    "nothing": ([], 1),
    "two messages": ([_DONE, _DONE], 2),
    "text after the message": ([TextDelta("x"), _DONE, TextDelta("y")], 3),
    "something else": ([TextDelta("x"), "text"], 2),
    "no assistant message": ([Whole(UserMessage("x"))], 1),  # type: ignore[arg-type]
    "empty id": ([Whole(_call("", "a"))], 1),
    "repeated id": ([Whole(_TWICE)], 1),
}


@pytest.mark.parametrize("case", BAD_STREAMS)
async def test_provider_that_breaks_the_grammar_fails_and_no_tool_runs(
    case: str,
) -> None:
    """KF-010, KF-027: bad_response with the number of the event, nothing executed."""
    steps, number = BAD_STREAMS[case]
    ran: list[int] = []
    each = Tool(
        name="t",
        description="",
        parameters={"type": "object"},
        func=lambda _: ran.append(1),
    )
    provider = FakeProvider([steps])
    *_, response = [e async for e in Agent(provider, tools=[each]).stream("go")]
    assert isinstance(response, AgentResponse)
    assert isinstance(response.error, ProviderContractError)
    assert response.error.code == "bad_response"
    assert response.error.event_number == number
    assert (ran, response.messages) == ([], [])
    assert provider.closed_streams == 1


# Hooks (KF-085 to KF-090).


def count_hooks(counts: Counter[str], fail: str | None = None) -> list[object]:
    def counting(name: str) -> Callable[[Any], None]:
        def hook(_: object) -> None:
            counts[name] += 1
            if fail == f"{name}{counts[name]}":
                raise ValueError(fail)

        return hook

    return [
        kind(hook_name=name, hook_function=counting(name))
        for kind, name in (
            (BeforeAgentHook, "before_agent"),
            (BeforeModelHook, "before_model"),
            (AfterModelHook, "after_model"),
            (AfterAgentHook, "after_agent"),
        )
    ]


def three_turns() -> list[Any]:
    calls = [Turn(tool_calls=[ToolCall(f"c{n}", "t", "")]) for n in range(2)]
    return [*calls, "done"]


def plain_tool() -> Tool:
    return Tool(
        name="t", description="", parameters={"type": "object"}, func=lambda _: 1
    )


async def end_of(agent: Agent, door: str, given: Any = "go") -> AgentResponse:
    if door == "run":
        return await agent.run(given)
    *_, response = [event async for event in agent.stream(given)]
    assert isinstance(response, AgentResponse)
    return response


DOORS = pytest.mark.parametrize("door", ["run", "stream"])


@DOORS
@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        (["x"], (1, 1, 1, 1)),
        (three_turns(), (1, 3, 3, 1)),
        ([Turn(tool_calls=[ToolCall("c", "nope", "")]), "x"], (1, 2, 2, 1)),
        ([ModelError("x", "server_error")], (1, 1, 0, 0)),
        ([three_turns()[0], ModelError("x", "server_error")], (1, 2, 1, 0)),
    ],
)
async def test_hooks_run_as_often_as_documented(
    door: str, script: list[Any], wanted: tuple[int, ...]
) -> None:
    """KF-086: once a run, once a model call; after_agent on success only."""
    counts: Counter[str] = Counter()
    agent = Agent(FakeProvider(script), tools=[plain_tool()], hooks=count_hooks(counts))
    await end_of(agent, door)
    names = ("before_agent", "before_model", "after_model", "after_agent")
    assert tuple(counts[name] for name in names) == wanted


@DOORS
@pytest.mark.parametrize(
    ("fail", "kept"),
    [
        ("before_agent1", 0),
        ("before_model1", 0),
        ("before_model2", 2),
        ("after_model1", 0),
        ("after_model2", 2),
        ("after_agent1", 5),
    ],
)
async def test_hook_that_raises_fails_the_run_with_its_own_error(
    door: str, fail: str, kept: int
) -> None:
    """KF-085, KF-089, KF-099: the same object; completed messages stay, nothing follows."""
    counts: Counter[str] = Counter()
    provider = FakeProvider(three_turns())
    agent = Agent(provider, tools=[plain_tool()], hooks=count_hooks(counts, fail))
    response = await end_of(agent, door)
    assert response.status == "failed"
    assert type(response.error) is ValueError
    assert str(response.error) == fail
    assert fail[:-1] in response.error.__notes__[0]
    assert len(response.messages) == kept
    assert check_history([UserMessage("go"), *response.messages]) == []
    asked = len(provider.requests)
    assert asked == counts["before_model"] - fail.startswith("before_model")


@DOORS
@pytest.mark.parametrize("way", ["mutates", "replaces"])
async def test_change_by_before_model_holds_for_one_call(door: str, way: str) -> None:
    """KF-087, KF-088, KF-090: one added message in each request, none anywhere else."""
    extra = SystemMessage("extra")

    def add(request: ModelRequest) -> ModelRequest | None:
        if way == "mutates":
            request.messages.append(extra)
            return None
        return ModelRequest([*request.messages, extra], tool_specs=request.tool_specs)

    hook = BeforeModelHook(hook_name="add", hook_function=add)
    provider = FakeProvider(three_turns() * 2)
    agent = Agent(provider, tools=[plain_tool()], hooks=[hook])
    history = [UserMessage("go")]
    for _ in range(2):
        response = await end_of(agent, door, history)
        assert extra not in response.messages
    assert history == [UserMessage("go")]
    assert [r.messages.count(extra) for r in provider.requests] == [1] * 6


@DOORS
@pytest.mark.parametrize("way", ["mutates", "replaces"])
async def test_change_by_agent_hooks_is_used_and_leaks_nowhere(
    door: str, way: str
) -> None:
    """KF-087: before_agent changes the input, after_agent the messages, in both ways."""
    seen = UserMessage("by the hook")

    def before(request: AgentRequest) -> AgentRequest | None:
        if way == "mutates":
            request.messages.append(seen)
            return None
        return AgentRequest([*request.messages, seen])

    def after(messages: Any) -> Any:
        if way == "mutates":
            messages.append(seen)
            return None
        return [*messages, seen]

    hooks: list[object] = [
        BeforeAgentHook(hook_name="b", hook_function=before),
        AfterAgentHook(hook_name="a", hook_function=after),
    ]
    provider = FakeProvider(["x"])
    history = [UserMessage("go")]
    response = await end_of(Agent(provider, hooks=hooks), door, history)
    assert provider.requests[0].messages[1:] == [UserMessage("go"), seen]
    assert response.messages == [AssistantMessage("x", stop_reason="end_turn"), seen]
    assert history == [UserMessage("go")]


# Limits and turns (KF-074, KF-075, KF-098 to KF-102).


@DOORS
@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("needed", [1, 2, 3, 4])
async def test_limit_allows_exactly_its_number_of_model_calls(
    door: str, limit: int, needed: int
) -> None:
    """KF-098: reaching it fails with the limit's name and keeps all messages."""
    calls = [Turn(tool_calls=[ToolCall(f"c{n}", "t", "")]) for n in range(needed - 1)]
    provider = FakeProvider([*calls, "done"])
    agent = Agent(provider, tools=[plain_tool()], limits=RunLimits(model_calls=limit))
    response = await end_of(agent, door)
    assert len(provider.requests) == min(limit, needed)
    assert check_history([UserMessage("go"), *response.messages]) == []
    if needed <= limit:
        assert response.status == "completed"
    else:
        assert isinstance(response.error, LimitExceededError)
        assert (response.error.limit, response.error.value) == ("model_calls", limit)
        assert len(response.messages) == 2 * limit


async def test_agent_inside_a_tool_has_a_limit_of_its_own() -> None:
    """KF-100: each limit counts its own calls."""
    inner = Agent(
        FakeProvider(three_turns()),
        tools=[plain_tool()],
        limits=RunLimits(model_calls=2),
    )

    @tool
    async def ask() -> str:
        """Ask the other agent."""
        return (await inner.run("go")).status

    outer = Agent(
        FakeProvider([Turn(tool_calls=[ToolCall("c", "ask", "")]), "done"]),
        tools=[ask],
        limits=RunLimits(model_calls=2),
    )
    response = await outer.run("go")
    assert response.status == "completed"
    assert response.messages[1].tool_output == '"failed"'  # type: ignore[union-attr]


async def test_system_prompt_is_sent_once_and_never_stored() -> None:
    """KF-074: also when the history is fed back and holds system messages of its own."""
    provider = FakeProvider(["x"] * 5)
    agent = Agent(provider, system_prompt="P")
    history: list[Message] = [
        SystemMessage("own"),
        UserMessage("go"),
        SystemMessage("2"),
    ]
    for _ in range(5):
        history += (await agent.run(history)).messages
        history.append(UserMessage("again"))
    for request in provider.requests:
        assert request.messages[0] == SystemMessage("P")
        assert request.messages.count(SystemMessage("P")) == 1
        assert request.messages.count(SystemMessage("own")) == 1
    assert SystemMessage("P") not in history


@DOORS
async def test_empty_last_reply_is_visible(door: str) -> None:
    """KF-075: an empty answer after tool work is there and empty; nothing is retried."""
    provider = FakeProvider([three_turns()[0], Turn(text="")])
    response = await end_of(Agent(provider, tools=[plain_tool()]), door)
    assert response.status == "completed"
    assert response.messages[-1] == AssistantMessage("", stop_reason="end_turn")
    assert len(provider.requests) == 2


async def test_concurrent_runs_of_one_agent_do_not_mix() -> None:
    """KF-101: a hundred runs through run and stream, each sees its own marker only."""
    marker: contextvars.ContextVar[str] = contextvars.ContextVar("marker")

    @tool
    async def mark() -> str:
        """Mark."""
        await asyncio.sleep(0)
        return marker.get()

    def reply(request: ModelRequest) -> Any:
        last = request.messages[-1]
        if isinstance(last, ToolMessage):
            return last.tool_output
        return Turn(tool_calls=[ToolCall("c", "mark", "")])

    agent = Agent(FakeProvider([reply] * 200), tools=[mark])

    async def one(number: int) -> None:
        marker.set(f"m{number}")
        response = await end_of(agent, "run" if number % 2 else "stream", f"m{number}")
        assert response.text == f'"m{number}"'

    await asyncio.gather(*(one(number) for number in range(100)))


async def test_tool_specs_are_the_same_in_every_request() -> None:
    """KF-102: nothing shared grows over thirty calls."""
    turns_ = [Turn(tool_calls=[ToolCall(f"c{n}", "t", "")]) for n in range(29)]
    provider = FakeProvider([*turns_, "done"])
    await Agent(provider, tools=[plain_tool()]).run("go")
    assert len(provider.requests) == 30
    assert len({id(request.tool_specs[0]) for request in provider.requests}) == 1
    assert {len(request.tool_specs) for request in provider.requests} == {1}


def test_one_agent_serves_threads_with_loops_of_their_own() -> None:
    """KF-103: eight threads, each with its own loop and its own runs."""

    def reply(request: ModelRequest) -> str:
        return str(request.messages[-1].text)  # type: ignore[union-attr]

    agent = Agent(FakeProvider([reply] * 400))
    wrong: list[str] = []

    def work(number: int) -> None:
        async def main() -> None:
            for turn in range(25):
                text = f"{number}-{turn}"
                if (await agent.run(text)).text != text:
                    wrong.append(text)

        asyncio.run(main())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# Memory (KF-106).


class Weak(ValueError):
    """An error that can be watched."""


@pytest.mark.parametrize(
    "case", ["completed", "failed", "failed tool", "broken", "start"]
)
async def test_run_leaves_nothing_for_the_collector(case: str) -> None:
    """KF-106: agent, provider, error and stream die with their last reference."""
    script: list[Any] = three_turns()
    each: Tool = plain_tool()
    if case == "failed":

        def down(_: object) -> Any:
            raise Weak("x")

        script = [three_turns()[0], down]
    if case == "failed tool":

        def fail(_: object) -> None:
            raise Weak("x")

        each = Tool(name="t", description="", parameters={"type": "object"}, func=fail)
    gc.collect()
    gc.disable()
    try:
        provider = FakeProvider(script)
        agent = Agent(provider, tools=[each])
        gone: list[weakref.ref[Any]] = [weakref.ref(agent), weakref.ref(provider)]
        if case == "broken":
            stream = agent.stream("go")
            async for _ in stream:
                break
            await stream.aclose()
            gone.append(weakref.ref(stream._task))  # type: ignore[arg-type]
            del stream
        elif case == "start":
            handle = agent.start("go")
            await handle
            gone.append(weakref.ref(handle))
            del handle
        else:
            for door in ("run", "stream"):
                response = await end_of(agent, door)
                if response.error is not None:
                    gone.append(weakref.ref(response.error))
                provider = FakeProvider(script)
                agent = Agent(provider, tools=[each])
                del response
        del agent, provider
        for _ in range(100):
            await asyncio.sleep(0)
            if not any(ref() is not None for ref in gone):
                break
            await asyncio.sleep(0.005)
        assert [ref() for ref in gone] == [None] * len(gone)
    finally:
        gc.enable()


@DOORS
async def test_error_raised_through_the_doors_is_freed(door: str) -> None:
    """KF-106: a BaseException leaves no reference cycle behind it."""

    class Quit(SystemExit):
        pass

    def stop(_: object) -> None:
        raise Quit

    hook = AfterModelHook(hook_name="q", hook_function=stop)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(Quit) as caught:
            await end_of(Agent(FakeProvider(["x"]), hooks=[hook]), door)
        gone = weakref.ref(caught.value)
        del caught
        for _ in range(5):
            await asyncio.sleep(0)
        assert gone() is None
    finally:
        gc.enable()
