"""The doctor's report for a terminal: plain text, aligned, within its width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from ._report import Note, PluginLine, Report

__all__ = ["render"]

_WIDEST_COLUMN = 28


def render(report: Report, width: int) -> str:
    """Return the report as text whose lines are at most `width` wide."""
    width = max(width, 40)
    blocks = [_versions(report, width)]
    blocks += [_answers(report, width)] if report.answers else []
    blocks += [_plugins(report.plugins, width)] if report.plugins else []
    blocks += [_notes(report.notes, width)] if report.notes else []
    if not report.plugins and not report.answers:
        blocks.append(
            ["No plugins are installed. Lighter's own: pip install lighter-openai"]
        )
    blocks.append(_wrapped(_verdict(report), width, 0))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _verdict(report: Report) -> str:
    if not report.ok:
        return "Something is broken: see above."
    if any(note.broken for note in report.notes):  # a name was asked for, which is fine
        return "The name is fine; something else is broken: see above."
    return "Everything is fine."


def _versions(report: Report, width: int) -> list[str]:
    rows = [("Python", report.python, report.platform)]
    for each in report.distributions:
        users = f"for {', '.join(each.required_by)}" if each.required_by else ""
        rows.append((each.name, each.version or "missing", users))
    return ["Versions", *_table(rows, width)]


def _answers(report: Report, width: int) -> list[str]:
    lines = ["What the name stands for"]
    for each in report.answers:
        where = "nothing" if each.dist is None else each.dist
        lines += _wrapped(f"{each.kind}: {each.name} is {where}", width, 2)
        lines += _wrapped(f"because {each.why}" if each.dist else each.why, width, 4)
    return lines


def _plugins(plugins: Iterable[PluginLine], width: int) -> list[str]:
    lines: list[str] = []
    rows: list[tuple[str, str, str]] = []
    details: list[list[str]] = []
    kinds: list[str] = []
    for each in plugins:
        source = f"{each.dist} {each.version}" if each.dist else "of the application"
        rows.append((each.name, each.state, source))
        details.append(_details(each, width))
        kinds.append(each.kind)
    before = ""
    for row, more, kind in zip(_table(rows, width), details, kinds, strict=True):
        if kind != before:
            lines += ["", kind.capitalize()] if lines else [kind.capitalize()]
            before = kind
        lines += [row, *more]
    return lines


def _details(plugin: PluginLine, width: int) -> list[str]:
    texts = [plugin.reason] if plugin.reason else []
    if plugin.environment:
        texts.append(", ".join(f"{k} {v}" for k, v in plugin.environment.items()))
    if plugin.tools is not None:
        texts.append(f"tools: {', '.join(plugin.tools) or 'none'}")
    if plugin.import_cost is not None:
        cost = plugin.import_cost
        packages = ", ".join(cost.third_party) or "no other package"
        texts.append(
            f"costs {cost.milliseconds:g} ms and {cost.modules} modules; imports {packages}"
        )
    return [line for text in texts for line in _wrapped(text, width, 4)]


def _notes(notes: Iterable[Note], width: int) -> list[str]:
    lines = ["Installed distributions"]
    for note in notes:
        lines += _wrapped(note.place, width, 2)
        lines += _wrapped(f"{'broken: ' if note.broken else ''}{note.text}", width, 4)
    return lines


def _table(rows: Sequence[tuple[str, str, str]], width: int) -> list[str]:
    """Return one line for each row, columns aligned; what is too long is cut."""
    first = min(max((len(row[0]) for row in rows), default=0), _WIDEST_COLUMN)
    second = min(max((len(row[1]) for row in rows), default=0), _WIDEST_COLUMN)
    lines: list[str] = []
    for name, middle, last in rows:
        line = f"  {_cut(name, first):{first}}  {_cut(middle, second):{second}}  {last}"
        lines.append(_cut(line.rstrip(), width))
    return lines


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    space = " " * indent
    return textwrap.wrap(
        text,
        width,
        initial_indent=space,
        subsequent_indent=space,
        break_on_hyphens=False,
    ) or [space.rstrip()]
