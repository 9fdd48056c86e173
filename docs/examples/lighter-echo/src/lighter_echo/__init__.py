"""The provider `echo` for Lighter."""

from __future__ import annotations

from ._provider import EchoProvider

__all__ = ["EchoProvider"]
