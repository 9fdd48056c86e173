"""The list of sessions."""

from __future__ import annotations

from functools import partial

from lighter_core.sessions import Store

from .._registry import expect
from ._registry import Bench, store_check
from ._steps import add, fails

__all__: list[str] = []


async def _ids(store: Store, *, prefix: str = "", limit: int = 50) -> list[str]:
    page = await store.sessions(prefix=prefix, limit=limit)
    return [info.id for info in page.sessions]


@store_check
async def empty_store_lists_nothing(bench: Bench) -> None:
    """A new store has no sessions and finds nothing."""
    store = bench.open()
    page = await store.sessions()
    expect((page.sessions, page.cursor) == ((), None), f"{page}")
    expect(await store.search("x") == [], "something was found")


@store_check
async def list_begins_with_the_last_change(bench: Bench) -> None:
    """The session that was made or appended to last comes first, whatever the clock."""
    store = bench.open()
    for name in ("a", "b", "c"):
        await add(store, name, "1")
    expect(await _ids(store) == ["c", "b", "a"], f"{await _ids(store)}")
    await add(store, "a", "2")
    await store.fork("b", "d")
    expect(await _ids(store) == ["d", "a", "c", "b"], f"{await _ids(store)}")
    await store.delete("a")
    expect(await _ids(store) == ["d", "c", "b"], f"{await _ids(store)}")


@store_check
async def listed_sessions_are_as_loaded_ones(bench: Bench) -> None:
    """The list says of a session what loading it says."""
    store = bench.open()
    await add(store, "a", "1", "2")
    await add(store, "b", "1")
    for info in (await store.sessions()).sessions:
        loaded = (await store.load(info.id)).info
        expect(info == loaded, f"listed {info}, loaded {loaded}")


@store_check
async def pages_hold_each_session_once(bench: Bench) -> None:
    """Pages of any size, read one after the other, hold each session once, in order."""
    store = bench.open()
    for n in range(23):
        await add(store, f"chat-{n}", "1")
    wanted = [f"chat-{n}" for n in reversed(range(23))]
    for limit in (1, 5, 22, 23, 24):
        seen: list[str] = []
        cursor = None
        while True:
            page = await store.sessions(limit=limit, cursor=cursor)
            expect(len(page.sessions) <= limit, f"{len(page.sessions)} of {limit}")
            seen += [info.id for info in page.sessions]
            cursor = page.cursor
            if cursor is None:
                break
        expect(seen == wanted, f"with limit {limit}: {seen}")


@store_check
async def pages_stay_in_step_while_sessions_change(bench: Bench) -> None:
    """A session that changes between two pages moves to the front; the others are still
    listed once.
    """
    store = bench.open()
    for n in range(10):
        await add(store, f"{n}", "1")
    first = await store.sessions(limit=4)
    await add(store, "0", "2")
    await add(store, "new", "1")
    await store.delete("9")
    rest = await store.sessions(limit=50, cursor=first.cursor)
    seen = [info.id for info in rest.sessions]
    expect(seen == ["5", "4", "3", "2", "1"], f"{seen}")


@store_check
async def prefix_limits_the_list(bench: Bench) -> None:
    """A prefix is taken literally, with its case; wildcards mean nothing in it."""
    store = bench.open()
    for name in ("u1/a", "u1/b", "u10/a", "U1/a", "u%/a", "u_/a", "é/a"):
        await add(store, name, "1")
    for prefix, wanted in {
        "u1/": ["u1/b", "u1/a"],
        "u1": ["u10/a", "u1/b", "u1/a"],
        "u%": ["u%/a"],
        "u_": ["u_/a"],
        "U": ["U1/a"],
        "é": ["é/a"],
        "x": [],
        "u1/a/longer": [],
    }.items():
        seen = await _ids(store, prefix=prefix)
        expect(seen == wanted, f"with {prefix!r}: {seen}")
    page = await store.sessions(prefix="u1/", limit=1)
    rest = await store.sessions(prefix="u1/", limit=1, cursor=page.cursor)
    expect([info.id for info in rest.sessions] == ["u1/a"], f"{rest}")
    expect(rest.cursor is None, "there is no third one")


@store_check
async def wrong_limits_and_cursors_are_refused(bench: Bench) -> None:
    """A limit is 1 to 1,000; a cursor is that of a page."""
    store = bench.open()
    await add(store, "chat", "needle")
    for limit in (0, -1, 1001):
        for step in (store.sessions, partial(store.search, "n")):
            try:
                await step(limit=limit)
            except ValueError:
                continue
            expect(False, f"the limit {limit} was taken")
    for cursor in ("", "x", "1", "x:y", "1:", "-1:a", "²:a", "1:a\nb", "9" * 400):
        await fails(store.sessions(cursor=cursor), "invalid")
    await store.sessions(limit=1000, cursor="9" * 400 + ":a")
