"""OpenAI for Lighter: the Responses API as a provider."""

from __future__ import annotations

from ._provider import OpenAIProvider, OpenAIProviderOptions

__all__ = ["OpenAIProvider", "OpenAIProviderOptions"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("lighter-openai")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
