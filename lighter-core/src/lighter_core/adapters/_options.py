"""Checks of a provider's options, made when it is constructed."""

from __future__ import annotations

import inspect
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn, cast
from urllib.parse import urlsplit

from .._json import dump_json, load_json
from ..errors import ModelError
from ._raw import as_object

__all__ = [
    "endpoint_of",
    "need_base_url",
    "need_client",
    "need_headers",
    "need_http_client",
    "need_integer",
    "need_key",
    "need_model_id",
    "need_timeout",
    "plain",
    "secret_headers",
    "snapshot",
]


def _refuse(text: str, provider: str) -> NoReturn:
    raise ModelError(text, "invalid_request", provider=provider)


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
    if model is not None and not isinstance(model, str):
        raise ModelError(
            f"model_id must be a str, got {type(model).__name__}",
            "invalid_request",
            provider=provider,
        )
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


def need_timeout(timeout: object, *, provider: str) -> None:
    """Refuse anything but `None`, positive seconds and the transport's own `Timeout`.

    Raises:
        ModelError: `invalid_request`.
    """
    kind = type(timeout).__name__
    transport = sys.modules.get("httpx2")  # whoever made one has imported it
    if timeout is None or (transport and isinstance(timeout, transport.Timeout)):
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        _refuse(f"timeout must be a number of seconds, got {kind}", provider)
    if not 0 < timeout < math.inf:
        _refuse(f"timeout must be positive and finite, got {timeout}", provider)


def need_base_url(
    value: object, *, variable: str | None, default: str, provider: str
) -> str:
    """Return the base URL: the argument, else the environment's, else the default.

    An empty argument is refused: the key would go to another service than was meant.

    Raises:
        ModelError: `invalid_request` for what is no HTTP URL, and for one with a user or
            a password; it is never shown.
    """
    if value is None and variable is not None:
        value = os.environ.get(variable, "").strip() or None
    value = default if value is None else value
    try:
        parts = urlsplit(str(value))
        good = parts.scheme in {"http", "https"} and bool(parts.hostname)
        good = good and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or not isinstance(value, str):
        _refuse(
            "base_url must be a text like 'https://host/v1' (in"
            f" {variable or 'base_url'} or base_url=…)",
            provider,
        )
    if "@" in urlsplit(value).netloc:
        _refuse(  # the transport's log shows the URL of every request
            "base_url must not hold a user or a password; give them with"
            " extra_headers={'Authorization': 'Basic …'}",
            provider,
        )
    return value


def need_client(client: object, *, kind: str, provider: str) -> None:
    """Refuse a client that is not the SDK's asynchronous one.

    Raises:
        ModelError: `invalid_request`.
    """
    _need_asynchronous("client", client, "post", kind, provider)


def need_http_client(http_client: object, *, provider: str) -> None:
    """Refuse a transport that is not an asynchronous one.

    Raises:
        ModelError: `invalid_request`.
    """
    kind = "httpx2.AsyncClient"
    _need_asynchronous("http_client", http_client, "send", kind, provider)


def _need_asynchronous(
    name: str, value: object, method: str, kind: str, provider: str
) -> None:
    if value is not None and not inspect.iscoroutinefunction(
        getattr(value, method, None)
    ):
        _refuse(f"{name} must be an {kind}, got {type(value).__name__}", provider)


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OUR_HEADERS = frozenset({"accept", "content-length", "content-type"})
_SECRET_HEADER = re.compile("auth|key|token|secret|cookie|credential", re.IGNORECASE)


def need_headers(
    headers: Mapping[str, str] | None, *, provider: str
) -> dict[str, str] | None:
    """Return a copy of the headers that an application adds to each request.

    Raises:
        ModelError: `invalid_request`, naming the header and never showing its value.
    """
    if headers is None:
        return None
    given: object = headers
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        _refuse(f"extra_headers must be a mapping, got {kind}", provider)
    for name, value in cast("Mapping[object, object]", given).items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            _refuse(f"extra_headers has a name that is none: {name!r}", provider)
        if name.lower() in _OUR_HEADERS:
            _refuse(f"extra_headers must not hold {name!r}: Lighter sets it", provider)
        if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
            _refuse(f"extra_headers[{name!r}] must be one line of ASCII", provider)
    return dict(headers)


def secret_headers(headers: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the values of headers whose names say that they are secret.

    A scheme such as `Bearer` belongs to the header and not to the secret, so both forms
    are returned.
    """
    found: list[str] = []
    for name, value in (headers or {}).items():
        if _SECRET_HEADER.search(name):
            found += [value, value.rpartition(" ")[2]]
    return tuple(found)


def snapshot(name: str, value: object, *, provider: str) -> dict[str, object]:
    """Return a copy of a JSON object that later changes do not reach.

    Raises:
        ModelError: `invalid_request`, naming the option, for anything else.
    """
    try:
        copy = as_object(load_json(dump_json(value, default=plain)))
    except (TypeError, ValueError, RecursionError) as err:
        _refuse(f"{name} must hold JSON values only: {err}", provider)
    if copy is None:
        _refuse(f"{name} must be a mapping, got {type(value).__name__}", provider)
    return copy


def plain(value: object) -> object:
    """Return read-only mappings and other sequences as a dict or a list, for dumping."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"{type(value).__name__} is not a JSON value")
