"""Closing what a provider's `stream` returned, whatever it is."""

from __future__ import annotations

import inspect

__all__ = ["close_stream"]


async def close_stream(stream: object) -> None:
    """Await the stream's `aclose()`, else its `close()`; do nothing without either."""
    for name in ("aclose", "close"):
        close = getattr(stream, name, None)
        if callable(close):
            result = close()
            if inspect.isawaitable(result):
                await result
            return
