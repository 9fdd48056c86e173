"""A conversation that is stored while it goes on."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar, overload

from .._journal import Journal
from .._loop import run_loop
from .._setup import new_run
from .._state import RunState
from .._stream import AgentStream, SyncAgentStream
from .._sync import run_sync
from ..agent import Agent, Input, setup_of
from ..errors import SessionNotFoundError
from ..history import repair_history
from ..messages import Message
from ..requests import JSONObject, JSONValue
from ..results import AgentResponse
from ._entries import check_session_id, new_id
from ._store import Store

__all__ = ["Session"]

OutputT = TypeVar("OutputT")


class Session:
    """An agent's conversation in a store: load, run and append in one call.

    Each run loads what was said, adds its input to that, and stores each message when it
    is complete: the input before the model is called, a reply before anything that it
    asks for is executed, the result of a tool before the next one starts. So the stored
    conversation can be loaded and continued whenever the process ends. A call whose
    result was not stored by then is closed as interrupted at the next run; it is never
    executed again by itself.

    When the store fails, the run fails, with the `SessionError` as its error. Two runs
    of one session at a time exclude each other: the later one fails with
    `SessionConflictError` before its model is called.

    Args:
        agent: The agent. Its system prompt is not stored.
        store: Where the conversation is.
        session_id: The conversation; it begins with its first run. A random id unless
            given.

    Example:
        ```python
        session = Session(agent, SQLiteStore("chats.db"), "chat-1")
        response = await session.run("What is 19 + 23?")
        ```
    """

    def __init__(
        self, agent: Agent, store: Store, session_id: str | None = None
    ) -> None:
        self._agent = agent
        self._store = store
        self._id = check_session_id(new_id() if session_id is None else session_id)

    @property
    def id(self) -> str:
        """The session's id in the store."""
        return self._id

    async def messages(self) -> list[Message]:
        """Return what was said so far, each call answered; empty for a new session.

        Raises:
            SessionError: When the store cannot be read.
        """
        return repair_history(await _StoredRun(self._store, self._id).load()).messages

    async def fork(
        self, new_id: str | None = None, *, at: str | None = None
    ) -> Session:
        """Return a new session that goes on from an entry of this one.

        Args:
            new_id: The id of the new session; a random one unless given.
            at: The id of the last entry that they share; the head unless given.

        Raises:
            SessionNotFoundError: When there is no such entry.
            SessionConflictError: When the new id is taken.
        """
        fork = Session(self._agent, self._store, new_id)
        await self._store.fork(self._id, fork.id, at=at)
        return fork

    @overload
    def run(
        self, messages: Input, /, *, deps: object = None
    ) -> Coroutine[Any, Any, AgentResponse]: ...

    @overload
    def run(
        self, messages: Input, /, *, output: type[OutputT], deps: object = None
    ) -> Coroutine[Any, Any, AgentResponse[OutputT]]: ...

    @overload
    def run(
        self, messages: Input, /, *, output: JSONObject, deps: object = None
    ) -> Coroutine[Any, Any, AgentResponse[JSONValue]]: ...

    def run(
        self, messages: Input, /, *, output: object = None, deps: object = None
    ) -> Coroutine[Any, Any, Any]:
        """Say something and return the response; as `Agent.run`.

        Args:
            messages: What is new. An empty list goes on with what is stored, after a
                failure for one.
            output: As in `Agent.run`.
            deps: As in `Agent.run`.
        """
        state = self._run(messages, output, deps)
        return run_loop(setup_of(self._agent), state, None)

    @overload
    def run_sync(self, messages: Input, /, *, deps: object = None) -> AgentResponse: ...

    @overload
    def run_sync(
        self, messages: Input, /, *, output: type[OutputT], deps: object = None
    ) -> AgentResponse[OutputT]: ...

    @overload
    def run_sync(
        self, messages: Input, /, *, output: JSONObject, deps: object = None
    ) -> AgentResponse[JSONValue]: ...

    def run_sync(
        self, messages: Input, /, *, output: object = None, deps: object = None
    ) -> AgentResponse[Any]:
        """Run from synchronous code; as `run` and `Agent.run_sync`.

        Raises:
            RuntimeError: When called inside a run that `run_sync` started, on its loop.
        """
        setup, state = setup_of(self._agent), self._run(messages, output, deps)
        return run_sync(
            lambda: run_loop(setup, state, None), instead="await session.run(…)"
        )

    @overload
    def stream(
        self, messages: Input, /, *, deps: object = None, all_events: bool = False
    ) -> AgentStream: ...

    @overload
    def stream(
        self,
        messages: Input,
        /,
        *,
        output: type[OutputT],
        deps: object = None,
        all_events: bool = False,
    ) -> AgentStream[OutputT]: ...

    @overload
    def stream(
        self,
        messages: Input,
        /,
        *,
        output: JSONObject,
        deps: object = None,
        all_events: bool = False,
    ) -> AgentStream[JSONValue]: ...

    def stream(
        self,
        messages: Input,
        /,
        *,
        output: object = None,
        deps: object = None,
        all_events: bool = False,
    ) -> AgentStream[Any]:
        """Return the stream of a run; as `run` and `Agent.stream`.

        What was completed is stored when the stream has ended or was closed.
        """
        setup, state = setup_of(self._agent), self._run(messages, output, deps)
        state.all_events = all_events
        return AgentStream(partial(run_loop, setup, state), state)

    @overload
    def stream_sync(
        self, messages: Input, /, *, deps: object = None, all_events: bool = False
    ) -> SyncAgentStream: ...

    @overload
    def stream_sync(
        self,
        messages: Input,
        /,
        *,
        output: type[OutputT],
        deps: object = None,
        all_events: bool = False,
    ) -> SyncAgentStream[OutputT]: ...

    @overload
    def stream_sync(
        self,
        messages: Input,
        /,
        *,
        output: JSONObject,
        deps: object = None,
        all_events: bool = False,
    ) -> SyncAgentStream[JSONValue]: ...

    def stream_sync(
        self,
        messages: Input,
        /,
        *,
        output: object = None,
        deps: object = None,
        all_events: bool = False,
    ) -> SyncAgentStream[Any]:
        """Return the stream for synchronous code; as `stream`."""
        setup, state = setup_of(self._agent), self._run(messages, output, deps)
        state.all_events = all_events
        return SyncAgentStream(AgentStream(partial(run_loop, setup, state), state))

    def _run(self, messages: Input, output: object, deps: object) -> RunState:
        journal = Journal(_StoredRun(self._store, self._id))
        return new_run(messages, output, deps, journal)

    def __repr__(self) -> str:
        return f"Session({self._id!r}, agent={self._agent!r}, store={self._store!r})"


class _StoredRun:
    """What one run has loaded from a session, and adds to it."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._id = session_id
        self._head: str | None = None
        self._before: list[Message] = []

    async def load(self) -> list[Message]:
        try:
            stored = await self._store.load(self._id)
        except SessionNotFoundError:
            return []  # it begins with its first message
        self._head, self._before = stored.info.head, stored.messages
        return list(self._before)

    async def begin(self, given: Sequence[Message]) -> None:
        """Store the results that close calls of a run that was killed, then the input."""
        before = self._before
        whole = repair_history([*before, *given]).messages
        kept = len(whole) >= len(before) and all(
            new is old for new, old in zip(whole, before, strict=False)
        )
        fresh = whole[len(before) :] if kept else list(given)
        if fresh:
            await self.add(fresh)

    async def add(self, messages: Sequence[Message]) -> None:
        entries = await self._store.append(self._id, messages, after=self._head)
        self._head = entries[-1].id
