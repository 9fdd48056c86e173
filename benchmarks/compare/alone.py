"""The framework alone: `python -m benchmarks.compare.alone`, one JSON object as output.

The provider is a script inside the process that yields events made beforehand, so what is
measured is the loop, its checks, the tool calls and the stream. The mark beside it is a
plain loop over the same messages. CPU of this process, medians of turns taken one after
the other.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from lighter_core import (
    Agent,
    AssistantMessage,
    MessageEvent,
    ModelRequest,
    ProviderStreamEvent,
    TextDelta,
    Tool,
    ToolCall,
    Usage,
    UserMessage,
    tool,
)

from .work import add_up, pieces
from .worker import cpu

ROUNDS, RUNS, DELTAS, WAITING, TURNS = 10, 30, 5000, 1000, 7


class Ready:
    """A provider whose replies are there already."""

    name = "ready"

    def __init__(self, replies: Sequence[AssistantMessage], deltas: int = 0) -> None:
        self._replies = replies
        self._events = [TextDelta(piece) for piece in pieces(deltas)]

    def _reply(self, request: ModelRequest) -> AssistantMessage:
        return self._replies[(len(request.messages) - 1) // 2 % len(self._replies)]

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the reply of that turn."""
        return self._reply(request)

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield the deltas, then the reply."""
        for event in self._events:
            yield event
        yield MessageEvent(self._reply(request))


class Waiting(Ready):
    """A provider that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__([AssistantMessage("done")])
        self.go = asyncio.Event()

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Wait."""
        await self.go.wait()
        return self._reply(request)


@tool(name="add_up")
async def add_async(a: int, b: int) -> int:
    """Add two numbers to a million."""
    return add_up(a, b)


@tool(name="add_up")
def add_on_thread(a: int, b: int) -> int:
    """Add two numbers to a million."""
    return add_up(a, b)


@tool(name="add_up", thread=False)
def add_inline(a: int, b: int) -> int:
    """Add two numbers to a million."""
    return add_up(a, b)


def replies() -> list[AssistantMessage]:
    """Return the replies of a run: a call each round, then a text."""
    usage = Usage(20, 10)
    calls = [
        ToolCall(f"call_{each}", "add_up", json.dumps({"a": each, "b": each}))
        for each in range(ROUNDS)
    ]
    return [
        *(AssistantMessage("", tool_calls=[call], usage=usage) for call in calls),
        AssistantMessage("done", usage=usage),
    ]


def rounds(used: Tool) -> Callable[[], Awaitable[None]]:
    """Return a run of many rounds."""
    agent = Agent(Ready(replies()), tools=[used])

    async def run() -> None:
        for _ in range(RUNS):
            response = (await agent.run("Add.")).raise_if_failed()
            check(len(response.messages) == 2 * ROUNDS + 1 and response.text == "done")

    return run


def deltas() -> Callable[[], Awaitable[None]]:
    """Return a stream of many deltas."""
    text = "".join(pieces(DELTAS))
    agent = Agent(Ready([AssistantMessage(text)], DELTAS))

    async def run() -> None:
        seen = 0
        async with agent.stream("Tell.") as stream:
            async for event in stream:
                seen += type(event) is TextDelta
        check(seen == DELTAS)

    return run


@dataclass(slots=True)
class Said:
    """A message of the plain loop."""

    role: str
    text: str
    call: ToolCall | None = None


Hook = Callable[[list[Said]], None]


async def plain_rounds() -> None:
    """Run the same rounds as bare Python: no framework can do less than this."""
    ready = replies()

    async def invoke(messages: list[Said]) -> AssistantMessage:
        return ready[(len(messages) - 1) // 2]

    hooks: list[Hook] = []
    for _ in range(RUNS):
        messages = [Said("user", "Add.")]
        while True:
            for hook in hooks:
                hook(messages)
            reply = await invoke(messages)
            call = reply.tool_calls[0] if reply.tool_calls else None
            messages.append(Said("assistant", reply.content, call))
            if call is None:
                break
            values = json.loads(call.arguments)
            fine = values.keys() == {"a", "b"}
            check(fine and all(type(each) is int for each in values.values()))
            messages.append(Said("tool", json.dumps(add_up(**values))))
        check(len(messages) == 2 * ROUNDS + 2)


def plain_deltas() -> Callable[[], Awaitable[None]]:
    """Return a loop that takes the same deltas as bare Python."""
    ready = Ready([AssistantMessage("")], DELTAS)

    async def take() -> None:
        parts: list[str] = []
        async for event in ready.stream(ModelRequest([UserMessage("Tell.")])):
            if type(event) is TextDelta:
                parts.append(event.text)
        check(len("".join(parts)) > DELTAS)

    return take


def check(fine: bool) -> None:
    """Stop when not all of the work was done."""
    if not fine:
        raise SystemExit("not all of the work was done: nothing was measured")


def in_turn(
    cases: dict[str, tuple[Callable[[], Awaitable[None]], int]],
) -> dict[str, float]:
    """Return the median microseconds of one unit of each case."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    with asyncio.Runner() as loop:
        for turn in range(TURNS + 1):
            for name, (case, units) in cases.items():
                gc.collect()
                spent = cpu()
                loop.run(_awaited(case))
                if turn:  # the first warms up
                    taken[name].append((cpu() - spent) / units * 1e6)
    return {name: statistics.median(each) for name, each in taken.items()}


async def _awaited(case: Callable[[], Awaitable[None]]) -> None:
    await case()


def waiting_memory() -> float:
    """Return the bytes that one run holds while it waits for its provider."""

    async def measured() -> float:
        provider = Waiting()
        agent = Agent(provider, tools=[add_async])
        first = asyncio.ensure_future(agent.run("Hello."))
        await asyncio.sleep(0.01)
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        tasks = [asyncio.ensure_future(agent.run("Hello.")) for _ in range(WAITING)]
        await asyncio.sleep(0.05)
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        provider.go.set()
        done = await asyncio.gather(first, *tasks)
        check(all(each.text == "done" for each in done))
        return (after - before) / WAITING

    return asyncio.run(measured())


def imports() -> dict[str, float]:
    """Return the CPU time of `import lighter_core` to `import asyncio`, and modules."""
    times: dict[str, list[float]] = {"asyncio": [], "lighter_core": []}
    modules = 0
    script = (
        "import resource as r, sys\n"
        "def t():\n u = r.getrusage(r.RUSAGE_SELF)\n return u.ru_utime + u.ru_stime\n"
        "start = t()\nimport {name}\nspent = t() - start\n"
        "own = [m for m in sys.modules if m.split('.')[0] == 'lighter_core']\n"
        "print(spent, len(own))"
    )
    for turn in range(10):
        for name, taken in times.items():
            out = subprocess.run(
                [sys.executable, "-c", script.format(name=name)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
            if turn:
                taken.append(float(out[0]))
            modules = int(out[1])
    ours, theirs = (
        statistics.median(times["lighter_core"]),
        statistics.median(times["asyncio"]),
    )
    return {"import_ratio": ours / theirs, "import_modules": modules}


def main() -> None:
    """Measure and print."""
    cases: dict[str, tuple[Callable[[], Awaitable[None]], int]] = {
        "round_plain": (plain_rounds, ROUNDS * RUNS),
        "round_async": (rounds(add_async), ROUNDS * RUNS),
        "round_inline": (rounds(add_inline), ROUNDS * RUNS),
        "round_thread": (rounds(add_on_thread), ROUNDS * RUNS),
        "delta_plain": (plain_deltas(), DELTAS),
        "delta": (deltas(), DELTAS),
    }
    figures = in_turn(cases)
    figures["waiting_bytes"] = waiting_memory()
    print(json.dumps({**figures, **imports()}))


if __name__ == "__main__":
    main()
