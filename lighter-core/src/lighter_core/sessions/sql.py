"""What stores on SQL databases have in common, for authors of such stores.

The statements are plain SQL with named parameters, the same for SQLite and PostgreSQL. A
store brings a `Connection` and says how a transaction is run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar, cast

from ..errors import (
    HistoryError,
    SessionConflictError,
    SessionError,
    SessionNotFoundError,
)
from ..messages import Message
from ._entries import (
    Entry,
    FoundEntry,
    SessionInfo,
    SessionPage,
    StoredSession,
    check_session_id,
    documents_of,
    fault_of,
    messages_of,
    new_id,
    search_text,
    text_of,
    utc_now,
)
from ._statements import (
    ADD_ENTRY,
    ADD_SESSION,
    CHAIN,
    CHAIN_IDS,
    DELETE_ENTRIES,
    DELETE_SESSION,
    FIND,
    IN_TREE,
    LIST,
    MIGRATIONS,
    MOVE_HEAD,
    SESSION,
)

__all__ = ["MIGRATIONS", "Connection", "SQLStore", "Values", "steps_from"]

T = TypeVar("T")
Values = Mapping[str, str | int | None]

_MAX_LIMIT = 1000
_MAX_TEXT = 1000


class Connection(Protocol):
    """One transaction on a database. Used on one thread at a time."""

    for_update: str
    """What a SELECT ends with to lock its rows, `" FOR UPDATE"`, or `""`."""

    def rows(self, sql: str, values: Values, /) -> Sequence[Sequence[object]]:
        """Return the rows of a SELECT; parameters stand as `:name`."""
        ...

    def change(self, sql: str, values: Values, /) -> int:
        """Run another statement; return the number of rows that it changed."""
        ...

    def change_many(self, sql: str, values: Sequence[Values], /) -> None:
        """Run a statement for each of several sets of parameters."""
        ...


def steps_from(version: int, place: str) -> Sequence[str]:
    """Return the statements that bring tables from a version to the newest.

    The newest version is `len(MIGRATIONS)`.

    Args:
        version: That of the tables; 0 when there are none.
        place: The store in words, for the error.

    Raises:
        SessionError: `version`, when the tables are from a newer version.
    """
    if version > len(MIGRATIONS):
        raise SessionError(
            f"{place} was written by a newer version of Lighter (tables {version}, known"
            f" are {len(MIGRATIONS)}): update lighter-core",
            code="version",
        )
    return [statement for step in MIGRATIONS[version:] for statement in step]


class SQLStore(ABC):
    """A `Store` on a database that speaks SQL."""

    @abstractmethod
    async def _transact(self, work: Callable[[Connection], T], *, write: bool) -> T:
        """Run a function in a transaction of its own, on a thread; commit its work.

        Raises:
            SessionError: For whatever goes wrong in the database.
            Exception: Whatever the function raises; then nothing is stored.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of files and connections; other operations fail from then on."""

    async def load(self, session_id: str, /) -> StoredSession:
        """Return a session with its entries; see `Store.load`."""
        check_session_id(session_id)
        return await self._transact(lambda c: _load(c, session_id), write=False)

    async def append(
        self, session_id: str, messages: Iterable[Message], /, *, after: str | None
    ) -> list[Entry]:
        """Add messages behind the session's head; see `Store.append`."""
        check_session_id(session_id)
        given = list(messages)
        if not given:
            raise ValueError("there is nothing to append: messages is empty")
        documents = documents_of(given)
        entries = _chained(given, after)
        await self._transact(
            lambda c: _append(c, session_id, entries, documents, after), write=True
        )
        return entries

    async def fork(
        self, session_id: str, new_id: str, /, *, at: str | None = None
    ) -> SessionInfo:
        """Make a new session with the entries of another one; see `Store.fork`."""
        check_session_id(session_id)
        check_session_id(new_id)
        return await self._transact(
            lambda c: _fork(c, session_id, new_id, at), write=True
        )

    async def insert(self, session: StoredSession, /) -> None:
        """Store a whole session as it is; see `Store.insert`."""
        check_session_id(session.info.id)
        fault = fault_of(session)
        if fault is not None:
            raise SessionError(
                f"session {session.info.id!r}, entry {fault[0]}: {fault[1]}",
                code="invalid",
                session_id=session.info.id,
            )
        documents = documents_of(session.messages)
        await self._transact(lambda c: _insert(c, session, documents), write=True)

    async def sessions(
        self, *, prefix: str = "", limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """List sessions, the one that changed last first; see `Store.sessions`."""
        values = {**_filter(prefix, limit), **_position(cursor)}
        values["limit"] = limit + 1  # one more tells whether there are more
        rows = await self._transact(lambda c: c.rows(LIST, values), write=False)
        more = len(rows) > limit
        found = tuple(_info(row) for row in rows[:limit])
        return SessionPage(
            found, f"{rows[limit - 1][5]}:{found[-1].id}" if more else None
        )

    async def search(
        self, text: str, /, *, prefix: str = "", limit: int = 50
    ) -> list[FoundEntry]:
        """Find entries whose text contains another; see `Store.search`."""
        if not 0 < len(text) <= _MAX_TEXT:
            raise ValueError(f"a search takes 1 to {_MAX_TEXT:,} characters")
        pattern = search_text(text)
        for special in "!%_":
            pattern = pattern.replace(special, f"!{special}")
        values = {**_filter(prefix, limit), "pattern": f"%{pattern}%"}
        rows = await self._transact(lambda c: c.rows(FIND, values), write=False)
        entries = _entries([row[1:] for row in rows], "what the search found")
        sessions = [cast("str", row[0]) for row in rows]
        return [FoundEntry(*each) for each in zip(sessions, entries, strict=True)]

    async def delete(self, session_id: str, /) -> None:
        """Remove a session; see `Store.delete`."""
        check_session_id(session_id)
        await self._transact(lambda c: _delete(c, session_id), write=True)


def _chained(messages: Iterable[Message], after: str | None) -> list[Entry]:
    entries: list[Entry] = []
    created = utc_now()
    for message in messages:
        entries.append(Entry(new_id(), after, message, created))
        after = entries[-1].id
    return entries


def _load(c: Connection, session_id: str) -> StoredSession:
    tree, info = _session(c, session_id, lock=False)
    rows = c.rows(CHAIN, {"tree": tree, "head": info.head})
    if len(rows) < info.revision:  # deleted since
        raise _missing(session_id)
    rows = sorted(rows, key=lambda row: cast("int", row[4]))
    return StoredSession(info, tuple(_entries(rows, f"session {session_id!r}")))


def _entries(rows: Sequence[Sequence[object]], where: str) -> list[Entry]:
    """Return the entries of rows of id, parent's id, time, document."""
    try:
        messages = messages_of([cast("str", row[3]) for row in rows])
    except HistoryError as error:
        raise SessionError(
            f"{where} holds a message that cannot be read: {error}", code="corrupt"
        ) from error
    return [
        Entry(
            cast("str", row[0]),
            cast("str | None", row[1]),
            message,
            cast("str", row[2]),
        )
        for row, message in zip(rows, messages, strict=True)
    ]


def _append(
    c: Connection,
    session_id: str,
    entries: Sequence[Entry],
    documents: Sequence[str],
    after: str | None,
) -> None:
    last = entries[-1]
    if after is None:
        info = SessionInfo(
            session_id, last.id, len(entries), last.created, last.created
        )
        _add(c, info, new_id(), entries, documents)
        return
    tree, info = _session(c, session_id, lock=True)
    if info.head != after:
        raise SessionConflictError(
            f"session {session_id!r} has moved on: its head is {info.head!r} at revision"
            f" {info.revision}, not {after!r}; load it again",
            code="conflict",
            session_id=session_id,
        )
    _add_entries(c, tree, entries, documents, info.revision)
    values: Values = {
        "id": session_id,
        "head": last.id,
        "revision": info.revision + len(entries),
        "updated": last.created,
    }
    c.change(MOVE_HEAD, values)


def _add(
    c: Connection,
    info: SessionInfo,
    tree: str,
    entries: Sequence[Entry],
    documents: Sequence[str],
) -> None:
    _add_entries(c, tree, entries, documents, 0)
    values: Values = {
        "id": info.id,
        "tree": tree,
        "head": info.head,
        "revision": info.revision,
        "created": info.created,
        "updated": info.updated,
    }
    if c.change(ADD_SESSION, values) != 1:
        raise SessionConflictError(
            f"there is a session {info.id!r} already: load it, or choose another id",
            code="conflict",
            session_id=info.id,
        )


def _add_entries(
    c: Connection,
    tree: str,
    entries: Sequence[Entry],
    documents: Sequence[str],
    before: int,
) -> None:
    rows = [
        {
            "tree": tree,
            "id": entry.id,
            "parent_id": entry.parent_id,
            "position": before + number,
            "created": entry.created,
            "message": document,
            "search": search_text(text_of(entry.message)),
        }
        for number, (entry, document) in enumerate(
            zip(entries, documents, strict=True), 1
        )
    ]
    c.change_many(ADD_ENTRY, rows)


def _fork(c: Connection, session_id: str, new_id: str, at: str | None) -> SessionInfo:
    tree, info = _session(c, session_id, lock=True)
    place = {"tree": tree, "head": info.head}
    shared = {row[0]: cast("int", row[1]) for row in c.rows(CHAIN_IDS, place)}
    at = info.head if at is None else at
    if at not in shared:
        raise SessionNotFoundError(
            f"session {session_id!r} has no entry {at!r}: take the id of one of its own",
            code="not_found",
            session_id=session_id,
        )
    now = utc_now()
    fork = SessionInfo(new_id, at, shared[at], now, now)
    _add(c, fork, tree, (), ())
    return fork


def _insert(c: Connection, session: StoredSession, documents: Sequence[str]) -> None:
    # A tree of its own: the same entries may be there already, in another session.
    _add(c, session.info, new_id(), session.entries, documents)


def _delete(c: Connection, session_id: str) -> None:
    tree, _ = _session(c, session_id, lock=False)
    # All at once and in order: two deletions then cannot wait for each other, and no
    # fork can begin meanwhile.
    if (session_id,) not in {
        tuple(r) for r in c.rows(IN_TREE + c.for_update, {"tree": tree})
    }:
        raise _missing(session_id)
    c.change(DELETE_SESSION, {"id": session_id})
    c.change(DELETE_ENTRIES, {"tree": tree})


def _session(c: Connection, session_id: str, *, lock: bool) -> tuple[str, SessionInfo]:
    """Return the tree of a session, and what is said of it."""
    end = c.for_update if lock else ""
    rows = c.rows(SESSION + end, {"id": session_id})
    if not rows:
        raise _missing(session_id)
    return cast("str", rows[0][5]), _info(rows[0])


def _info(row: Sequence[object]) -> SessionInfo:
    return SessionInfo(
        cast("str", row[0]),
        cast("str", row[1]),
        cast("int", row[2]),
        cast("str", row[3]),
        cast("str", row[4]),
    )


def _missing(session_id: str) -> SessionNotFoundError:
    return SessionNotFoundError(
        f"there is no session {session_id!r}", code="not_found", session_id=session_id
    )


def _filter(prefix: str, limit: int) -> dict[str, str | int]:
    if prefix:
        check_session_id(prefix)
    if not 1 <= limit <= _MAX_LIMIT:
        raise ValueError(f"limit must be 1 to {_MAX_LIMIT:,}, got {limit}")
    return {"prefix": prefix, "length": len(prefix), "limit": limit}


def _position(cursor: str | None) -> dict[str, str | int]:
    """Return where a list goes on."""
    if cursor is None:
        return {"touched": 2**62, "last": ""}
    touched, separator, last = cursor.partition(":")
    if not separator or not touched.isascii() or not touched.isdigit():
        raise SessionError(
            f"{cursor[:60]!r} is no cursor: take that of a page", code="invalid"
        )
    return {"touched": min(int(touched[:20]), 2**62), "last": check_session_id(last)}
