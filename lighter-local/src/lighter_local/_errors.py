"""What the library reports as wrong, as `ModelError`."""

from __future__ import annotations

from collections.abc import Mapping

from lighter_core.errors import ModelError, ModelErrorCode

from ._values import as_mapping

__all__ = ["chunk_error", "map_failure", "token_limit"]

_BY_TYPE: Mapping[str, ModelErrorCode] = {
    "exceed_context_size_error": "invalid_request",
    "invalid_request_error": "invalid_request",
    "not_supported_error": "invalid_request",
    "authentication_error": "invalid_request",
    "server_error": "server_error",
    "unavailable_error": "server_error",
}


def chunk_error(chunk: object) -> ModelError | None:
    """Return the error that a chunk stands for, if it stands for one.

    The library hands errors over as the only chunk; it does not raise them.
    """
    if not isinstance(chunk, dict) or "error" not in chunk:
        return None
    detail = as_mapping(chunk).get("error")  # pyright: ignore[reportUnknownArgumentType]
    fields = as_mapping(detail) or {"message": str(detail)}
    kind = str(fields.get("type", ""))
    if kind == "exceed_context_size_error":
        text = (
            f"the conversation has {fields.get('n_prompt_tokens', 'too many')} tokens,"
            f" the local model reads {fields.get('n_ctx', 'fewer')}: shorten it, or"
            " pass a larger context_size=…"
        )
    else:
        text = f"the local model refused the request: {fields.get('message', '')}"
    return ModelError(
        text,
        _BY_TYPE.get(kind, "unknown"),
        provider="local",
        vendor_code=kind or None,
    )


def map_failure(error: BaseException) -> ModelError:
    """Return a `ModelError` for whatever a native thread ended with."""
    if isinstance(error, ModelError):
        return error
    if isinstance(error, ImportError):
        return ModelError(
            f"xllamacpp cannot be imported ({error}): install it with"
            " `pip install lighter-local`; it has wheels for Linux with glibc, macOS"
            " and Windows",
            "invalid_request",
            provider="local",
        )
    # ValueError: a request that it cannot make sense of, such as a broken JSON Schema.
    code: ModelErrorCode = (
        "invalid_request" if isinstance(error, ValueError) else "unknown"
    )
    return ModelError(
        f"the local model failed: {type(error).__name__}: {error}",
        code,
        provider="local",
    )


def token_limit() -> ModelError:
    """Return the error of a reply that was cut at a token limit."""
    return ModelError(
        "the reply was cut at its token limit: raise max_output_tokens=…, or"
        " context_size=… when the conversation is long",
        "bad_response",
        response_status="length",
        provider="local",
    )
