"""Who closes an asynchronous generator, and when."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Generator
from typing import Any, Generic, Self, TypeVar, cast

__all__ = ["Owned", "close_stream"]

_T = TypeVar("_T")


async def close_stream(stream: object) -> None:
    """Await the stream's `aclose()`, else its `close()`; do nothing without either."""
    for name in ("aclose", "close"):
        close = getattr(stream, name, None)
        if callable(close):
            result = close()
            if inspect.isawaitable(result):
                await result
            return


class Owned(Generic[_T]):
    """Iterates a generator that another generator owns and closes.

    At its end an event loop closes all asynchronous generators that it knows, at once.
    For generators inside each other this fails: while the outer one closes the inner,
    the loop finds the inner "already running" and says so on stderr. A loop knows a
    generator from its first step on; this class takes that step out of the loop's
    sight, with all that starts inside it. So the owner must close it, always.

    Args:
        generator: What to iterate, not started yet.
    """

    __slots__ = ("_generator", "_started")

    def __init__(self, generator: AsyncIterator[_T]) -> None:
        self._generator = generator
        self._started = False

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[_T]:
        if self._started:
            return self._generator.__anext__()
        self._started = True
        return self._first_step()

    async def _first_step(self) -> _T:
        # A coroutine around it: `anext(…, default)` asks other awaitables for a new
        # iterator at each of their steps.
        return await _FirstStep(self._generator)

    async def aclose(self) -> None:
        """Close the generator."""
        await close_stream(self._generator)


class _FirstStep(Generic[_T]):
    __slots__ = ("_generator",)

    def __init__(self, generator: AsyncIterator[_T]) -> None:
        self._generator = generator

    def __await__(self) -> Generator[Any, Any, _T]:
        # The hooks belong to the thread; nothing else runs on it until the step waits.
        # The finalizer stays: transports leave generators of their own to it.
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, hooks.finalizer)
        try:
            steps = self._generator.__anext__().__await__()
            waiting = next(steps)
        except StopIteration as done:
            return cast("_T", done.value)
        finally:
            sys.set_asyncgen_hooks(*hooks)
        return cast("_T", (yield from _resumed(steps, waiting)))


def _resumed(steps: Any, waiting: object) -> Generator[Any, Any, Any]:
    """Go on with an awaitable that waits for something already."""
    while True:
        try:
            sent = yield waiting
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as error:  # noqa: BLE001 - for the awaitable to handle
            step, value = steps.throw, error
        else:
            step, value = steps.send, sent
        try:
            waiting = step(value)
        except StopIteration as done:
            return done.value
