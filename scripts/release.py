"""The one version of all distributions, and what a release needs to know of them.

    python scripts/release.py version          print the version
    python scripts/release.py bump 0.2.0       set it everywhere
    python scripts/release.py repository URL   set the repository's address everywhere
    python scripts/release.py order            the names as JSON, in publishing order
    python scripts/release.py notes            what the changelog says about the version
    python scripts/release.py check TAG URL    fail unless TAG may be released from URL

Needs nothing but Python. docs/releasing.md says when to use which.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHANGELOG = ROOT / "CHANGELOG.md"
VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
LABELS = {
    "Documentation": "/tree/main/docs",
    "Source": "",
    "Issues": "/issues",
    "Changelog": "/blob/main/CHANGELOG.md",
}


def main(arguments: list[str]) -> None:
    """Run one command."""
    match arguments:
        case ["version"]:
            print(version())
        case ["bump", new]:
            bump(new)
        case ["repository", url]:
            set_repository(url)
        case ["order"]:
            print(json.dumps(order()))
        case ["notes"]:
            print(notes(version()))
        case ["check", tag, url]:
            check(tag, url)
        case _:
            raise SystemExit(__doc__)


def distributions() -> dict[str, Path]:
    """Return the pyproject file of each distribution by its name."""
    return {
        path.parent.name: path for path in sorted(ROOT.glob("lighter-*/pyproject.toml"))
    }


def project(path: Path) -> dict[str, object]:
    """Return a file's `[project]` table."""
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]


def version() -> str:
    """Return the version that all distributions have."""
    found = {
        name: str(project(path)["version"]) for name, path in distributions().items()
    }
    if len(set(found.values())) != 1:
        raise SystemExit(
            f"versions differ: {found}; set one: scripts/release.py bump X.Y.Z"
        )
    return next(iter(found.values()))


def bump(new: str) -> None:
    """Set the version of all distributions, and what they ask of each other."""
    if not VERSION.fullmatch(new):
        raise SystemExit(
            f"{new!r} is no version: use X.Y.Z, or X.Y.Zrc1 for a candidate"
        )
    names = "|".join(distributions())
    for path in distributions().values():
        text = path.read_text(encoding="utf-8")
        text = re.sub(r'(?m)^version = ".*"$', f'version = "{new}"', text, count=1)
        text = re.sub(rf'"({names})(\[.*?\])?[~=]=[^"]*"', rf'"\1\2~={new}"', text)
        path.write_text(text, encoding="utf-8")


def set_repository(url: str) -> None:
    """Write the table `[project.urls]` of all distributions."""
    url = url.rstrip("/")
    if not re.fullmatch(r"https://[^\s\"]+", url):
        raise SystemExit(f"{url!r} is no https address of a repository")
    table = "\n".join(f'{label} = "{url}{path}"' for label, path in LABELS.items())
    for path in distributions().values():
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"(?m)^\[project\.urls\]\n(?:.+\n)*\n", "", text)
        text = re.sub(
            r"(?m)^\[project\]\n(?:.+\n)*\n",
            lambda found, table=table: f"{found[0]}[project.urls]\n{table}\n\n",
            text,
            count=1,
        )
        path.write_text(text, encoding="utf-8")


def needs(path: Path) -> list[str]:
    """Return the requirements on other distributions of this repository."""
    table = project(path)
    extras = table.get("optional-dependencies", {})
    lists = [table.get("dependencies", []), *extras.values()]
    own = distributions()
    return [
        requirement
        for requirements in lists
        for requirement in requirements
        if re.match(r"[\w-]+", requirement).group() in own
    ]


def order() -> list[str]:
    """Return the distributions, each after those that it needs."""
    graph = {
        name: {re.match(r"[\w-]+", each).group() for each in needs(path)}
        for name, path in distributions().items()
    }
    return list(TopologicalSorter(graph).static_order())


def notes(of: str) -> str:
    """Return the changelog's section about a version."""
    text = CHANGELOG.read_text(encoding="utf-8")
    found = re.search(rf"(?ms)^## {re.escape(of)} \(.*?$(.*?)(?=^## |\Z)", text)
    if found is None or not found[1].strip():
        raise SystemExit(
            f"CHANGELOG.md has no section about {of}: make release VERSION={of}"
        )
    return found[1].strip()


def check(tag: str, url: str) -> None:
    """Fail unless the tag names the version and everything about it is in place."""
    now = version()
    wrong = []
    if tag != f"v{now}":
        wrong.append(f"the tag is {tag} and the version {now}: tag v{now} instead")
    for name, path in distributions().items():
        source = project(path).get("urls", {}).get("Source")
        if source != url.rstrip("/"):
            wrong.append(
                f"{name} names {source} as its source: scripts/release.py repository {url}"
            )
        wrong += [
            f"{name} asks for {each}: scripts/release.py bump {now}"
            for each in needs(path)
            if not each.endswith(f"~={now}")
        ]
    if left := sorted(path.name for path in (ROOT / "changes").glob("*.*.md")):
        wrong.append(
            f"changes/ still has {', '.join(left)}: make release VERSION={now}"
        )
    if wrong:
        raise SystemExit("not ready:\n" + "\n".join(f"- {each}" for each in wrong))
    notes(now)


if __name__ == "__main__":
    main(sys.argv[1:])
