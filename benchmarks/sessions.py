"""What a session costs: appending to a long one, loading, against bare operations.

    python benchmarks/sessions.py [--turns 1000] [--json FILE]

Prints ratios, since figures depend on the machine: what the last tenth of the turns costs
to what the first costs, and loading 400 messages to a bare `json.loads` of the same
documents. Medians of this process's CPU time, so that other work on the machine does not
count; a database server's own time does not either, nor the wait for the disk, which is
shown apart. PostgreSQL is measured with `--database URL` (lighter-sqlalchemy).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

from lighter_core import (
    Agent,
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    messages_to_json,
    tool,
)
from lighter_core.sessions import Session, SQLiteStore, Store
from lighter_core.testing import FakeProvider, Turn


def turn(number: int) -> list[Message]:
    """Return the messages of one turn, of a usual size."""
    call = ToolCall(
        f"call_{number:024}", "search", json.dumps({"query": f"moon {number}"})
    )
    return [
        UserMessage(f"And what about bookstore number {number} on the moon? " * 2),
        AssistantMessage(
            "", tool_calls=[call], usage=Usage(900, 40), stop_reason="tool"
        ),
        ToolMessage(
            call_id=call.call_id, tool_name="search", tool_output='["a book"]' * 20
        ),
        AssistantMessage(
            "It has a book. " * 30, usage=Usage(1000, 90), stop_reason="stop"
        ),
    ]


async def append(store: Store, turns: int) -> dict[str, float]:
    """Append turn after turn, message by message, as a run does."""
    head: str | None = None
    spent: list[float] = []
    waited: list[float] = []
    for number in range(turns):
        messages = turn(number)
        started, begun = process_time(), perf_counter()
        for message in messages:
            head = (await store.append("long", [message], after=head))[-1].id
        spent.append(process_time() - started)
        waited.append(perf_counter() - begun)
    disk = {"append a turn, by the clock (ms)": statistics.median(waited) * 1000}
    return {**_ends("append", spent), **disk}


async def run(store: Store, turns: int) -> dict[str, float]:
    """Run an agent that long: each turn loads the whole conversation too."""

    @tool(thread=False)
    def search(query: str) -> str:  # noqa: ARG001
        """Search."""
        return "a book " * 20

    def reply(number: int) -> list[Turn]:
        call = ToolCall(f"call_{number}", "search", '{"query": "moon"}')
        return [Turn(tool_calls=[call]), Turn(text="It has a book. " * 30)]

    script = [each for number in range(turns) for each in reply(number)]
    session = Session(Agent(FakeProvider(script), tools=[search]), store, "run")
    spent: list[float] = []
    for number in range(turns):
        started = process_time()
        (await session.run(f"Question {number}")).raise_if_failed()
        spent.append(process_time() - started)
    return _ends("run", spent)


def _ends(name: str, spent: list[float]) -> dict[str, float]:
    part = max(1, len(spent) // 10)
    first, last = statistics.median(spent[:part]), statistics.median(spent[-part:])
    return {
        f"{name} a turn, first tenth (ms)": first * 1000,
        f"{name} a turn, last tenth (ms)": last * 1000,
        f"{name}, last / first": last / first,
    }


async def load(store: Store, rounds: int = 60) -> dict[str, float]:
    """Load 400 messages, and read the same documents with `json.loads`."""
    messages = [message for number in range(100) for message in turn(number)]
    documents = [messages_to_json([message]) for message in messages]
    await store.append("load", messages, after=None)
    loaded = await store.load("load")
    assert loaded.messages == messages
    bare: list[float] = []
    whole: list[float] = []
    for _ in range(rounds):  # in turns, so that other work on the machine meets both
        bare.append(_timed(lambda: [json.loads(each) for each in documents]))
        started = process_time()
        await store.load("load")
        whole.append(process_time() - started)
    size = sum(map(len, documents)) / len(documents)
    return {
        "a document (characters)": size,
        "json.loads of 400 documents (ms)": statistics.median(bare) * 1000,
        "load 400 messages (ms)": statistics.median(whole) * 1000,
        "load / json.loads": statistics.median(whole) / statistics.median(bare),
        "load / json.loads, best of each": min(whole) / min(bare),
    }


def _timed(work: Callable[[], object]) -> float:
    started = process_time()
    work()
    return process_time() - started


async def search(store: Store) -> dict[str, float]:
    """Search the messages that the other measurements have left."""
    spent: list[float] = []
    for _ in range(5):
        started = process_time()
        assert not await store.search("no such text")
        spent.append(process_time() - started)
    return {"search all messages (ms)": statistics.median(spent) * 1000}


async def measure(store: Store, turns: int) -> dict[str, float]:
    """Measure all on one store."""
    figures = {**await append(store, turns), **await load(store), **await search(store)}
    figures.update(await run(store, min(turns, 300)))
    await store.aclose()
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--database", metavar="URL", help="an empty database")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store: Store = SQLiteStore(Path(folder) / "x.db")
        if given.database:
            from lighter_sqlalchemy import SQLAlchemyStore

            store = SQLAlchemyStore(given.database)
        figures = asyncio.run(measure(store, given.turns))
    for name, value in figures.items():
        sys.stdout.write(f"{name:40} {value:10.2f}\n")
    if given.json:
        Path(given.json).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
