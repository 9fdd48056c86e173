"""Sessions in a file, by the standard library's sqlite3."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self, TypeVar

from ..errors import SessionError
from .faults import sqlite_fault
from .sql import MIGRATIONS, Connection, SQLStore, Values, steps_from
from .workers import Workers

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["SQLiteStore"]

T = TypeVar("T")

_APPLICATION = 0x4C744772
"""What `PRAGMA application_id` says of our files."""


class SQLiteStore(SQLStore):
    """A `Store` in one SQLite file, which any number of processes may share.

    All statements run on one thread of the store, so the event loop never waits for the
    disk, and the store may be used from several event loops and threads. The file is
    opened, and made if there is none, at the first operation. It is in WAL mode: beside
    it are two files with `-wal` and `-shm` behind its name. Each append is on the disk
    when it returns (`synchronous=FULL`).

    Args:
        path: The file; `":memory:"` for a store that is gone with the object.
        timeout: Seconds to wait for another program that writes.

    Example:
        ```python
        async with SQLiteStore("chats.db") as store:
            session = Session(agent, store, "chat-1")
            print((await session.run("Hello!")).text)
        ```
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 5.0) -> None:
        self._path = os.fspath(path)
        if not self._path:
            raise ValueError("SQLiteStore takes the path of a file, got an empty one")
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        self._left: list[object] = []
        self._workers = Workers(f"SQLiteStore({self._path})", 1, self._leave)

    async def aclose(self) -> None:
        """Wait for what was asked before and close the file."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Close the file, from synchronous code; as `aclose`."""
        self._workers.close(self._close)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _leave(self) -> None:
        """Forget the connection of the parent process: closing it would harm the parent."""
        self._left.append(self._connection)
        self._connection = None

    async def _transact(self, work: Callable[[Connection], T], *, write: bool) -> T:
        return await self._workers.run(lambda: self._transacted(work, write))

    def _transacted(self, work: Callable[[Connection], T], write: bool) -> T:
        try:
            if self._connection is None:
                self._connection = self._open()
            # A write that began as a read could not wait for its turn.
            return _transaction(
                self._connection, work, "BEGIN IMMEDIATE" if write else "BEGIN"
            )
        except sqlite3.Error as error:
            raise self._session_error(error) from error

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=self._timeout, isolation_level=None
        )
        try:
            connection.execute("PRAGMA foreign_keys=ON")
            self._use_wal(connection)
            connection.execute("PRAGMA synchronous=FULL")
            if self._steps(connection):
                _transaction(connection, self._migrate, "BEGIN IMMEDIATE")
        except BaseException:
            connection.close()
            raise
        return connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to WAL; SQLite itself does not wait for others who switch just now."""
        end = time.monotonic() + self._timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                name = error.sqlite_errorname or ""
                if not name.startswith("SQLITE_BUSY") or time.monotonic() > end:
                    raise
                time.sleep(0.01)
            else:
                return

    def _steps(self, connection: sqlite3.Connection) -> Sequence[str]:
        """Return the statements that the tables need."""
        application = _number(connection, "PRAGMA application_id")
        version = _number(connection, "PRAGMA user_version")
        tables = _number(connection, "SELECT COUNT(*) FROM sqlite_master")
        if application != _APPLICATION and (application or version or tables):
            raise SessionError(
                f"the SQLite file {self._path} belongs to something else: give the store"
                " a file of its own",
                code="invalid",
            )
        return steps_from(version, f"the session store {self._path}")

    def _migrate(self, c: _Transaction) -> None:
        # Asked again, now alone: another process may have been first.
        for statement in self._steps(c.connection):
            c.change(statement, {})
        c.change(f"PRAGMA user_version={len(MIGRATIONS)}", {})
        c.change(f"PRAGMA application_id={_APPLICATION}", {})

    def _session_error(self, error: sqlite3.Error) -> SessionError:
        code, hint = sqlite_fault(getattr(error, "sqlite_errorname", None))
        return SessionError(
            f"the session store {self._path} failed ({error}): {hint}", code=code
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"SQLiteStore({self._path!r})"


class _Transaction:
    """The `Connection` that the statements see."""

    for_update = ""  # whoever writes is alone anyway

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def rows(self, sql: str, values: Values, /) -> Sequence[Sequence[object]]:
        return self.connection.execute(sql, values).fetchall()

    def change(self, sql: str, values: Values, /) -> int:
        return self.connection.execute(sql, values).rowcount

    def change_many(self, sql: str, values: Sequence[Values], /) -> None:
        self.connection.executemany(sql, values)


def _transaction(
    connection: sqlite3.Connection, work: Callable[[_Transaction], T], begin: str
) -> T:
    connection.execute(begin)
    try:
        result = work(_Transaction(connection))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors end it by themselves
            connection.execute("ROLLBACK")
        raise
    return result


def _number(connection: sqlite3.Connection, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])
