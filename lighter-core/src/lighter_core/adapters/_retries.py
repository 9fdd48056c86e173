"""When a request is sent again, and after which pause: the rules of the vendors' SDKs.

The SDKs keep the refusal before a pause to themselves: a bound that ended the pause
could tell nothing but silence. So their own repetitions are off, and these are instead.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz
from importlib import import_module
from typing import cast

from ._transport import aiohttp_error

__all__ = ["fault_inside", "pause_before_retry", "retry_after_seconds"]

_STATUSES = (408, 409, 429)  # and every 5xx
_FIRST_SECONDS = 0.5
_MOST_SECONDS = 8.0
_MOST_DOUBLINGS = 10
_MOST_ASKED_SECONDS = 120.0
_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)


def pause_before_retry(error: Exception, sdk: str, taken: int) -> float | None:
    """Return the seconds to wait before a request is sent again; `None` for never.

    Sent again is what the SDKs send again: after a connection that broke, a timeout, and
    the statuses 408, 409, 429 and 5xx; the header `x-should-retry` wins. A service may
    ask for a pause of up to two minutes; what asks for more is not sent again.

    Args:
        error: What the SDK raised.
        sdk: The SDK's module; its `APIConnectionError` is a connection that broke.
        taken: How often the request was sent again already.
    """
    response: object = getattr(error, "response", None)
    status: object = getattr(response, "status_code", None)
    asked = 0.0
    if isinstance(status, int):
        headers = cast("Mapping[str, str]", getattr(response, "headers", {}))
        told = headers.get("x-should-retry")
        again = told == "true" or status in _STATUSES or status >= 500  # noqa: PLR2004
        asked = retry_after_seconds(headers) or 0.0
        if told == "false" or not again or asked > _MOST_ASKED_SECONDS:
            return None
    elif not _connection_broke(error, sdk):
        return None
    if asked:
        return asked
    seconds = min(_FIRST_SECONDS * 2.0 ** min(taken, _MOST_DOUBLINGS), _MOST_SECONDS)
    return seconds * (1 - 0.25 * random.random())  # noqa: S311 - no secret


def _connection_broke(error: Exception, sdk: str) -> bool:
    broken: object = getattr(import_module(sdk), "APIConnectionError", None)
    known = isinstance(broken, type) and isinstance(error, broken)
    if not known and aiohttp_error(error) is None:
        return False
    return fault_inside(error) is None


def fault_inside(error: Exception) -> Exception | None:
    """Return the fault of the program that sending a request ended with, if it is one.

    Some SDKs turn whatever is raised meanwhile into an error of the connection: a client
    on a foreign event loop, a wrong option, a bug of a transport.
    """
    import httpx2

    # Certificates that do not fit, for one, are an OSError and a ValueError.
    outside = (OSError, UnicodeDecodeError, httpx2.StreamError)
    for each in (error, error.__cause__):
        if isinstance(each, _FAULTS) and not isinstance(each, outside):
            return each
    return None


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a reply asks to wait; `None` when it asks for none.

    `retry-after-ms` comes before `retry-after`, which holds seconds or a date (RFC 9110,
    section 10.2.3); a date that has passed asks for none to wait, which is 0. Numbers
    below zero, infinite ones and other texts are ignored.
    """
    date = headers.get("retry-after")
    found = (_number(headers.get("retry-after-ms")) / 1000, _number(date))
    good = next((each for each in found if 0 <= each < math.inf), None)
    return _seconds_until(date) if good is None else good


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def _seconds_until(text: str | None) -> float | None:
    date = parsedate_tz(text)
    try:
        return None if date is None else max(mktime_tz(date) - time.time(), 0.0)
    except (ValueError, OverflowError, OSError):
        return None
