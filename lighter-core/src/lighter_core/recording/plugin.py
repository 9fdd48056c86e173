"""The provider `replay`: `Model.from_name("replay", path="run.jsonl")`."""

from __future__ import annotations

from collections.abc import Mapping

from ..plugins.marks import hookimpl
from ..provider import Provider

__all__ = ["PLUGIN_API", "create_provider"]

PLUGIN_API = 1


@hookimpl
def create_provider(name: str, options: Mapping[str, object]) -> Provider:
    """Make the provider from the options of an application."""
    from ..adapters._making import make_provider
    from ._replay import ReplayProvider

    return make_provider(ReplayProvider, name, options)
