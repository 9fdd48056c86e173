"""Faults on purpose: each harness must find the one that is meant for it.

Providers around providers, and small replacements inside Lighter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from lighter_core._sse import EventStreamSplitter


class Around:
    """A provider that hands everything on; seeds change one thing."""

    capabilities: frozenset[str] = frozenset()
    name = "seeded"

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        message: AssistantMessage = await self.inner.invoke(request)
        return message

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        async for event in self.inner.stream(request):
            yield event


class KeepsHalf(Around):
    """Gives the text so far as a message when a reply breaks."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        text = ""
        try:
            async for event in self.inner.stream(request):
                text += event.text if isinstance(event, TextDelta) else ""
                yield event
        except ModelError:
            yield MessageEvent(AssistantMessage(text))


class RunsHalfACall(Around):
    """Believes that arguments are complete when the reply breaks inside them."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        parts: dict[str, tuple[str, str]] = {}
        try:
            async for event in self.inner.stream(request):
                if isinstance(event, ToolCallDelta):
                    name, arguments = parts.get(event.call_id, (event.tool_name, ""))
                    parts[event.call_id] = name, arguments + event.arguments
                yield event
        except ModelError:
            if not parts:
                raise
            calls = [
                ToolCall(i, n, '{"text": "", "n": 0}') for i, (n, _) in parts.items()
            ]
            yield MessageEvent(AssistantMessage("", tool_calls=calls))


class ForeignError(Around):
    """Lets an error of the transport through as another exception."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        try:
            async for event in self.inner.stream(request):
                yield event
        except ModelError as error:
            raise ConnectionError("reset") from error


class Hangs(Around):
    """Waits for more when a reply breaks."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        try:
            async for event in self.inner.stream(request):
                yield event
        except ModelError:
            await asyncio.Event().wait()


class LosesTheLastByte(EventStreamSplitter):
    """Drops the last byte of each piece that does not end a line."""

    def feed(self, chunk: bytes) -> list[bytes]:
        return super().feed(chunk if chunk.endswith(b"\n") else chunk[:-1])


class DecodesPieces(EventStreamSplitter):
    """Decodes each piece by itself, so that a character that is cut is lost."""

    def feed(self, chunk: bytes) -> list[bytes]:
        return super().feed(chunk.decode("utf-8", "replace").encode())


class SplitsAtSeparators(EventStreamSplitter):
    """Ends lines where `str.splitlines` does."""

    def feed(self, chunk: bytes) -> list[bytes]:
        return super().feed(chunk.replace("\u2028".encode(), b"\n"))


class ForgetsCR(EventStreamSplitter):
    """Knows LF only."""

    def feed(self, chunk: bytes) -> list[bytes]:
        return super().feed(chunk.replace(b"\r", b""))


class SwallowsCancellation(Around):
    """Treats a cancellation as the end of a reply."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        try:
            async for event in self.inner.stream(request):
                await asyncio.sleep(0)
                yield event
        except asyncio.CancelledError:
            yield MessageEvent(AssistantMessage("cancelled"))

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        try:
            return await super().invoke(request)
        except asyncio.CancelledError:
            return AssistantMessage("cancelled")


class LeavesATask(Around):
    """Starts a task for each call and never ends it."""

    kept: ClassVar[list[asyncio.Task[Any]]] = []

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        self.kept.append(asyncio.create_task(asyncio.Event().wait()))
        return await super().invoke(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        self.kept.append(asyncio.create_task(asyncio.Event().wait()))
        async for event in self.inner.stream(request):
            yield event


class TwoMessages(Around):
    """Yields its message twice."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        async for event in self.inner.stream(request):
            yield event
            if isinstance(event, MessageEvent):
                yield event


class SwallowsErrors(Around):
    """Gives an empty reply when the model call fails."""

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        try:
            return await super().invoke(request)
        except Exception:
            return AssistantMessage("")

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        try:
            async for event in self.inner.stream(request):
                yield event
        except Exception:
            yield MessageEvent(AssistantMessage(""))


class OtherWhole(Around):
    """Says something else when it is not streamed."""

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        message = await super().invoke(request)
        return AssistantMessage(message.content + "!", tool_calls=message.tool_calls)
