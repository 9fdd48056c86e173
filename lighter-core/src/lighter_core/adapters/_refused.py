"""Remembering which native context a service has refused."""

from __future__ import annotations

from collections.abc import Iterable

from ..messages import AssistantMessage, Message

__all__ = ["RefusedContext"]

_MOST = 10_000


class RefusedContext:
    """The native context of replies that a service will not take back.

    A provider that sends a refused request again without it remembers the replies here:
    each later request of the conversation would be refused for the same reason. Only
    digests are kept, the newest ten thousand.

    Attributes:
        version: Changes when more are remembered.
    """

    def __init__(self) -> None:
        self.version = 0
        self._seen: dict[int, None] = {}

    def add(self, messages: Iterable[Message]) -> None:
        """Remember the replies among the messages."""
        self.version += 1
        for message in messages:
            if isinstance(message, AssistantMessage) and message.native is not None:
                self._seen[hash(message.native.items)] = None
        while len(self._seen) > _MOST:
            del self._seen[next(iter(self._seen))]

    def __contains__(self, message: object) -> bool:
        return (
            isinstance(message, AssistantMessage)
            and message.native is not None
            and hash(message.native.items) in self._seen
        )
