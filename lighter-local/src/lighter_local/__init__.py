"""A small language model inside the process: `Model.from_name("local")`.

Importing this package loads no model and no native library, and touches no network.
"""

from __future__ import annotations

from ._provider import LocalProvider

__all__ = ["LocalProvider"]

LocalProvider.__module__ = __name__


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("lighter-local")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
