"""On what the figures were taken, without names of it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

NAMED = (
    "lighter-core",
    "openai",
    "anthropic",
    "httpx2",
    "aiohttp",
    "pydantic",
)
_SCRIPT = (
    "import json, sys\n"
    "from importlib.metadata import PackageNotFoundError, version\n"
    "out = {}\n"
    "for name in sys.argv[1:]:\n"
    "    try:\n        out[name] = version(name)\n"
    "    except PackageNotFoundError:\n        pass\n"
    "print(json.dumps(out))"
)


def describe() -> str:
    """Return the machine in one line."""
    return (
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores,"
        f" {platform.python_implementation()} {platform.python_version()}"
    )


def load() -> float:
    """Return how busy the machine is: processes that want to run."""
    return round(os.getloadavg()[0], 1)


def versions(python: Path, names: Sequence[str] = NAMED) -> dict[str, str]:
    """Return the installed versions of an environment."""
    out = subprocess.run(
        [str(python), "-c", _SCRIPT, *names], capture_output=True, check=True, text=True
    ).stdout
    found: dict[str, str] = json.loads(out)
    return found
