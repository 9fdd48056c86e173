"""What stores on SQL databases do inside of a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, cast

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
    StoredSession,
    check_session_id,
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
    MOVE_HEAD,
    SESSION,
    TREE,
)

__all__ = [
    "Connection",
    "Values",
    "append",
    "chained",
    "cursor_values",
    "delete",
    "filter_values",
    "find",
    "fork",
    "info_of",
    "insert",
    "load",
]

Values = Mapping[str, str | int | None]

_MAX_LIMIT = 1000


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


def chained(messages: Iterable[Message], after: str | None) -> list[Entry]:
    """Return new entries, each behind the other."""
    entries: list[Entry] = []
    created = utc_now()
    for message in messages:
        entries.append(Entry(new_id(), after, message, created))
        after = entries[-1].id
    return entries


def load(c: Connection, session_id: str) -> StoredSession:
    """Return a session with its entries."""
    tree, info, forked = _session(c, session_id, lock=False)
    rows: Sequence[Sequence[object]] = ()
    if not forked:
        rows = c.rows(TREE, {"tree": tree, "revision": info.revision})
    if len(rows) != info.revision:  # there are other branches, perhaps since just now
        rows = c.rows(CHAIN, {"tree": tree, "head": info.head})
    if len(rows) < info.revision:  # deleted since
        raise _missing(session_id)
    rows = sorted(rows, key=lambda row: cast("int", row[4]))
    return StoredSession(info, tuple(_entries_of(rows, f"session {session_id!r}")))


def _entries_of(rows: Sequence[Sequence[object]], where: str) -> list[Entry]:
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


def find(c: Connection, values: Values) -> list[FoundEntry]:
    """Return what a search finds."""
    rows = c.rows(FIND, values)
    entries = _entries_of([row[1:] for row in rows], "what the search found")
    sessions = [cast("str", row[0]) for row in rows]
    return [FoundEntry(*each) for each in zip(sessions, entries, strict=True)]


def append(
    c: Connection,
    session_id: str,
    entries: Sequence[Entry],
    documents: Sequence[str],
    after: str | None,
) -> None:
    """Add entries behind the session's head."""
    last = entries[-1]
    if after is None:
        info = SessionInfo(
            session_id, last.id, len(entries), last.created, last.created
        )
        _add(c, info, new_id(), entries, documents)
        return
    tree, info, _ = _session(c, session_id, lock=True)
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


def fork(c: Connection, session_id: str, new_id: str, at: str | None) -> SessionInfo:
    """Make a session that ends at an entry of another one."""
    tree, info, _ = _session(c, session_id, lock=True)
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


def insert(c: Connection, session: StoredSession, documents: Sequence[str]) -> None:
    """Store a whole session."""
    # A tree of its own: the same entries may be there already, in another session.
    _add(c, session.info, new_id(), session.entries, documents)


def delete(c: Connection, session_id: str) -> None:
    """Remove a session and what no other one shares."""
    tree, _, _ = _session(c, session_id, lock=False)
    # All at once and in order: two deletions then cannot wait for each other, and no
    # fork can begin meanwhile.
    if (session_id,) not in {
        tuple(r) for r in c.rows(IN_TREE + c.for_update, {"tree": tree})
    }:
        raise _missing(session_id)
    c.change(DELETE_SESSION, {"id": session_id})
    c.change(DELETE_ENTRIES, {"tree": tree})


def _session(
    c: Connection, session_id: str, *, lock: bool
) -> tuple[str, SessionInfo, bool]:
    """Return the tree of a session, what is said of it, and if others share the tree."""
    end = c.for_update if lock else ""
    rows = c.rows(SESSION + end, {"id": session_id})
    if not rows:
        raise _missing(session_id)
    return cast("str", rows[0][5]), info_of(rows[0]), bool(rows[0][6])


def info_of(row: Sequence[object]) -> SessionInfo:
    """Return the session of a row."""
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


def filter_values(prefix: str, limit: int) -> dict[str, str | int]:
    """Return parameters for what many statements choose by."""
    if prefix:
        check_session_id(prefix)
    if not 1 <= limit <= _MAX_LIMIT:
        raise ValueError(f"limit must be 1 to {_MAX_LIMIT:,}, got {limit}")
    return {"prefix": prefix, "length": len(prefix), "limit": limit}


def cursor_values(cursor: str | None) -> dict[str, str | int]:
    """Return where a list goes on."""
    if cursor is None:
        return {"touched": 2**62, "last": ""}
    touched, separator, last = cursor.partition(":")
    if not separator or not touched.isascii() or not touched.isdigit():
        raise SessionError(
            f"{cursor[:60]!r} is no cursor: take that of a page", code="invalid"
        )
    return {"touched": min(int(touched[:20]), 2**62), "last": check_session_id(last)}
