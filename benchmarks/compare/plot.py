"""The plot: one row for each scenario, one dot for each runner, a logarithmic axis."""

from __future__ import annotations

import math
from html import escape

_COLOURS = {
    "lighter": "#c2410c",
    "lighter-aiohttp": "#fb923c",
    "httpx2": "#0369a1",
    "aiohttp": "#38bdf8",
    "sdk": "#111827",
}
_PEERS = (
    "#7c3aed",
    "#15803d",
    "#be185d",
    "#a16207",
    "#0f766e",
    "#6b7280",
    "#84cc16",
    "#e879f9",
    "#7f1d1d",
)
_ACROSS = 5  # names in one row of the legend
_LOW, _HIGH = 0.01, 20.0
_LEFT, _WIDTH, _ROW = 200, 600, 24
_MARKS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def plot(ratios: dict[str, dict[str, dict[str, float]]], titles: dict[str, str]) -> str:
    """Return an SVG of all ratios.

    Args:
        ratios: Interface -> scenario -> runner -> ratio to the SDK.
        titles: What the interfaces are called.
    """
    names = list(
        dict.fromkeys(
            name
            for scenarios in ratios.values()
            for row in scenarios.values()
            for name in row
            if name != "plain"
        )
    )
    peers = [name for name in names if name not in _COLOURS]
    colours = {**_COLOURS, **dict(zip(peers, _PEERS * 3, strict=False))}
    rows = sum(len(each) + 1 for each in ratios.values())
    top = 40 + 20 * math.ceil(len(names) / _ACROSS)
    height = top + rows * _ROW + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 30}"'
        f' height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="10" y="18">CPU to that of the official SDK with a hand-written loop'
        " (left is less)</text>",
    ]
    for number, name in enumerate(names):
        left, line = 20 + number % _ACROSS * 160, 38 + number // _ACROSS * 20
        out.append(
            f'<circle cx="{left}" cy="{line - 4}" r="5" fill="{colours[name]}"/>'
            f'<text x="{left + 9}" y="{line}">{escape(name)}</text>'
        )
    for mark in _MARKS:
        x = _x(mark)
        stroke = "#111827" if mark == 1.0 else "#d1d5db"
        out.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{height - 22}"'
            f' stroke="{stroke}"/>'
        )
        out.append(
            f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{mark:g}</text>'
        )
    y = top
    for protocol, scenarios in ratios.items():
        y += _ROW
        out.append(
            f'<text x="10" y="{y}" font-weight="bold">{escape(titles[protocol])}</text>'
        )
        for scenario, row in scenarios.items():
            y += _ROW
            out.append(f'<text x="24" y="{y}">{escape(scenario)}</text>')
            out.extend(
                f'<circle cx="{_x(ratio):.1f}" cy="{y - 4}" r="5"'
                f' fill="{colours[name]}" fill-opacity="0.85">'
                f"<title>{escape(name)} {ratio:.2f}</title></circle>"
                for name, ratio in row.items()
                if name != "plain"
            )
    return "\n".join([*out, "</svg>", ""])


def _x(ratio: float) -> float:
    kept = min(max(ratio, _LOW), _HIGH)
    return _LEFT + _WIDTH * math.log(kept / _LOW) / math.log(_HIGH / _LOW)
