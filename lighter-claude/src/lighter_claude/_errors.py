"""Failures of the service and the SDK as `ModelError`."""

from __future__ import annotations

import re
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

from ._target import Target

if TYPE_CHECKING:
    from anthropic import APIStatusError

__all__ = ["error_in_reply", "error_of", "form_refused", "stopped", "thinking_refused"]

_BY_TYPE: Mapping[str, ModelErrorCode] = {
    "rate_limit_error": "rate_limit",
    "authentication_error": "auth_error",
    "billing_error": "auth_error",
    "permission_error": "auth_error",
    "invalid_request_error": "invalid_request",
    "not_found_error": "invalid_request",
    "conflict_error": "invalid_request",
    "request_too_large": "invalid_request",
    "api_error": "server_error",
    "overloaded_error": "server_error",
    "timeout_error": "server_error",
}
_ADVICE = {
    "max_tokens": "; raise max_output_tokens or ask for less",
    "pause_turn": "; name its tools in hosted_tools=… and it goes on by itself",
    "model_context_window_exceeded": "; shorten the history",
}
_PAUSED_OFTEN = (
    "; it paused too often for one reply: ask for less at once, or bound the hosted"
    " tools, e.g. with their max_uses"
)
_FORMS: Mapping[str, re.Pattern[str]] = {
    "native": re.compile(
        r"output_config(?!\.effort)|output[ _]format|structured[ _]output|json_schema",
        re.IGNORECASE,
    ),
    "tool": re.compile(r"tool_choice|forces? tool", re.IGNORECASE),
}
_THINKING = (
    "bound to a different conversation",
    "Invalid `signature` in `thinking` block",
)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _vendor_code(error: Mapping[str, object]) -> str | None:
    """Return the finer code where the service gives one, else the type."""
    details = as_object(error.get("details")) or {}
    return _text(details.get("error_code")) or _text(error.get("type"))


def error_in_reply(
    target: Target,
    error: Mapping[str, object],
    *,
    response_status: str | None,
    request_id: object = None,
) -> ModelError:
    """Return the error for one that the service wrote into a reply with status 200."""
    vendor_code = _vendor_code(error)
    words = short(error.get("message"))
    return ModelError(
        f"{target.label} reported an error inside its reply"
        f" ({vendor_code or 'without a code'}, model {target.model!r})"
        f"{': ' + words if words else ''}",
        _BY_TYPE.get(str(error.get("type")), "bad_response"),
        response_status=response_status,
        provider=target.name,
        request_id=_text(request_id),
        vendor_code=vendor_code,
    )


def stopped(target: Target, reason: object, *, often: bool = False) -> ModelError:
    """Return the error for a reply that stopped before it was complete.

    With `often` it has paused as often as it may.
    """
    if not isinstance(reason, str):
        return bad_response(target, "it does not say why it stopped")
    known = "" if reason == "pause_turn" and target.pauses else _ADVICE.get(reason, "")
    return ModelError(
        f"{target.label} stopped before the reply was complete ({short(reason)})"
        f"{_PAUSED_OFTEN if often else known}",
        "bad_response",
        response_status=reason,
        provider=target.name,
    )


def error_of(error: Exception, target: Target) -> ModelError:
    """Return the error for an exception of the SDK or of the transport."""
    import anthropic

    if isinstance(error, anthropic.APIStatusError):
        return _status_error(error, target)
    return transport_error(
        error,
        target,
        late=(anthropic.APITimeoutError,),
        unreachable=(anthropic.APIConnectionError,),
    )


def _status_error(error: APIStatusError, target: Target) -> ModelError:
    """Return the error for an HTTP status; the body only refines it."""
    body = as_object(error.body) or {}
    reported = as_object(body.get("error")) or {}
    code = code_for_status(error.status_code)
    if code == "invalid_request":
        refined = _BY_TYPE.get(str(reported.get("type")))
        code = refined if refined in {"auth_error", "rate_limit"} else code
    headers = error.response.headers
    return status_error(
        target,
        error.status_code,
        headers,
        words=error.body,
        vendor_code=_vendor_code(reported),
        code=code,
        request_id=headers.get("request-id") or _text(body.get("request_id")),
    )


def form_refused(error: ModelError, form: str) -> bool:
    """Tell whether the service refused the way in which an answer was asked for.

    Models before 4.5, Bedrock and servers that copy the interface say it in words of
    their own, but all name the field.
    """
    pattern = _FORMS.get(form)
    return pattern is not None and pattern.search(_words_of_400(error)) is not None


def thinking_refused(error: ModelError) -> bool:
    """Tell whether the service refused the thinking in the history.

    It never accepts that history again as it is, whatever is sent behind it.
    """
    # Inside a reply, which has status 200, its words stand in the message only.
    words = error.message if error.http_status is None else _words_of_400(error)
    return any(each in words for each in _THINKING)


def _words_of_400(error: ModelError) -> str:
    if error.http_status != 400:  # noqa: PLR2004
        return ""
    body = as_object(getattr(error.__cause__, "body", None)) or {}
    words = (as_object(body.get("error")) or {}).get("message")
    return words if isinstance(words, str) else ""
