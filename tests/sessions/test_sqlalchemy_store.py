"""What is particular to the store over SQLAlchemy: engines, addresses, errors."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, text
from support.postgres import Server
from support.servers_setup import free_port

from lighter_core import SessionError, UserMessage
from lighter_core.sessions import _statements, sql
from lighter_sqlalchemy import SQLAlchemyStore
from lighter_sqlalchemy import _store as store_module

HELLO = [UserMessage("Hello, canary")]


@pytest.fixture
def place(postgres: Server) -> str:
    return postgres.new_place()


def connect(place: str, user: str = "lighter") -> psycopg.Connection:
    address = place.replace("postgresql+psycopg", "postgresql")
    return psycopg.connect(address.replace("//lighter", f"//{user}"), autocommit=True)


async def error_of(step) -> SessionError:
    with pytest.raises(SessionError) as caught:
        await step
    return caught.value


async def test_an_engine_of_the_application_stays_open(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'x.db'}")
    async with SQLAlchemyStore(engine) as store:
        await store.append("chat", HELLO, after=None)
    with engine.connect() as connection:
        count = connection.execute(text("SELECT COUNT(*) FROM lighter_entries"))
        assert count.scalar() == 1
    engine.dispose()


async def test_the_store_keeps_its_statements_to_itself(place: str) -> None:
    """An engine's own settings are as before when a connection goes back."""
    engine = create_engine(place, isolation_level="SERIALIZABLE", pool_size=1)
    async with SQLAlchemyStore(engine, connections=1) as store:
        await store.append("chat", HELLO, after=None)
        with engine.connect() as connection:
            assert connection.get_isolation_level() == "SERIALIZABLE"
            timeout = connection.execute(text("SHOW lock_timeout")).scalar()
            assert timeout == "0"
    engine.dispose()


async def test_connections_to_sqlite_keep_their_settings_too(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'x.db'}", pool_size=1)
    asked = ("busy_timeout", "foreign_keys")

    def settings() -> list[object]:
        with engine.connect() as connection:
            return [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in asked
            ]

    before = settings()
    async with SQLAlchemyStore(engine, timeout=1.5) as store:
        await store.append("chat", HELLO, after=None)
        assert settings() == before == [5000, 0]
    engine.dispose()


def hold(path: Path, statement: str) -> sqlite3.Connection:
    """Another program's connection that has begun something."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute(statement)
    return other


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
@pytest.mark.parametrize("made", [True, False], ids=["made", "new"])
async def test_another_writer_of_the_file_is_waited_for(
    tmp_path: Path, statement: str, made: bool
) -> None:
    """At the first operation too, where SQLite switches to WAL without waiting."""
    path = tmp_path / "x.db"
    async with SQLAlchemyStore(f"sqlite:///{path}", timeout=30) as store:
        if made:
            await store.append("other", HELLO, after=None)
        other = hold(path, statement)
        waiting = asyncio.create_task(store.append("chat", HELLO, after=None))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        other.execute("ROLLBACK")
        other.close()
        await waiting


@pytest.mark.parametrize("made", [True, False], ids=["made", "new"])
async def test_a_writer_of_the_file_that_does_not_end_is_named(
    tmp_path: Path, made: bool
) -> None:
    path = tmp_path / "x.db"
    async with SQLAlchemyStore(f"sqlite:///{path}", timeout=0.1) as store:
        if made:
            await store.append("other", HELLO, after=None)
        other = hold(path, "BEGIN EXCLUSIVE")
        async with asyncio.timeout(4):  # the driver's own bound is 5 seconds
            error = await error_of(store.append("chat", HELLO, after=None))
        assert error.code == "locked"
        assert "another writer" in str(error)
        other.close()
        await store.append("chat", HELLO, after=None)


async def test_a_store_in_memory_of_sqlite() -> None:
    async with SQLAlchemyStore("sqlite://") as store:
        await asyncio.gather(
            *(store.append(f"{n}", HELLO, after=None) for n in range(10))
        )
        assert len((await store.sessions()).sessions) == 10
    del store
    gc.collect()  # no ResourceWarning: its connection was closed, on its thread


def test_other_drivers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"postgresql\+psycopg"):
        SQLAlchemyStore("postgresql+psycopg_async://localhost/chats")


async def test_passwords_and_messages_are_not_in_errors(tmp_path: Path) -> None:
    port = free_port()
    address = f"postgresql+psycopg://ada:canary-key@127.0.0.1:{port}/chats"
    async with SQLAlchemyStore(address) as store:
        error = await error_of(store.append("chat", HELLO, after=None))
        assert error.code == "unavailable"
        assert "look whether the server runs" in str(error)
        told = [repr(store), str(error), repr(error), str(error.__cause__)]
    assert not [each for each in told if "canary" in each]
    store = SQLAlchemyStore(f"sqlite:///{tmp_path}/missing/x.db")
    error = await error_of(store.append("chat", HELLO, after=None))
    assert error.code == "unavailable"
    assert "canary" not in f"{error} {error.__cause__}"
    await store.aclose()


async def test_statements_do_not_show_messages_when_they_fail(place: str) -> None:
    async with SQLAlchemyStore(place) as store:
        (entry,) = await store.append("chat", HELLO, after=None)
        with connect(place) as other:
            other.execute("ALTER TABLE lighter_entries ADD CHECK (length(message) < 9)"
                          " NOT VALID")  # fmt: skip
        error = await error_of(store.append("chat", HELLO, after=entry.id))
        assert "violates check constraint" in str(error)
        assert "Hello" not in str(error)
        assert (await store.load("chat")).messages == HELLO


async def test_a_lock_that_stays_is_named(place: str) -> None:
    async with SQLAlchemyStore(place, timeout=0.2) as store:
        (entry,) = await store.append("chat", HELLO, after=None)
        with connect(place) as other, other.transaction():
            other.execute("SELECT * FROM lighter_sessions FOR UPDATE")
            error = await error_of(store.append("chat", HELLO, after=entry.id))
            assert error.code == "locked"
            assert (await store.load("chat")).messages == HELLO  # readers do not wait
        await store.append("chat", HELLO, after=entry.id)


async def test_a_connection_that_broke_is_replaced(place: str) -> None:
    async with SQLAlchemyStore(place) as store:
        (entry,) = await store.append("chat", HELLO, after=None)
        with connect(place) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        await store.append("chat", HELLO, after=entry.id)


async def test_a_user_without_rights(place: str) -> None:
    async with SQLAlchemyStore(place) as store:
        (entry,) = await store.append("chat", HELLO, after=None)
    schema = place.rpartition("%3D")[2]
    with connect(place) as other:
        other.execute("DROP ROLE IF EXISTS reader")
        other.execute("CREATE ROLE reader LOGIN")
        other.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO reader')
        other.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO reader')
    async with SQLAlchemyStore(place.replace("//lighter", "//reader")) as store:
        assert (await store.load("chat")).messages == HELLO
        error = await error_of(store.append("chat", HELLO, after=entry.id))
        assert error.code == "readonly"
        assert "rights" in str(error)
    with connect(place) as other:
        other.execute("DROP OWNED BY reader")
        other.execute("DROP ROLE reader")


async def test_a_newer_version_is_refused(place: str) -> None:
    async with SQLAlchemyStore(place) as store:
        await store.append("chat", HELLO, after=None)
    with connect(place) as other:
        other.execute("UPDATE lighter_store SET version = 99")
    async with SQLAlchemyStore(place) as store:
        error = await error_of(store.load("chat"))
    assert error.code == "version"
    assert "update lighter-core" in str(error)


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
async def test_migrations_run_once_and_whole(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    place = f"sqlite:///{tmp_path / 'x.db'}"
    if kind == "postgresql":
        place = request.getfixturevalue("place")
    async with SQLAlchemyStore(place) as store:
        await store.append("chat", HELLO, after=None)
    next_step = "ALTER TABLE lighter_sessions ADD COLUMN title TEXT NOT NULL DEFAULT ''"
    failing = (next_step, "ALTER TABLE no_such_table ADD COLUMN x TEXT")
    with monkeypatch.context() as patch:
        _with_steps(patch, failing)
        async with SQLAlchemyStore(place) as store:
            await error_of(store.load("chat"))
    async with SQLAlchemyStore(place) as store:
        assert (await store.load("chat")).messages == HELLO
    _with_steps(monkeypatch, (next_step,))
    stores = [SQLAlchemyStore(place) for _ in range(4)]
    loaded = await asyncio.gather(*(store.load("chat") for store in stores))
    assert [each.messages for each in loaded] == [HELLO] * 4
    for store in stores:
        await store.aclose()


def _with_steps(monkeypatch: pytest.MonkeyPatch, *more: tuple[str, ...]) -> None:
    newer = (*_statements.MIGRATIONS, *more)
    for module in (sql, store_module):
        monkeypatch.setattr(module, "MIGRATIONS", newer)


def test_the_statements_of_a_postgresql_store_use_the_indexes(
    place: str, postgres: Server
) -> None:
    """A long session is loaded by its keys, whatever else is in the table."""

    async def fill() -> None:
        async with SQLAlchemyStore(place) as store:
            for n in range(20):
                await store.append(f"chat-{n}", HELLO * 500, after=None)

    asyncio.run(fill())
    with connect(place) as other:
        other.execute("ANALYZE lighter_entries")
        row = other.execute(
            "SELECT tree, head FROM lighter_sessions LIMIT 1"
        ).fetchone()
        tree, head = row
        statement = _statements.CHAIN.replace(":tree", f"'{tree}'")
        statement = statement.replace(":head", f"'{head}'")
        plan = "\n".join(
            line for (line,) in other.execute(f"EXPLAIN {statement}").fetchall()
        )
    assert "Seq Scan" not in plan, plan
