"""Whether the cost grows with the work and no faster: `make bench-growth`.

    python -m benchmarks.growth [--only arguments] [--turns 5] [--scale 1.0] [--print]

Each piece of work is done at half its size and in full, in turn; what counts is CPU time.
Doubled work may cost 2.3 times as much. Runs go through an agent and a provider with the
official SDK, whose transport is replaced by one inside the process. The table goes into
`docs/performance.md`; `--scale 0.1` tries a tenth of it and prints.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx2

from benchmarks.compare.alone import Ready, add_async, replies
from benchmarks.compare.machine import describe
from benchmarks.compare.replies import Call, Protocol, whole, written_events
from benchmarks.compare.work import ANSWER
from benchmarks.parts.interfaces import (
    INTERFACES,
    conversation,
    make_provider,
    protocol_of,
)
from lighter_core import (
    Agent,
    Message,
    TextDelta,
    Tool,
    UserMessage,
    messages_from_json,
    messages_to_json,
    tool,
)

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- growth: written by make bench-growth -->", "<!-- end of growth -->"
GOAL = 2.3
CHUNK = 65536
Work = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """A piece of work that can be done in any size.

    Attributes:
        size: The full size.
        make: Prepares the work of a size.
    """

    name: str
    title: str
    size: int
    make: Callable[[int], Work]
    interface: str = ""


def check(fine: bool) -> None:
    """Stop when not all of the work was done."""
    if not fine:
        raise SystemExit("not all of the work was done: nothing was measured")


class Mock:
    """A transport inside the process; answers one after the other, again and again."""

    def __init__(self, answers: Sequence[tuple[str, bytes]]) -> None:
        self._answers, self._next = answers, 0

    def answer(self, request: httpx2.Request) -> httpx2.Response:  # noqa: ARG002
        """Return the next answer."""
        kind, content = self._answers[self._next % len(self._answers)]
        self._next += 1
        return httpx2.Response(
            200, headers={"content-type": kind}, content=_pieces(content)
        )


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), CHUNK):
        yield content[at : at + CHUNK]


def agent_on(
    interface: str, answers: Sequence[tuple[str, bytes]], tools: Sequence[Tool] = ()
) -> Agent:
    """Return an agent whose provider gets these answers."""
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(Mock(answers).answer))
    return Agent(make_provider(interface, http_client=client), tools=list(tools))


def events_of(
    protocol: Protocol, text: Sequence[str], call: Call | None = None
) -> tuple[str, bytes]:
    """Return a streamed answer."""
    return "text/event-stream", b"".join(written_events(protocol, text, call))


def short(protocol: Protocol) -> tuple[str, bytes]:
    """Return an answer with a short text that comes whole."""
    reply = whole(protocol, "text", 0, 0)
    return "application/json", reply[reply.index(b"\r\n\r\n") + 4 :]


def arguments(interface: str) -> Callable[[int], Work]:
    """Tool arguments of so many bytes, in fragments of eight characters."""

    def make(size: int) -> Work:
        value = "abcdefgh" * (size // 8)
        text = json.dumps({"text": value})
        cut = [text[at : at + 8] for at in range(0, len(text), 8)]
        taken: list[int] = []

        @tool
        async def keep(text: str) -> str:
            """Keep a text."""
            taken.append(len(text))
            return "kept"

        protocol = protocol_of(interface)
        asked = events_of(protocol, [], Call(0, cut, "keep"))
        agent = agent_on(interface, [asked, events_of(protocol, [ANSWER])], [keep])

        async def work() -> None:
            taken.clear()
            async with agent.stream("Keep it.") as stream:
                async for _ in stream:
                    pass
            check(taken == [len(value)])

        return work

    return make


def text(interface: str) -> Callable[[int], Work]:
    """A text of so many bytes, in deltas of 64 characters."""

    def make(size: int) -> Work:
        deltas = ["a line of a long text, of which there are many more to come. . "] * (
            size // 64
        )
        agent = agent_on(interface, [events_of(protocol_of(interface), deltas)])

        async def work() -> None:
            seen, whole_text = 0, ""
            async with agent.stream("Tell.") as stream:
                async for event in stream:
                    if type(event) is TextDelta:
                        seen += 1
                    elif event.type == "response":
                        whole_text = event.text
            check(seen == len(deltas) and whole_text == "".join(deltas))

        return work

    return make


def history(interface: str) -> Callable[[int], Work]:
    """One turn behind so many others, of four messages each, loaded just now."""

    def make(size: int) -> Work:
        agent = agent_on(interface, [short(protocol_of(interface))])
        document = messages_to_json(conversation(interface, size))

        async def work() -> None:
            messages = messages_from_json(document)
            messages.append(UserMessage("And now?"))
            check((await agent.run(messages)).text == ANSWER)

        return work

    return make


def grown(interface: str) -> Callable[[int], Work]:
    """One turn behind so many others, which were sent before: as in every loop."""

    def make(size: int) -> Work:
        agent = agent_on(interface, [short(protocol_of(interface))])
        messages: list[Message] = conversation(interface, size)

        async def work() -> None:
            for number in range(5):
                sent = [*messages, UserMessage(f"And now, {number}?")]
                check((await agent.run(sent)).text == ANSWER)

        return work

    return make


def tools(interface: str) -> Callable[[int], Work]:
    """One run of an agent with so many tools."""

    def make(size: int) -> Work:
        used = [_named(number) for number in range(size)]
        agent = agent_on(interface, [short(protocol_of(interface))], used)

        async def work() -> None:
            for _ in range(5):
                check((await agent.run("Hello.")).text == ANSWER)

        return work

    return make


def making(size: int) -> Work:
    """Make so many tools of functions, and an agent of them."""

    async def work() -> None:
        agent = Agent(Ready(replies()), tools=[_named(each) for each in range(size)])
        check(bool(agent))

    return work


def _named(number: int) -> Tool:
    async def act(query: str, limit: int = 10) -> str:
        """Search the books of the store.

        Args:
            query: Words of the title.
            limit: How many books at most.
        """
        return query * limit

    return tool(name=f"search_{number}")(act)


def concurrent(size: int) -> Work:
    """So many runs at the same time on one agent, each with ten tool rounds."""
    agent = Agent(Ready(replies()), tools=[add_async])

    async def work() -> None:
        done = await asyncio.gather(*(agent.run("Add.") for _ in range(size)))
        check(all(each.text == "done" for each in done))

    return work


MB = 1 << 20
CASES = (
    *(
        Case(name, title, size, make(each), each)
        for name, title, size, make in (
            ("arguments", "1 MB of arguments, 8 characters each", MB, arguments),
            ("text", "10 MB of text, 64 characters each", 10 * MB, text),
            ("history", "a turn behind 1,000 turns, loaded from JSON", 1000, history),
            ("grown", "a turn behind 1,000 turns sent before", 1000, grown),
            ("tools", "a run with 500 tools", 500, tools),
        )
        for each in INTERFACES
    ),
    Case("making", "an agent of 500 functions made into tools", 500, making),
    Case("concurrent", "10,000 runs at once, 11 calls each", 10_000, concurrent),
)


def measure(case: Case, turns: int, scale: float) -> list[tuple[float, float]]:
    """Return the CPU seconds at half the size and in full, turn by turn."""
    size = int(case.size * scale)
    half, full = case.make(size // 2), case.make(size)
    taken: list[tuple[float, float]] = []
    with asyncio.Runner() as loop:
        loop.run(_awaited(case.make(max(size // 20, 1))))  # imports, first uses
        for _ in range(turns):
            spent: list[float] = []
            for work in (half, full):
                gc.collect()
                before = time.process_time()
                loop.run(_awaited(work))
                spent.append(time.process_time() - before)
            taken.append((spent[0], spent[1]))
    return taken


async def _awaited(work: Work) -> None:
    await work()


def row(case: Case, taken: list[tuple[float, float]]) -> str:
    """Return a row of the table."""
    half, full = (statistics.median(each) for each in zip(*taken, strict=True))
    ratio = statistics.median(full / half for half, full in taken)
    fine = "" if ratio <= GOAL else " (missed)"
    return (
        f"| {case.title} | {case.interface or '–'} | {half * 1000:,.0f} ms"
        f" | {full * 1000:,.0f} ms | {ratio:.2f}{fine} |"
    )


def main() -> None:
    """Measure; write the table or print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="names, or interfaces")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--print", action="store_true", dest="shown")
    asked = parser.parse_args()
    wanted = asked.only.replace(",", " ").split()
    rows: list[str] = []
    for case in CASES:
        if wanted and not {case.name, case.interface} & set(wanted):
            continue
        rows.append(row(case, measure(case, asked.turns, asked.scale)))
        print(rows[-1], file=sys.stderr, flush=True)
    if wanted or asked.shown or asked.scale != 1.0:
        return
    lines = [
        f"{describe()}; medians of {asked.turns} turns.",
        "",
        "| work | interface | CPU for half of it | for all of it | ratio, goal ≤ 2.3 |",
        "| --- | --- | --- | --- | --- |",
        *rows,
    ]
    head, rest = PAGE.read_text().split(BEGIN)
    tail = rest.split(END)[1]
    PAGE.write_text("\n".join([f"{head}{BEGIN}", "", *lines, "", f"{END}{tail}"]))


if __name__ == "__main__":
    main()
