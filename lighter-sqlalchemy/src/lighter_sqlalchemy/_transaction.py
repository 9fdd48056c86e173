"""One transaction, as the statements of the core see it, on each kind of database."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache

from sqlalchemy import Connection, Engine, TextClause, text
from sqlalchemy.exc import DBAPIError

from lighter_core.sessions.sql import Values

__all__ = ["Transaction", "begin", "use_wal"]

_PAUSE_SECONDS = 0.01


class Transaction:
    """A `lighter_core.sessions.sql.Connection`."""

    def __init__(self, connection: Connection, for_update: str) -> None:
        self.connection = connection
        self.for_update = for_update

    def rows(self, sql: str, values: Values, /) -> Sequence[Sequence[object]]:
        """Return the rows of a SELECT."""
        return self.connection.execute(_parsed(sql), values).all()

    def change(self, sql: str, values: Values, /) -> int:
        """Run another statement; return the number of rows that it changed."""
        return self.connection.execute(_parsed(sql), values).rowcount

    def change_many(self, sql: str, values: Sequence[Values], /) -> None:
        """Run a statement for each of several sets of parameters."""
        if values:
            self.connection.execute(_parsed(sql), list(values))


@cache
def _parsed(sql: str) -> TextClause:
    # Otherwise the count of an INSERT is gone with its cursor.
    return text(sql).execution_options(preserve_rowcount=True)


@contextmanager
def begin(engine: Engine, timeout: float, *, write: bool) -> Generator[Transaction]:
    """Begin a transaction; commit it at the end, undo it after an exception."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            with _sqlite(connection, timeout, write=write):
                yield Transaction(connection, "")
            return
        # Writers lock the session's row and look again: that needs no higher level.
        connection.execution_options(isolation_level="READ COMMITTED")
        with connection.begin():
            if write and engine.dialect.name == "postgresql":
                milliseconds = max(1, int(timeout * 1000))
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")
            yield Transaction(connection, " FOR UPDATE")


@contextmanager
def _sqlite(connection: Connection, timeout: float, *, write: bool) -> Generator[None]:
    """Begin by hand: left to itself the driver begins too late for a lock."""
    connection.execution_options(isolation_level="AUTOCOMMIT")
    with _setting(connection, "foreign_keys", 1), _waiting(connection, timeout):
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            yield
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            with suppress(DBAPIError):  # some errors end the transaction by themselves
                connection.exec_driver_sql("ROLLBACK")
            raise


def use_wal(engine: Engine, timeout: float) -> None:
    """Switch to WAL; SQLite itself does not wait for others who switch just now.

    Raises:
        sqlalchemy.exc.DBAPIError: When others hold the file for longer.
    """
    end = time.monotonic() + timeout
    while True:
        try:
            with engine.connect() as connection, _waiting(connection, timeout):
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        except DBAPIError as error:
            name = getattr(error.orig, "sqlite_errorname", None) or ""
            if not name.startswith("SQLITE_BUSY") or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _waiting(connection: Connection, timeout: float) -> AbstractContextManager[None]:
    return _setting(connection, "busy_timeout", max(1, int(timeout * 1000)))


@contextmanager
def _setting(connection: Connection, name: str, value: int) -> Generator[None]:
    """Give a connection a setting, and its own again at the end."""
    before = connection.exec_driver_sql(f"PRAGMA {name}").scalar()
    connection.exec_driver_sql(f"PRAGMA {name}={value}")
    try:
        yield
    finally:
        with suppress(DBAPIError):  # a broken connection is not kept
            connection.exec_driver_sql(f"PRAGMA {name}={before}")
