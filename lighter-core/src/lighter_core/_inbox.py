"""Messages that a user gives to a run while it goes on."""

from __future__ import annotations

import threading
from collections import deque

from .messages import UserMessage

__all__ = ["Inbox"]


class Inbox:
    """Takes messages from any thread, for as long as the run can still read them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steering: deque[UserMessage] = deque()
        self._following: deque[UserMessage] = deque()
        self._open = True

    def steer(self, message: str | UserMessage) -> None:
        """Put a message before the next model call."""
        self._put(self._steering, message)

    def follow_up(self, message: str | UserMessage) -> None:
        """Put a message where the run would stop."""
        self._put(self._following, message)

    def _put(self, queue: deque[UserMessage], message: object) -> None:
        if isinstance(message, str):
            message = UserMessage(message)
        if not isinstance(message, UserMessage):
            raise TypeError(
                f"a run is steered by a str or a UserMessage, got {type(message).__name__}"
            )
        with self._lock:
            if not self._open:
                raise RuntimeError(
                    "the run has ended: append the message to the history and begin"
                    " another run"
                )
            queue.append(message)

    def take(self) -> list[UserMessage]:
        """Return what shall stand before the next model call."""
        with self._lock:
            taken = list(self._steering)
            self._steering.clear()
        return taken

    def take_or_close(self) -> list[UserMessage]:
        """Return what the run goes on with where it would stop; close it for nothing.

        Follow-ups come one at a time, so that each has an answer of its own.
        """
        with self._lock:
            if self._steering:
                taken = list(self._steering)
                self._steering.clear()
            elif self._following:
                taken = [self._following.popleft()]
            else:
                taken = []
                self._open = False
        return taken

    def close(self) -> None:
        """Take no more messages: the run has ended."""
        with self._lock:
            self._open = False

    @property
    def undelivered(self) -> list[UserMessage]:
        """What the run ended without."""
        with self._lock:
            return [*self._steering, *self._following]
