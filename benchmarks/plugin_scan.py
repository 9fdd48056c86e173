"""Compare the scan for plugins with a bare read of the same files; prints ratios.

Usage: `python benchmarks/plugin_scan.py [NUMBER]`, NUMBER being how many distributions
without plugins are written into a temporary directory (200). One with a plugin is added.
Medians of CPU time. The import of importlib-metadata, once per process, is shown apart.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lighter_core.plugins._metadata import scan_installed

ROUNDS = 51
METADATA = (
    "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n\n" + "A description.\n" * 200
)


def write(root: Path, number: int) -> list[str]:
    """Write distributions; return the paths of their `entry_points.txt`."""
    paths: list[str] = []
    for each in range(number + 1):
        info = root / f"other_{each}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(METADATA.format(name=f"other-{each}"))
        points = "[console_scripts]\nother = other.cli:main\n"
        if each == number:
            points = "[lighter.tools]\nother = other.plugin\n"
        (info / "entry_points.txt").write_text(points)
        paths.append(str(info / "entry_points.txt"))
    return paths


def milliseconds(*functions: Callable[[], object]) -> list[float]:
    """Return the median CPU time of each, called in turn: a busy machine hits all."""
    taken: list[list[float]] = [[] for _ in functions]
    for _ in range(ROUNDS):
        for function, times in zip(functions, taken, strict=True):
            start = time.process_time()
            function()
            times.append(time.process_time() - start)
    return [statistics.median(times) * 1000 for times in taken]


def main() -> None:
    """Print one line for each."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    start = time.process_time()
    scan_installed()
    first = (time.process_time() - start) * 1000
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), number)

        def bare() -> None:
            for path in paths:
                with open(path, encoding="utf-8") as file:  # noqa: PTH123 - the barest
                    file.read()

        sys.path[:] = [folder]
        assert len(scan_installed().plugins) == 1
        read, scan = milliseconds(bare, scan_installed)
    print(f"{number + 1} distributions, one with a plugin; medians of {ROUNDS}, CPU")
    print(f"bare read of their entry_points.txt  {read:6.2f} ms")
    print(f"scan for plugins                     {scan:6.2f} ms, {scan / read:.2f}x")
    print(f"the first scan of this environment   {first:6.1f} ms, imports included")


if __name__ == "__main__":
    main()
