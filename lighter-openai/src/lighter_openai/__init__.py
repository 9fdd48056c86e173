"""OpenAI for Lighter: the Responses API, and Chat Completions for other services."""

from __future__ import annotations

from ._chat_provider import OpenAIChatProvider, OpenAIChatProviderOptions
from ._provider import OpenAIProvider, OpenAIProviderOptions

__all__ = [
    "OpenAIChatProvider",
    "OpenAIChatProviderOptions",
    "OpenAIProvider",
    "OpenAIProviderOptions",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("lighter-openai")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
