"""Claude for Lighter: the Anthropic Messages API as a provider."""

from __future__ import annotations

from ._options import ClaudeProviderOptions
from ._provider import ClaudeProvider

__all__ = ["ClaudeProvider", "ClaudeProviderOptions"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("lighter-claude")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
