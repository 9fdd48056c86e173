"""The entry point of this distribution: makes the provider."""

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
    """Make the provider; options are the constructor's keyword arguments.

    Raises:
        TypeError: For an option that the constructor does not have.
        ModelError: For a missing key or model, or a value that cannot work.
    """
    import inspect

    from ._provider import ClaudeProvider

    known = set(inspect.signature(ClaudeProvider).parameters)
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(
            f"provider {name!r} has no option {', '.join(map(repr, unknown))}; it has"
            f" {', '.join(sorted(known))}"
        )
    return ClaudeProvider(**cast("dict[str, Any]", dict(options)))
