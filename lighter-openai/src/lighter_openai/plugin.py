"""The entry points of this distribution: makes the providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lighter_core import hookimpl
from lighter_core.adapters import make_provider

if TYPE_CHECKING:
    from lighter_core import Provider

PLUGIN_API = 1
"""The version of Lighter's plugin interface that this module is written for."""

ENVIRONMENT = ("OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_BASE_URL")
"""The environment variables that are read, for `python -m lighter_core doctor`."""


@hookimpl
def create_provider(name: str, options: Mapping[str, object]) -> Provider:
    """Make `"openai"` or `"openai-chat"`; options are the constructor's keyword arguments.

    Raises:
        TypeError: For an option that the constructor does not have.
        ModelError: For a missing key or model, or a value that cannot work.
    """
    from ._chat_provider import OpenAIChatProvider
    from ._provider import OpenAIProvider

    if name == "openai-chat":
        return make_provider(OpenAIChatProvider, name, options)
    return make_provider(OpenAIProvider, name, options)
