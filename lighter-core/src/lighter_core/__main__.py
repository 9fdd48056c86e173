"""`python -m lighter_core COMMAND`: a table of commands, each imported when asked for."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence

__all__ = ["main"]

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "doctor": ("doctor", "show what is installed, what is broken, and why"),
    "new-provider": (
        "new_provider",
        "write a distribution with a provider of your own",
    ),
    "make-test": ("make_test", "make a test of a recorded run"),
}
"""Each command's module in `_commands`, and its line in the help text."""

_INTERRUPTED = 130  # what shells expect after Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="python -m lighter_core", description="Lighter's commands."
    )
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    wanted = next((word for word in words if not word.startswith("-")), None)
    for name, (module, summary) in _COMMANDS.items():
        own = commands.add_parser(name, help=summary, description=f"{summary}.")
        if name == wanted:
            command = importlib.import_module(f"._commands.{module}", __package__)
            command.configure(own)
            own.set_defaults(run=command.run)
    given = parser.parse_args(words)
    try:
        return int(given.run(given))
    except BrokenPipeError:  # `… | head`: nobody reads on, and Python flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
