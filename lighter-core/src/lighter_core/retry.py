"""A provider that tries again."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing

from ._notes import note
from .errors import ModelError, ModelErrorCode
from .events import ProviderStreamEvent
from .messages import AssistantMessage, Message
from .provider import (
    Provider,
    ReplayFinding,
    SupportsAclose,
    SupportsWarmUp,
    replay_report_of,
)
from .requests import ModelRequest

__all__ = ["TRANSIENT", "RetryProvider"]

logger: logging.Logger = logging.getLogger("lighter.retry")

TRANSIENT: frozenset[ModelErrorCode] = frozenset(
    {"rate_limit", "network_error", "server_error"}
)
"""The failures that may pass by themselves."""


class RetryProvider:
    """Asks a provider again when a call failed in a way that may pass.

    A call is repeated only as long as nothing of its reply was handed on, so nobody sees
    a text twice. Each repetition is a note of the run and a log record.

    **Vendor adapters try again by themselves**: their `max_retries` is 2 by default, and
    each try here contains those. Set `max_retries=0` there, or know why not; a warning is
    logged otherwise.

    Args:
        provider: Whom to ask.
        tries: How often in all, at least 1.
        codes: The `ModelError` codes to try again for.
        wait: Seconds before the second try; doubled for each one after, and multiplied
            by a random factor between 0.5 and 1, so that many clients do not come at
            once. A longer `retry_after` of the error goes before.
        longest_wait: Seconds that no wait exceeds. A service that asks for more is not
            asked again: its error is raised at once.

    Raises:
        ValueError: For numbers that make no sense.

    Example:
        ```python
        provider = RetryProvider(ClaudeProvider(max_retries=0), tries=5)
        ```
    """

    def __init__(
        self,
        provider: Provider,
        *,
        tries: int = 3,
        codes: Collection[ModelErrorCode] = TRANSIENT,
        wait: float = 0.5,
        longest_wait: float = 30.0,
    ) -> None:
        if isinstance(tries, bool) or tries < 1:
            raise ValueError(f"tries must be at least 1, got {tries!r}")
        for name, value in (("wait", wait), ("longest_wait", longest_wait)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be seconds from 0, got {value!r}")
        self._provider = provider
        self._tries = tries
        self._codes = frozenset(codes)
        self._wait = wait
        self._longest_wait = longest_wait
        inner: object = getattr(provider, "max_retries", 0)
        if isinstance(inner, int) and inner > 0 and tries > 1:
            logger.warning(
                "provider %r tries each call again by itself, up to %d times: with"
                " RetryProvider around it one call may be sent %d times; pass it"
                " max_retries=0",
                provider.name,
                inner,
                (inner + 1) * tries,
            )

    @property
    def name(self) -> str:
        """The name of the provider inside."""
        return self._provider.name

    @property
    def capabilities(self) -> frozenset[str]:
        """Those of the provider inside."""
        words: frozenset[str] = getattr(self._provider, "capabilities", frozenset())
        return words

    @property
    def provider(self) -> Provider:
        """The provider inside."""
        return self._provider

    def replay_report(self, messages: Sequence[Message]) -> list[ReplayFinding]:
        """Return what the provider inside says."""
        return replay_report_of(self._provider, messages)

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the reply of the first call that succeeds.

        Raises:
            ModelError: That of the last call.
        """
        number = 1
        while True:
            try:
                return await self._provider.invoke(request)
            except ModelError as error:
                await self._pause(number, error)
            number += 1

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield the events of the first call that succeeds; errors as in `invoke`."""
        number = 1
        while True:
            handed_on = False
            try:
                async with aclosing(self._provider.stream(request)) as events:
                    async for event in events:
                        handed_on = True
                        yield event
            except ModelError as error:
                if handed_on:
                    raise
                await self._pause(number, error)
            else:
                return
            number += 1

    async def _pause(self, number: int, error: ModelError) -> None:
        """Wait for the next try; raise the error when there is none.

        Called while the error is handled, so that a cancellation here shows it.
        """
        asked = error.retry_after or 0.0
        if (
            error.code not in self._codes
            or number >= self._tries
            or asked > self._longest_wait
        ):
            raise error
        doubled = self._wait * 2 ** min(number - 1, 30)
        seconds = min(doubled * random.uniform(0.5, 1.0), self._longest_wait)  # noqa: S311
        seconds = max(seconds, asked)
        note(
            f"try {number} of {self._tries} failed with {error.code}"
            + (f" (HTTP {error.http_status})" if error.http_status else "")
            + "; trying again",
            provider=self.name,
        )
        await asyncio.sleep(seconds)

    async def warm_up(self) -> None:
        """Warm up the provider inside."""
        if isinstance(self._provider, SupportsWarmUp):
            await self._provider.warm_up()

    async def aclose(self) -> None:
        """Close the provider inside."""
        if isinstance(self._provider, SupportsAclose):
            await self._provider.aclose()

    def __repr__(self) -> str:
        return f"RetryProvider({self._provider!r}, tries={self._tries})"
