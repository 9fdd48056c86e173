"""What stores on SQL databases have in common, for authors of such stores.

The statements are plain SQL with named parameters, the same for SQLite and PostgreSQL. A
store brings a `Connection` and says how a transaction is run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..errors import SessionError
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
    search_text,
)
from ._operations import (
    Connection,
    Values,
    append,
    chained,
    cursor_values,
    delete,
    filter_values,
    find,
    fork,
    info_of,
    insert,
    load,
)
from ._statements import LIST, MIGRATIONS

__all__ = ["MIGRATIONS", "Connection", "SQLStore", "Values", "steps_from"]

T = TypeVar("T")

_MAX_TEXT = 1000


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
        return await self._transact(lambda c: load(c, session_id), write=False)

    async def append(
        self, session_id: str, messages: Iterable[Message], /, *, after: str | None
    ) -> list[Entry]:
        """Add messages behind the session's head; see `Store.append`."""
        check_session_id(session_id)
        given = list(messages)
        if not given:
            raise ValueError("there is nothing to append: messages is empty")
        documents = documents_of(given)
        entries = chained(given, after)
        await self._transact(
            lambda c: append(c, session_id, entries, documents, after), write=True
        )
        return entries

    async def fork(
        self, session_id: str, new_id: str, /, *, at: str | None = None
    ) -> SessionInfo:
        """Make a new session with the entries of another one; see `Store.fork`."""
        check_session_id(session_id)
        check_session_id(new_id)
        return await self._transact(
            lambda c: fork(c, session_id, new_id, at), write=True
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
        await self._transact(lambda c: insert(c, session, documents), write=True)

    async def sessions(
        self, *, prefix: str = "", limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """List sessions, the one that changed last first; see `Store.sessions`."""
        values = {**filter_values(prefix, limit), **cursor_values(cursor)}
        values["limit"] = limit + 1  # one more tells whether there are more
        rows = await self._transact(lambda c: c.rows(LIST, values), write=False)
        more = len(rows) > limit
        found = tuple(info_of(row) for row in rows[:limit])
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
        values = {**filter_values(prefix, limit), "pattern": f"%{pattern}%"}
        return await self._transact(lambda c: find(c, values), write=False)

    async def delete(self, session_id: str, /) -> None:
        """Remove a session; see `Store.delete`."""
        check_session_id(session_id)
        await self._transact(lambda c: delete(c, session_id), write=True)
