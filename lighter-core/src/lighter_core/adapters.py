"""What provider adapters share: keys, options, status codes, bytes and clients.

Everything here is for authors of providers; applications need none of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from ._clients import ClientPool, import_sdk
from ._json import (
    TextJoiner,
    clean_text,
    dump_json,
    encode_json,
    encode_text,
    load_json,
)
from ._notes import note
from ._redact import redact
from ._sse import EventStreamSplitter
from .errors import ModelError, ModelErrorCode
from .history import require_valid_history
from .messages import seal_native

__all__ = [
    "ClientPool",
    "EventStreamSplitter",
    "TextJoiner",
    "clean_text",
    "code_for_status",
    "dump_json",
    "encode_json",
    "encode_text",
    "endpoint_of",
    "import_sdk",
    "load_json",
    "need_integer",
    "need_key",
    "need_model_id",
    "normal_call_id",
    "note",
    "redact",
    "require_valid_history",
    "retry_after_seconds",
    "seal_native",
]

_BY_STATUS: Mapping[int, ModelErrorCode] = {
    401: "auth_error",
    402: "auth_error",  # documented by the services as a matter of the account's balance
    403: "auth_error",
    408: "network_error",
    429: "rate_limit",
}


def code_for_status(status: int) -> ModelErrorCode:
    """Return the error code for an HTTP status; the body is never needed for it."""
    known = _BY_STATUS.get(status)
    if known is not None:
        return known
    if status >= 500:  # noqa: PLR2004
        return "server_error"
    if status >= 400:  # noqa: PLR2004
        return "invalid_request"
    return "bad_response"


def need_key(
    value: str | None, *, variable: str, provider: str, parameter: str = "api_key"
) -> str:
    """Return the API key, from the argument or else from the environment.

    Raises:
        ModelError: `auth_error` for a missing or blank key, `invalid_request` for one
            that is no text or cannot stand in an HTTP header. The key is never shown.
    """
    key: object = os.environ.get(variable) if value is None else value
    if key is not None and not isinstance(key, str):
        raise ModelError(
            f"{parameter} must be a str, got {type(key).__name__}",
            "invalid_request",
            provider=provider,
        )
    if key is None or not key.strip():
        raise ModelError(
            f"no API key for {provider!r}: set {variable} or pass {parameter}=…",
            "auth_error",
            provider=provider,
        )
    if not (key.isascii() and key.isprintable()) or key != key.strip():
        source = variable if value is None else parameter
        raise ModelError(
            f"the API key in {source} holds characters that cannot stand in an HTTP"
            " header (a line end, a space around it, or a non-ASCII character)",
            "invalid_request",
            provider=provider,
        )
    return key


def need_model_id(value: str | None, *, variable: str, provider: str) -> str:
    """Return the model id, from the argument or else from the environment.

    Raises:
        ModelError: `invalid_request` when there is none.
    """
    model: object = os.environ.get(variable) if value is None else value
    if not isinstance(model, str) or not model.strip():
        raise ModelError(
            f"no model for {provider!r}: set {variable} or pass model_id=…",
            "invalid_request",
            provider=provider,
        )
    return model


def need_integer(
    name: str, value: int | None, *, provider: str, low: int = 1, high: int = 2**53 - 1
) -> int | None:
    """Return the value unchanged when it is `None` or an integer within the bounds.

    Raises:
        ModelError: `invalid_request`, naming the parameter; `True` is no integer here.
    """
    given: object = value
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int):
        raise ModelError(
            f"{name} must be an int, got {type(given).__name__}",
            "invalid_request",
            provider=provider,
        )
    if not low <= given <= high:
        raise ModelError(
            f"{name} must be between {low} and {high}, got {given}",
            "invalid_request",
            provider=provider,
        )
    return given


def endpoint_of(base_url: str) -> str:
    """Return scheme, host, port and path of a URL: no user, password or query."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def normal_call_id(call_id: str) -> str:
    """Return a call id that every service accepts: itself, else a digest of it.

    The same id always gives the same digest, so a call and its result stay together.
    """
    if _CALL_ID.fullmatch(call_id):
        return call_id
    import hashlib

    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[:32]}"


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that `retry-after-ms` or `retry-after` asks for, if any.

    Dates and values that are no plain number of seconds are ignored.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None
