"""References such as `hf:owner/repo/file.gguf`, through the extra `huggingface`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from lighter_core.errors import ModelError

__all__ = ["PREFIX", "fetch_reference", "split_reference"]

PREFIX = "hf:"


def split_reference(reference: str) -> tuple[str, str]:
    """Return the repository and the file of `hf:owner/repo/path/file.gguf`.

    Raises:
        ModelError: `invalid_request` for anything else.
    """
    parts = reference.removeprefix(PREFIX).split("/")
    if (
        len(parts) < 3  # noqa: PLR2004 - owner, repository, file
        or not all(parts)
        or any(part in {".", ".."} for part in parts)
        or not parts[-1].endswith(".gguf")
    ):
        raise ModelError(
            f"{reference!r} is no Hugging Face reference: write"
            " hf:owner/repo/file.gguf",
            "invalid_request",
            provider="local",
        )
    return "/".join(parts[:2]), "/".join(parts[2:])


def fetch_reference(reference: str) -> Path:
    """Return the file of a reference, downloaded unless it is cached already.

    Raises:
        ModelError: `invalid_request` when the package is missing or the file unknown,
            `network_error` when it cannot be reached.
    """
    repository, file = split_reference(reference)
    try:
        hub = import_module("huggingface_hub")
    except ImportError as error:
        raise ModelError(
            f"{reference!r} needs the package huggingface_hub: run"
            ' `pip install "lighter-local[huggingface]"`',
            "invalid_request",
            provider="local",
        ) from error
    download: Callable[..., str] = hub.hf_hub_download
    try:
        return Path(download(repo_id=repository, filename=file))
    except Exception as error:
        raise _explain(reference, error) from error


# By name: the classes moved between releases, and the package may be absent.
_UNKNOWN = {
    "EntryNotFoundError",
    "GatedRepoError",
    "HFValidationError",
    "RemoteEntryNotFoundError",
    "RepositoryNotFoundError",
    "RevisionNotFoundError",
}


def _explain(reference: str, error: Exception) -> ModelError:
    names = {cls.__name__ for cls in type(error).__mro__}
    # LocalEntryNotFoundError is an EntryNotFoundError, but means "could not connect".
    if names & _UNKNOWN and "LocalEntryNotFoundError" not in names:
        return ModelError(
            f"{reference!r} does not exist on the hub, or needs an access token"
            f" ({type(error).__name__})",
            "invalid_request",
            provider="local",
        )
    return ModelError(
        f"{reference!r} could not be downloaded ({type(error).__name__}): check the"
        " connection, or pass the path of a file that is there",
        "network_error",
        provider="local",
    )
