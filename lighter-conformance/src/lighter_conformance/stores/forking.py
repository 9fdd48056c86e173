"""Forks."""

from __future__ import annotations

from .._registry import expect
from ._registry import Bench, store_check
from ._steps import add, fails, said, texts

__all__: list[str] = []


@store_check
async def fork_begins_with_the_same_entries(bench: Bench) -> None:
    """A fork has the entries of the other session, up to the head unless it says where."""
    store = bench.open()
    await add(store, "chat", "1", "2", "3")
    entries = (await store.load("chat")).entries
    whole = await store.fork("chat", "whole")
    part = await store.fork("chat", "part", at=entries[1].id)
    expect((await store.load("whole")).entries == entries, "other entries")
    expect((await store.load("part")).entries == entries[:2], "other entries")
    expect(whole == (await store.load("whole")).info, f"returned {whole}")
    expect((part.id, part.head, part.revision) == ("part", entries[1].id, 2), f"{part}")


@store_check
async def forks_go_on_by_themselves(bench: Bench) -> None:
    """What is appended to a session is not in its forks, nor the other way round."""
    store = bench.open()
    await add(store, "chat", "1", "2")
    first = (await store.load("chat")).entries[0].id
    await store.fork("chat", "fork", at=first)
    await add(store, "chat", "3")
    await add(store, "fork", "other", "ways")
    expect(await texts(store, "chat") == ["1", "2", "3"], "the source has changed")
    expect(await texts(store, "fork") == ["1", "other", "ways"], "another fork")
    info = (await store.load("fork")).info
    expect(info.revision == 3, f"revision {info.revision}")  # noqa: PLR2004


@store_check
async def forks_of_forks(bench: Bench) -> None:
    """A fork can be forked, at an entry that it shares or at one of its own."""
    store = bench.open()
    await add(store, "a", "1", "2")
    await store.fork("a", "b")
    await add(store, "b", "3", "4")
    entries = (await store.load("b")).entries
    await store.fork("b", "c", at=entries[2].id)
    await store.fork("b", "d", at=entries[0].id)
    await add(store, "c", "5")
    expect(await texts(store, "c") == ["1", "2", "3", "5"], "another fork")
    expect(await texts(store, "d") == ["1"], "another fork")


@store_check
async def fork_at_a_foreign_entry_is_not_found(bench: Bench) -> None:
    """Only an entry of the session can be forked at: not one of another session, not one
    that only a fork of it has.
    """
    store = bench.open()
    await add(store, "chat", "1")
    (other,) = await add(store, "other", "1")
    await store.fork("chat", "fork")
    (own,) = await add(store, "fork", "secret")
    for at in (other.id, own.id, "no-such-entry", ""):
        await fails(store.fork("chat", "new", at=at), "not_found", "chat")
    await fails(store.load("new"), "not_found")


@store_check
async def fork_to_a_taken_id_is_a_conflict(bench: Bench) -> None:
    """A fork never takes the place of a session, nor of itself."""
    store = bench.open()
    await add(store, "chat", "1")
    await add(store, "other", "2")
    await fails(store.fork("chat", "other"), "conflict", "other")
    await fails(store.fork("chat", "chat"), "conflict", "chat")
    expect(await texts(store, "other") == ["2"], "the other session has changed")


@store_check
async def deleting_one_of_several_forks(bench: Bench) -> None:
    """Deleting a session leaves its forks whole, and the session it is a fork of; when
    all are gone, a new one begins empty.
    """
    store = bench.open()
    await add(store, "a", "1", "2", "3")
    entries = (await store.load("a")).entries
    await store.fork("a", "b", at=entries[1].id)
    await store.fork("a", "c", at=entries[0].id)
    await add(store, "b", "b")
    await add(store, "c", "c")
    await store.delete("a")
    expect(await texts(store, "b") == ["1", "2", "b"], "after the source went")
    expect(await texts(store, "c") == ["1", "c"], "after the source went")
    await store.delete("b")
    expect(await texts(store, "c") == ["1", "c"], "after another fork went")
    await add(store, "c", "d")
    await store.delete("c")
    await add(store, "a", "new")
    expect(await texts(store, "a") == ["new"], "after all went")


@store_check
async def head_that_forks_share_is_checked_for_each(bench: Bench) -> None:
    """Two sessions may end at one entry; each goes on from it once."""
    store = bench.open()
    (head,) = await add(store, "chat", "1")
    await store.fork("chat", "fork")
    await store.append("chat", said("2"), after=head.id)
    await store.append("fork", said("3"), after=head.id)
    await fails(store.append("fork", said("4"), after=head.id), "conflict", "fork")
    expect(await texts(store, "chat") == ["1", "2"], "other texts")
    expect(await texts(store, "fork") == ["1", "3"], "other texts")
