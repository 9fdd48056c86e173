"""What a store holds: entries, each with its parent, and sessions, each with a head."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from .._json import clean_text
from ..documents import messages_from_json, messages_to_json
from ..errors import HistoryError, SessionError
from ..messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)

__all__ = [
    "Entry",
    "FoundEntry",
    "SessionInfo",
    "SessionPage",
    "StoredSession",
    "check_session_id",
    "documents_of",
    "fault_of",
    "messages_of",
    "new_id",
    "search_text",
    "text_of",
    "utc_now",
]

_MAX_ID = 200
_ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TIME_FORM = "UTC like 2026-11-30T09:15:00.123456Z"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored message. Entries are never changed.

    Attributes:
        id: A random id.
        parent_id: The entry before it; `None` for the first of a session.
        message: The message.
        created: When it was stored: UTC, ISO 8601, e.g.
            `"2026-11-30T09:15:00.123456Z"`. Nothing depends on its order.
    """

    id: str
    parent_id: str | None
    message: Message
    created: str


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session without its messages.

    Attributes:
        id: The id that the application chose.
        head: The id of its last entry.
        revision: How many entries lead to the head; grows with each message.
        created: When the session was made.
        updated: When it last got a message; both as in `Entry.created`.
    """

    id: str
    head: str
    revision: int
    created: str
    updated: str


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session with its entries, the first one first."""

    info: SessionInfo
    entries: tuple[Entry, ...]

    @property
    def messages(self) -> list[Message]:
        """The messages as they were stored.

        After a crash the last calls may have no result; a run closes them, and
        `repair_history` does.
        """
        return [entry.message for entry in self.entries]


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A part of a list of sessions.

    Attributes:
        sessions: Sessions, the one that changed last first.
        cursor: What continues the list; `None` at its end.
    """

    sessions: tuple[SessionInfo, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry that a search has found, and a session that leads to it."""

    session_id: str
    entry: Entry


def new_id() -> str:
    """Return a random id: 32 hexadecimal digits."""
    return uuid.uuid4().hex


def utc_now() -> str:
    """Return the time in the form of `Entry.created`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def check_session_id(session_id: object) -> str:
    """Return the id if every store can hold it: 1 to 200 characters, none of control.

    Raises:
        SessionError: `invalid`, when it cannot.
    """
    if not isinstance(session_id, str):
        raise TypeError(f"a session id is a str, got {type(session_id).__name__}")
    if not 0 < len(session_id) <= _MAX_ID or not session_id.isprintable():
        raise SessionError(
            f"a session id has 1 to {_MAX_ID} printable characters, got"
            f" {session_id[:_MAX_ID]!r}",
            code="invalid",
        )
    return session_id


def fault_of(session: StoredSession) -> tuple[int, str] | None:
    """Return what is wrong with a session: the number of an entry, 0 for none, and why."""
    info, before, seen = session.info, None, set[str]()
    for number, entry in enumerate(session.entries, 1):
        rules = [
            (
                _ENTRY_ID.fullmatch(entry.id) is not None,
                "its id is not of 1 to 64 letters, digits, '_' and '-'",
            ),
            (entry.id not in seen, "its id stands twice"),
            (entry.parent_id == before, "its parent is not the entry before it"),
            (_is_time(entry.created), f"its time is not {_TIME_FORM}"),
        ]
        for kept, text in rules:
            if not kept:
                return number, text
        seen.add(entry.id)
        before = entry.id
    rules = [
        (before is not None, "a session has one entry at least"),
        (info.head == before, "its head is not its last entry"),
        (info.revision == len(seen), "its revision is not the number of its entries"),
        (_is_time(info.created), f"its time is not {_TIME_FORM}"),
        (_is_time(info.updated), f"its time is not {_TIME_FORM}"),
    ]
    return next(((0, text) for kept, text in rules if not kept), None)


def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def text_of(message: Message) -> str:
    """Return the text that a search looks at: what was said, and what tools returned."""
    match message:
        case UserMessage(content=str(text)):
            return text
        case UserMessage(content=parts):
            return "\n".join(p.text for p in parts if isinstance(p, TextPart))
        case ToolMessage():
            return message.tool_output
        case AssistantMessage() | SystemMessage():
            return message.content


def search_text(text: str) -> str:
    """Return text as searches compare it: without case, and storable everywhere.

    A NUL, which PostgreSQL cannot hold, becomes U+FFFD, and so do lone surrogates.
    """
    return clean_text(text).replace("\x00", "\ufffd").casefold()


# Messages as they are stored: each one a document of its own.

_START, _END = '{"version":1,"messages":[', "]}"


def documents_of(messages: Iterable[Message]) -> list[str]:
    """Return each message as the document that is stored.

    Raises:
        TypeError: When something is no message.
        HistoryError: When a message holds what no document can.
    """
    return [messages_to_json([message]) for message in messages]


def messages_of(documents: Sequence[str]) -> list[Message]:
    """Return the message of each stored document.

    Raises:
        HistoryError: When one is no document of one message.
    """
    if all(d.startswith(_START) and d.endswith(_END) for d in documents):
        # One document made of all is read several times as fast as each by itself.
        inner = ",".join([d[len(_START) : -len(_END)] for d in documents])
        size = 4 * len(inner) + 100
        messages = messages_from_json(f"{_START}{inner}{_END}", max_bytes=size)
        if len(messages) == len(documents):
            return messages
    messages = list[Message]()
    for document in documents:
        found = messages_from_json(document, max_bytes=4 * len(document))
        if len(found) != 1:
            raise HistoryError(f"a stored document has {len(found)} messages, not one")
        messages.extend(found)
    return messages
