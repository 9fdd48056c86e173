"""The provider: options, requests, replies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, ClassVar, NoReturn, TypedDict

from lighter_core import ModelError
from lighter_core.adapters import (
    Exchange,
    endpoint_of,
    need_base_url,
    need_client,
    need_headers,
    need_integer,
    need_key,
    need_model_id,
    need_timeout,
    require_valid_history,
    secret_headers,
    snapshot,
)

from ._client import Clients
from ._codec import ResponsesCodec
from ._dialect import OPENAI, Dialect, Target
from ._encode import encode_request

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import httpx2
    from openai import AsyncOpenAI

    from lighter_core import AssistantMessage, ModelRequest, ProviderStreamEvent

__all__ = ["OpenAIProvider", "OpenAIProviderOptions"]

_RESERVED = frozenset({"input", "model", "stream"})


class OpenAIProviderOptions(TypedDict, total=False):
    """The keyword options of `OpenAIProvider`."""

    reasoning: Mapping[str, object] | None
    max_output_tokens: int | None
    base_url: str | None
    timeout: float | httpx2.Timeout | None
    max_retries: int | None
    client: AsyncOpenAI | None
    http_client: httpx2.AsyncClient | None
    extra_headers: Mapping[str, str] | None
    extra_body: Mapping[str, object] | None


class OpenAIProvider:
    """Talks to the OpenAI Responses API.

    Making one imports no SDK and touches neither network nor files. One provider may
    serve many runs at once, from several event loops.

    Args:
        api_key: The key; without it `OPENAI_API_KEY` is read.
        model_id: The model; without it `OPENAI_MODEL` is read.
        reasoning: The request's `reasoning` field, e.g. `{"summary": "auto"}`.
        max_output_tokens: The most tokens of a reply; `None` leaves it to the service.
        base_url: Another endpoint; without it `OPENAI_BASE_URL` is read.
        timeout: Seconds until the reply begins, retries included, and between two of
            its pieces; or an `httpx2.Timeout`, which the SDK applies to each attempt.
        max_retries: How often the SDK repeats a failed request before a reply begins.
        client: An SDK client to use as it is; it is never closed here.
        http_client: A transport for the SDK's clients; it is never closed here.
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

    _dialect: ClassVar[Dialect] = OPENAI
    _clients_type: ClassVar[type[Clients]] = Clients

    def __init__(  # noqa: PLR0913 - options are keywords
        self,
        api_key: str | None = None,
        model_id: str | None = None,
        *,
        reasoning: Mapping[str, object] | None = None,
        max_output_tokens: int | None = None,
        base_url: str | None = None,
        timeout: float | httpx2.Timeout | None = None,
        max_retries: int | None = None,
        client: AsyncOpenAI | None = None,
        http_client: httpx2.AsyncClient | None = None,
        extra_headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, object] | None = None,
    ) -> None:
        name = self._dialect.name
        model = need_model_id(
            model_id, variable=self._dialect.model_variable, provider=name
        )
        need_client(client, kind="openai.AsyncOpenAI", provider=name)
        need_integer("max_output_tokens", max_output_tokens, provider=name)
        need_integer("max_retries", max_retries, provider=name, low=0)
        need_timeout(timeout, provider=name)
        headers = need_headers(extra_headers, provider=name)
        key = self._key(api_key, client)
        url = str(client.base_url) if client is not None else self._base_url(base_url)
        fields: dict[str, object] = {}
        if reasoning is not None:
            fields["reasoning"] = snapshot("reasoning", reasoning, provider=name)
        if max_output_tokens is not None:
            fields["max_output_tokens"] = max_output_tokens
        if extra_body is not None:
            fields.update(snapshot("extra_body", extra_body, provider=name))
        taken = sorted(_RESERVED & fields.keys())
        if taken:
            self._refuse(f"extra_body must not hold {taken[0]!r}: Lighter sets it")
        self._options = fields
        # A word such as "none" for a local server is no secret, and stands in any text.
        self._secrets = (*((key,) if key else ()), *secret_headers(headers))
        self._target = Target(self._dialect, endpoint_of(url), model)
        self._codec = ResponsesCodec(self._target)
        self._clients = self._clients_type(
            api_key=key or "",
            base_url=url,
            timeout=timeout,
            max_retries=max_retries,
            headers=headers,
            client=client,
            http_client=http_client,
        )

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._dialect.name

    @property
    def model_id(self) -> str:
        """The model that requests ask for."""
        return self._target.model

    @property
    def capabilities(self) -> frozenset[str]:
        """The fields of a request, and the parts of a message, that are understood."""
        return frozenset({"output", "tool_choice", "image", "file"})

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the complete reply; it equals the message that `stream` ends with.

        Raises:
            ModelError: For every failure; `code` says which kind it is.
        """
        exchange = await self._send(request, stream=False)
        try:
            return await exchange.message()
        finally:
            await exchange.aclose()

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield deltas as they arrive, then one `MessageEvent` with the whole reply.

        The connection is released before the message is yielded, and when the generator
        is closed.

        Raises:
            ModelError: For every failure; `code` says which kind it is.
        """
        exchange = await self._send(request, stream=True)
        async with aclosing(exchange.events()) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """Close the connections; may be called more than once, and used again after."""
        await self._clients.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _send(self, request: ModelRequest, *, stream: bool) -> Exchange:
        require_valid_history(request.messages, provider=self.name)
        body = encode_request(request, self._target, self._options, stream=stream)
        try:
            return await self._open(body, stream=stream)
        except ModelError as err:
            if err.vendor_code != "invalid_encrypted_content":
                raise
            # Another key or organisation cannot read the reasoning in the history, and
            # never will: without it the conversation can go on.
            reduced = encode_request(
                request, self._target, self._options, stream=stream, replay=False
            )
            if reduced == body:
                raise
        return await self._open(reduced, stream=stream)

    async def _open(self, body: bytes, *, stream: bool) -> Exchange:
        return await Exchange.open(
            self._clients, body, self._codec, stream=stream, secrets=self._secrets
        )

    @classmethod
    def _refuse(cls, text: str) -> NoReturn:
        raise ModelError(text, "invalid_request", provider=cls._dialect.name)

    @classmethod
    def _key(cls, api_key: str | None, client: AsyncOpenAI | None) -> str | None:
        if client is not None:
            known: object = client.api_key
            return known if isinstance(known, str) else None
        return need_key(
            api_key, variable=cls._dialect.key_variable, provider=cls._dialect.name
        )

    @classmethod
    def _base_url(cls, base_url: str | None) -> str:
        return need_base_url(
            base_url,
            variable=cls._dialect.base_url_variable,
            default=cls._dialect.base_url,
            provider=cls._dialect.name,
        )

    def __repr__(self) -> str:
        target = self._target
        return (
            f"{type(self).__name__}(model_id={target.model!r},"
            f" base_url={target.endpoint!r})"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled: it holds a key and"
            " connections; share it, or make another one from the same options"
        )
