"""Sessions as a type checker sees them. Checked by mypy and pyright, never run."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

from pydantic import BaseModel

from lighter_core import (
    Agent,
    AgentResponse,
    AgentStream,
    Message,
    SyncAgentStream,
    UserMessage,
)
from lighter_core.requests import JSONValue
from lighter_core.sessions import (
    Entry,
    FoundEntry,
    Session,
    SessionInfo,
    SessionPage,
    SQLiteStore,
    Store,
    StoredSession,
    session_from_jsonl,
    session_to_jsonl,
)
from lighter_core.testing import FakeProvider
from lighter_sqlalchemy import SQLAlchemyStore


class Sum(BaseModel):
    value: int


async def use(store: Store) -> None:
    """Use every method of a store."""
    stored = await store.load("chat")
    assert_type(stored, StoredSession)
    assert_type(stored.messages, list[Message])
    head = stored.info.head
    assert_type(await store.append("chat", [UserMessage("x")], after=head), list[Entry])
    assert_type(await store.fork("chat", "new", at=head), SessionInfo)
    assert_type(await store.sessions(prefix="user/"), SessionPage)
    assert_type(await store.search("x", limit=3), list[FoundEntry])
    await store.insert(session_from_jsonl(session_to_jsonl(stored)))
    await store.append("chat", [UserMessage("x")])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def talk() -> None:
    """Run an agent in a session."""
    agent = Agent(FakeProvider(["hi"]))
    async with SQLiteStore(Path("x.db")) as one, SQLAlchemyStore("sqlite://") as two:
        await use(one)
        await use(two)
        session = Session(agent, one, "chat")
        assert_type(await session.run("x"), AgentResponse)
        assert_type(await session.run("x", output=Sum), AgentResponse[Sum])
        assert_type(
            await session.run("x", output={"type": "object"}), AgentResponse[JSONValue]
        )
        assert_type(session.run_sync("x", output=Sum).output, Sum | None)
        assert_type(session.stream("x", all_events=True), AgentStream)
        assert_type(session.stream("x", output=Sum), AgentStream[Sum])
        assert_type(session.stream_sync("x", output=Sum), SyncAgentStream[Sum])
        assert_type(await session.messages(), list[Message])
        assert_type(await session.fork(), Session)
        Session(agent, agent)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
