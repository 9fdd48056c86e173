"""DeepSeek for Lighter: its Responses interface as a provider."""

from __future__ import annotations

from ._provider import DeepSeekProvider, DeepSeekProviderOptions

__all__ = ["DeepSeekProvider", "DeepSeekProviderOptions"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("lighter-deepseek")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
