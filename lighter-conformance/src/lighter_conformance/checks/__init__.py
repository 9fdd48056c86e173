"""The checks, by family. Importing the package declares them, in the order of the page."""

from __future__ import annotations

from importlib import import_module

__all__ = ["FAMILIES"]

FAMILIES = (
    "identity",
    "options",
    "replies",
    "tools",
    "conversation",
    "native",
    "errors",
    "streams",
    "lifecycle",
    "secrets",
)

for _name in FAMILIES:
    import_module(f".{_name}", __name__)
