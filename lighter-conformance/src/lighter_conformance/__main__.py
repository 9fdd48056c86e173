"""Print the contract as Markdown, one numbered section for each check."""

from __future__ import annotations

import sys
import textwrap
from itertools import groupby

from ._registry import Check
from ._run import all_checks

__all__ = ["contract_page"]

TITLES = {
    "identity": "What a provider is",
    "options": "How it is made",
    "replies": "Replies",
    "tools": "Tools",
    "conversation": "What is sent",
    "native": "Native context",
    "errors": "Errors",
    "streams": "Event streams",
    "lifecycle": "Loops, threads, connections",
    "secrets": "Secrets",
}


def contract_page() -> str:
    """Return the sections."""
    parts: list[str] = []
    for family, checks in groupby(all_checks(), lambda each: each.family):
        parts.append(f"## {TITLES[family]}")
        parts += map(_section, checks)
    return "\n\n".join(parts) + "\n"


def _section(check: Check) -> str:
    text = textwrap.fill(check.contract, 88, break_on_hyphens=False)
    section = f"### {check.number}. {check.id}\n\n{text}"
    if check.needs:
        needs = ", ".join(f"`{each}`" for each in check.needs)
        section += f"\n\nNeeds: {needs}."
    return section


if __name__ == "__main__":
    sys.stdout.write(contract_page())
