"""Appending and loading."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

from lighter_core import Message, UserMessage
from lighter_core.sessions import Store

from .._registry import expect
from ._registry import Bench, store_check
from ._steps import ROUND, add, fails, said, texts

__all__: list[str] = []


@store_check
async def store_is_a_store(bench: Bench) -> None:
    """It has the methods of `lighter_core.sessions.Store`."""
    expect(isinstance(bench.open(), Store), "a method is missing")


@store_check
async def messages_come_back_in_order(bench: Bench) -> None:
    """What was appended is loaded: equal, complete, in order."""
    store = bench.open()
    head = None
    for message in ROUND:
        head = (await store.append("chat", [message], after=head))[-1].id
    loaded = (await store.load("chat")).messages
    expect(loaded == list(ROUND), f"{loaded}")


@store_check
async def several_messages_in_one_append(bench: Bench) -> None:
    """One append takes any number of messages, from any iterable, and keeps its order."""
    store = bench.open()
    entries = await store.append("chat", iter(ROUND), after=None)
    more = await store.append("chat", ROUND, after=entries[-1].id)
    loaded = await store.load("chat")
    expect(loaded.messages == [*ROUND, *ROUND], f"{loaded.messages}")
    expect(loaded.entries == (*entries, *more), "append returned other entries")


@store_check
async def entries_point_to_their_parents(bench: Bench) -> None:
    """The parent of an entry is the one before it; the first has none; ids differ."""
    store = bench.open()
    for n in range(5):
        await add(store, "chat", f"{n}", f"{n}, too")
    entries = (await store.load("chat")).entries
    parents = [entry.parent_id for entry in entries]
    expect(parents == [None, *(e.id for e in entries[:-1])], f"{parents}")
    expect(len({entry.id for entry in entries}) == len(entries), "an id stands twice")


@store_check
async def head_and_revision_follow_the_entries(bench: Bench) -> None:
    """The head is the last entry, the revision the number of entries."""
    store = bench.open()
    for n in range(1, 5):
        (entry,) = await add(store, "chat", f"{n}")
        info = (await store.load("chat")).info
        expect((info.head, info.revision) == (entry.id, n), f"{info} after {n}")
        expect(info.id == "chat", f"id {info.id!r}")


@store_check
async def times_are_utc(bench: Bench) -> None:
    """Times are UTC in the form `2026-11-30T09:15:00.123456Z`; `created` stays."""
    store = bench.open()
    await add(store, "chat", "1")
    first = (await store.load("chat")).info
    await add(store, "chat", "2")
    session = await store.load("chat")
    info = session.info
    form = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
    for time in (info.created, info.updated, *(e.created for e in session.entries)):
        expect(re.fullmatch(form, time), f"{time!r}")
    expect(info.created == first.created, "created has changed")
    expect(info.updated == session.entries[-1].created, "updated is not the last one")


@store_check
async def entries_never_change(bench: Bench) -> None:
    """What was loaded once is loaded the same ever after, ids and times too."""
    store = bench.open()
    await add(store, "chat", "1", "2")
    before = (await store.load("chat")).entries
    await add(store, "chat", "3")
    after = (await store.load("chat")).entries
    expect(after[:2] == before, f"{before} became {after[:2]}")


@store_check
async def unknown_session_is_not_found(bench: Bench) -> None:
    """Loading, forking, deleting and continuing what is not there say so."""
    store = bench.open()
    await add(store, "other", "1")
    head = (await store.load("other")).info.head
    steps: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: store.load("chat"),
        lambda: store.delete("chat"),
        lambda: store.fork("chat", "new"),
        lambda: store.append("chat", said("1"), after=head),
    )
    for step in steps:
        error = await fails(step(), "not_found", "chat")
        expect(isinstance(error, LookupError), f"{type(error).__name__}")
    await fails(store.load("chat"), "not_found")
    await fails(store.load("new"), "not_found")


@store_check
async def beginning_twice_is_a_conflict(bench: Bench) -> None:
    """`after=None` begins a session; one that is there is left as it is."""
    store = bench.open()
    await add(store, "chat", "1")
    await fails(store.append("chat", said("2"), after=None), "conflict", "chat")
    expect(await texts(store, "chat") == ["1"], f"{await texts(store, 'chat')}")


@store_check
async def stale_head_is_a_conflict(bench: Bench) -> None:
    """Appending behind an entry that is not the head any more stores nothing."""
    store = bench.open()
    (first,) = await add(store, "chat", "1")
    await add(store, "chat", "2")
    before = await store.load("chat")
    step = store.append("chat", said("3", "4"), after=first.id)
    await fails(step, "conflict", "chat")
    expect(await store.load("chat") == before, "something was stored")


@store_check
async def head_of_another_session_is_a_conflict(bench: Bench) -> None:
    """An entry that is not in the session at all is no place to append behind."""
    store = bench.open()
    await add(store, "chat", "1")
    (other,) = await add(store, "other", "1")
    await fails(store.append("chat", said("2"), after=other.id), "conflict", "chat")
    await fails(store.append("chat", said("2"), after="no-such"), "conflict", "chat")
    expect(await texts(store, "chat") == ["1"], f"{await texts(store, 'chat')}")


@store_check
async def loser_of_a_conflict_can_go_on(bench: Bench) -> None:
    """After a conflict, loading and appending behind the new head works."""
    store = bench.open()
    (first,) = await add(store, "chat", "1")
    await add(store, "chat", "2")
    await fails(store.append("chat", said("3"), after=first.id), "conflict")
    await add(store, "chat", "3")
    expect(await texts(store, "chat") == ["1", "2", "3"], "other texts")


@store_check
async def new_session_of_an_old_id_is_another_one(bench: Bench) -> None:
    """A writer that knows a deleted session cannot append to its successor, though it
    has as many entries.
    """
    store = bench.open()
    (old,) = await add(store, "chat", "1")
    await store.delete("chat")
    await fails(store.append("chat", said("2"), after=old.id), "not_found", "chat")
    await add(store, "chat", "1")
    await fails(store.append("chat", said("2"), after=old.id), "conflict", "chat")
    expect(await texts(store, "chat") == ["1"], f"{await texts(store, 'chat')}")


@store_check
async def nothing_is_no_append(bench: Bench) -> None:
    """An append without messages is refused with a ValueError."""
    store = bench.open()
    try:
        await store.append("chat", [], after=None)
    except ValueError:
        await fails(store.load("chat"), "not_found")
    else:
        raise AssertionError("an empty append was taken")


@store_check
async def append_is_all_or_nothing(bench: Bench) -> None:
    """When one of several messages cannot be stored, none is."""
    store = bench.open()
    await add(store, "chat", "1")
    head = (await store.load("chat")).info.head
    bad = cast("Any", [UserMessage("2"), {"role": "user", "content": "3"}])
    try:
        await store.append("chat", bad, after=head)
    except TypeError:
        pass
    else:
        raise AssertionError("a dict was taken for a message")
    expect(await texts(store, "chat") == ["1"], f"{await texts(store, 'chat')}")


@store_check
async def given_list_is_left_alone(bench: Bench) -> None:
    """The list that was given is not changed, nor does it change the session later."""
    store = bench.open()
    given: list[Message] = said("1")
    await store.append("chat", given, after=None)
    given.append(UserMessage("2"))
    expect(await texts(store, "chat") == ["1"], "the session has changed")
    expect(len(given) == 2, "the list has changed")  # noqa: PLR2004
    loaded = await store.load("chat")
    loaded.messages.clear()
    expect(await texts(store, "chat") == ["1"], "the session has changed")


@store_check
async def deleted_session_is_gone(bench: Bench) -> None:
    """A deleted session is not found; its id can be used again."""
    store = bench.open()
    await add(store, "chat", "1", "2")
    await add(store, "other", "1")
    await store.delete("chat")
    await fails(store.load("chat"), "not_found", "chat")
    await fails(store.delete("chat"), "not_found", "chat")
    await add(store, "chat", "new")
    expect(await texts(store, "chat") == ["new"], f"{await texts(store, 'chat')}")
    expect(await texts(store, "other") == ["1"], "another session was touched")
