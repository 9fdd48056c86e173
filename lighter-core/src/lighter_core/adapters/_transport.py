"""Transports for the SDKs' clients, and how the errors of aiohttp's are told apart."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, cast, get_args

from .._threads import call_in_thread
from ..errors import ModelError

if TYPE_CHECKING:
    import ssl

    import httpx2

__all__ = [
    "Transport",
    "aiohttp_error",
    "load_certificates",
    "make_transport",
    "need_transport",
]

Transport = Literal["httpx2", "aiohttp"]
_CLASSES = {"httpx2": "DefaultAsyncHttpxClient", "aiohttp": "DefaultAioHttpClient"}
_contexts: dict[tuple[str | None, ...], ssl.SSLContext] = {}
_MOST_CAUSES = 8


def need_transport(value: object, *, sdk: str, provider: str) -> None:
    """Refuse what is no transport, and one whose library is not installed.

    Raises:
        ModelError: `invalid_request`, with the command that installs the library.
    """
    if value is None:
        return
    if value not in get_args(Transport):
        words = " or ".join(map(repr, get_args(Transport)))
        text = f"transport must be {words}, got {value!r}"
        raise ModelError(text, "invalid_request", provider=provider)
    if value == "aiohttp" and "aiohttp" not in sys.modules and not find_spec("aiohttp"):
        raise ModelError(_missing(sdk), "invalid_request", provider=provider)


def _missing(sdk: str) -> str:
    return (
        "transport='aiohttp' needs a library that is not installed, or too old; install"
        f' it with: pip install "{sdk}[aiohttp]"'
    )


def make_transport(sdk: str, kind: Transport) -> httpx2.AsyncClient:
    """Make a transport of the SDK's own; the SDK is imported by then.

    It is closed by nothing but its owner. (The one that the SDK makes by itself
    schedules its closing from `__del__`, on a loop that may be another one by then.)

    Raises:
        ModelError: `invalid_request` when the transport's library is too old.
    """
    make = getattr(import_module(sdk), _CLASSES[kind])
    try:
        return cast("httpx2.AsyncClient", make(verify=tls_context()))
    except RuntimeError as err:  # how both SDKs say it
        if kind == "aiohttp":
            raise ModelError(_missing(sdk), "invalid_request") from err
        raise


async def load_certificates() -> None:
    """Load what TLS trusts on a worker thread, once for the process."""
    if _variables() not in _contexts:
        await call_in_thread(tls_context)


def tls_context() -> ssl.SSLContext:
    """Return the context that httpx2 makes for a client, made once for the process.

    Each client would load all of the system's certificates: 30 ms and a megabyte.
    """
    import httpx2

    key = _variables()
    known = _contexts.get(key)  # without a lock: made twice at worst
    return known or _contexts.setdefault(key, httpx2.create_ssl_context())


def _variables() -> tuple[str | None, ...]:
    return os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")


def aiohttp_error(error: BaseException) -> Exception | None:
    """Return the exception of aiohttp that an error comes from, if it comes from one.

    The SDKs' transports give other exceptions in its place, not always fitting ones: a
    server that hangs up may be called a timeout, and what is no HTTP stays as it is.
    """
    aiohttp = sys.modules.get("aiohttp")
    if aiohttp is None:
        return None
    return next((e for e in _causes(error) if isinstance(e, aiohttp.ClientError)), None)


def _causes(error: BaseException) -> Iterator[Exception]:
    each: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if isinstance(each, Exception):
            yield each
        each = None if each is None else each.__cause__
