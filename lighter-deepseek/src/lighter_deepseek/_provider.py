"""DeepSeek's service: the Responses interface, with rules of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from lighter_core import ModelError
from lighter_core.adapters import Transport, need_integer
from lighter_openai.responses import (
    PLACEHOLDER,
    Connection,
    ConnectionOptions,
    Dialect,
    ResponsesProvider,
)

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

__all__ = ["DEEPSEEK", "DeepSeekProvider", "DeepSeekProviderOptions"]

DEFAULT_MODEL = "deepseek-flash"
"""The model when neither the argument nor the environment names one."""

DEEPSEEK = Dialect(
    name="deepseek",
    label="DeepSeek",
    key_variable="DEEPSEEK_API_KEY",
    model_variable="DEEPSEEK_MODEL",
    base_url_variable=None,
    base_url="https://api.deepseek.com",
    parts=frozenset({"image"}),
    plain_reasoning=True,
    placeholder=PLACEHOLDER,
    calls_last=True,
    isolated=True,
)

ReasoningEffort = Literal["none", "low", "high", "max"] | str


class DeepSeekProviderOptions(ConnectionOptions, total=False):
    """The keyword options of `DeepSeekProvider`."""

    reasoning_effort: ReasoningEffort | None
    max_output_tokens: int | None


class DeepSeekProvider(ResponsesProvider):
    """Talks to DeepSeek through its Responses interface.

    Making one imports no SDK and touches neither network nor files. Nothing that the
    SDK of OpenAI reads from the environment reaches DeepSeek, and no variable changes
    the endpoint.

    Args:
        api_key: The key; without it `DEEPSEEK_API_KEY` is read.
        model_id: The model, e.g. `"deepseek-flash"` or `"deepseek-v4-pro"`; without it
            `DEEPSEEK_MODEL` is read, else it is `"deepseek-flash"`.
        reasoning_effort: `"none"` turns thinking off; `"low"`, `"high"` and `"max"` set
            its depth. `None` leaves it to the service, which thinks.
        max_output_tokens: The most tokens of a reply, thinking included; `None` leaves
            it to the service.
        base_url: Another endpoint, for gateways and tests.
        timeout: Seconds until the reply begins, retries included, and between two of
            its pieces; or an `httpx2.Timeout`, which the SDK applies to each attempt.
        max_retries: How often a failed request is repeated before its reply begins.
        client: An SDK client to use as it is, with all that it takes from the
            environment; it is never closed here.
        http_client: A transport for the SDK's clients; it is never closed here.
        transport: Which of the SDK's own transports its clients get: `"httpx2"`, which
            is the default, or the faster `"aiohttp"`, which an extra installs.
        extra_headers: Headers for every request; they win over the SDK's own.
        extra_body: Further fields of the request; they win over Lighter's own, `tools`
            are joined.

    Raises:
        ModelError: `auth_error` without a key, `invalid_request` for other values that
            cannot work.

    Example:
        ```python
        provider = DeepSeekProvider(reasoning_effort="none")
        reply = await provider.invoke(ModelRequest([UserMessage("Hello!")]))
        ```
    """

    def __init__(  # noqa: PLR0913 - options are keywords
        self,
        api_key: str | None = None,
        model_id: str | None = None,
        *,
        reasoning_effort: ReasoningEffort | None = None,
        max_output_tokens: int | None = None,
        base_url: str | None = None,
        timeout: float | httpx2.Timeout | None = None,
        max_retries: int | None = None,
        client: AsyncOpenAI | None = None,
        http_client: httpx2.AsyncClient | None = None,
        transport: Transport | None = None,
        extra_headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, object] | None = None,
    ) -> None:
        name, dialect = DEEPSEEK.name, DEEPSEEK
        need_integer("max_output_tokens", max_output_tokens, provider=name)
        fields: dict[str, object] = {}
        if reasoning_effort is not None:
            fields["reasoning"] = {"effort": _effort(reasoning_effort)}
        if reasoning_effort == "none":  # then no turn needs reasoning
            dialect = replace(dialect, placeholder=None)
        if max_output_tokens is not None:
            fields["max_output_tokens"] = max_output_tokens
        if model_id is None and not os.environ.get(dialect.model_variable, "").strip():
            model_id = DEFAULT_MODEL
        super().__init__(
            dialect,
            model_id,
            Connection(
                api_key=api_key,
                base_url=base_url,
                timeout=timeout,
                max_retries=max_retries,
                client=client,
                http_client=http_client,
                transport=transport,
                extra_headers=extra_headers,
            ),
            fields=fields,
            extra_body=extra_body,
            recover=False,
        )


def _effort(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ModelError(
            "reasoning_effort must be 'none', 'low', 'high' or 'max', got"
            f" {value if isinstance(value, str) else type(value).__name__!r}",
            "invalid_request",
            provider=DEEPSEEK.name,
        )
    return value
