"""Servers that others wrote: installed once into a cache, started for a test session.

Nothing of them is installed into the environment of the tests, and nothing is written
into the repository. What cannot be had skips the tests that need it, with the reason.

Run as a program it installs what the tests would install themselves:
`PYTHONPATH=tests python -m support.servers_setup`.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

__all__ = ["Missing", "free_port", "install_aimock", "install_llmock", "running"]

HERE = Path(__file__).parents[1] / "servers"
_INSTALL_SECONDS = 50  # of one command within a test, which may take 120
_START_SECONDS = 60


class Missing(Exception):
    """A server cannot be there; says why."""


def cache() -> Path:
    """Return the folder for what is installed."""
    own = os.environ.get("LIGHTER_CACHE")
    base = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME", "~/.cache"))
    return base.expanduser() / ("." if own else "lighter") / "test-servers"


def install_aimock(seconds: float = _INSTALL_SECONDS) -> list[str]:
    """Return the command of `@copilotkit/aimock`; install it when it is not there.

    Raises:
        Missing: Without node and npm, or without a connection.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Missing("aimock needs node and npm")
    manifest = HERE / "aimock" / "package.json"
    folder = _folder("aimock", manifest.read_bytes())
    if not (folder / ".ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(manifest, folder)
        options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
        _install([npm, "install", *options], folder, seconds)
    program = folder / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    return [node, str(program)]


def install_llmock(seconds: float = _INSTALL_SECONDS) -> list[str]:
    """Return the command of `llmock`; install it when it is not there.

    Raises:
        Missing: Without a connection.
    """
    requirements = HERE / "llmock" / "requirements.txt"
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    folder = _folder(f"llmock-py{version}", requirements.read_bytes())
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (folder / ".ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        make = [sys.executable, "-m", "venv", "--clear", str(folder)]
        _install(make, folder, seconds, mark="")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps"]
        pip += ["--disable-pip-version-check", "--only-binary", ":all:"]
        _install([*pip, "-r", str(requirements)], folder, seconds)
    return [str(python), "-m", "llmock.cli"]


def _folder(name: str, contents: bytes) -> Path:
    return cache() / f"{name}-{hashlib.sha256(contents).hexdigest()[:12]}"


def _install(
    command: list[str], folder: Path, seconds: float, *, mark: str = ".ready"
) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        raise Missing(f"{Path(command[0]).name} failed: {type(err).__name__}") from err
    if done.returncode:
        last = (done.stderr.strip() or "no word").splitlines()[-1]
        raise Missing(f"{Path(command[0]).name} failed: {last[:200]}")
    if mark:
        (folder / mark).touch()


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def running(command: Sequence[str], port: int) -> Iterator[str]:
    """Run a server until the block is left; yield its URL once it listens.

    Raises:
        Missing: When it ends or does not listen in time; with its last words.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "1"},
        )
        try:
            _wait(process, port, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            _stop(process)


def _wait(process: subprocess.Popen[bytes], port: int, log: IO[str]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError, http.client.HTTPException):
            if _answers(port):
                return
        time.sleep(0.05)
    log.seek(0)
    words = log.read()[-300:].strip()
    raise Missing(f"the server does not listen (exit {process.poll()}): {words}")


def _answers(port: int) -> bool:
    """Tell whether the server takes requests; while it loads something it says 503."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status != 503
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()  # some end by that
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)


def main() -> int:
    """Install all; tell what could not be installed."""
    failed = 0
    for install in (install_llmock, install_aimock):
        try:
            install(seconds=300)
        except Missing as err:
            sys.stderr.write(f"{install.__name__}: {err}\n")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
