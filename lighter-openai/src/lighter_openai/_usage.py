"""The tokens of a reply, in the words of either interface."""

from __future__ import annotations

from lighter_core import Usage
from lighter_core.adapters import as_object, integer_in

__all__ = ["chat_usage", "responses_usage"]


def responses_usage(value: object) -> Usage | None:
    """Return the tokens of a Responses reply; what was cached or reasoning is a part."""
    usage = as_object(value)
    if usage is None:
        return None
    read = usage.get("input_tokens_details")
    written = usage.get("output_tokens_details")
    return Usage(
        input_tokens=integer_in(usage, "input_tokens"),
        output_tokens=integer_in(usage, "output_tokens"),
        cache_read_tokens=integer_in(read, "cached_tokens"),
        cache_write_tokens=integer_in(read, "cache_write_tokens"),
        reasoning_tokens=integer_in(written, "reasoning_tokens"),
    )


def chat_usage(value: object) -> Usage | None:
    """Return the tokens of a Chat Completions reply, with other services' words."""
    usage = as_object(value)
    if usage is None:
        return None
    read = usage.get("prompt_tokens_details")
    written = usage.get("completion_tokens_details")
    return Usage(
        input_tokens=integer_in(usage, "prompt_tokens"),
        output_tokens=integer_in(usage, "completion_tokens"),
        cache_read_tokens=integer_in(read, "cached_tokens")
        or integer_in(usage, "prompt_cache_hit_tokens"),
        cache_write_tokens=integer_in(read, "cache_write_tokens"),
        reasoning_tokens=integer_in(written, "reasoning_tokens")
        or integer_in(usage, "reasoning_tokens"),
    )
