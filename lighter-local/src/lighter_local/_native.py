"""The one place that touches `xllamacpp`, behind types of our own."""

from __future__ import annotations

import http.client
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from lighter_core.adapters import load_json
from lighter_core.errors import ModelError

from ._values import as_mapping

__all__ = ["ChatServer", "Settings", "knows_tools", "load_server"]

ALIAS = "local"

# A cancelled request ends between two batches of its prompt. Smaller ones (64) halve
# the speed of reading, larger ones gain nothing and delay the end.
_BATCH = 128


class ChatServer(Protocol):
    """What is used of `xllamacpp.Server`."""

    listening_address: str

    def handle_chat_completions(
        self,
        body: Mapping[str, object],
        callback: Callable[[object], bool],
        /,
    ) -> object:
        """Run one chat request; the callback gets each chunk, True ends the request."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What a loaded model depends on; models with equal settings are shared."""

    path: Path
    context_size: int
    parallel: int
    threads: int | None
    chat_template: str | None


def load_server(settings: Settings) -> tuple[ChatServer, bool]:
    """Load the model; return the server and whether its template knows tools.

    Takes seconds. Part of it holds the interpreter's lock, so the file is read before:
    what is left then is short.

    Raises:
        ModelError: `invalid_request` for a file that is no model.
    """
    _check_file(settings.path)
    # Its threads spin while they wait otherwise, and on a shared machine that makes it
    # ten times slower. It is read when the library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    library: Any = import_module("xllamacpp")
    key = secrets.token_hex(16)
    params = _parameters(library, settings, key)
    note = _ProgressLine(f"loading {settings.path.name} …")
    try:
        server: ChatServer = library.Server(params)
    except RuntimeError as error:
        raise ModelError(
            f"the model file {settings.path.name!r} could not be loaded: it is damaged,"
            " cut short, or of a kind that this llama.cpp does not know",
            "invalid_request",
            provider="local",
        ) from error
    finally:
        note.clear()
    return server, knows_tools(_properties(server.listening_address, key))


def _check_file(path: Path) -> None:
    """Refuse what is no GGUF file, and bring the file into the page cache."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            while file.read(1 << 22):
                pass
    except OSError as error:
        raise ModelError(
            f"the model file {path.name!r} cannot be read: {error.strerror}",
            "invalid_request",
            provider="local",
        ) from error
    if magic != b"GGUF":
        raise ModelError(
            f"the file {path.name!r} is no GGUF model file",
            "invalid_request",
            provider="local",
        )


def _parameters(library: Any, settings: Settings, key: str) -> Any:
    params = library.CommonParams()
    params.model.path = str(settings.path)
    params.model_alias = {ALIAS}  # else replies carry the path
    params.n_parallel = settings.parallel
    params.n_ctx = settings.context_size * settings.parallel  # divided among them
    params.n_batch = params.n_ubatch = _BATCH
    params.cpuparams.n_threads = _threads(settings.threads)
    params.cpuparams_batch.n_threads = _threads(settings.threads)
    params.verbosity = -1
    params.cache_ram_mib = 256  # of finished prompts; the library's own limit is 8 GiB
    # Both lengthen the part of loading that holds the interpreter's lock.
    params.fit_params = False
    params.warmup = False
    params.prefill_assistant = False  # a last assistant message is complete
    # The library opens a loopback port in any case: a random key closes it.
    params.port = 0
    params.api_keys = [key]
    params.ui = False
    params.endpoint_slots = False
    if settings.chat_template is not None:
        params.chat_template = settings.chat_template
    return params


def _threads(asked: int | None) -> int:
    if asked is not None:
        return asked
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return min(count, 8)  # small models gain nothing from more


def _properties(address: str, key: str) -> Mapping[str, object]:
    """Ask the loaded model for its properties, over its loopback port."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(
        parts.hostname or "127.0.0.1", parts.port, timeout=10
    )
    try:
        connection.request("GET", "/props", headers={"Authorization": f"Bearer {key}"})
        value = load_json(connection.getresponse().read())
    except (OSError, ValueError, http.client.HTTPException):
        return {}  # then its tools are driven by a grammar, which always works
    finally:
        connection.close()
    return as_mapping(value)


def knows_tools(properties: Mapping[str, object]) -> bool:
    """Tell from a model's properties whether its chat template knows tools."""
    caps = as_mapping(properties.get("chat_template_caps"))
    if "supports_tools" in caps:
        return bool(caps["supports_tools"])
    template = properties.get("chat_template")
    return isinstance(template, str) and "tools" in template


class _ProgressLine:
    """A line on standard error that goes away; nothing where that is no terminal."""

    def __init__(self, text: str) -> None:
        self._width = len(text)
        self._write(text)

    def clear(self) -> None:
        self._write("\r" + " " * self._width + "\r")

    def _write(self, text: str) -> None:
        out = sys.stderr
        if out is not None and out.isatty():  # pyright: ignore[reportUnnecessaryComparison] - None under pythonw
            out.write(text)
            out.flush()
