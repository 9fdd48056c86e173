"""Fresh virtual environments that know nothing of the checkout, and need no network.

Our distributions are built and installed as wheels; what they need from elsewhere is
taken, by a path file, from the environment that the tests run in.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

__all__ = ["ROOT", "FreshEnvironment", "build_wheel"]

ROOT = Path(__file__).parents[2]
HIDDEN = re.compile("PYTHON|VIRTUAL_ENV|PYTEST_|LIGHTER_|OPENAI_|ANTHROPIC_|DEEPSEEK_")


def build_wheel(source: Path, out: Path) -> Path:
    """Build the wheel of a distribution from a copy of its folder."""
    pytest.importorskip("hatchling", reason="building needs hatchling (make test)")
    copy = out / f"source-{source.name}"
    shutil.copytree(
        source,
        copy,
        ignore=shutil.ignore_patterns("__pycache__", ".*", "dist", "benchmarks"),
    )
    before = set(out.glob("*.whl"))
    _run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        copy,
    )
    (made,) = set(out.glob("*.whl")) - before
    return made


class FreshEnvironment:
    """A virtual environment.

    Args:
        folder: Where to make it.
        wheels: What to install there.
    """

    def __init__(self, folder: Path, *wheels: Path) -> None:
        uv = Path(sys.executable).with_name("uv")
        found = str(uv) if uv.exists() else shutil.which("uv")
        if found is None:
            pytest.skip("uv is missing: scripts/venv.sh installs it")
        self.folder = folder
        self._uv = found
        self.bin = folder / "bin"
        self.python = self.bin / "python"
        _run([found, "venv", "--quiet", "--python", sys.executable, str(folder)], ROOT)
        if wheels:
            self.install(*wheels)
        paths = {"base": str(folder), "platbase": str(folder)}
        site = Path(sysconfig.get_path("purelib", vars=paths))
        others = sysconfig.get_path("purelib")
        (site / "others.pth").write_text(f"{others}\n", encoding="utf-8")

    def install(self, *wheels: Path) -> None:
        """Install wheels and nothing that they need."""
        command = [self._uv, "pip", "install", "--quiet", "--offline", "--no-deps"]
        _run([*command, "--python", str(self.python), *map(str, wheels)], ROOT)

    def run(self, *arguments: str, cwd: Path) -> str:
        """Run the environment's Python in a folder; return what it prints."""
        return _run([str(self.python), *arguments], cwd, first=self.bin)

    def shell(self, commands: str, cwd: Path) -> str:
        """Run commands as a reader types them, with the environment active."""
        return _run(["sh", "-e", "-c", commands], cwd, first=self.bin)

    def answer_pip(self, wheels: Path) -> None:
        """Give the environment a `pip` that takes our wheels from a folder.

        Everything else is there already: of a test group, lighter-conformance is enough.
        """
        options = (
            f"--quiet --offline --no-deps --no-build-isolation --find-links {wheels}"
        )
        script = self.bin / "pip"
        script.write_text(
            f"#!{self.python}\n"
            "import re, subprocess, sys\n"
            "given = re.sub(r'--group test', 'lighter-conformance', ' '.join(sys.argv[2:]))\n"
            f"command = '{self._uv} pip install {options} --python {self.python}'\n"
            "sys.exit(subprocess.call([*command.split(), *given.split()]))\n",
            encoding="utf-8",
        )
        script.chmod(0o755)
        for name in ("pytest", "mypy"):
            tool = self.bin / name
            tool.write_text(
                f'#!/bin/sh\nexec "{self.python}" -m {name} "$@"\n', "utf-8"
            )
            tool.chmod(0o755)
        (self.bin / "ruff").symlink_to(Path(sys.executable).with_name("ruff"))

    def check_types_and_style(self, folder: Path) -> None:
        """Run mypy and ruff on a distribution, with the settings of its own."""
        for tool in ("mypy", "ruff"):
            pytest.importorskip(tool, reason=f"{tool} is missing (make check)")
        cache = f"--cache-dir={self.folder / 'mypy'}"
        self.run("-m", "mypy", "--strict", cache, cwd=folder)
        self.run("-m", "ruff", "check", "--no-cache", ".", cwd=folder)
        self.run("-m", "ruff", "format", "--no-cache", "--check", ".", cwd=folder)


def _run(command: list[str], cwd: Path, *, first: Path | None = None) -> str:
    environment = {k: v for k, v in os.environ.items() if not HIDDEN.match(k)}
    environment["PYTEST_ADDOPTS"] = "-p no:asyncio"  # it warns where it is not set up
    if first is not None:
        environment["PATH"] = f"{first}{os.pathsep}{environment.get('PATH', '')}"
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout
