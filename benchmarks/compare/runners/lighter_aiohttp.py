"""Lighter over the SDKs' aiohttp transport."""

from __future__ import annotations

from ..replies import Protocol
from .lighter import Lighter


def make(protocol: Protocol, url: str) -> Lighter:
    """Return the runner."""
    return Lighter(protocol, url, transport="aiohttp")
