"""The entry points of this distribution: makes the providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from lighter_core import hookimpl

if TYPE_CHECKING:
    from lighter_core import Provider

PLUGIN_API = 1
"""The version of Lighter's plugin interface that this module is written for."""


@hookimpl
def create_provider(name: str, options: Mapping[str, object]) -> Provider:
    """Make the provider of that name: `"openai"` or `"openai-chat"`.

    Args:
        name: The name of the entry point.
        options: The constructor's keyword arguments.

    Raises:
        TypeError: For an option that the constructor does not have.
        ModelError: For a missing key or model, or a value that cannot work.
    """
    import inspect

    from ._chat_provider import OpenAIChatProvider
    from ._provider import OpenAIProvider

    made = OpenAIChatProvider if name == "openai-chat" else OpenAIProvider
    known = set(inspect.signature(made).parameters)
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(
            f"provider {name!r} has no option {', '.join(map(repr, unknown))}; it has"
            f" {', '.join(sorted(known))}"
        )
    return made(**cast("dict[str, Any]", dict(options)))
