"""One transaction, as the statements of the core see it, on each kind of database."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cache

from sqlalchemy import Connection, Engine, TextClause, text
from sqlalchemy.exc import DBAPIError

from lighter_core.sessions.sql import Values

__all__ = ["Transaction", "begin"]


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
            with _sqlite(connection, write=write):
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
def _sqlite(connection: Connection, *, write: bool) -> Generator[None]:
    """Begin by hand: left to itself the driver begins too late for a lock."""
    connection.execution_options(isolation_level="AUTOCOMMIT")
    connection.exec_driver_sql("PRAGMA foreign_keys=ON")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with suppress(DBAPIError):  # some errors end the transaction by themselves
            connection.exec_driver_sql("ROLLBACK")
        raise
