"""Failures of the service and the SDK as `ModelError`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lighter_core import ModelError, ModelErrorCode
from lighter_core.adapters import (
    as_object,
    bad_response,
    code_for_status,
    short,
    status_error,
    transport_error,
)

from ._codes import AUTH, BY_VENDOR_CODE, RATE
from ._dialect import Target

if TYPE_CHECKING:
    from openai import APIStatusError

__all__ = ["error_in_reply", "error_of", "failed_reply"]

_ADVICE = {
    "max_output_tokens": "; raise max_output_tokens or ask for less",
    "content_filter": "; the service's filter withheld the rest",
}


def _vendor_code(error: Mapping[str, object]) -> str | None:
    """Return the first of `code` and `type` that says something."""
    for key in ("code", "type"):
        value = error.get(key)
        if isinstance(value, str) and value and value != "error":
            return value
    return None


def _code_in_reply(error: Mapping[str, object]) -> ModelErrorCode:
    status = error.get("code")
    if isinstance(status, int):  # of the service behind a gateway
        return code_for_status(status)
    for key in ("code", "type"):
        value = error.get(key)
        if isinstance(value, str) and value in BY_VENDOR_CODE:
            return BY_VENDOR_CODE[value]
    return "bad_response"


def error_in_reply(
    target: Target, error: Mapping[str, object], *, response_status: str | None
) -> ModelError:
    """Return the error for one that the service wrote into a reply with status 200."""
    status = error.get("code")
    vendor_code = str(status) if isinstance(status, int) else _vendor_code(error)
    words = short(error.get("message"))
    return ModelError(
        f"{target.label} reported an error inside its reply"
        f" ({vendor_code or 'without a code'}, model {target.model!r})"
        f"{': ' + words if words else ''}",
        _code_in_reply(error),
        response_status=response_status,
        provider=target.name,
        vendor_code=vendor_code,
    )


def failed_reply(
    target: Target, response: Mapping[str, object], status: str
) -> ModelError:
    """Return the error for a reply that ended with any status but `completed`."""
    label, name = target.label, target.name
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


def error_of(error: Exception, target: Target) -> ModelError:
    """Return the error for an exception of the SDK or of the transport."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return _status_error(error, target)
    return transport_error(
        error,
        target,
        late=(openai.APITimeoutError,),
        unreachable=(openai.APIConnectionError,),
    )


def _status_error(error: APIStatusError, target: Target) -> ModelError:
    """Return the error for an HTTP status; the body only refines it."""
    body = as_object(error.body) or {}
    body = as_object(body.get("error")) or body
    code = code_for_status(error.status_code)
    refined = body.get("code")
    if (
        code == "invalid_request"
        and isinstance(refined, str)
        and refined in {*AUTH, *RATE}
    ):
        code = BY_VENDOR_CODE[refined]
    headers = error.response.headers
    return status_error(
        target,
        error.status_code,
        headers,
        words=error.body,
        vendor_code=_vendor_code(body),
        code=code,
        request_id=headers.get("x-request-id"),
    )
