"""`python -m lighter_core doctor`: what is installed, and what is broken."""

from __future__ import annotations

import argparse
import platform
import sys

from ..plugins.registry import default_registry

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("name", nargs="?", help="show this plugin name only")


def run(given: argparse.Namespace) -> int:
    """Print the report; return the exit status."""
    lines = [f"Python {platform.python_version()}"]
    lines += [
        f"{entry.kind} {entry.name}: {entry.dist} {entry.version}"
        for entry in default_registry().discover()
        if given.name in (None, entry.name)
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0
