"""The entry point, which is imported when an application asks for the provider."""

from __future__ import annotations

from collections.abc import Mapping

from lighter_core import Provider, hookimpl
from lighter_core.adapters import make_provider

from ._provider import EchoProvider

PLUGIN_API = 1
"""The version of Lighter's plugin interface that this module is written for."""

ENVIRONMENT: tuple[str, ...] = ()
"""The variables that the provider reads, for `python -m lighter_core doctor`."""


@hookimpl.create_provider
def create_provider(name: str, options: Mapping[str, object]) -> Provider:
    """Make the provider; the options are the keyword arguments of its class.

    Raises:
        TypeError: For an option that the class does not have.
    """
    return make_provider(EchoProvider, name, options)
