"""Measure side by side and write `docs/performance.md`: `make bench`.

    python -m benchmarks.compare [--repeats 5] [--scenarios text,tools-10] [--peers all]
    python -m benchmarks.compare --page     only write the page again, from the figures

Runners take turns, each in a process of its own: A B C A B C. What is compared is a
runner's CPU time in one turn to that of the official SDK in the same turn; the median of
these ratios is shown, so that other work on the machine hits all of them alike.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import environments, machine, page
from .turns import Running, take_turns

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "benchmarks" / "figures.json"
SCENARIOS = {  # how often the work is done in one turn
    "text": 20,
    "tools-10": 3,
    "tools-40": 1,
    "stream-2000": 1,
    "paced-200": 1,
    "history-160": 5,
    "200x3": 1,
}
PROTOCOLS = ("responses", "chat", "messages")


def main() -> None:
    """Measure, keep the figures, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--peers", default="", help="names, or all")
    parser.add_argument("--page", action="store_true")
    asked = parser.parse_args()
    if not asked.page:
        figures = measure(
            {name: SCENARIOS.get(name, 1) for name in asked.scenarios.split(",")},
            asked.protocols.split(","),
            environments.chosen(asked.peers),
            asked.repeats,
        )
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    page.write(json.loads(FIGURES.read_text()), ROOT / "docs")


def measure(
    scenarios: dict[str, int], protocols: list[str], peers: list[str], repeats: int
) -> dict[str, Any]:
    """Return all figures of one run."""
    before = machine.load()
    made = {name: environments.python_of(name) for name in peers}
    missing = {
        name: str(each) for name, each in made.items() if not isinstance(each, Path)
    }
    versions = machine.versions(Path(sys.executable))
    service = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.compare.service"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert service.stdin is not None and service.stdout is not None
    url = f"http://127.0.0.1:{int(service.stdout.readline())}"
    results: dict[str, Any] = {}
    try:
        for protocol in protocols:
            runners = [
                Running(name, f"compare.runners.{name}", Path(sys.executable))
                for name in ("sdk", "lighter", "raw", "plain")
            ]
            for name, python in made.items():
                if (
                    isinstance(python, Path)
                    and protocol in environments.PEERS[name].protocols
                ):
                    runners.append(Running(name, f"peers.{name}", python))
            results[protocol] = take_turns(runners, protocol, url, scenarios, repeats)
    finally:
        service.stdin.close()
        service.wait()
    alone = subprocess.run(
        [sys.executable, "-m", "benchmarks.compare.alone"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    return {
        "machine": machine.describe(),
        "load": [before, machine.load()],
        "repeats": repeats,
        "versions": versions,
        "peer_versions": {
            name: machine.versions(python, environments.PEERS[name].named)
            for name, python in made.items()
            if isinstance(python, Path)
        },
        "missing": missing,
        "side_by_side": results,
        "alone": json.loads(alone),
    }


if __name__ == "__main__":
    main()
