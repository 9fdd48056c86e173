"""When hooks run, found out by running them; the tables of docs/hooks.md.

    PYTHONPATH=tests python -m support.hook_order            show the tables
    PYTHONPATH=tests python -m support.hook_order --write    put them into the page

Every row is run as `run()` and as `stream()`, with sync and with async hooks; they must
agree before a row is written.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lighter_core import (
    Agent,
    AgentResponse,
    ApprovalRequest,
    ModelError,
    RunLimits,
    ToolCall,
    ToolMessage,
    hookimpl,
    tool,
)
from lighter_core.hooks import EVENTS
from lighter_core.plugins import hookspecs
from lighter_core.testing import FakeProvider, Pause, Turn

PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"
WAYS = ("run", "stream")
FORMS = ("sync", "async")
WAIT = 0.05  # seconds that a slow gate takes, and after which a run is cancelled
CALL = ToolCall("c1", "send", '{"text":"original"}')

Row = tuple[str, ...]


@dataclass
class Outcome:
    """What became of one run."""

    status: str
    error: str
    result: str
    ran: tuple[str, ...]
    log: tuple[str, ...]


def hook(name: str, form: str, **functions: Callable[..., Any]) -> object:
    """Make a plugin of functions of the spec's first argument.

    An async form of a function waits for a moment first. Functions for `around_*` are
    async and also get the call inside.
    """
    members: dict[str, Any] = {}
    for event, function in functions.items():
        members[event] = hookimpl(_method(event, function, form))
    return type(name, (), members)()


def _method(event: str, function: Callable[..., Any], form: str) -> Any:
    names = list(inspect.signature(getattr(hookspecs, event)).parameters)
    names.remove("run")
    taken = ", ".join(names)
    if event.startswith("around"):
        source = f"async def {event}(self, {taken}):\n return await function({taken})"
    elif form == "sync":
        source = f"def {event}(self, {taken}):\n return function({taken})"
    else:
        source = (
            f"async def {event}(self, {taken}):\n await asyncio.sleep(0)\n"
            f" value = function({taken})\n"
            " return (await value) if hasattr(value, '__await__') else value"
        )
    space: dict[str, Any] = {"function": function, "asyncio": asyncio}
    exec(source, space)
    return space[event]


async def outcome(
    hooks: Sequence[object],
    way: str,
    *,
    script: Iterable[Any] | None = None,
    log: list[str] | None = None,
    cancel_after: float | None = None,
    limits: RunLimits | None = None,
    leave_at: str | None = None,
) -> Outcome:
    """Run an agent whose one tool is `send`."""
    ran: list[str] = []
    log = [] if log is None else log

    @tool(thread=False)
    def send(text: str) -> str:
        """Send a text."""
        ran.append(text)
        log.append("**tool**")
        if text == "fail":
            raise ValueError("no")
        return "sent"

    provider = FakeProvider(
        [Turn(tool_calls=[CALL]), "done"] if script is None else script
    )
    agent = Agent(provider, tools=[send], hooks=hooks, limits=limits or RunLimits())
    try:
        async with asyncio.timeout(cancel_after):
            if way == "run":
                response: AgentResponse | None = await agent.run("x")
            else:
                response = await _streamed(agent, leave_at)
    except TimeoutError:
        return Outcome("cancelled", "", "", tuple(ran), tuple(log))
    if response is None:
        return Outcome("left", "", "", tuple(ran), tuple(log))
    results = [m.tool_output for m in response.messages if isinstance(m, ToolMessage)]
    error = type(response.error).__name__ if response.error else ""
    return Outcome(response.status, error, (results or [""])[0], tuple(ran), tuple(log))


async def _streamed(agent: Agent, leave_at: str | None) -> AgentResponse | None:
    async with agent.stream("x") as stream:
        async for event in stream:
            if isinstance(event, AgentResponse):
                return event
            if event.type == leave_at:
                break
    return None


async def agreed(
    make: Callable[[str, str], Awaitable[Row]], ways: Row = WAYS, forms: Row = FORMS
) -> Row:
    """Return the row that all ways and forms give."""
    rows = [await make(way, form) for way in ways for form in forms]
    assert len(set(rows)) == 1, rows
    return rows[0]


# The order of two hooks.


def _logging(name: str, form: str, log: list[str]) -> object:
    async def around(value: Any, call: Callable[[Any], Awaitable[Any]]) -> Any:
        log.append(f"{name} in")
        result = await call(value)
        log.append(f"{name} out")
        return result

    functions: dict[str, Any] = {
        event: around if event.startswith("around") else _noting(event, name, log)
        for event in EVENTS
    }
    return hook(name, form, **functions)


def _noting(event: str, name: str, log: list[str]) -> Callable[[Any], None]:
    return lambda _: log.append(f"{event}:{name}")


async def order_rows() -> list[Row]:
    """Return each event of a run with a tool call, with who runs in which order."""

    async def one(way: str, form: str) -> Row:
        log: list[str] = []

        def model(_: Any) -> str:
            log.append("**model**")
            return "done"

        def asking(_: Any) -> Turn:
            log.append("**model**")
            return Turn(tool_calls=[CALL])

        hooks = [_logging("a", form, log), _logging("b", form, log)]
        await outcome(hooks, way, script=[asking, model], log=log)
        return tuple(log)

    return _grouped(await agreed(one))


def _grouped(log: Row) -> list[Row]:
    """Put what follows each other in one event into one row."""
    rows: list[list[str]] = []
    inside = False
    for entry in log:
        event, _, who = entry.rpartition(":")
        if not event:  # an around hook or what is inside
            if not inside:
                rows.append(["around", ""])
            inside = True
            rows[-1][1] += f", {entry}"
            if entry in ("**model**", "**tool**"):
                rows[-1][0] = f"around_{entry.strip('*')}"
            continue
        inside = False
        if not rows or rows[-1][0] != event:
            rows.append([event, ""])
        rows[-1][1] += f", {who}"
    return [
        (str(number), f"`{event}`", who[2:])
        for number, (event, who) in enumerate(rows, 1)
    ]


# Gates.


def _deny(call: ToolCall) -> ToolMessage:
    return ToolMessage(
        call_id=call.call_id,
        tool_name=call.tool_name,
        tool_output="denied",
        is_error=True,
    )


def _allow(call: ToolCall) -> None:
    return None


def _change(call: ToolCall) -> ToolCall:
    return replace(call, arguments='{"text":"changed"}')


def _longer(call: ToolCall) -> ToolCall:
    return replace(call, arguments=call.arguments.replace('"}', '!"}'))


def _deny_changed(call: ToolCall) -> ToolMessage | None:
    return _deny(call) if "changed" in call.arguments else None


def _raise(call: ToolCall) -> None:
    raise RuntimeError("the gate is down")


def _wrong(call: ToolCall) -> bool:
    return False


async def _deny_slowly(call: ToolCall) -> ToolMessage:
    await asyncio.sleep(WAIT)
    return _deny(call)


async def _allow_too_late(call: ToolCall) -> None:
    await asyncio.sleep(WAIT * 20)


async def _swallow(call: ToolCall) -> None:
    try:
        await asyncio.sleep(WAIT * 20)
    except asyncio.CancelledError:
        return


async def _answer(call: ToolCall, call_tool: Any) -> ToolMessage:
    return ToolMessage(call_id="", tool_name=call.tool_name, tool_output="answered")


def _ask(call: ToolCall) -> ApprovalRequest:
    return ApprovalRequest("the person shall see it")


Gate = tuple[str, Callable[..., Any]]

GATES: list[tuple[str, list[Gate], bool]] = [
    ("allows", [("before_tool", _allow)], False),
    ("denies", [("before_tool", _deny)], False),
    ("allows; denies", [("before_tool", _allow), ("before_tool", _deny)], False),
    ("denies; allows", [("before_tool", _deny), ("before_tool", _allow)], False),
    ("changes; denies", [("before_tool", _change), ("before_tool", _deny)], False),
    ("denies; changes", [("before_tool", _deny), ("before_tool", _change)], False),
    ("changes", [("before_tool", _change)], False),
    (
        "changes; denies what is changed",
        [("before_tool", _change), ("before_tool", _deny_changed)],
        False,
    ),
    (
        "denies what is changed; changes",
        [("before_tool", _deny_changed), ("before_tool", _change)],
        False,
    ),
    (
        "changes; changes again, each time",
        [("before_tool", _longer), ("before_tool", _longer)],
        False,
    ),
    ("raises", [("before_tool", _raise)], False),
    ("raises; allows", [("before_tool", _raise), ("before_tool", _allow)], False),
    ("allows; raises", [("before_tool", _allow), ("before_tool", _raise)], False),
    ("returns `False`", [("before_tool", _wrong)], False),
    ("asks for approval", [("before_tool", _ask)], False),
    (
        "asks for approval; denies",
        [("before_tool", _ask), ("before_tool", _deny)],
        False,
    ),
    (
        "denies; asks for approval",
        [("before_tool", _deny), ("before_tool", _ask)],
        False,
    ),
    ("denies, slowly", [("before_tool", _deny_slowly)], False),
    (
        "is still thinking; the run is cancelled",
        [("before_tool", _allow_too_late)],
        True,
    ),
    ("the same, and swallows the cancellation", [("before_tool", _swallow)], True),
    (
        "denies; `around_tool` answers",
        [("before_tool", _deny), ("around_tool", _answer)],
        False,
    ),
    ("`around_tool` answers", [("around_tool", _answer)], False),
]


async def gate_rows() -> list[Row]:
    """Return what gates do, whether the tool ran, and how the run went on."""
    rows: list[Row] = []
    for words, gates, cancelled in GATES:
        slow = any(
            inspect.iscoroutinefunction(f) for e, f in gates if e == "before_tool"
        )

        async def one(
            way: str,
            form: str,
            words: str = words,
            gates: Any = gates,
            late: bool = cancelled,
        ) -> Row:
            hooks = [hook(f"G{n}", form, **{e: f}) for n, (e, f) in enumerate(gates)]
            got = await outcome(hooks, way, cancel_after=WAIT * 2 if late else None)
            ran = f"yes, with “{got.ran[0]}”" if got.ran else "**no**"
            reads = f"“{got.result.strip(chr(34))}”" if got.result else "nothing"
            if got.status != "completed":
                reads = "nothing"
            status = f"{got.status}: `{got.error}`" if got.error else got.status
            return (words, ran, reads, status)

        # Only an async hook can wait without holding up the whole loop.
        rows.append(await agreed(one, forms=("async",) if slow else FORMS))
    return rows


# How often each event happens.

PLAIN: list[Any] = ["done"]
RUNS: list[tuple[str, dict[str, Any]]] = [
    ("a plain reply", {"script": PLAIN}),
    ("one tool call", {}),
    (
        "two calls in one reply",
        {"script": [Turn(tool_calls=[CALL, replace(CALL, call_id="c2")]), "done"]},
    ),
    (
        "a tool that fails",
        {
            "script": [
                Turn(tool_calls=[replace(CALL, arguments='{"text":"fail"}')]),
                "done",
            ]
        },
    ),
    (
        "a call of an unknown tool",
        {"script": [Turn(tool_calls=[ToolCall("c1", "nope")]), "done"]},
    ),
    ("the model call fails", {"script": [ModelError("down", "server_error")]}),
    (
        "the second model call fails",
        {"script": [Turn(tool_calls=[CALL]), ModelError("down", "server_error")]},
    ),
    ("the limit of one model call", {"limits": RunLimits(model_calls=1)}),
    (
        "cancelled during the model call",
        {"script": [[Pause(30)]], "cancel_after": WAIT},
    ),
    ("the stream is left at `ToolCallStarted`", {"leave_at": "tool_call_started"}),
    ("the stream is left at `ToolCallFinished`", {"leave_at": "tool_call_finished"}),
]


async def count_rows() -> list[Row]:
    """Return how often each hook runs in each kind of run."""
    rows: list[Row] = []
    for words, options in RUNS:

        async def one(
            way: str, form: str, words: str = words, options: Any = options
        ) -> Row:
            counts: Counter[str] = Counter()

            def count(event: str) -> Callable[[Any], None]:
                return lambda _: counts.update([event])

            async def around_model(request: Any, call: Any) -> Any:
                counts["around_model"] += 1
                return await call(request)

            async def around_tool(value: Any, call: Any) -> Any:
                counts["around_tool"] += 1
                return await call(value)

            functions: dict[str, Any] = {event: count(event) for event in EVENTS}
            functions |= {"around_model": around_model, "around_tool": around_tool}
            await outcome([hook("Count", form, **functions)], way, **options)
            return (words, *(str(counts[event] or "-") for event in EVENTS))

        rows.append(await agreed(one, ("stream",) if "leave_at" in options else WAYS))
    return rows


# The page.


def table(head: Row, rows: Iterable[Row]) -> str:
    """Return rows as a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


async def tables() -> dict[str, str]:
    """Return the text for each marker of the page."""
    return {
        "order": table(("", "event", "who"), await order_rows()),
        "gates": table(
            ("the gates of the list", "the tool runs", "the model reads", "the run"),
            await gate_rows(),
        ),
        "counts": table(
            ("run", *(f"`{event}`" for event in EVENTS)), await count_rows()
        ),
    }


def renewed(page: str, made: dict[str, str]) -> str:
    """Return the page with the tables between its markers."""
    for name, text in made.items():
        start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        head, found, rest = page.partition(start)
        _, closed, tail = rest.partition(end)
        assert found, f"the page has no marker {start.strip()}"
        assert closed, f"the page has no marker {end.strip()}"
        page = f"{head}{start}{text}{end}{tail}"
    return page


def main() -> None:
    """Show the tables, or write them into the page."""
    made = asyncio.run(tables())
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), made), "utf-8")
    else:
        sys.stdout.write("\n\n".join(made.values()) + "\n")


if __name__ == "__main__":
    main()
