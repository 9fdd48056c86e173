"""The entry point of this distribution: makes the provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lighter_core import hookimpl
from lighter_core.adapters import make_provider

if TYPE_CHECKING:
    from lighter_core import Provider

PLUGIN_API = 1
"""The version of Lighter's plugin interface that this module is written for."""

ENVIRONMENT = ("ANTHROPIC_API_KEY", "ANTHROPIC_MODEL", "ANTHROPIC_BASE_URL")
"""The environment variables that are read, for `python -m lighter_core doctor`."""


@hookimpl
def create_provider(name: str, options: Mapping[str, object]) -> Provider:
    """Make the provider; options are the constructor's keyword arguments.

    Raises:
        TypeError: For an option that the constructor does not have.
        ModelError: For a missing key or model, or a value that cannot work.
    """
    from ._provider import ClaudeProvider

    return make_provider(ClaudeProvider, name, options)
