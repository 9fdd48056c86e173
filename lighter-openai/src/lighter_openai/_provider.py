"""OpenAI's own service, through the Responses interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lighter_core.adapters import Transport, need_integer, snapshot

from ._base import Connection, ConnectionOptions
from ._dialect import OPENAI
from ._responses import ResponsesProvider

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

__all__ = ["OpenAIProvider", "OpenAIProviderOptions"]


class OpenAIProviderOptions(ConnectionOptions, total=False):
    """The keyword options of `OpenAIProvider`."""

    reasoning: Mapping[str, object] | None
    max_output_tokens: int | None
    hosted_tools: Sequence[Mapping[str, object]] | None
    recover: bool


class OpenAIProvider(ResponsesProvider):
    """Talks to the OpenAI Responses API.

    Making one imports no SDK and touches neither network nor files. One provider may
    serve many runs at once, from several event loops.

    Args:
        api_key: The key; without it `OPENAI_API_KEY` is read. With it, nothing that the
            SDK takes from the environment is sent: no organisation, project or
            `OPENAI_CUSTOM_HEADERS`.
        model_id: The model; without it `OPENAI_MODEL` is read.
        reasoning: The request's `reasoning` field, e.g. `{"summary": "auto"}`.
        max_output_tokens: The most tokens of a reply; `None` leaves it to the service.
        hosted_tools: The service's own tools in its own form, e.g.
            `[{"type": "web_search"}]`; they run at the service.
        recover: Whether a request is sent once more without native context, when the
            service says that it cannot read the reasoning in it.
        base_url: Another endpoint, to which nothing of those is sent either; without it
            `OPENAI_BASE_URL` is read.
        timeout: Seconds until the reply begins, retries included, and between two of
            its pieces; or an `httpx2.Timeout`, which the SDK applies to each attempt.
        max_retries: How often a failed request is repeated before its reply begins.
        client: An SDK client to use as it is; it is never closed here.
        http_client: A transport for the SDK's clients; it is never closed here.
        transport: Which of the SDK's own transports its clients get: `"httpx2"`, which
            is the default, or the faster `"aiohttp"`, which an extra installs.
        extra_headers: Headers for every request; they win over the SDK's own.
        extra_body: Further fields of the request; they win over Lighter's own, `tools`
            and `include` are joined.

    Raises:
        ModelError: `auth_error` without a key, `invalid_request` for other values that
            cannot work.

    Example:
        ```python
        provider = OpenAIProvider(model_id="gpt-5.5", reasoning={"summary": "auto"})
        reply = await provider.invoke(ModelRequest([UserMessage("Hello!")]))
        ```
    """

    def __init__(  # noqa: PLR0913 - options are keywords
        self,
        api_key: str | None = None,
        model_id: str | None = None,
        *,
        reasoning: Mapping[str, object] | None = None,
        max_output_tokens: int | None = None,
        hosted_tools: Sequence[Mapping[str, object]] | None = None,
        recover: bool = True,
        base_url: str | None = None,
        timeout: float | httpx2.Timeout | None = None,
        max_retries: int | None = None,
        client: AsyncOpenAI | None = None,
        http_client: httpx2.AsyncClient | None = None,
        transport: Transport | None = None,
        extra_headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, object] | None = None,
    ) -> None:
        name = OPENAI.name
        need_integer("max_output_tokens", max_output_tokens, provider=name)
        fields: dict[str, object] = {}
        if reasoning is not None:
            fields["reasoning"] = snapshot("reasoning", reasoning, provider=name)
        if max_output_tokens is not None:
            fields["max_output_tokens"] = max_output_tokens
        super().__init__(
            OPENAI,
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
            hosted_tools=hosted_tools,
            recover=recover,
        )
