"""Many users of one store: tasks, threads, event loops, cancellations."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress

from lighter_core import Agent, SessionError, UserMessage
from lighter_core.sessions import Session, Store
from lighter_core.testing import FakeProvider

from .._registry import expect
from ._registry import Bench, store_check
from ._steps import add, fails, said, texts

__all__: list[str] = []


@store_check
async def one_of_many_writers_wins(bench: Bench) -> None:
    """Of writers that append behind the same head at once, exactly one succeeds."""
    store = bench.open()
    (head,) = await add(store, "chat", "0")
    steps = [store.append("chat", said(f"{n}"), after=head.id) for n in range(1, 21)]
    results = await asyncio.gather(*steps, return_exceptions=True)
    won = [r for r in results if not isinstance(r, BaseException)]
    codes = {r.code for r in results if isinstance(r, SessionError)}
    expect(len(won) == 1, f"{len(won)} of 20 succeeded")
    expect(codes == {"conflict"}, f"the others failed with {codes}")
    expect(
        (await store.load("chat")).entries[-1] == won[0][-1], "another one is stored"
    )


@store_check
async def one_of_many_beginners_wins(bench: Bench) -> None:
    """Of writers that begin the same session at once, exactly one succeeds."""
    store = bench.open()
    steps = [store.append("chat", said(f"{n}"), after=None) for n in range(20)]
    results = await asyncio.gather(*steps, return_exceptions=True)
    won = [r for r in results if not isinstance(r, BaseException)]
    expect(len(won) == 1, f"{len(won)} of 20 succeeded")
    expect((await store.load("chat")).entries == tuple(won[0]), "another one is stored")


@store_check
async def sessions_do_not_mix(bench: Bench) -> None:
    """Appends to many sessions at once end in the right ones, in order."""
    store = bench.open()

    async def write(name: str) -> None:
        head = None
        for n in range(5):
            head = (await store.append(name, said(f"{name} {n}"), after=head))[-1].id

    names = [f"chat-{n}" for n in range(40)]
    await asyncio.gather(*map(write, names))
    for name in names:
        seen = await texts(store, name)
        expect(seen == [f"{name} {n}" for n in range(5)], f"{name}: {seen}")


@store_check
async def two_stores_on_one_place(bench: Bench) -> None:
    """What one store object has stored, another one on the same place sees at once; a
    stale head is a conflict between them too.
    """
    one, two = bench.open(), bench.open()
    (first,) = await add(one, "chat", "1")
    await add(two, "chat", "2")
    await fails(one.append("chat", said("3"), after=first.id), "conflict")
    expect(await texts(one, "chat") == ["1", "2"], "other texts")
    await one.delete("chat")
    await fails(two.load("chat"), "not_found")


@store_check
async def two_stores_write_at_once(bench: Bench) -> None:
    """Writers of different sessions over two store objects do not fail each other."""
    stores = [bench.open(), bench.open()]

    async def write(n: int) -> None:
        for text in range(10):
            await add(stores[n % 2], f"chat-{n}", f"{text}")

    await asyncio.gather(*(write(n) for n in range(8)))
    for n in range(8):
        seen = await texts(stores[0], f"chat-{n}")
        expect(seen == [f"{t}" for t in range(10)], f"{seen}")


@store_check
async def several_event_loops_and_threads(bench: Bench) -> None:
    """One store object serves event loops on several threads, one after the other and
    at once.
    """
    store = bench.open()
    await add(store, "here", "1")
    failed: list[BaseException] = []

    def work(n: int) -> None:
        try:
            for text in range(3):
                asyncio.run(_write(store, f"chat-{n}", f"{text}"))
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    await add(store, "here", "2")
    for thread in threads:
        await asyncio.to_thread(thread.join)
    expect(not failed, f"{failed}")
    for n in range(6):
        seen = await texts(store, f"chat-{n}")
        expect(seen == ["0", "1", "2"], f"{seen}")


async def _write(store: Store, name: str, text: str) -> None:
    await add(store, name, text)


@store_check
async def synchronous_runs(bench: Bench) -> None:
    """A session's `run_sync` works, on whatever thread it is called."""
    store = bench.open()
    session = Session(Agent(FakeProvider(["One.", "Two."])), store, "chat")
    await add(store, "chat", "0")
    for text in ("1", "2"):
        response = await asyncio.to_thread(session.run_sync, text)
        response.raise_if_failed()
    said_now = [getattr(m, "content", None) for m in await session.messages()]
    expect(said_now == ["0", "1", "One.", "2", "Two."], f"{said_now}")


@store_check
async def event_loop_goes_on(bench: Bench) -> None:
    """While the store works, the event loop serves other tasks."""
    store = bench.open()
    await add(store, "chat", "1")
    head = (await store.load("chat")).info.head
    gaps: list[float] = []

    async def beat() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    heart = asyncio.create_task(beat())
    many = [UserMessage("x" * 2_000) for _ in range(300)]
    for _ in range(5):
        head = (await store.append("chat", many, after=head))[-1].id
    for _ in range(5):
        await store.search("y")
    heart.cancel()
    expect(max(gaps) < 0.5, f"it stood still for {max(gaps):.2f} s")  # noqa: PLR2004


@store_check
async def cancelled_append_is_whole_or_nothing(bench: Bench) -> None:
    """An append that is cancelled at any moment has stored all its messages or none,
    and the store goes on.
    """
    store = bench.open()
    for n in range(40):
        name = f"chat-{n}"
        many = said(*(f"{text}" for text in range(20)))
        task = asyncio.create_task(store.append(name, many, after=None))
        await asyncio.sleep(0)
        if n % 4:
            await asyncio.sleep(n * 0.0003)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    await add(store, "end", "1")
    for n in range(40):
        try:
            seen = await texts(store, f"chat-{n}")
        except SessionError as error:
            expect(error.code == "not_found", f"{error}")
        else:
            expect(seen == [f"{text}" for text in range(20)], f"{len(seen)} of 20")


@store_check
async def cancelled_reads_leave_the_store_working(bench: Bench) -> None:
    """Cancelled loads, lists and searches do not use up connections."""
    store = bench.open()
    await add(store, "chat", *(f"{n}" for n in range(50)))
    for n in range(60):
        steps: list[Callable[[], Coroutine[object, object, object]]] = [
            lambda: store.load("chat"),
            store.sessions,
            lambda: store.search("1"),
        ]
        task = asyncio.create_task(steps[n % 3]())
        await asyncio.sleep(0 if n % 2 else 0.0005)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    async with asyncio.timeout(10):
        expect(len(await texts(store, "chat")) == 50, "other texts")  # noqa: PLR2004


@store_check
async def forks_and_deletions_at_once(bench: Bench) -> None:
    """Forks, appends and deletions of one family at once leave whole sessions only."""
    store = bench.open()
    await add(store, "base", *(f"{n}" for n in range(10)))
    entries = (await store.load("base")).entries

    async def live(n: int) -> None:
        name = f"fork-{n}"
        await store.fork("base", name, at=entries[n % 10].id)
        await add(store, name, "own")
        if n % 2:
            await store.delete(name)

    steps = [live(n) for n in range(20)]
    results = await asyncio.gather(*steps, return_exceptions=True)
    failed = [r for r in results if isinstance(r, BaseException)]
    expect(not failed, f"{failed}")
    await store.delete("base")
    for n in range(0, 20, 2):
        seen = await texts(store, f"fork-{n}")
        expect(seen == [*(f"{k}" for k in range(n % 10 + 1)), "own"], f"{seen}")
    expect(len((await store.sessions()).sessions) == 10, "others are left")  # noqa: PLR2004


@store_check
async def closed_store_says_so(bench: Bench) -> None:
    """Closing waits for what was asked before; a closed store refuses, and can be
    closed again. A store that was never used can be closed.
    """
    await bench.open().aclose()
    store = bench.open()
    task = asyncio.create_task(store.append("chat", said("1"), after=None))
    await asyncio.sleep(0)
    await store.aclose()
    await task
    await store.aclose()
    await fails(store.load("chat"), "closed")
    await fails(store.append("chat", said("2"), after=None), "closed")
    await fails(store.sessions(), "closed")
    expect(await texts(bench.open(), "chat") == ["1"], "other texts")
