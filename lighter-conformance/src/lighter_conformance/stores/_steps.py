"""Steps that several checks take."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable

from lighter_core import (
    AssistantMessage,
    Message,
    SessionError,
    SessionErrorCode,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from lighter_core.sessions import Entry, Store

from .._registry import expect

__all__ = ["CALL", "ROUND", "add", "fails", "said", "texts"]

CALL = ToolCall("c1", "search", '{"query": "arguments"}')

ROUND: tuple[Message, ...] = (
    UserMessage("What is there?"),
    AssistantMessage("Let me look.", reasoning="thinking", tool_calls=[CALL]),
    ToolMessage(call_id="c1", tool_name="search", tool_output="a book", is_error=True),
    AssistantMessage("A book.", stop_reason="end_turn"),
)


def said(*texts: str) -> list[Message]:
    """Return a user message for each text."""
    return [UserMessage(text) for text in texts]


async def add(store: Store, session_id: str, *texts: str) -> list[Entry]:
    """Append user messages, whatever the head is."""
    after = None
    try:
        after = (await store.load(session_id)).info.head
    except SessionError as error:
        if error.code != "not_found":
            raise
    return await store.append(session_id, said(*texts), after=after)


async def texts(store: Store, session_id: str) -> list[str]:
    """Return the texts of a session of user messages."""
    return texts_of((await store.load(session_id)).messages)


def texts_of(messages: Iterable[Message]) -> list[str]:
    """Return the texts of user messages."""
    return [m.text for m in messages if isinstance(m, UserMessage)]


async def fails(
    step: Awaitable[object], code: SessionErrorCode, session_id: str | None = None
) -> SessionError:
    """Expect a `SessionError` with a code, about a session."""
    try:
        result = await step
    except SessionError as error:
        expect(error.code == code, f"code {error.code!r}, not {code!r}: {error}")
        if session_id is not None:
            about = error.session_id
            expect(about == session_id, f"session_id {about!r}, not {session_id!r}")
        return error
    raise AssertionError(f"no SessionError {code!r} but the result {result!r}")
