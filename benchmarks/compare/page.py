"""`docs/performance.md`: the part between the markers is written from the figures."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any, TextIO

from .environments import PEERS
from .measuring import BASE
from .plot import plot

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- figures: written by make bench -->", "<!-- end of figures -->"
NAMES = {
    "sdk": "official SDK, hand-written loop",
    "lighter": "**Lighter**",
    "lighter-aiohttp": "**Lighter, aiohttp transport**",
    "httpx2": "mark: httpx2 and dicts",
    "aiohttp": "mark: aiohttp and dicts",
    "plain": "mark: plain Python, no network",
}
FAMILIAR = {"vercel_ai": "Vercel AI SDK", "pi": "pi-agent-core"}
TITLES = {"responses": "Responses", "chat": "Chat Completions", "messages": "Messages"}
TARGETS: dict[str, dict[str, dict[str, float]]] = {  # runner -> interface -> scenario
    "lighter": {
        "responses": {
            "text": 0.60,
            "tools-10": 0.13,
            "stream-2000": 0.22,
            "200x3": 0.28,
            "history-160": 0.03,
        },
        "messages": {
            "text": 0.80,
            "tools-10": 0.70,
            "stream-2000": 0.55,
            "200x3": 0.90,
            "history-160": 0.95,
        },
    },
    "lighter-aiohttp": {
        "responses": {
            "text": 0.45,
            "tools-10": 0.09,
            "stream-2000": 0.09,
            "200x3": 0.13,
            "history-160": 0.02,
        },
    },
}
ALONE = (
    ("round_async", "a round with an async tool", 60.0, "µs"),
    ("round_inline", "a round with a sync tool, `thread=False`", None, "µs"),
    ("round_thread", "a round with a sync tool on a worker thread", 180.0, "µs"),
    ("round_plain", "mark: a round of a plain loop", None, "µs"),
    ("delta", "a streamed delta", 2.0, "µs"),
    ("delta_plain", "mark: a delta of a plain loop", None, "µs"),
    ("waiting_bytes", "memory of a live run that waits", 30.0, "KB"),
    ("import_ratio", "`import lighter_core` to `import asyncio`", 1.6, "x"),
    ("import_modules", "modules of `import lighter_core`", None, ""),
)


def write(found: dict[str, Any], docs: Path = DOCS) -> None:
    """Write the page's part and the plot."""
    path = docs / "performance.md"
    head, rest = path.read_text().split(BEGIN)
    tail = rest.split(END)[1]
    path.write_text(f"{head}{BEGIN}\n\n{_body(found)}\n{END}{tail}")
    (docs / "performance.svg").write_text(plot(ratios(found), TITLES))


def show(found: dict[str, Any], out: TextIO) -> None:
    """Print the figures: microseconds of CPU, the ratio to the SDK, its spread."""
    width = 26
    for protocol, scenarios in found["side_by_side"].items():
        for scenario, row in scenarios.items():
            out.write(f"{TITLES[protocol]}, {scenario}\n")
            for name, taken in row.items():
                if isinstance(taken, str):
                    out.write(f"  {name:{width}} left out: {taken}\n")
                    continue
                spent = statistics.median(each["cpu"] for each in taken) * 1e6
                line = f"  {name:{width}} {spent:10,.1f} µs"
                compared = sorted(each["ratio"] for each in taken if "ratio" in each)
                if compared:
                    middle = statistics.median(compared)
                    spread = f"{compared[0]:.3f} to {compared[-1]:.3f}"
                    line += f" {middle:8.3f}  ({spread})"
                goal = TARGETS.get(name, {}).get(protocol, {}).get(scenario)
                out.write(line + (f"  target {goal:.2f}\n" if goal else "\n"))
    out.writelines(
        f"{key:{width + 2}} {value:10,.1f}\n" for key, value in found["alone"].items()
    )


def ratios(found: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return interface -> scenario -> runner -> median of the ratios turn by turn."""
    return {
        protocol: {
            scenario: {
                name: statistics.median(each["ratio"] for each in taken)
                for name, taken in row.items()
                if not isinstance(taken, str) and all("ratio" in each for each in taken)
            }
            for scenario, row in scenarios.items()
        }
        for protocol, scenarios in found["side_by_side"].items()
    }


def _body(found: dict[str, Any]) -> str:
    named = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
    lines = [
        f"{found['machine']}; {named}. Load of the machine while it was measured:"
        f" {min(found['load'])} to {max(found['load'])}. Each figure is the median of"
        f" {_turns(found)} turns.",
        "",
        "![CPU ratios to the official SDK, by scenario](performance.svg)",
        "",
    ]
    for protocol, scenarios in ratios(found).items():
        lines += _table(protocol, scenarios, found)
    if found["alone"]:
        lines += _alone(found["alone"])
    return "\n".join([*lines, *_peers(found)])


def _turns(found: dict[str, Any]) -> str:
    """Return how many turns the figures rest on: fewest and most."""
    numbers = {
        len(taken)
        for scenarios in found["side_by_side"].values()
        for row in scenarios.values()
        for taken in row.values()
        if not isinstance(taken, str)
    }
    return " to ".join(str(each) for each in sorted({min(numbers), max(numbers)}))


def _table(
    protocol: str, scenarios: dict[str, dict[str, float]], found: dict[str, Any]
) -> list[str]:
    given = found["side_by_side"][protocol]
    present = {name for row in given.values() for name in row}
    ordered = [each for each in (*NAMES, *PEERS) if each in present]
    lines = [
        f"### {TITLES[protocol]}",
        "",
        "| runner | " + " | ".join(scenarios) + " |",
        "| --- |" + " --- |" * len(scenarios),
    ]
    for name in ordered:
        cells = [
            f"{row[name]:.2f}" if name in row else "–" for row in scenarios.values()
        ]
        lines.append(f"| {_shown(name, found)} | " + " | ".join(cells) + " |")
        goals = TARGETS.get(name, {}).get(protocol)
        if goals:
            cells = [f"≤ {goals[each]:.2f}" if each in goals else "" for each in given]
            lines.append("| its target | " + " | ".join(cells) + " |")
    silent = [
        name for name in PEERS if name in found["peer_versions"] and name not in present
    ]
    for name in silent:
        lines.append(f"| {_shown(name, found)} |" + " – |" * len(scenarios))
    cells = [
        f"{statistics.median(each['cpu'] for each in row[BASE]) * 1e6:,.0f} µs"
        if isinstance(row.get(BASE), list)
        else "–"
        for row in given.values()
    ]
    lines += ["| 1.00 is | " + " | ".join(cells) + " |", ""]
    out = [
        f"- Left out of `{scenario}`: {_shown(name, found)}: {taken}"
        for scenario, row in given.items()
        for name, taken in row.items()
        if isinstance(taken, str)
    ]
    out += [f"- {_shown(name, found)} does not speak this interface" for name in silent]
    return [*lines, *out, ""] if out else lines


def _shown(name: str, found: dict[str, Any]) -> str:
    """Return what a runner is called: a peer has its version."""
    if name in NAMES:
        return NAMES[name]
    versions = found["peer_versions"].get(name, {})
    package, version = next(iter(versions.items()), (name, ""))
    return f"{FAMILIAR.get(name, package)} {version}".rstrip()


def _alone(alone: dict[str, float]) -> list[str]:
    lines = [
        "### The framework alone",
        "",
        "| what | reached | target |",
        "| --- | --- | --- |",
    ]
    for key, title, goal, unit in ALONE:
        value = alone[key] / 1024 if key == "waiting_bytes" else alone[key]
        digits = 0 if key == "import_modules" else 1
        target = "" if goal is None else f"≤ {goal:g} {unit}"
        lines.append(f"| {title} | {value:.{digits}f} {unit} | {target} |")
    return [*lines, ""]


def _peers(found: dict[str, Any]) -> list[str]:
    """Return how the peers do the work, and which were not measured, with the reason."""
    notes = [
        f"- {_shown(name, found)} ({', '.join(f'{k} {v}' for k, v in rest)})"
        + (f": {PEERS[name].note}" if PEERS[name].note else "")
        for name, versions in found["peer_versions"].items()
        if (rest := list(versions.items())[1:]) or PEERS[name].note
    ]
    missing = [f"- {name}: {why}" for name, why in found["missing"].items()]
    missing += [
        f"- {name}: not asked for"
        for name in PEERS
        if name not in found["peer_versions"] and name not in found["missing"]
    ]
    lines = ["### The peers' ways", "", *notes, ""] if notes else []
    return [*lines, "### Not measured", "", *missing, ""] if missing else lines
