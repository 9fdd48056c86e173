"""Sessions in a database that SQLAlchemy speaks to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TypeVar

from sqlalchemy import URL, Engine, create_engine, inspect
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from lighter_core import SessionError
from lighter_core.sessions.faults import sqlite_fault, sqlstate_fault
from lighter_core.sessions.sql import MIGRATIONS, Connection, SQLStore, steps_from
from lighter_core.sessions.workers import Workers

from ._transaction import Transaction, begin, use_wal

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["SQLAlchemyStore"]

T = TypeVar("T")

_LOCK = 0x4C744772
"""The number of the lock that PostgreSQL holds while tables are made."""


class SQLAlchemyStore(SQLStore):
    """A `lighter_core.sessions.Store` in PostgreSQL, or in SQLite.

    The statements run on threads of the store, over a synchronous driver: connections of
    asynchronous drivers belong to one event loop, and a store serves several. The tables
    `lighter_entries`, `lighter_sessions` and `lighter_store` are made, or brought to
    the present version, at the first operation.

    Args:
        database: A URL, e.g. `"postgresql+psycopg://user@host/name"`, or an engine of
            yours, which stays open when the store is closed.
        connections: How many statements may run at once; SQLite takes one.
        timeout: Seconds to wait for another writer of the same session; of any session
            in SQLite.

    Raises:
        ValueError: For an asynchronous driver, or another kind of database.
        sqlalchemy.exc.ArgumentError: When the URL cannot be read.

    Example:
        ```python
        async with SQLAlchemyStore("postgresql+psycopg://localhost/chats") as store:
            session = Session(agent, store, "chat-1")
            print((await session.run("Hello!")).text)
        ```
    """

    def __init__(
        self,
        database: str | URL | Engine,
        *,
        connections: int = 5,
        timeout: float = 5.0,
    ) -> None:
        self._own = not isinstance(database, Engine)
        if isinstance(database, Engine):
            engine = database
        else:
            # Parameters are what people said: they have no place in errors.
            engine = create_engine(database, hide_parameters=True, pool_pre_ping=True)
        kind = engine.dialect.name
        if kind not in {"postgresql", "sqlite"} or engine.dialect.is_async:
            raise ValueError(
                f"SQLAlchemyStore takes PostgreSQL and SQLite over a synchronous driver,"
                f" got {engine.dialect.name}+{engine.dialect.driver}: write"
                " postgresql+psycopg://… or sqlite:///…"
            )
        self._engine = engine
        self._timeout = timeout
        self._ready = False
        self._preparing = threading.Lock()
        self._place = engine.url.render_as_string(hide_password=True)
        self._workers = Workers(
            f"SQLAlchemyStore({self._place})",
            1 if kind == "sqlite" else connections,
            self._leave,
        )

    async def aclose(self) -> None:
        """Wait for what was asked before and close the store's own connections."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Close the store, from synchronous code; as `aclose`."""
        self._workers.close(self._close)

    def _close(self) -> None:
        if self._own:
            self._engine.dispose()

    def _leave(self) -> None:
        """Forget the connections of the parent process without closing them."""
        self._preparing = threading.Lock()
        self._engine.dispose(close=False)

    async def _transact(self, work: Callable[[Connection], T], *, write: bool) -> T:
        return await self._workers.run(lambda: self._transacted(work, write=write))

    def _transacted(self, work: Callable[[Connection], T], *, write: bool) -> T:
        try:
            if not self._ready:
                with self._preparing:
                    self._prepare()
            with begin(self._engine, self._timeout, write=write) as transaction:
                return work(transaction)
        except SQLAlchemyError as error:
            raise self._session_error(error) from error

    def _prepare(self) -> None:
        """Make the tables or bring them to the present version."""
        if self._ready:
            return
        if self._engine.dialect.name == "sqlite":
            use_wal(self._engine, self._timeout)
        with begin(self._engine, self._timeout, write=False) as transaction:
            version = _version(transaction)
            steps = steps_from(version, f"the session store {self._place}")
        if steps:
            with begin(self._engine, self._timeout, write=True) as transaction:
                self._migrate(transaction)
        self._ready = True

    def _migrate(self, transaction: Transaction) -> None:
        if self._engine.dialect.name == "postgresql":
            transaction.change(f"SELECT pg_advisory_xact_lock({_LOCK})", {})
        # Asked again, now alone: another process may have been first.
        version = _version(transaction)
        for statement in steps_from(version, f"the session store {self._place}"):
            transaction.change(statement, {})
        if version == 0:
            transaction.change("CREATE TABLE lighter_store (version INTEGER)", {})
            transaction.change("INSERT INTO lighter_store VALUES (0)", {})
        newest = {"version": len(MIGRATIONS)}
        transaction.change("UPDATE lighter_store SET version = :version", newest)

    def _session_error(self, error: SQLAlchemyError) -> SessionError:
        # Only the first words of the driver: those behind may hold what people said.
        said = type(error).__name__
        code, hint = sqlstate_fault(None)
        if isinstance(error, DBAPIError):
            said = (str(error.orig).strip() or said).splitlines()[0]
            if self._engine.dialect.name == "sqlite":
                code, hint = sqlite_fault(getattr(error.orig, "sqlite_errorname", None))
            else:
                code, hint = sqlstate_fault(getattr(error.orig, "sqlstate", None))
        return SessionError(
            f"the session store {self._place} failed ({said}): {hint}", code=code
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
        return f"SQLAlchemyStore({self._place!r})"


def _version(transaction: Transaction) -> int:
    if not inspect(transaction.connection).has_table("lighter_store"):
        return 0
    rows = transaction.rows("SELECT version FROM lighter_store", {})
    return int(str(rows[0][0])) if rows else 0
