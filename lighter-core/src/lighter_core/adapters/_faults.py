"""Failures of a service, its SDK and the transport as `ModelError`."""

from __future__ import annotations

import ssl
from asyncio import CancelledError
from collections.abc import Mapping
from typing import Protocol

from ..errors import ModelError, ModelErrorCode
from ._raw import as_list, as_object
from ._retries import retry_after_seconds
from ._transport import aiohttp_error

__all__ = [
    "Service",
    "bad_response",
    "code_for_status",
    "fault_error",
    "short",
    "status_error",
    "transport_error",
    "unsendable",
    "words_of",
]

_MOST = 300  # characters of the service's own words in a message


class Service(Protocol):
    """Whom a request is for: errors and log records name it."""

    @property
    def name(self) -> str:
        """The provider's name, e.g. `"openai"`."""
        ...

    @property
    def label(self) -> str:
        """The service's name in sentences, e.g. `"OpenAI"`."""
        ...

    @property
    def interface(self) -> str:
        """The name of the vendor's interface in sentences, e.g. `"Responses API"`."""
        ...

    @property
    def endpoint(self) -> str:
        """Scheme, host and path of the base URL."""
        ...

    @property
    def model(self) -> str:
        """The model id that is asked for."""
        ...

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key; empty when none is read."""
        ...

    @property
    def model_variable(self) -> str:
        """The environment variable that holds the model id."""
        ...


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


def short(text: object) -> str:
    """Return the service's words on one line and not too long; empty for no text."""
    if not isinstance(text, str):
        return ""
    line = " ".join(text.split())
    return line if len(line) <= _MOST else f"{line[:_MOST]}…"


def words_of(body: object) -> str:
    """Return the service's words in the body of an error; empty for none.

    The body is decoded JSON, or a text where it is none. Vendors, the servers that copy
    them and the gateways in front of them put their words into different places. Pages
    and broken JSON say nothing that belongs into a sentence.
    """
    if isinstance(body, str):
        return "" if body.lstrip()[:1] in {"<", "{", "["} else short(body)
    return _words_in(body, 3)


def _words_in(value: object, depth: int) -> str:
    if isinstance(value, str) or depth == 0:
        return short(value)
    found = as_object(value)
    if found is not None:
        places = (found.get(key) for key in ("error", "message", "detail"))
        said = next(filter(None, (_words_in(each, depth - 1) for each in places)), "")
        return said or _complaint(found)
    complaints = (_complaint(as_object(each) or {}) for each in as_list(value) or [])
    return short("; ".join(filter(None, complaints)))


def _complaint(found: Mapping[str, object]) -> str:
    """Return what a validator says about one place of a request, that place first."""
    words = short(found.get("msg"))
    place = ".".join(
        str(each)
        for each in as_list(found.get("loc")) or []
        if isinstance(each, str | int)
    )
    return f"{place}: {words}" if place and words else words


def bad_response(
    service: Service, what: str, *, response_status: str | None = None
) -> ModelError:
    """Return the error for a reply that is not what the interface documents."""
    return ModelError(
        f"the reply of {service.label} at {service.endpoint} is unusable: {what}",
        "bad_response",
        response_status=response_status,
        provider=service.name,
    )


def transport_error(
    error: Exception,
    service: Service,
    *,
    late: tuple[type[Exception], ...] = (),
    unreachable: tuple[type[Exception], ...] = (),
) -> ModelError:
    """Return the error for an exception without an HTTP status.

    Args:
        error: What was raised.
        service: Whom the request was for.
        late: The SDK's own exceptions for a timeout.
        unreachable: The SDK's own exceptions for a connection that failed.
    """
    code, text = _category(error, late, unreachable)
    cause = error.__cause__
    if cause is None or isinstance(cause, CancelledError):  # how a bound is enforced
        cause = error
    origin = aiohttp_error(error)
    if origin is not None:
        sending = isinstance(error, (*late, *unreachable))
        code, text = "network_error", _text_for_aiohttp(origin, sending=sending)
        cause = origin
    return ModelError(
        text.format(
            where=f"{service.label} at {service.endpoint}",
            kind=type(cause).__name__,
            error=_said(error),
        ),
        code,
        provider=service.name,
    )


def _said(error: Exception) -> str:
    """Return what an exception says, where it still can: secrets are taken out of it."""
    try:
        return short(str(error))
    except Exception:  # noqa: BLE001 - some say it from what they hold
        return ""


def unsendable(error: Exception, service: Service, sdk: str) -> ModelError | None:
    """Return the error when no request can be sent at all: something is not installed."""
    if isinstance(error, ModelError):  # of the sender itself, which knows no names
        return ModelError(error.message, error.code, provider=service.name)
    if not isinstance(error, ImportError):
        return None
    return ModelError(
        f"the SDK of {service.label} cannot be imported: {error}; install it with:"
        f" pip install {sdk}",
        "unknown",
        provider=service.name,
    )


def fault_error(fault: Exception, service: Service) -> ModelError:
    """Return the error for a fault of the program, raised while a request was sent."""
    foreign = isinstance(fault, RuntimeError) and not isinstance(fault, _OWN_FAULTS)
    return ModelError(
        (_MISUSED if foreign else _FAULT).format(
            where=f"{service.label} at {service.endpoint}",
            kind=type(fault).__name__,
            error=_said(fault),
        ),
        "unknown",
        provider=service.name,
    )


def _category(
    error: Exception,
    late: tuple[type[Exception], ...],
    unreachable: tuple[type[Exception], ...],
) -> tuple[ModelErrorCode, str]:
    import anyio
    import httpx2

    broken = (
        httpx2.HTTPError,
        httpx2.StreamError,
        ssl.SSLError,
        anyio.EndOfStream,
        anyio.ClosedResourceError,
        anyio.BrokenResourceError,
        OSError,
    )
    undecodable = (httpx2.DecodingError, UnicodeDecodeError)
    table: list[tuple[tuple[type[Exception], ...], ModelErrorCode, str]] = [
        ((*late, httpx2.TimeoutException, TimeoutError), "network_error", _LATE),
        (undecodable, "bad_response", _UNDECODABLE),
        ((*unreachable, httpx2.ConnectError), "network_error", _UNREACHABLE),
        (broken, "network_error", _BROKEN),
        ((ValueError,), "bad_response", _UNUSABLE),
        ((RuntimeError,), "unknown", _MISUSED),
    ]
    for classes, code, text in table:
        if isinstance(error, classes):
            return code, text
    return "unknown", _UNKNOWN


def _text_for_aiohttp(origin: Exception, *, sending: bool) -> str:
    """Return the text that the same fault has with the other transport."""
    import aiohttp

    if isinstance(origin, TimeoutError):
        return _LATE
    # What begins as no HTTP is raised while the request is sent, but not as such.
    sending = sending or isinstance(origin, aiohttp.ClientResponseError)
    return _UNREACHABLE if sending else _BROKEN


_LATE = "no answer from {where} in time ({kind}); try again or raise timeout"
_UNDECODABLE = "the bytes of the reply of {where} cannot be decoded ({kind})"
_UNREACHABLE = "cannot reach {where} ({kind}); check base_url and the network"
_BROKEN = (
    "the connection to {where} broke ({kind}) before the reply was complete; try again"
)
_UNUSABLE = "the reply of {where} is unusable ({kind}: {error})"
_MISUSED = (
    "the request to {where} failed ({kind}: {error}); a client of your own works only"
    " on the event loop that it was first used on"
)
_FAULT = (
    "the request to {where} failed inside the SDK ({kind}: {error}): a fault of the"
    " program and not of the network; check the options, above all client and http_client"
)
_OWN_FAULTS = (NotImplementedError, RecursionError)  # about no event loop
_UNKNOWN = "the request to {where} failed ({kind}: {error})"


def status_error(
    service: Service,
    status: int,
    headers: Mapping[str, str],
    *,
    words: object,
    vendor_code: str | None,
    code: ModelErrorCode | None = None,
    request_id: str | None = None,
) -> ModelError:
    """Return the error for an HTTP status.

    Args:
        service: Whom the request was for.
        status: The HTTP status.
        headers: The headers of the reply.
        words: The service's own message, or the body of the reply that holds it.
        vendor_code: The service's own code.
        code: What the body refines; `None` leaves it to the status.
        request_id: The service's id of the request.
    """
    code = code or code_for_status(status)
    return ModelError(
        _status_text(service, status, code, vendor_code, words_of(words)),
        code,
        http_status=status,
        provider=service.name,
        retry_after=retry_after_seconds(headers),
        request_id=request_id,
        vendor_code=vendor_code,
    )


def _status_text(
    service: Service, status: int, code: str, vendor_code: str | None, words: str
) -> str:
    where = f"{service.label} at {service.endpoint}"
    mark = f"(HTTP {status}{', ' + vendor_code if vendor_code else ''})"
    if status == 401 or vendor_code == "invalid_api_key":  # noqa: PLR2004
        # The service repeats a part of the key in its own words: they are left out.
        variable = f"{service.key_variable} or " if service.key_variable else ""
        return f"{where} refused the API key {mark}; check {variable}api_key"
    if vendor_code == "model_not_found":
        return (
            f"{where} has no model {service.model!r} for this key {mark}; check"
            f" {service.model_variable} or model_id"
        )
    said = f": {words}" if words else ""
    if status == 404:  # noqa: PLR2004
        return (
            f"{where} does not know the model {service.model!r} or has no"
            f" {service.interface} {mark}; check model_id and base_url{said}"
        )
    known = {
        "auth_error": f"{where} denied access {mark}; check the account's rights",
        "rate_limit": f"{where} limits this account {mark}; wait or check its quota",
        "server_error": f"{where} has a fault {mark}; try again",
        "network_error": f"{where} timed out {mark}; try again",
    }
    return known.get(code, f"{where} refused the request {mark}") + said
