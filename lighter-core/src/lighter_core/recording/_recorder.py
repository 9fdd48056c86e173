"""Recording the calls of a provider into a file."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path

from ..errors import HistoryError, ModelError
from ..events import MessageEvent, ProviderStreamEvent
from ..messages import AssistantMessage, Message
from ..provider import (
    Provider,
    ReplayFinding,
    SupportsAclose,
    SupportsWarmUp,
    replay_report_of,
)
from ..requests import ModelRequest
from ._file import Exchange, Header, Writer
from ._secrets import cleaner, without_cut_secrets

__all__ = ["RecordingProvider", "record"]

logger: logging.Logger = logging.getLogger("lighter.recording")


def record(
    provider: Provider, path: str | Path, *, secrets: Iterable[str] = ()
) -> RecordingProvider:
    """Return a provider that passes everything through and writes it to a file.

    Each call becomes one line as soon as it has ended, so the file of a process that
    died is good up to there.

    Args:
        provider: Whom to record.
        path: The file, JSON lines; an existing one is replaced.
        secrets: Texts that must not be written, wherever they stand. Left out in any
            case: what looks like a key of the known vendors, and the values of the
            environment variables whose names end in KEY, TOKEN, SECRET, PASSWORD or
            CREDENTIALS.

    Raises:
        OSError: When the file cannot be written.

    Example:
        ```python
        agent = Agent(record(ClaudeProvider(), "run.jsonl"), tools=[look_up])
        ```
    """
    return RecordingProvider(provider, path, secrets=secrets)


class RecordingProvider:
    """Passes calls to a provider and writes them to a file; `record` makes one."""

    def __init__(
        self, provider: Provider, path: str | Path, *, secrets: Iterable[str] = ()
    ) -> None:
        self._provider = provider
        self._path = Path(path)
        clean = cleaner(secrets)
        self._clean = clean
        model_id: object = getattr(provider, "model_id", None)
        header = Header(
            provider.name,
            model_id if isinstance(model_id, str) else None,
            self.capabilities,
        )
        self._writer = Writer(self._path, header, clean)

    @property
    def name(self) -> str:
        """The recorded provider's name."""
        return self._provider.name

    @property
    def capabilities(self) -> frozenset[str]:
        """The recorded provider's."""
        words: frozenset[str] = getattr(self._provider, "capabilities", frozenset())
        return words

    def replay_report(self, messages: Sequence[Message]) -> list[ReplayFinding]:
        """Return what the recorded provider says."""
        return replay_report_of(self._provider, messages)

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the provider's reply and record it."""
        events: list[ProviderStreamEvent] = []
        error: BaseException | None = None
        try:
            message = await self._provider.invoke(request)
            events.append(MessageEvent(message))
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._write(request, events, error)
        return message

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield the provider's events and record them."""
        events: list[ProviderStreamEvent] = []
        error: BaseException | None = None
        try:
            async with aclosing(self._provider.stream(request)) as stream:
                async for event in stream:
                    events.append(event)
                    yield event
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._write(request, events, error)

    async def warm_up(self) -> None:
        """Warm up the provider inside."""
        if isinstance(self._provider, SupportsWarmUp):
            await self._provider.warm_up()

    async def aclose(self) -> None:
        """Close the recorded provider."""
        if isinstance(self._provider, SupportsAclose):
            await self._provider.aclose()

    def _write(
        self,
        request: ModelRequest,
        events: Sequence[ProviderStreamEvent],
        error: BaseException | None,
    ) -> None:
        known = error if isinstance(error, ModelError) else None
        if known is None and isinstance(error, Exception):
            known = ModelError(f"{type(error).__name__}: {error}", "unknown")
        exchange = Exchange(
            request=request,
            events=without_cut_secrets(events, self._clean),
            error=known,
            left=known is None and not _ended(events),
        )
        try:
            self._writer.add(exchange)
        except (OSError, HistoryError) as failure:  # no reason to fail the run
            logger.warning(
                "a call of %r is missing in %s: %s", self.name, self._path, failure
            )

    def __repr__(self) -> str:
        return f"RecordingProvider({self._provider!r}, {str(self._path)!r})"


def _ended(events: Sequence[ProviderStreamEvent]) -> bool:
    return bool(events) and isinstance(events[-1], MessageEvent)
