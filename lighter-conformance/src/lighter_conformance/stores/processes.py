"""Several processes on one place, and the end of processes."""

from __future__ import annotations

import asyncio

from .._registry import expect
from ._registry import Bench, store_check
from ._steps import ROUND, add, texts

__all__: list[str] = []


async def _done(process: asyncio.subprocess.Process) -> str:
    out, errors = await process.communicate()
    expect(process.returncode == 0, f"a process failed: {errors.decode()[-500:]}")
    return out.decode()


@store_check
async def store_outlives_its_object(bench: Bench) -> None:
    """A store that is opened again has everything: entries, forks, order."""
    store = bench.open()
    await store.append("a", ROUND, after=None)
    await add(store, "b", "1")
    await store.fork("a", "c")
    before = [await store.load(name) for name in "abc"]
    page = await store.sessions()
    await store.aclose()
    again = bench.open()
    expect([await again.load(name) for name in "abc"] == before, "other sessions")
    expect(await again.sessions() == page, "another list")


@store_check
async def another_process_sees_everything(bench: Bench) -> None:
    """Another process loads what was stored, and what it stores is seen here."""
    store = bench.open()
    await add(store, "chat", "here")
    out = await _done(await bench.child("append", "chat", "1", "there "))
    expect(out.split() == ["0"], f"it printed {out!r}")
    expect(await texts(store, "chat") == ["here", "there 0"], "other texts")


@store_check
async def processes_write_one_session(bench: Bench) -> None:
    """Two processes and this one append to one session, each loading anew after a
    conflict: nothing is lost, each one's order is kept.
    """
    store = bench.open()
    await add(store, "chat", "first")
    names = ("a", "b")
    children = [await bench.child("append", "chat", "25", name) for name in names]
    for n in range(10):
        await _until_stored(bench, f"here{n}")
    for child in children:
        await _done(child)
    seen = await texts(store, "chat")
    expect(len(seen) == 61, f"{len(seen)} of 61 texts")  # noqa: PLR2004
    for name, count in (("a", 25), ("b", 25), ("here", 10)):
        own = [text for text in seen if text.startswith(name)]
        expect(own == [f"{name}{n}" for n in range(count)], f"{own}")


async def _until_stored(bench: Bench, text: str) -> None:
    from ._child import append

    store = bench.open()
    await append(store, "chat", text)
    await store.aclose()


@store_check
async def processes_open_a_new_store_at_once(bench: Bench) -> None:
    """The first operations of several processes on an empty place do not meet."""
    children = [
        await bench.child("append", f"chat-{n}", "1", "text ") for n in range(3)
    ]
    for child in children:
        await _done(child)
    store = bench.open()
    for n in range(3):
        expect(await texts(store, f"chat-{n}") == ["text 0"], f"chat-{n}")


@store_check
async def killed_process_loses_nothing_stored(bench: Bench) -> None:
    """When a process is killed, every append that had returned is there, at most one more,
    and others go on.
    """
    store = bench.open()
    for wanted in (1, 20):
        name = f"chat-{wanted}"
        child = await bench.child("append", name, "100000", "text ")
        stream = child.stdout
        seen = b""
        while stream is not None and seen.count(b"\n") < wanted:
            seen += await stream.read(100) or b"\n"
        child.kill()
        rest, errors = await child.communicate()
        stored = (seen + rest).count(b"\n")
        found = await texts(store, name)
        expect(stored >= wanted, f"it ended by itself: {errors.decode()[-300:]}")
        expect(stored <= len(found) <= stored + 1, f"{len(found)} of {stored} texts")
        expect(found == [f"text {n}" for n in range(len(found))], "another order")
        await add(store, name, "on")


@store_check
async def killed_process_leaves_no_half_append(bench: Bench) -> None:
    """An append of several messages is whole or not there, also after a kill."""
    store = bench.open()
    child = await bench.child("append", "chat", "100000", "text ", "9")
    stream = child.stdout
    if stream is not None:
        await stream.readline()
    await asyncio.sleep(0.05)
    child.kill()
    await child.communicate()
    found = await texts(store, "chat")
    expect(found, "nothing is stored")
    expect(len(found) % 9 == 0, f"{len(found)} texts are stored, appended in nines")
