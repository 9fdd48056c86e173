"""The figures as they are kept: `benchmarks/figures.json`.

Each figure has its own ratio to the SDK of the same turn, so that those of several
measurements may stand beside each other.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import environments, machine

PATH = Path(__file__).parents[1] / "figures.json"


def none() -> dict[str, Any]:
    """Return figures of nothing."""
    return {
        "machine": "",
        "load": [],
        "versions": {},
        "peer_versions": {},
        "missing": {},
        "side_by_side": {},
        "alone": {},
    }


def read() -> dict[str, Any]:
    """Return the figures that are kept."""
    found = none()
    if PATH.exists():
        found.update(json.loads(PATH.read_text()))
    return found


def write(found: dict[str, Any]) -> None:
    """Keep figures."""
    PATH.write_text(json.dumps(found, indent=1) + "\n")


def begin(
    found: dict[str, Any],
    peers: Sequence[str],
    missing: Mapping[str, str],
) -> None:
    """Note on what the figures are taken that come now."""
    found["machine"] = machine.describe()
    found["load"].append(machine.load())
    found["versions"] = machine.versions(Path(sys.executable))
    for name in peers:
        found["peer_versions"][name] = environments.versions(name)
        found["missing"].pop(name, None)
    found["missing"].update(missing)


def end(found: dict[str, Any]) -> None:
    """Note how busy the machine is now."""
    found["load"].append(machine.load())


def put(
    found: dict[str, Any], protocol: str, scenario: str, taken: Mapping[str, Any]
) -> None:
    """Put figures in the place of those of the same runners."""
    cells = found["side_by_side"].setdefault(protocol, {})
    cells.setdefault(scenario, {}).update(taken)


def has(
    found: dict[str, Any], protocol: str, scenario: str, names: Sequence[str]
) -> bool:
    """Tell whether a scenario was measured with all of these runners."""
    taken = found["side_by_side"].get(protocol, {}).get(scenario, {})
    return all(each in taken for each in names)
