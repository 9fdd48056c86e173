"""`docs/performance.md`: the part between the markers is written from the figures."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from .environments import LEFT_OUT
from .plot import plot

BEGIN, END = "<!-- figures: written by make bench -->", "<!-- end of figures -->"
BASE = "sdk"
NAMES = {
    "sdk": "official SDK, hand-written loop",
    "lighter": "**Lighter**",
    "raw": "httpx2 and dicts",
    "plain": "plain Python, no network",
}
TITLES = {"responses": "Responses", "chat": "Chat Completions", "messages": "Messages"}
TARGETS = {  # ratios that are aimed at, by interface
    "text": {"responses": 0.60, "messages": 0.80},
    "tools-10": {"responses": 0.13, "messages": 0.70},
    "stream-2000": {"responses": 0.22, "messages": 0.55},
    "200x3": {"responses": 0.28, "messages": 0.90},
    "history-160": {"responses": 0.03, "messages": 0.95},
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


def write(figures: dict[str, Any], docs: Path) -> None:
    """Write the page's part and the plot."""
    path = docs / "performance.md"
    text = path.read_text()
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    path.write_text(f"{head}{BEGIN}\n\n{_body(figures)}\n{END}{tail}")
    (docs / "performance.svg").write_text(plot(ratios(figures), TITLES))


def ratios(figures: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return interface -> scenario -> runner -> median of the ratios turn by turn."""
    out: dict[str, dict[str, dict[str, float]]] = {}
    for protocol, scenarios in figures["side_by_side"].items():
        for scenario, runners in scenarios.items():
            base = runners[BASE]
            out.setdefault(protocol, {})[scenario] = {
                name: statistics.median(
                    ours["cpu"] / theirs["cpu"]
                    for ours, theirs in zip(taken, base, strict=True)
                )
                for name, taken in runners.items()
                if not isinstance(taken, str) and not isinstance(base, str)
            }
    return out


def _body(figures: dict[str, Any]) -> str:
    found = ratios(figures)
    named = ", ".join(f"{k} {v}" for k, v in figures["versions"].items())
    load = " and ".join(str(each) for each in figures["load"])
    lines = [
        f"{figures['machine']}; {named}. Load of the machine before and after:"
        f" {load}. Each figure is the median of {figures['repeats']} turns.",
        "",
        "![CPU ratios to the official SDK, by scenario](performance.svg)",
        "",
    ]
    for protocol, scenarios in found.items():
        lines += _table(protocol, scenarios, figures)
    lines += _alone(figures["alone"])
    lines += ["### Not measured", "", *left_out(figures), ""]
    return "\n".join(lines)


def _table(
    protocol: str, scenarios: dict[str, dict[str, float]], figures: dict[str, Any]
) -> list[str]:
    given = figures["side_by_side"][protocol]
    names = list(next(iter(given.values())))
    lines = [
        f"### {TITLES[protocol]}",
        "",
        "| runner | " + " | ".join(scenarios) + " |",
        "| --- |" + " --- |" * len(scenarios),
    ]
    for name in names:
        versions = figures["peer_versions"].get(name, {})
        shown = NAMES.get(name) or " ".join(
            f"{k} {v}" for k, v in list(versions.items())[:1]
        )
        cells = [
            f"{row[name]:.2f}" if name in row else "–" for row in scenarios.values()
        ]
        lines.append(f"| {shown or name} | " + " | ".join(cells) + " |")
    goals = [TARGETS.get(each, {}).get(protocol) for each in scenarios]
    if any(goals):
        cells = ["" if each is None else f"≤ {each:.2f}" for each in goals]
        lines.append("| target of Lighter | " + " | ".join(cells) + " |")
    cells = [
        "–"
        if isinstance(row[BASE], str)
        else f"{statistics.median(each['cpu'] for each in row[BASE]) * 1e6:,.0f} µs"
        for row in given.values()
    ]
    lines += ["| 1.00 is | " + " | ".join(cells) + " |", ""]
    out = [
        f"- Left out of `{scenario}`: {name}: {taken}"
        for scenario, row in given.items()
        for name, taken in row.items()
        if isinstance(taken, str)
    ]
    return [*lines, *out, ""] if out else lines


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


def left_out(figures: dict[str, Any]) -> list[str]:
    """Return a line for each peer that was not measured, with the reason."""
    return [
        f"- {name}: {why}" for name, why in {**figures["missing"], **LEFT_OUT}.items()
    ]
