"""The entry point `local` of the group `lighter.providers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lighter_core import hookimpl
from lighter_core.provider import Provider

from ._provider import LocalProvider

PLUGIN_API = 1


@hookimpl
def create_provider(name: str, options: Mapping[str, object]) -> Provider:
    """Make the provider; unknown options are a TypeError of the constructor."""
    del name  # this module serves one name only
    given: Mapping[str, Any] = options
    return LocalProvider(**given)
