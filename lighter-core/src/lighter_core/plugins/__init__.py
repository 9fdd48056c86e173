"""Plugins: the hook specs, the reading of package metadata, the registry.

Importing this package imports nothing: pluggy loads with the first use of `hookimpl`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .marks import hookimpl as hookimpl

__all__ = ["hookimpl"]


def __getattr__(name: str) -> object:
    if name == "hookimpl":
        from .marks import hookimpl

        return hookimpl
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
