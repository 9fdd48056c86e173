"""The contract between Lighter and a model service."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, runtime_checkable

from .events import ProviderStreamEvent
from .messages import AssistantMessage
from .requests import ModelRequest

__all__ = ["Provider", "SupportsAclose"]


@runtime_checkable
class Provider(Protocol):
    """Connects a model service: converts requests, replies and errors.

    One provider serves many runs at once, from several event loops: it keeps no
    history of a conversation. Failures are raised as `ModelError`;
    `asyncio.CancelledError` is never caught for good.

    A provider may have an attribute `capabilities`, a `frozenset[str]` of what it can
    do beyond text and tools; absent means empty. The words: `"output"` and
    `"tool_choice"` for these fields of a request, `"image"` and `"file"` for these parts
    of a user message.
    """

    @property
    def name(self) -> str:
        """A stable name of the service, such as `"openai"`."""
        ...

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the complete reply.

        It equals the message that `stream` would end with. An incomplete or failed
        generation raises `ModelError`; it is never returned as a reply.
        """
        ...

    def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield deltas as they arrive, then exactly one `MessageEvent`.

        The text deltas joined equal the message's `content`, the reasoning deltas its
        `reasoning or ""`. When the service's stream ends early, raise `ModelError`
        instead of yielding a message. The caller always closes the generator; closing
        it releases the connection.
        """
        ...


@runtime_checkable
class SupportsAclose(Protocol):
    """A provider that holds resources."""

    async def aclose(self) -> None:
        """Release connections; may be called more than once."""
        ...
