"""A provider that has others to turn to."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace

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
from .retry import TRANSIENT

__all__ = ["FallbackProvider"]


class FallbackProvider:
    """Asks the first provider, and the next one when a call failed.

    A call goes on to the next provider only as long as nothing of a reply was handed on.
    The history is handed over as it is: each provider sends its own replies back as they
    came and those of others from their public fields, and notes what is lost. Which
    provider failed is a note of the run and a log record.

    Args:
        providers: Whom to ask, in this order; at least one.
        codes: The `ModelError` codes to go on for. The default are failures that may
            pass by themselves; add `"auth_error"` for accounts without credit.
        rest: Seconds for which a provider that failed is asked after the others, or
            what its error's `retry_after` says if that is more.

    Raises:
        ValueError: For no provider at all.

    Example:
        ```python
        provider = FallbackProvider([ClaudeProvider(), OpenAIProvider()])
        ```
    """

    def __init__(
        self,
        providers: Sequence[Provider],
        *,
        codes: Collection[ModelErrorCode] = TRANSIENT,
        rest: float = 30.0,
    ) -> None:
        if not providers:
            raise ValueError("FallbackProvider needs at least one provider")
        if not rest >= 0:
            raise ValueError(f"rest must be seconds from 0, got {rest!r}")
        self._providers = tuple(providers)
        self._codes = frozenset(codes)
        self._rest = rest
        self._rests_until = [0.0] * len(self._providers)

    @property
    def name(self) -> str:
        """The names of all, e.g. `"claude|openai"`."""
        return "|".join(each.name for each in self._providers)

    @property
    def capabilities(self) -> frozenset[str]:
        """What all of them can do."""
        first, *others = (
            frozenset[str](getattr(each, "capabilities", ()))
            for each in self._providers
        )
        return first.intersection(*others)

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The providers, in their order."""
        return self._providers

    def replay_report(self, messages: Sequence[Message]) -> list[ReplayFinding]:
        """Return what the first provider says, and the others for the case of need.

        The texts of the others begin with their names.
        """
        first, *others = self._providers
        found = list(replay_report_of(first, messages))
        for each in others:
            found += [
                replace(finding, text=f"{each.name}: {finding.text}")
                for finding in replay_report_of(each, messages)
            ]
        return found

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the reply of the first provider that gives one.

        Raises:
            ModelError: That of the last provider asked, with a note for each other one.
        """
        failed: list[ModelError] = []
        for number in self._order():
            try:
                return await self._providers[number].invoke(request)
            except ModelError as error:
                self._failed(number, error, failed)
        raise _last(failed)

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield the events of the first provider that gives any; errors as in `invoke`."""
        failed: list[ModelError] = []
        for number in self._order():
            handed_on = False
            try:
                async with aclosing(self._providers[number].stream(request)) as events:
                    async for event in events:
                        handed_on = True
                        yield event
            except ModelError as error:
                if handed_on:
                    raise
                self._failed(number, error, failed)
            else:
                return
        raise _last(failed)

    def _order(self) -> Sequence[int]:
        """Return whom to ask: first those that do not rest."""
        now = time.monotonic()
        numbers = range(len(self._providers))
        return sorted(numbers, key=lambda number: self._rests_until[number] > now)

    def _failed(self, number: int, error: ModelError, failed: list[ModelError]) -> None:
        """Remember a failure; raise it when it is none to go on for."""
        if error.code not in self._codes:
            raise error
        failed.append(error)
        seconds = max(self._rest, error.retry_after or 0.0)
        self._rests_until[number] = time.monotonic() + seconds
        name = self._providers[number].name
        note(f"provider {name!r} failed with {error.code}", provider=name)

    async def warm_up(self) -> None:
        """Warm up all of them.

        Raises:
            ModelError: When none can be; the others stand in for one that cannot.
        """
        failed: list[ModelError] = []
        for each in self._providers:
            try:
                if isinstance(each, SupportsWarmUp):
                    await each.warm_up()
            except ModelError as error:
                failed.append(error)
        if len(failed) == len(self._providers):
            raise _last(failed)

    async def aclose(self) -> None:
        """Close all of them, whatever one of them raises."""
        error: Exception | None = None
        for each in self._providers:
            try:
                if isinstance(each, SupportsAclose):
                    await each.aclose()
            except Exception as raised:  # noqa: BLE001 - the others are closed too
                error = raised
        if error is not None:
            raise error

    def __repr__(self) -> str:
        return f"FallbackProvider([{', '.join(map(repr, self._providers))}])"


def _last(failed: Sequence[ModelError]) -> ModelError:
    *earlier, last = failed
    for error in earlier:
        last.add_note(f"before: {error.provider or 'a provider'}: {error}")
    return last
