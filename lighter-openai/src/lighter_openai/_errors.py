"""Failures of the service, the SDK and the transport as `ModelError`."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping

from lighter_core import ModelError, ModelErrorCode
from lighter_core.adapters import code_for_status, redact, retry_after_seconds

from ._codes import AUTH, BY_VENDOR_CODE, RATE
from ._dialect import Target, as_object

__all__ = ["bad_response", "error_in_reply", "error_of", "failed_reply", "short"]

_ADVICE = {
    "max_output_tokens": "; raise max_output_tokens or ask for less",
    "content_filter": "; the service's filter withheld the rest",
}
_MOST = 300  # characters of the service's own words in a message


def short(text: object) -> str:
    """Return the service's words on one line and not too long; empty for no text."""
    if not isinstance(text, str):
        return ""
    line = " ".join(text.split())
    return line if len(line) <= _MOST else f"{line[:_MOST]}…"


def bad_response(
    target: Target, what: str, *, response_status: str | None = None
) -> ModelError:
    """Return the error for a reply that is not what the interface documents."""
    return ModelError(
        f"the reply of {target.dialect.label} at {target.endpoint} is unusable: {what}",
        "bad_response",
        response_status=response_status,
        provider=target.dialect.name,
    )


def _vendor_code(error: Mapping[str, object]) -> str | None:
    """Return the first of `code` and `type` that says something."""
    for key in ("code", "type"):
        value = error.get(key)
        if isinstance(value, str) and value and value != "error":
            return value
    return None


def _code_in_reply(error: Mapping[str, object]) -> ModelErrorCode:
    for key in ("code", "type"):
        value = error.get(key)
        if isinstance(value, str) and value in BY_VENDOR_CODE:
            return BY_VENDOR_CODE[value]
    return "bad_response"


def error_in_reply(
    target: Target, error: Mapping[str, object], *, response_status: str | None
) -> ModelError:
    """Return the error for one that the service wrote into a reply with status 200."""
    vendor_code = _vendor_code(error)
    words = short(error.get("message"))
    return ModelError(
        f"{target.dialect.label} reported an error inside its reply"
        f" ({vendor_code or 'without a code'}, model {target.model!r})"
        f"{': ' + words if words else ''}",
        _code_in_reply(error),
        response_status=response_status,
        provider=target.dialect.name,
        vendor_code=vendor_code,
    )


def failed_reply(
    target: Target, response: Mapping[str, object], status: str
) -> ModelError:
    """Return the error for a reply that ended with any status but `completed`."""
    label, name = target.dialect.label, target.dialect.name
    if status == "failed":
        error = as_object(response.get("error")) or {}
        return error_in_reply(target, error, response_status=status)
    if status == "incomplete":
        details = as_object(response.get("incomplete_details")) or {}
        reason = details.get("reason")
        vendor_code = reason if isinstance(reason, str) else None
        advice = _ADVICE.get(vendor_code or "", "")
        return ModelError(
            f"{label} stopped before the reply was complete"
            f" ({vendor_code or 'no reason given'}){advice}",
            "bad_response",
            response_status=status,
            provider=name,
            vendor_code=vendor_code,
        )
    if status == "cancelled":
        return ModelError(
            f"the reply was cancelled at {label}; ask again",
            "aborted",
            response_status=status,
            provider=name,
        )
    advice = (
        "; background replies are not supported, leave `background` out"
        if status in {"queued", "in_progress"}
        else ""
    )
    return bad_response(
        target, f"its status is {status!r}{advice}", response_status=status
    )


def error_of(error: Exception, target: Target, *secrets: str) -> ModelError:
    """Return the `ModelError` for an exception of the SDK or of the transport.

    Secrets are taken out of its text, and out of the arguments of the exceptions in the
    chain, which a traceback shows.
    """
    for each in _chain(error):
        _redact_arguments(each, secrets)
    found = _classify(error, target)
    found.message = redact(found.message, *secrets)
    found.args = (found.message,)
    return found


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]


def _redact_arguments(error: BaseException, secrets: tuple[str, ...]) -> None:
    def clean(value: object) -> object:
        return redact(value, *secrets) if isinstance(value, str) else value

    if any(clean(each) != each for each in error.args):
        error.args = tuple(map(clean, error.args))
    message: object = getattr(error, "message", None)
    if isinstance(message, str) and clean(message) != message:
        error.message = clean(message)  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]


def _classify(error: Exception, target: Target) -> ModelError:
    import openai

    if isinstance(error, openai.APIStatusError):
        return _status_error(error, target)
    kind = type(error.__cause__ or error).__name__
    code, text = _category(error)
    return ModelError(
        text.format(
            where=f"{target.dialect.label} at {target.endpoint}",
            kind=kind,
            error=short(str(error)),
        ),
        code,
        provider=target.dialect.name,
    )


def _category(error: Exception) -> tuple[ModelErrorCode, str]:
    """Return the code and the sentence for an exception without an HTTP status."""
    import anyio
    import httpx2
    import openai

    late = (openai.APITimeoutError, httpx2.TimeoutException, TimeoutError)
    undecodable = (httpx2.DecodingError, UnicodeDecodeError)
    unreachable = (openai.APIConnectionError, httpx2.ConnectError)
    broken = (
        httpx2.HTTPError,
        httpx2.StreamError,
        ssl.SSLError,
        anyio.EndOfStream,
        anyio.ClosedResourceError,
        anyio.BrokenResourceError,
        OSError,
    )
    table: list[tuple[tuple[type[Exception], ...], ModelErrorCode, str]] = [
        (late, "network_error", _LATE),
        (undecodable, "bad_response", _UNDECODABLE),
        (unreachable, "network_error", _UNREACHABLE),
        (broken, "network_error", _BROKEN),
        ((ValueError,), "bad_response", _UNUSABLE),
        ((RuntimeError,), "unknown", _MISUSED),
    ]
    for classes, code, text in table:
        if isinstance(error, classes):
            return code, text
    return "unknown", _UNKNOWN


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
_UNKNOWN = "the request to {where} failed ({kind}: {error})"


def _status_error(error: object, target: Target) -> ModelError:
    """Return the error for an HTTP status; the body only refines it."""
    import openai

    assert isinstance(error, openai.APIStatusError)  # noqa: S101 - for the type checker
    status = error.status_code
    body = as_object(error.body) or {}
    body = as_object(body.get("error")) or body
    vendor_code = _vendor_code(body)
    code = code_for_status(status)
    if code == "invalid_request" and body.get("code") in {*AUTH, *RATE}:
        code = BY_VENDOR_CODE[str(body["code"])]
    headers = error.response.headers
    return ModelError(
        _status_text(status, code, vendor_code, short(body.get("message")), target),
        code,
        http_status=status,
        provider=target.dialect.name,
        retry_after=retry_after_seconds(headers),
        request_id=headers.get("x-request-id"),
        vendor_code=vendor_code,
    )


def _status_text(
    status: int, code: str, vendor_code: str | None, words: str, target: Target
) -> str:
    dialect = target.dialect
    where = f"{dialect.label} at {target.endpoint}"
    mark = f"(HTTP {status}{', ' + vendor_code if vendor_code else ''})"
    if status == 401 or vendor_code == "invalid_api_key":  # noqa: PLR2004
        # The service repeats a part of the key in its own words: they are left out.
        return (
            f"{where} refused the API key {mark}; check {dialect.key_variable} or"
            " api_key"
        )
    if vendor_code == "model_not_found":
        return (
            f"{where} has no model {target.model!r} for this key {mark}; check"
            f" {dialect.model_variable} or model_id"
        )
    said = f": {words}" if words else ""
    if status == 404:  # noqa: PLR2004
        return (
            f"{where} does not know the model {target.model!r} or has no Responses API"
            f" {mark}; check model_id and base_url{said}"
        )
    known = {
        "auth_error": f"{where} denied access {mark}; check the account's rights",
        "rate_limit": f"{where} limits this account {mark}; wait or check its quota",
        "server_error": f"{where} has a fault {mark}; try again",
        "network_error": f"{where} timed out {mark}; try again",
    }
    return known.get(code, f"{where} refused the request {mark}") + said
