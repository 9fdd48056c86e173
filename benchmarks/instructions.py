"""How many instructions each hot path takes: `make bench-instructions`.

    python -m benchmarks.instructions [--tree ../before] [--only "delta history"]
        [--groups "core responses"] [--save]

Counted by valgrind's callgrind, so a busy machine changes nothing; an instruction is not a
time, but twice as many of them take about twice as long. `--tree` counts the same for the
sources of another checkout and shows both. `--save` writes the table into
`docs/profiles.md`. The group `loopback` counts whole runs with the SDKs, in a table of its
own: that takes half an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.compare.machine import NAMED, versions
from benchmarks.compare.measuring import service
from benchmarks.compare.work import scenario

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "profiles.md"
BEGIN = "<!-- instructions: written by make bench-instructions -->"
END = "<!-- end of instructions -->"
BEGIN_LOOPBACK = "<!-- loopback: written by make bench-loopback -->"
END_LOOPBACK = "<!-- end of loopback -->"
MARK = "getsid"  # what `benchmarks.paths.mark` calls
GROUPS = {
    "import": "Imports, without the bare interpreter",
    "core": "The framework alone",
    "responses": "Responses",
    "chat": "Chat Completions",
    "messages": "Messages",
    "loopback": "Whole runs over the loopback, beside the official SDK's loop",
}
LOOPBACK = {"text": 20, "tools-10": 2, "stream-2000": 1, "history-160": 3}  # how often
RUNNERS = {  # of benchmarks.compare, the one that is compared with first
    "sdk": "official SDK",
    "lighter": "Lighter",
    "lighter_aiohttp": "Lighter, aiohttp transport",
    "httpx2": "mark: httpx2 and dicts",
}
IMPORTS = {  # what is imported: what no import can do without
    "import asyncio": None,
    "import lighter_core": "import asyncio",
    "import lighter_core, lighter_openai": "import asyncio",
    "import lighter_core, lighter_claude": "import asyncio",
}


@dataclass(frozen=True)
class Count:
    """The instructions of one unit of a path, and the name of its floor."""

    instructions: float
    floor: str | None


def sources(tree: Path) -> str:
    """Return the import path that takes Lighter from a checkout.

    Raises:
        SystemExit: When it is no checkout.
    """
    found = sorted(tree.resolve().glob("lighter-*/src"))
    if not found:
        raise SystemExit(f"{tree} is no checkout of Lighter")
    return os.pathsep.join(map(str, [ROOT, *found]))


def callgrind(arguments: list[str], path: str) -> tuple[str, list[int]]:
    """Run Python under callgrind; return what it prints, and the parts' instructions.

    Raises:
        SystemExit: When the program or valgrind fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        options = ("--tool=callgrind", f"--callgrind-out-file={out}")
        options += (f"--dump-before={MARK}",)
        done = _valgrind([*options, sys.executable, *arguments], path)
        parts = sorted(
            Path(folder).glob("out.*"), key=lambda each: int(each.suffix[1:])
        )
        return done.stdout, [_total(each) for each in [*parts, out]]


def _valgrind(command: list[str], path: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "LANG"}}
    done = subprocess.run(
        ["valgrind", *command],  # noqa: S607
        env={**kept, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done


def _total(part: Path) -> int:
    found = re.search(r"^totals: (\d+)", part.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def count_group(group: str, path: str, words: list[str]) -> dict[str, Count]:
    """Return the instructions of each path of a group.

    Raises:
        SystemExit: When something failed, or the marks were not seen.
    """
    printed, totals = callgrind(["-m", "benchmarks.paths", group, *words], path)
    measured = json.loads(printed)
    if len(totals) != 4 * len(measured) + 1:  # two for each size, and the end
        raise SystemExit(
            f"callgrind saw {len(totals) - 1} marks of {4 * len(measured)}: is"
            f" {MARK} of the C library a function of its own here?"
        )
    found: dict[str, Count] = {}
    for at, (name, units, floor) in enumerate(measured):
        half, full = totals[4 * at + 1], totals[4 * at + 3]
        found[name] = Count((full - half) / units, floor)
    return found


def count_imports(path: str, words: list[str]) -> dict[str, Count]:
    """Return the instructions of each import beyond those of a bare interpreter."""
    wanted = {
        name: floor
        for name, floor in IMPORTS.items()
        if not words or any(word in name for word in words)
    }
    wanted |= {floor: IMPORTS[floor] for floor in wanted.values() if floor}
    bare = _whole("pass", path) if wanted else 0
    return {
        name: Count(_whole(name, path) - bare, wanted[name])
        for name in IMPORTS
        if name in wanted
    }


def count_loopback(path: str, words: list[str]) -> dict[str, Count]:
    """Return the instructions of one unit of runs with a service in another process."""
    found: dict[str, Count] = {}
    with service() as url, ThreadPoolExecutor() as side_by_side:
        for protocol in ("responses", "messages"):
            for name, times in LOOPBACK.items():
                title = f"{GROUPS[protocol]}, {name}"
                if words and not any(word in title for word in words):
                    continue
                programs = [
                    [*("-m", "benchmarks.loopback", each, protocol, name), str(n), url]
                    for each in RUNNERS
                    for n in (times, 3 * times)
                ]
                counts = list(
                    side_by_side.map(lambda each: counted(each, path), programs)
                )
                for at, (each, label) in enumerate(RUNNERS.items()):
                    more = counts[2 * at + 1] - counts[2 * at]
                    found[f"{title}: {label}"] = Count(
                        more / (2 * times * scenario(name).units),
                        None if each == "sdk" else f"{title}: {RUNNERS['sdk']}",
                    )
    return found


def counted(arguments: list[str], path: str) -> int:
    """Return the instructions of a run of Python; quicker than callgrind is.

    Raises:
        SystemExit: When the program or valgrind fails.
    """
    options = ("--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
    done = _valgrind([*options, sys.executable, *arguments], path)
    found = re.search(r"I +refs: +([\d,]+)", done.stderr)
    return int(found[1].replace(",", "")) if found else 0


def _whole(statement: str, path: str) -> int:
    env = {**os.environ, "PYTHONPATH": path}
    # Once before: what is counted is an import of modules that are compiled.
    subprocess.run([sys.executable, "-c", statement], env=env, cwd=ROOT, check=True)
    return sum(callgrind(["-c", statement], path)[1])


def count(group: str, path: str, words: list[str]) -> dict[str, Count]:
    """Return the instructions of each path of a group."""
    if group == "import":
        return count_imports(path, words)
    if group == "loopback":
        return count_loopback(path, words)
    return count_group(group, path, words)


def table(now: dict[str, Count], before: dict[str, Count] | None) -> list[str]:
    """Return a table: a path a row, beside it what is the least it can cost."""
    head = ["", "now", "floor", "to the floor"]
    if before is not None:
        head[1:1] = ["before"]
        head[3:3] = ["now to before"]
    rows = [head, ["---"] * len(head)]
    floors = {each.floor for each in now.values()}
    for name, found in now.items():
        if name in floors and found.floor is None and name.startswith("floor"):
            continue
        floor = now[found.floor].instructions if found.floor else None
        row = [name, f"{found.instructions:,.0f}"]
        row += (
            [f"{floor:,.0f}", _ratio(found.instructions / floor)] if floor else ["", ""]
        )
        if before is not None:
            old = before[name].instructions
            row[1:1] = [f"{old:,.0f}"]
            row[3:3] = [f"{found.instructions / old:.2f}"]
        rows.append(row)
    return [f"| {' | '.join(row)} |" for row in rows]


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value >= 2 else f"{value:.2f}"  # noqa: PLR2004


def commit(tree: Path) -> str:
    """Return the short name of a checkout's commit, `+` when files of it changed."""
    git = ["git", "-C", str(tree)]
    name = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    dirty = subprocess.run(
        [*git, "status", "--porcelain", "--", *map(str, tree.glob("lighter-*/src"))],
        capture_output=True,
        text=True,
        check=False,
    )
    return (name.stdout.strip() or "no commit") + ("+" if dirty.stdout.strip() else "")


def replace(page: Path, begin: str, end: str, lines: list[str]) -> None:
    """Write lines between two markers of a page."""
    head, rest = page.read_text().split(begin)
    tail = rest.split(end)[1]
    page.write_text("\n".join([f"{head}{begin}", "", *lines, "", f"{end}{tail}"]))


def main() -> None:
    """Count; print the tables or write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path, help="a checkout to compare with")
    parser.add_argument("--only", default="", help="words of paths")
    quick = " ".join(each for each in GROUPS if each != "loopback")
    parser.add_argument("--groups", default=quick, help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("instructions are counted by valgrind, which is not installed")
    groups = asked.groups.replace(",", " ").split()
    if unknown := set(groups) - set(GROUPS):
        raise SystemExit(f"no group {unknown.pop()!r}; there are {', '.join(GROUPS)}")
    if asked.save and "loopback" in groups and len(groups) > 1:
        raise SystemExit("loopback has a table of its own: save it by itself")
    used = versions(Path(sys.executable), NAMED)
    lines = [
        "Instructions of one unit, on CPython "
        f"{sys.version.split()[0]} with pydantic {used.get('pydantic', '–')}; now is"
        f" {commit(ROOT)}"
        + (f", before is {commit(asked.tree)}." if asked.tree else ".")
    ]
    words = asked.only.replace(",", " ").split()
    for group in groups:
        trees = [ROOT, asked.tree] if asked.tree else [ROOT]
        with ThreadPoolExecutor() as side_by_side:
            now, *others = side_by_side.map(
                lambda tree: count(group, sources(tree), words),  # noqa: B023
                trees,
            )
        if not now:
            continue
        before = others[0] if others else None
        start = len(lines)
        lines += ["", f"### {GROUPS[group]}", "", *table(now, before)]
        print("\n".join([*lines[start:], ""]), file=sys.stderr, flush=True)
    if asked.save and "loopback" in groups:
        replace(PAGE, BEGIN_LOOPBACK, END_LOOPBACK, lines)
    elif asked.save:
        replace(PAGE, BEGIN, END, lines)
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
