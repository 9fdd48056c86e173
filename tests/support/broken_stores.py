"""Stores with one fault each, for proving that the checks of stores can fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import replace

from lighter_core import Message, SessionError, SessionNotFoundError, UserMessage
from lighter_core.sessions import SessionPage, SQLiteStore, StoredSession

__all__ = ["FAULTS"]


class IgnoresTheHead(SQLiteStore):
    async def append(self, session_id, messages, /, *, after):
        given = list(messages)
        while True:
            try:
                after = (await self.load(session_id)).info.head
            except SessionNotFoundError:
                after = None
            try:
                return await super().append(session_id, given, after=after)
            except SessionError as error:
                if error.code != "conflict":
                    raise


class Forgets(SQLiteStore):
    def __init__(self, path: str) -> None:
        super().__init__(":memory:")


class TurnsRound(SQLiteStore):
    async def load(self, session_id, /):
        stored = await super().load(session_id)
        return StoredSession(stored.info, tuple(reversed(stored.entries)))


class Edits(SQLiteStore):
    """Loses what some databases cannot hold."""

    lost = "\x00"

    async def append(self, session_id, messages, /, *, after):
        given = [self._edited(message) for message in messages]
        return await super().append(session_id, given, after=after)

    def _edited(self, message: Message) -> Message:
        if isinstance(message, UserMessage) and isinstance(message.content, str):
            return UserMessage(message.content.replace(self.lost, ""))
        return message


class LosesSurrogates(Edits):
    def _edited(self, message):
        if isinstance(message, UserMessage) and isinstance(message.content, str):
            return UserMessage(message.content.encode(errors="ignore").decode())
        return message


class LosesCarriageReturns(Edits):
    lost = "\r"


class CutsLongTexts(Edits):
    def _edited(self, message):
        if isinstance(message, UserMessage) and isinstance(message.content, str):
            return UserMessage(message.content[:1_000_000])
        return message


class AppendsOneByOne(SQLiteStore):
    async def append(self, session_id, messages, /, *, after):
        entries = []
        for message in messages:
            entries += await super().append(session_id, [message], after=after)
            after = entries[-1].id
        if not entries:
            raise ValueError("nothing")
        return entries


class TakesNothing(SQLiteStore):
    async def append(self, session_id, messages, /, *, after):
        given = list(messages)
        if not given:
            return []
        return await super().append(session_id, given, after=after)


class CopiesForks(SQLiteStore):
    async def fork(self, session_id, new_id, /, *, at=None):
        stored = await self.load(session_id)
        messages: list[Message] = []
        for entry in stored.entries:
            messages.append(entry.message)
            if entry.id == at:
                break
        await self.append(new_id, messages, after=None)
        return (await self.load(new_id)).info


class ForksAnywhere(SQLiteStore):
    async def fork(self, session_id, new_id, /, *, at=None):
        try:
            return await super().fork(session_id, new_id, at=at)
        except SessionNotFoundError:
            return await super().fork(session_id, new_id)


class DeletesFamilies(SQLiteStore):
    """A fork goes with the session that it shares entries with."""

    async def delete(self, session_id, /):
        first = (await self.load(session_id)).entries[0].id
        for info in (await self.sessions(limit=1000)).sessions:
            if (await self.load(info.id)).entries[0].id == first:
                await super().delete(info.id)


class DeletesNothing(SQLiteStore):
    async def delete(self, session_id, /):
        await self.load(session_id)


class ListsBackwards(SQLiteStore):
    async def sessions(self, *, prefix="", limit=50, cursor=None):
        page = await super().sessions(prefix=prefix, limit=limit, cursor=cursor)
        return SessionPage(tuple(reversed(page.sessions)), page.cursor)


class SkipsBetweenPages(SQLiteStore):
    async def sessions(self, *, prefix="", limit=50, cursor=None):
        page = await super().sessions(prefix=prefix, limit=limit, cursor=cursor)
        return SessionPage(page.sessions[1:] if cursor else page.sessions, page.cursor)


class IgnoresPrefixes(SQLiteStore):
    async def sessions(self, *, prefix="", limit=50, cursor=None):
        return await super().sessions(limit=limit, cursor=cursor)

    async def search(self, text, /, *, prefix="", limit=50):
        return await super().search(text, limit=limit)


class TakesAnyLimit(SQLiteStore):
    async def sessions(self, *, prefix="", limit=50, cursor=None):
        limit = min(max(limit, 1), 1000)
        return await super().sessions(prefix=prefix, limit=limit, cursor=cursor)


class MindsCase(SQLiteStore):
    async def search(self, text, /, *, prefix="", limit=50):
        found = await super().search(text, prefix=prefix, limit=limit)
        return [each for each in found if text in str(each.entry.message)]


class TakesWildcards(SQLiteStore):
    async def search(self, text, /, *, prefix="", limit=50):
        if text in {"%", "_"}:
            text = "a"
        return await super().search(text, prefix=prefix, limit=limit)


class FindsTheOldestFirst(SQLiteStore):
    async def search(self, text, /, *, prefix="", limit=50):
        return (await super().search(text, prefix=prefix, limit=1000))[::-1][:limit]


class FindsOnce(SQLiteStore):
    async def search(self, text, /, *, prefix="", limit=50):
        found = await super().search(text, prefix=prefix, limit=limit)
        return list({each.entry.id: each for each in found}.values())


class FindsReasoning(SQLiteStore):
    async def search(self, text, /, *, prefix="", limit=50):
        if text == "thinking":
            text = "let me look"
        return await super().search(text, prefix=prefix, limit=limit)


class StripsIds(SQLiteStore):
    async def load(self, session_id, /):
        return await super().load(session_id.strip() or session_id)

    async def append(self, session_id, messages, /, *, after):
        name = session_id.strip() or session_id
        return await super().append(name, messages, after=after)


class TakesAnyId(SQLiteStore):
    async def load(self, session_id, /):
        return await super().load(session_id.replace("\n", " ") or "none")

    async def append(self, session_id, messages, /, *, after):
        name = session_id.replace("\n", " ") or "none"
        return await super().append(name, messages, after=after)


class InsertReplaces(SQLiteStore):
    async def insert(self, session, /):
        try:
            await super().insert(session)
        except SessionError as error:
            if error.code != "conflict":
                raise
            await self.delete(session.info.id)
            await super().insert(session)


class InsertMendsAll(SQLiteStore):
    async def insert(self, session, /):
        try:
            await super().insert(session)
        except SessionError as error:
            if error.code == "conflict":
                raise


class InsertMakesNewEntries(SQLiteStore):
    async def insert(self, session, /):
        await self.append(session.info.id, session.messages, after=None)


class BlocksTheLoop(SQLiteStore):
    async def append(self, session_id, messages, /, *, after):
        given = list(messages)
        time.sleep(0.6 if len(given) > 100 else 0)  # noqa: ASYNC251 - the fault
        return await super().append(session_id, given, after=after)


class BelongsToOneLoop(SQLiteStore):
    _loop: asyncio.AbstractEventLoop | None = None

    async def append(self, session_id, messages, /, *, after):
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if loop is not self._loop:
            raise RuntimeError("attached to a different loop")
        return await super().append(session_id, messages, after=after)


class NeverCloses(SQLiteStore):
    async def aclose(self) -> None:
        pass


class TellsLocalTime(SQLiteStore):
    async def load(self, session_id, /):
        stored = await super().load(session_id)
        entries = (
            replace(e, created=e.created[:-1] + "+00:00") for e in stored.entries
        )
        return StoredSession(stored.info, tuple(entries))


class CountsAppends(SQLiteStore):
    """Its revision is one more than it should be."""

    async def load(self, session_id, /):
        stored = await super().load(session_id)
        info = replace(stored.info, revision=stored.info.revision + 1)
        return StoredSession(info, stored.entries)


class MakesNewIds(SQLiteStore):
    """Entries have other ids each time they are loaded."""

    _count = 0

    async def load(self, session_id, /):
        stored = await super().load(session_id)
        type(self)._count += 1
        entries = (replace(e, id=f"{e.id[:20]}{self._count}") for e in stored.entries)
        return StoredSession(stored.info, tuple(entries))


class FindsNothingMissing(SQLiteStore):
    async def load(self, session_id, /):
        try:
            return await super().load(session_id)
        except SessionNotFoundError as error:
            raise KeyError(session_id) from error


def _checks(text: str) -> Iterable[str]:
    return text.split()


FAULTS: dict[type[SQLiteStore], Iterable[str]] = {
    IgnoresTheHead: _checks(
        "stale-head-is-a-conflict head-of-another-session-is-a-conflict"
        " beginning-twice-is-a-conflict loser-of-a-conflict-can-go-on"
        " new-session-of-an-old-id-is-another-one one-of-many-writers-wins"
        " one-of-many-beginners-wins two-stores-on-one-place"
        " head-that-forks-share-is-checked-for-each"
    ),
    Forgets: _checks(
        "store-outlives-its-object another-process-sees-everything"
        " two-stores-write-at-once processes-write-one-session"
        " processes-open-a-new-store-at-once"
    ),
    TurnsRound: _checks(
        "messages-come-back-in-order several-messages-in-one-append long-sessions"
        " entries-point-to-their-parents sessions-do-not-mix"
    ),
    Edits: _checks("nul-characters inserted-sessions-keep-odd-messages"),
    LosesSurrogates: _checks("lone-surrogates"),
    LosesCarriageReturns: _checks("separators-and-control-characters"),
    CutsLongTexts: _checks("big-messages"),
    AppendsOneByOne: _checks(
        "append-is-all-or-nothing cancelled-append-is-whole-or-nothing"
    ),
    TakesNothing: _checks("nothing-is-no-append"),
    CopiesForks: _checks("fork-begins-with-the-same-entries"),
    ForksAnywhere: _checks("fork-at-a-foreign-entry-is-not-found"),
    DeletesFamilies: _checks(
        "deleting-one-of-several-forks forks-and-deletions-at-once"
    ),
    DeletesNothing: _checks("deleted-session-is-gone"),
    ListsBackwards: _checks("list-begins-with-the-last-change"),
    SkipsBetweenPages: _checks(
        "pages-hold-each-session-once pages-stay-in-step-while-sessions-change"
    ),
    IgnoresPrefixes: _checks("prefix-limits-the-list search-keeps-to-its-prefix"),
    TakesAnyLimit: _checks("wrong-limits-and-cursors-are-refused"),
    MindsCase: _checks("search-does-not-mind-case"),
    TakesWildcards: _checks("search-takes-text-literally"),
    FindsTheOldestFirst: _checks("search-begins-with-the-newest"),
    FindsOnce: _checks("search-finds-shared-entries-in-each-fork"),
    FindsReasoning: _checks("search-looks-at-what-was-said"),
    StripsIds: _checks("odd-ids-are-distinct"),
    TakesAnyId: _checks("impossible-ids-are-refused"),
    InsertReplaces: _checks("insert-takes-no-session-away"),
    InsertMendsAll: _checks("incoherent-sessions-are-refused"),
    InsertMakesNewEntries: _checks(
        "exported-session-is-the-same-elsewhere same-entries-can-be-inserted-twice"
    ),
    BlocksTheLoop: _checks("event-loop-goes-on"),
    BelongsToOneLoop: _checks("several-event-loops-and-threads synchronous-runs"),
    NeverCloses: _checks("closed-store-says-so"),
    TellsLocalTime: _checks("times-are-utc"),
    CountsAppends: _checks(
        "head-and-revision-follow-the-entries listed-sessions-are-as-loaded-ones"
    ),
    MakesNewIds: _checks("entries-never-change"),
    FindsNothingMissing: _checks("unknown-session-is-not-found"),
}
"""Each fault with checks that must find it."""
