"""What a store of sessions does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from ..messages import Message
from ._entries import Entry, FoundEntry, SessionInfo, SessionPage, StoredSession

__all__ = ["Store"]


@runtime_checkable
class Store(Protocol):
    """Holds sessions: conversations that only grow.

    A store serves any number of tasks, event loops and threads at once. Each operation
    is done whole or not at all, also when its task is cancelled or the process killed
    while it goes on; the caller of a cancelled one cannot know which. What was stored
    when an operation returned is still there after a crash of the process.

    Every operation raises `SessionError` when the store cannot do it; the error's `code`
    says why. `lighter-conformance` has checks for all that stands here.
    """

    async def load(self, session_id: str, /) -> StoredSession:
        """Return a session with its entries.

        Raises:
            SessionNotFoundError: When there is no such session.
        """
        ...

    async def append(
        self, session_id: str, messages: Iterable[Message], /, *, after: str | None
    ) -> list[Entry]:
        """Add messages behind the session's head; return their entries.

        Args:
            session_id: The session; it begins with its first message.
            messages: One message at least.
            after: The id of the head that the caller knows, `None` for a new session.

        Raises:
            SessionConflictError: When the head is another one; nothing is stored.
            SessionNotFoundError: When the session is gone.
            HistoryError: When a message cannot be stored.
        """
        ...

    async def fork(
        self, session_id: str, new_id: str, /, *, at: str | None = None
    ) -> SessionInfo:
        """Make a new session that begins with the entries of another one; copies none.

        Args:
            session_id: The session to begin with.
            new_id: The id of the new one.
            at: The last entry that they share; the head unless given.

        Raises:
            SessionNotFoundError: When there is no such session, or no such entry in it.
            SessionConflictError: When the new id is taken.
        """
        ...

    async def insert(self, session: StoredSession, /) -> None:
        """Store a whole session as it is, e.g. one that `session_from_jsonl` returned.

        Raises:
            SessionConflictError: When its id is taken.
            SessionError: `invalid`, when its entries do not hang together.
        """
        ...

    async def sessions(
        self, *, prefix: str = "", limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """List sessions, the one that changed last first.

        Args:
            prefix: Only those whose id begins with it.
            limit: At most so many, 1 to 1,000.
            cursor: That of the page before.
        """
        ...

    async def search(
        self, text: str, /, *, prefix: str = "", limit: int = 50
    ) -> list[FoundEntry]:
        """Find entries whose text contains another, upper and lower case alike.

        The text of an entry is what was said or what a tool returned, not reasoning and
        not arguments. Entries of the session that changed last come first, in a session
        the newest; one that several sessions share is found in each.

        Args:
            text: 1 to 1,000 characters.
            prefix: Only in sessions whose id begins with it.
            limit: At most so many, 1 to 1,000.
        """
        ...

    async def delete(self, session_id: str, /) -> None:
        """Remove a session, and the entries that no other session shares.

        Raises:
            SessionNotFoundError: When there is no such session.
        """
        ...

    async def aclose(self) -> None:
        """Let go of files and connections; other operations fail from then on."""
        ...
