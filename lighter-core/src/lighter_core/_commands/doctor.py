"""`python -m lighter_core doctor`: what is installed, and what is broken."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import asdict

from ..plugins.registry import default_registry
from ._report import gather
from ._text import render

__all__ = ["configure", "run"]

_EPILOG = """\
Without --load and --import-cost no plugin is imported: metadata and source tell most.
Values of environment variables are never shown. Exit status: 0 when everything is fine,
1 when something is broken, 2 for wrong usage."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "name", nargs="?", help="report on this plugin name, and what it stands for"
    )
    parser.add_argument(
        "--load",
        action="store_true",
        help="load each plugin, in an interpreter of its own",
    )
    parser.add_argument(
        "--import-cost",
        action="store_true",
        help="load each plugin three times and measure it",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long each plugin may take to load (default: 30)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:  # noqa: PLR2004 - an hour
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seconds above 0 and up to 3600"
        )
    return seconds


def run(given: argparse.Namespace) -> int:
    """Print the report; return the exit status."""
    report = gather(
        default_registry(),
        name=given.name,
        load=given.load,
        import_cost=given.import_cost,
        timeout=given.timeout,
    )
    if given.json:
        text = json.dumps(asdict(report), indent=2) + "\n"
    else:
        text = render(report, shutil.get_terminal_size().columns)
    encoding = sys.stdout.encoding or "utf-8"  # a terminal may know ASCII only
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()
    return 0 if report.ok else 1
