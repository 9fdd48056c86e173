"""Run in a fresh interpreter: what making a provider imports, and what it touches.

Reads a JSON object with `name` and `options` from standard input, writes one with
`imported`, `touched` and `error`.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

_NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto")
touched: list[str] = []


def main() -> None:
    """Make the provider and report."""
    job = json.load(sys.stdin)
    from lighter_core import Model, default_registry

    default_registry().discover()
    for own in ("importlib_metadata", "pluggy"):  # the core loads them when it looks
        import_module(own)

    before = set(sys.modules)
    sys.addaudithook(lambda event, _: _note(event))
    error = None
    try:
        Model.from_name(job["name"], **job["options"])
    except Exception as caught:  # noqa: BLE001 - reported
        error = f"{type(caught).__name__}: {caught}"
    new = {name.partition(".")[0] for name in set(sys.modules) - before}
    foreign = sorted(
        name
        for name in new - sys.stdlib_module_names
        if not name.startswith(("lighter_", "_"))
    )
    report = {"imported": foreign, "touched": touched, "error": error}
    json.dump(report, sys.stdout)


def _note(event: str) -> None:
    if event in _NETWORK:
        touched.append(event)


if __name__ == "__main__":
    main()
