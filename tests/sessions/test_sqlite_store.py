"""What is particular to the store in an SQLite file: its file, its errors, its versions."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from lighter_core import SessionError, UserMessage
from lighter_core.sessions import SQLiteStore, _statements, sql
from lighter_core.sessions import _sqlite as sqlite_module

HELLO = [UserMessage("Hello")]
GOLDEN = Path(__file__).parent / "golden"


def change(path: Path, *statements: str) -> None:
    """Change a file behind the store's back."""
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


async def inside(store: SQLiteStore, statement: str) -> object:
    """Run a statement on the store's own connection."""
    rows = await store._transact(lambda c: c.rows(statement, {}), write=False)
    return rows[0][0] if rows else None


async def code_of(step) -> SessionError:
    with pytest.raises(SessionError) as caught:
        await step
    return caught.value


async def test_the_file_is_in_wal_mode_and_checks_foreign_keys(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with SQLiteStore(path) as store:
        await store.append("chat", HELLO, after=None)
        for name, wanted in {
            "journal_mode": "wal",
            "foreign_keys": 1,
            "synchronous": 2,
            "user_version": 1,
        }.items():
            assert await inside(store, f"PRAGMA {name}") == wanted
    assert [each.name for each in tmp_path.iterdir()] == ["x.db"]  # noqa: ASYNC240


async def test_statements_run_on_one_thread_of_the_store(tmp_path: Path) -> None:
    threads = set()
    async with SQLiteStore(tmp_path / "x.db") as store:
        for _ in range(5):
            await store._transact(
                lambda c: threads.add(threading.current_thread()), write=False
            )
    (thread,) = threads
    assert thread is not threading.main_thread()
    assert not thread.is_alive()


async def test_nothing_is_opened_before_it_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "x.db"
    store = SQLiteStore(path)
    assert not path.parent.exists()
    error = await code_of(store.append("chat", HELLO, after=None))
    assert error.code == "unavailable"
    assert str(path) in str(error)
    assert "directory" in str(error)
    path.parent.mkdir()
    await store.append("chat", HELLO, after=None)
    await store.aclose()
    with pytest.raises(ValueError, match="empty"):
        SQLiteStore("")


async def test_a_store_in_memory() -> None:
    async with SQLiteStore(":memory:") as store:
        await store.append("chat", HELLO, after=None)
        assert (await store.load("chat")).messages == HELLO


async def test_another_writer_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with SQLiteStore(path, timeout=30) as store:
        (entry,) = await store.append("chat", HELLO, after=None)
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.append("chat", HELLO, after=entry.id))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        other.execute("ROLLBACK")
        other.close()
        await waiting


async def test_another_writer_that_does_not_end_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with SQLiteStore(path, timeout=0.1) as store:
        (entry,) = await store.append("chat", HELLO, after=None)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        error = await code_of(store.append("chat", HELLO, after=entry.id))
        assert error.code == "locked"
        assert "try again" in str(error)
        assert (await store.load("chat")).messages == HELLO  # readers do not wait
        other.execute("ROLLBACK")
        other.close()
        await store.append("chat", HELLO, after=entry.id)


async def test_a_full_disk(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "x.db") as store:
        (entry,) = await store.append("chat", HELLO, after=None)
        pages = await inside(store, "PRAGMA page_count")
        await inside(store, f"PRAGMA max_page_count={pages}")
        big = [UserMessage("x" * 100_000)]
        error = await code_of(store.append("chat", big, after=entry.id))
        assert error.code == "full"
        assert "make room" in str(error)
        assert (await store.load("chat")).messages == HELLO
        await inside(store, "PRAGMA max_page_count=100000")
        await store.append("chat", big, after=entry.id)


async def test_a_file_that_may_not_be_written(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "x.db") as store:
        (entry,) = await store.append("chat", HELLO, after=None)
        await inside(store, "PRAGMA query_only=ON")
        error = await code_of(store.append("chat", HELLO, after=entry.id))
        assert error.code == "readonly"
        assert "permissions" in str(error)
        assert (await store.load("chat")).messages == HELLO


async def test_a_file_that_is_no_sqlite_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"not a database at all, but long enough to look at" * 100)
    async with SQLiteStore(path) as store:
        assert (await code_of(store.sessions())).code == "corrupt"
    assert path.read_bytes().startswith(b"not a database")


async def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with SQLiteStore(path) as store:
        many = [UserMessage("x" * 500) for _ in range(200)]
        await store.append("chat", many, after=None)
    whole = bytearray(path.read_bytes())
    whole[8192:-4096] = b"\xa5" * (len(whole) - 8192 - 4096)
    path.write_bytes(whole)
    async with SQLiteStore(path) as store:
        error = await code_of(store.load("chat"))
        assert error.code == "corrupt"
        assert ".recover" in str(error)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lighter_entries SET message = '{'",
        'UPDATE lighter_entries SET message = \'{"version":1,"messages":[]}\'',
        'UPDATE lighter_entries SET message = \'{"version":9,"messages":[]}\'',
        "UPDATE lighter_entries SET message = message || ' '",
    ],
)
async def test_a_message_that_cannot_be_read(tmp_path: Path, statement: str) -> None:
    """White space behind the document is no fault."""
    path = tmp_path / "x.db"
    async with SQLiteStore(path) as store:
        await store.append("chat", HELLO, after=None)
        change(path, statement)
        if "|| ' '" in statement:
            assert (await store.load("chat")).messages == HELLO
            return
        error = await code_of(store.load("chat"))
        assert error.code == "corrupt"
        assert "'chat'" in str(error)


async def test_a_chain_in_a_circle_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with SQLiteStore(path) as store:
        entries = await store.append("chat", HELLO * 3, after=None)
        change(
            path,
            f"UPDATE lighter_entries SET parent_id = '{entries[2].id}' WHERE position = 1",
        )
        assert len((await store.load("chat")).entries) == 3
        await store.fork("chat", "fork")
        assert len(await store.search("hello")) == 6


async def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    for statements in (
        ["CREATE TABLE books (title TEXT)"],
        ["PRAGMA user_version=7"],
        ["PRAGMA application_id=123"],
    ):
        path = tmp_path / f"{len(statements[0])}.db"
        change(path, *statements)
        before = path.read_bytes()
        async with SQLiteStore(path) as store:
            error = await code_of(store.sessions())
        assert error.code == "invalid"
        assert "file of its own" in str(error)
        connection = sqlite3.connect(path)
        names = connection.execute("SELECT name FROM sqlite_master").fetchall()
        connection.close()
        assert not [name for (name,) in names if name.startswith("lighter")]
        assert before[:16] == path.read_bytes()[:16]


async def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with SQLiteStore(path) as store:
        await store.append("chat", HELLO, after=None)
    change(path, "PRAGMA user_version=99")
    async with SQLiteStore(path) as store:
        error = await code_of(store.load("chat"))
    assert error.code == "version"
    assert "update lighter-core" in str(error)


NEXT = ("ALTER TABLE lighter_sessions ADD COLUMN title TEXT NOT NULL DEFAULT ''",)
FAILING = (*NEXT, "ALTER TABLE no_such_table ADD COLUMN x")


def steps(monkeypatch: pytest.MonkeyPatch, *more: tuple[str, ...]) -> None:
    newer = (*_statements.MIGRATIONS, *more)
    for module in (sql, sqlite_module):
        monkeypatch.setattr(module, "MIGRATIONS", newer)


async def test_an_older_version_is_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.db"
    async with SQLiteStore(path) as store:
        await store.append("chat", HELLO, after=None)
    steps(monkeypatch, NEXT, ("UPDATE lighter_sessions SET title = id",))
    async with SQLiteStore(path) as store, SQLiteStore(path) as other:
        both = await asyncio.gather(store.load("chat"), other.load("chat"))
        assert [each.messages for each in both] == [HELLO, HELLO]
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    assert connection.execute("SELECT title FROM lighter_sessions").fetchall() == [
        ("chat",)
    ]
    connection.close()


async def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.db"
    async with SQLiteStore(path) as store:
        await store.append("chat", HELLO, after=None)
    with monkeypatch.context() as patch:
        steps(patch, FAILING)
        async with SQLiteStore(path) as store:
            assert (await code_of(store.load("chat"))).code == "unavailable"
    async with SQLiteStore(path) as store:
        assert (await store.load("chat")).messages == HELLO


async def test_files_of_each_released_version_stay_readable(tmp_path: Path) -> None:
    found = sorted(GOLDEN.glob("*.sql"))
    assert [each.name for each in found] == ["sqlite-v1.sql"]
    for script in found:
        path = tmp_path / script.stem
        connection = sqlite3.connect(path)
        connection.executescript(script.read_text(encoding="utf-8"))
        connection.close()
        async with SQLiteStore(path) as store:
            page = await store.sessions()
            assert [info.id for info in page.sessions] == ["fork", "chat"]
            chat, fork = await store.load("chat"), await store.load("fork")
            assert [m.role for m in chat.messages] == [
                "user", "assistant", "tool", "assistant",
            ]  # fmt: skip
            assert fork.entries[:2] == chat.entries[:2]
            assert len(await store.search("books")) == 3
            await store.append("chat", HELLO, after=chat.info.head)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_opens_the_file_itself(tmp_path: Path) -> None:
    """It may neither use nor close what the parent has open."""
    code = """
        import asyncio, os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads
        from lighter_core import UserMessage
        from lighter_core.sessions import SQLiteStore

        async def add(text, after):
            (entry,) = await store.append("chat", [UserMessage(text)], after=after)
            return entry.id

        store = SQLiteStore(sys.argv[1])
        first = asyncio.run(add("parent", None))
        mine = store._connection
        pid = os.fork()
        if pid == 0:
            asyncio.run(add("child", first))
            assert store._connection is not mine
            store.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        loaded = asyncio.run(store.load("chat"))
        assert store._connection is mine
        asyncio.run(add("parent", loaded.info.head))
        print([m.content for m in asyncio.run(store.load("chat")).messages])
        store.close()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "x.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['parent', 'child', 'parent']"


def test_a_process_that_does_not_close_ends_quietly(tmp_path: Path) -> None:
    code = """
        import asyncio, sys
        from lighter_core import UserMessage
        from lighter_core.sessions import SQLiteStore
        store = SQLiteStore(sys.argv[1])
        asyncio.run(store.append("chat", [UserMessage("x")], after=None))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "x.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_the_core_does_not_import_sqlite() -> None:
    code = "import lighter_core, sys; print('sqlite3' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


async def test_close_works_from_synchronous_code_and_repr_names_the_file(
    tmp_path: Path,
) -> None:
    with SQLiteStore(tmp_path / "x.db") as store:
        await store.append("chat", HELLO, after=None)
        assert "x.db" in repr(store)
    store.close()
    assert (await code_of(store.load("chat"))).code == "closed"
    del store
    gc.collect()  # no ResourceWarning: the connection was closed
