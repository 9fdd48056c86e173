"""Bodies of requests and replies that are not the JSON that they should be."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ..errors import ModelError
from ._faults import Service, bad_response, short
from ._raw import as_object, fast_load

__all__ = ["body_object", "json_values_only"]


@contextmanager
def json_values_only(service: Service) -> Generator[None]:
    """Turn what has no JSON form, while a body is written, into a `ModelError`.

    Raises:
        ModelError: `invalid_request`, before anything is sent.
    """
    try:
        yield
    except (TypeError, ValueError, RecursionError) as err:
        raise ModelError(
            f"the request cannot be written as JSON: {err}; tool schemas and options"
            " such as extra_body must hold JSON values only",
            "invalid_request",
            provider=service.name,
        ) from err


def body_object(body: bytes, service: Service) -> dict[str, object]:
    """Return the JSON object that a reply is.

    Raises:
        ModelError: `bad_response`, saying what it is instead.
    """
    try:
        found = as_object(fast_load()(body))
    except ValueError as err:
        start = short(body[:60].decode("utf-8", "replace"))
        what = f"it is not JSON but begins with {start!r}" if start else "it is empty"
        raise bad_response(service, what) from err
    if found is None:
        raise bad_response(service, "it is JSON, but no object")
    return found
