"""T5 and T7: scripts of any kind, and one thing after the other that fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    Message,
    MessageEvent,
    ModelError,
    ReasoningDelta,
    RunContext,
    TextDelta,
    ToolCall,
    ToolError,
    ToolMessage,
    UserMessage,
    check_history,
    hookimpl,
    tool,
)
from lighter_core.testing import FakeProvider, Turn


class Quit(BaseException):
    """Something that no loop may take for an error of a tool."""


@dataclass(frozen=True)
class Plan:
    """One turn: calls as id, tool and arguments; text; what breaks."""

    calls: tuple[tuple[str, str, str], ...]
    text: str
    broken: str


@dataclass(frozen=True)
class Script:
    """A whole run."""

    plans: tuple[Plan, ...]
    hook: str  # the event that misbehaves
    behaviour: str
    time: int  # at its n-th call
    parallel: bool = False  # whether tools of one reply run at once


RESULTS: dict[str, Any] = {
    "text": "x",
    "none": None,
    "nan": float("nan"),
    "lone": "a\ud83e",
    "bytes": b"\xff",
    "list": [1, {"a": (2, 3)}],
    "object": object(),
    "big": "y" * 5000,
}
RAISED: dict[str, Callable[[], BaseException]] = {
    "value": lambda: ValueError("no"),
    "tool error": lambda: ToolError("no"),
    "model error": lambda: ModelError("no", "server_error"),
    "stop": StopIteration,
    "stop async": StopAsyncIteration,
    "generator": GeneratorExit,
    "timeout": TimeoutError,
    "cancelled": asyncio.CancelledError,
    "group": lambda: ExceptionGroup("g", [ValueError("no")]),
    "quit": Quit,
}
EVENTS = (
    "before_agent",
    "before_model",
    "after_model",
    "before_tool",
    "after_tool",
    "after_agent",
)
_BROKEN = ["no"] * 8 + ["start", "middle", "none", "twice", "late", "quit", "wrong"]


def scripts() -> st.SearchStrategy[Script]:
    """0 to 6 turns of 0 to 5 calls."""
    how = st.sampled_from([*RESULTS, *RAISED])
    call = st.tuples(
        st.sampled_from(["1", "2", "3", "4", "5", "1", ""]),
        st.sampled_from(["act", "act", "sync", "act", "nope"]),
        st.one_of(
            how.map(lambda each: f'{{"how": "{each}"}}'),
            st.sampled_from(["", "null", "[1]", '{"how"', '{"how": 3}', '{"x": 1}']),
        ),
    )
    plan = st.builds(
        Plan,
        st.lists(call, max_size=5).map(tuple),
        st.sampled_from(["", "text", "a✓🦊"]),
        st.sampled_from(_BROKEN),
    )
    return st.builds(
        Script,
        st.lists(plan, max_size=6).map(tuple),
        st.sampled_from(EVENTS),
        st.sampled_from(["", "", "", "raise", "wrong", "mutate", "cancel"]),
        st.integers(1, 3),
        st.booleans(),
    )


def provider_of(script: Script) -> FakeProvider:
    turns: list[Any] = []
    for number, plan in enumerate(script.plans):
        calls = [ToolCall(i and f"{number}-{i}", t, a) for i, t, a in plan.calls]
        message = AssistantMessage(plan.text, reasoning="hm", tool_calls=calls)
        whole, error = MessageEvent(message), ModelError("down", "server_error")
        deltas: list[Any] = [ReasoningDelta("hm"), *map(TextDelta, plan.text)]
        turns.append(
            {
                "no": [*deltas, whole],
                "start": [error],
                "middle": [*deltas, error],
                "none": deltas,
                "twice": [*deltas, whole, whole],
                "late": [*deltas, whole, TextDelta("more")],
                "quit": [*deltas, Quit()],
                "wrong": [*deltas, object(), whole],
            }[plan.broken]
        )
    return FakeProvider([*turns, "the end"])


def hooks_of(script: Script) -> list[object]:
    if not script.behaviour:
        return []
    count = [0]

    def act(value: Any) -> Any:
        count[0] += 1
        if count[0] != script.time:
            return None
        if script.behaviour == "raise":
            raise LookupError("no")
        if script.behaviour == "cancel":
            raise asyncio.CancelledError
        if script.behaviour == "wrong":
            return object()
        messages = getattr(value, "messages", None)
        if isinstance(messages, list):
            messages.append(UserMessage("added"))
        return None

    names = {"before_tool": "call", "after_tool": "message", "after_model": "message"}
    names |= {"after_agent": "messages"}
    name = names.get(script.hook, "request")
    space: dict[str, Any] = {"act": act}
    exec(f"def {script.hook}(self, {name}):\n return act({name})", space)
    hook = hookimpl(space[script.hook])
    return [type("Hook", (), {script.hook: hook})()]


@dataclass
class Ran:
    """What one run of a script came to."""

    ledger: Counter[str] = field(default_factory=Counter)
    response: AgentResponse | None = None
    ended: str = ""
    messages: list[Message] = field(default_factory=list)
    requests: list[list[Message]] = field(default_factory=list)

    @property
    def seen(self) -> bool:
        """Whether its messages are known: a run that raises does not show them."""
        return self.response is not None or bool(self.messages)


def tools_of(ledger: Counter[str]) -> list[Any]:
    def work(how: str, call_id: object) -> Any:
        ledger[str(call_id)] += 1
        if how in RAISED:
            raise RAISED[how]()  # noqa: RSE102 - a function
        return RESULTS.get(how, how)

    @tool
    async def act(how: str, run: RunContext[Any]) -> Any:
        """Act."""
        await asyncio.sleep(0)
        return work(how, run.call_id)

    @tool(name="sync", thread=False)
    def sync_(how: str, run: RunContext[Any]) -> Any:
        """Act without waiting."""
        return work(how, run.call_id)

    return [act, sync_]


INPUT: list[Message] = [
    UserMessage("before"),
    AssistantMessage("", tool_calls=[ToolCall("0", "act", '{"how": "text"}')]),
    ToolMessage(call_id="0", tool_name="act", tool_output='"x"'),
    UserMessage("go"),
]


async def play(script: Script, way: str, around: Any = lambda each: each) -> Ran:
    """Run a script; `around` may put a fault around its provider."""
    ran = Ran()
    provider = provider_of(script)
    agent = Agent(
        around(provider),
        tools=tools_of(ran.ledger),
        hooks=hooks_of(script),
        system_prompt="Be brief.",
        parallel_tools=script.parallel,
    )
    given = list(INPUT)
    async with asyncio.timeout(10):
        try:
            if way == "run":
                ran.response = await agent.run(given)
            else:
                stream = agent.stream(given)
                try:
                    async for event in stream:
                        _need_history(stream.messages)
                        if isinstance(event, AgentResponse):
                            ran.response = event
                finally:
                    ran.messages = stream.messages
                    await stream.aclose()
        except (Quit, GeneratorExit, asyncio.CancelledError) as error:
            ran.ended = type(error).__name__
    assert given == INPUT, "the caller's list was changed"
    if ran.response is not None:
        ran.messages = ran.response.messages
    ran.requests = [r.messages for r in provider.requests]
    assert provider.closed_streams in (0, len(provider.requests))
    return ran


def _need_history(new: list[Message]) -> None:
    problems = check_history([*INPUT, *new])
    assert problems == [], f"not a history: {problems}"


def check_script(script: Script, by_run: Ran, by_stream: Ran) -> None:
    """R4, R5, R6 and the rules of section 1."""
    for ran in (by_run, by_stream):
        repeated = {k: n for k, n in ran.ledger.items() if n > 1}
        assert not repeated, f"executed twice: {repeated}"
        _need_history(ran.messages)
        for request in ran.requests:
            assert check_history(request) == [], "a request was no history"
            assert sum(m.role == "system" for m in request) == 1
        _check_order(script, ran)
        assert ran.response is not None or ran.ended, "no end"
    if not _one_grammar(script, by_stream):
        return
    assert by_run.ended == by_stream.ended, "other ends"
    assert by_run.requests == by_stream.requests, "other requests"
    assert by_run.ledger == by_stream.ledger, "other executions"
    assert (by_run.response is None) == (by_stream.response is None)
    if by_run.response is not None and by_stream.response is not None:
        one, other = by_run.response, by_stream.response
        assert one.messages == other.messages, "other messages"
        assert one.status == other.status
        assert type(one.error) is type(other.error), (one.error, other.error)
        assert (one.error is None) == (one.status == "completed")


def _one_grammar(script: Script, ran: Ran) -> bool:
    """Whether no stream broke a rule that a whole reply cannot break."""
    reached = script.plans[: len(ran.requests)]
    return not any(plan.broken in ("twice", "late", "wrong") for plan in reached)


def _check_order(script: Script, ran: Ran) -> None:
    """Results stand in the order of their calls and belong to what was executed."""
    for at, message in enumerate(ran.messages):
        if isinstance(message, AssistantMessage):
            ids = [c.call_id for c in message.tool_calls]
            after = ran.messages[at + 1 : at + 1 + len(ids)]
            assert [getattr(m, "call_id", None) for m in after] == ids
    if not ran.seen:
        return
    known = {c.call_id for m in ran.messages for c in getattr(m, "tool_calls", ())}
    assert set(ran.ledger) <= known, "a tool ran without its call being kept"


# T7: the n-th thing fails.


class Fuse:
    """Counts the places that can fail, and fails at one."""

    def __init__(self, at: int = -1, error: BaseException | None = None) -> None:
        self.at, self.error = at, error
        self.places: list[str] = []

    def burn(self, place: str) -> None:
        """Pass a place, or fail at it."""
        self.places.append(place)
        if len(self.places) - 1 == self.at and self.error is not None:
            raise self.error


class Fused:
    """A provider of two turns with two calls each, whose every event may fail."""

    name = "fused"
    capabilities: frozenset[str] = frozenset()

    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse
        self.inner = FakeProvider(
            [
                Turn(
                    text="ab",
                    tool_calls=[ToolCall(f"{n}-{i}", "act", "") for i in (1, 2)],
                )
                for n in (1, 2)
            ]
            + [Turn(text="end")]
        )

    async def invoke(self, request: Any) -> AssistantMessage:
        self.fuse.burn("provider")
        message = await self.inner.invoke(request)
        self.fuse.burn("provider")
        return message

    async def stream(self, request: Any) -> Any:
        self.fuse.burn("provider")
        async for event in self.inner.stream(request):
            self.fuse.burn("provider")
            yield event
        self.fuse.burn("provider")


def fused_agent(fuse: Fuse, ledger: Counter[str], around: Any) -> Agent:
    @tool
    async def act(run: RunContext[Any]) -> str:
        """Act."""
        ledger[str(run.call_id)] += 1
        fuse.burn("tool")
        return "x"

    class Hooks:
        @hookimpl
        def before_agent(self, request: Any) -> None:
            fuse.burn("before_agent")

        @hookimpl
        async def before_model(self, request: Any) -> None:
            fuse.burn("before_model")

        @hookimpl
        def after_model(self, message: Any) -> None:
            fuse.burn("after_model")

        @hookimpl
        async def before_tool(self, call: Any) -> None:
            fuse.burn("before_tool")

        @hookimpl
        def after_tool(self, message: Any) -> None:
            fuse.burn("after_tool")

        @hookimpl
        async def around_model(self, request: Any, call_model: Any) -> Any:
            fuse.burn("around_model")
            reply = await call_model(request)
            fuse.burn("around_model")
            return reply

        @hookimpl
        async def around_tool(self, call: Any, call_tool: Any) -> Any:
            fuse.burn("around_tool")
            result = await call_tool(call)
            fuse.burn("around_tool")
            return result

        @hookimpl
        def after_agent(self, messages: Any) -> None:
            fuse.burn("after_agent")

        @hookimpl
        async def on_run_end(self, response: Any) -> None:
            fuse.burn("on_run_end")

    return Agent(around(Fused(fuse)), tools=[act], hooks=[Hooks()])


def fail_at(
    at: int,
    error: BaseException | None,
    way: str,
    around: Any = lambda each: each,
) -> Fuse:
    """Run once with a failure at a place; check all that is documented."""
    fuse, ledger = Fuse(at, error), Counter[str]()
    agent = fused_agent(fuse, ledger, around)
    got: list[Any] = []

    async def main() -> None:
        if way == "run":
            got.append(await agent.run("go"))
            return
        async with agent.stream("go") as stream:
            try:
                async for event in stream:
                    if isinstance(event, AgentResponse):
                        got.append(event)
            finally:
                problems = check_history([UserMessage("go"), *stream.messages])
                assert problems == [], problems

    raised: BaseException | None = None
    try:
        asyncio.run(asyncio.wait_for(main(), 10))
    except (KeyboardInterrupt, asyncio.CancelledError) as err:
        raised = err
    assert all(n == 1 for n in ledger.values()), f"executed twice: {ledger}"
    if error is None:
        assert got[0].status == "completed"
        return fuse
    place = fuse.places[at]
    behind = [each for each in fuse.places[at + 1 :] if each != "on_run_end"]
    if isinstance(error, KeyboardInterrupt):
        assert isinstance(raised, KeyboardInterrupt), f"{place}: swallowed"
        assert behind == [], f"{place}: {behind} ran behind it"
    elif place == "on_run_end":
        assert got == [] or got[0].status == "completed"
    elif place == "tool":
        assert raised is None
        assert got[0].status == "completed", got[0].error
        assert any(getattr(m, "is_error", False) for m in got[0].messages)
    elif isinstance(error, asyncio.CancelledError):
        assert isinstance(raised, asyncio.CancelledError), f"{place}: swallowed"
        assert behind == [], f"{place}: {behind} ran behind it"
    else:
        [response] = got
        assert response.status == "failed", f"{place}: {response.status}"
        chain = (response.error, getattr(response.error, "__cause__", None))
        assert error in chain, f"{place}: {response.error!r}"
        assert behind == [], f"{place}: {behind} ran behind it"
    for response in got:
        problems = check_history([UserMessage("go"), *response.messages])
        assert problems == [], problems
        replies = [m for m in response.messages if isinstance(m, AssistantMessage)]
        assert len(replies) >= _completed(fuse.places[:at])
    return fuse


def _completed(places: list[str]) -> int:
    """How many replies were complete for certain: a tool or gate followed them."""
    count, last = 0, ""
    for place in places:
        if place == "before_tool" and last == "after_model":
            count += 1
        last = place
    return count


ERRORS: dict[str, Callable[[], BaseException]] = {
    "exception": lambda: ValueError("no"),
    "model error": lambda: ModelError("no", "rate_limit"),
    "cancelled": asyncio.CancelledError,
    "interrupt": KeyboardInterrupt,
}
