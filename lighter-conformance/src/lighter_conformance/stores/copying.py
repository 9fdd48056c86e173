"""Storing whole sessions: import and export."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from lighter_core import UserMessage
from lighter_core.sessions import (
    StoredSession,
    session_from_jsonl,
    session_to_jsonl,
)

from .._registry import expect
from ._registry import Bench, store_check
from ._steps import ROUND, add, fails, texts

__all__: list[str] = []


@store_check
async def exported_session_is_the_same_elsewhere(bench: Bench) -> None:
    """A session that is exported, and inserted into another store, is the same there:
    ids, times, messages, and its text again.
    """
    store = bench.open()
    await store.append("chat", ROUND, after=None)
    await add(store, "chat", "NUL \x00, \ud800, \u2028, é")
    session = await store.load("chat")
    text = session_to_jsonl(session)
    with TemporaryDirectory() as folder:
        async with bench.elsewhere(Path(folder)) as other:
            await other.insert(session_from_jsonl(text))
            again = await other.load("chat")
            expect(again == session, f"{again} for {session}")
            expect(session_to_jsonl(again) == text, "another text")


@store_check
async def inserted_session_goes_on(bench: Bench) -> None:
    """An inserted session is listed, found, appended to and forked like any other."""
    store = bench.open()
    await add(store, "chat", "needle", "2")
    session = await store.load("chat")
    await store.delete("chat")
    await add(store, "other", "1")
    await store.insert(session)
    listed = [info.id for info in (await store.sessions()).sessions]
    expect(listed == ["chat", "other"], f"{listed}")
    expect(len(await store.search("needle")) == 1, "the text was not found")
    await add(store, "chat", "3")
    await store.fork("chat", "fork", at=session.entries[0].id)
    expect(await texts(store, "chat") == ["needle", "2", "3"], "other texts")
    expect(await texts(store, "fork") == ["needle"], "other texts")


@store_check
async def insert_takes_no_session_away(bench: Bench) -> None:
    """Inserting a session whose id is taken is a conflict, and changes nothing."""
    store = bench.open()
    await add(store, "chat", "1")
    session = await store.load("chat")
    await add(store, "chat", "2")
    await fails(store.insert(session), "conflict", "chat")
    expect(await texts(store, "chat") == ["1", "2"], "the session has changed")


@store_check
async def same_entries_can_be_inserted_twice(bench: Bench) -> None:
    """A copy under another id has the same entries, and is independent."""
    store = bench.open()
    await add(store, "chat", "1", "2")
    session = await store.load("chat")
    copy = session_from_jsonl(session_to_jsonl(session), session_id="copy")
    await store.insert(copy)
    await add(store, "copy", "3")
    expect((await store.load("copy")).entries[:2] == session.entries, "other entries")
    await store.delete("chat")
    expect(await texts(store, "copy") == ["1", "2", "3"], "other texts")


@store_check
async def incoherent_sessions_are_refused(bench: Bench) -> None:
    """A session whose entries, head, revision, times or ids do not fit is refused, and
    nothing of it is stored.
    """
    store = bench.open()
    await add(store, "chat", "1", "2", "3")
    session = await store.load("chat")
    await store.delete("chat")
    info, (a, b, c) = session.info, session.entries
    for bad in (
        StoredSession(info, ()),
        StoredSession(info, (a, c)),
        StoredSession(info, (b, c)),
        StoredSession(info, (c, b, a)),
        StoredSession(info, (a, b, replace(c, parent_id=a.id))),
        StoredSession(info, (a, b, replace(c, parent_id=c.id))),
        StoredSession(info, (a, b, replace(c, id=b.id))),
        StoredSession(info, (a, b, replace(c, id=""))),
        StoredSession(info, (a, b, replace(c, id="x" * 65))),
        StoredSession(info, (a, b, replace(c, created="yesterday"))),
        StoredSession(info, (a, b, replace(c, created="2026-13-30T09:15:00.123456Z"))),
        StoredSession(replace(info, head=a.id), (a, b, c)),
        StoredSession(replace(info, revision=2), (a, b, c)),
        StoredSession(replace(info, updated=""), (a, b, c)),
        StoredSession(replace(info, id="a\x00b"), (a, b, c)),
    ):
        await fails(store.insert(bad), "invalid")
    expect((await store.sessions()).sessions == (), "a session was stored")
    await store.insert(session)
    expect(await store.load("chat") == session, "another session")


@store_check
async def inserted_sessions_keep_odd_messages(bench: Bench) -> None:
    """Export and import keep what JSON writes as escapes."""
    store = bench.open()
    odd = 'quote " back \\ nul \x00 line \u2028 lone \udfff end'
    await store.append("chat", [UserMessage(odd)], after=None)
    text = session_to_jsonl(await store.load("chat"))
    expect(text.count("\n") == 2, f"{text.count(chr(10))} lines")  # noqa: PLR2004
    await store.insert(session_from_jsonl(text.encode(), session_id="copy"))
    expect(await texts(store, "copy") == [odd], f"{await texts(store, 'copy')}")
