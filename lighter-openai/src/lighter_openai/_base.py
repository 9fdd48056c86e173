"""What the providers of this distribution share: options, clients, one exchange."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NoReturn, TypedDict

from lighter_core import ModelError
from lighter_core.adapters import (
    Exchange,
    Owned,
    endpoint_of,
    need_base_url,
    need_client,
    need_headers,
    need_integer,
    need_key,
    need_model_id,
    need_timeout,
    note,
    require_valid_history,
    secret_headers,
    snapshot,
)

from ._client import Clients
from ._dialect import Dialect, Target

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import httpx2
    from openai import AsyncOpenAI

    from lighter_core import AssistantMessage, ModelRequest, ProviderStreamEvent
    from lighter_core.adapters import Codec

__all__ = ["BaseProvider", "Connection", "ConnectionOptions", "need_text"]


class ConnectionOptions(TypedDict, total=False):
    """The keyword options that say how a service is reached."""

    base_url: str | None
    timeout: float | httpx2.Timeout | None
    max_retries: int | None
    client: AsyncOpenAI | None
    http_client: httpx2.AsyncClient | None
    extra_headers: Mapping[str, str] | None
    extra_body: Mapping[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How a service is reached, as it was given.

    Attributes:
        api_key: The key.
        base_url: The endpoint.
        timeout: Seconds, or the transport's own timeout.
        max_retries: How often the SDK repeats a failed request.
        client: An SDK client to use as it is.
        http_client: A transport for the SDK's clients.
        extra_headers: Headers for every request.
    """

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout: float | httpx2.Timeout | None = None
    max_retries: int | None = None
    client: AsyncOpenAI | None = None
    http_client: httpx2.AsyncClient | None = None
    extra_headers: Mapping[str, str] | None = field(default=None, repr=False)


class BaseProvider(ABC):
    """A provider on the SDK of OpenAI.

    Args:
        dialect: What is particular to the service.
        model_id: The model.
        connection: How the service is reached.
        fields: Fields of every request.
        extra_body: Further fields; they win.

    Raises:
        ModelError: `auth_error` without a key, `invalid_request` for other values that
            cannot work.
    """

    _clients_type: ClassVar[type[Clients]] = Clients
    _reserved: ClassVar[frozenset[str]]

    def __init__(
        self,
        dialect: Dialect,
        model_id: str | None,
        connection: Connection,
        *,
        fields: Mapping[str, object],
        extra_body: Mapping[str, object] | None,
    ) -> None:
        name, client = dialect.name, connection.client
        model = need_model_id(model_id, variable=dialect.model_variable, provider=name)
        need_client(client, kind="openai.AsyncOpenAI", provider=name)
        need_integer("max_retries", connection.max_retries, provider=name, low=0)
        need_timeout(connection.timeout, provider=name)
        headers = need_headers(connection.extra_headers, provider=name)
        key = self._key(dialect, connection)
        if client is not None:
            url = str(client.base_url)
        else:
            url = need_base_url(
                connection.base_url,
                variable=dialect.base_url_variable,
                default=dialect.base_url,
                provider=name,
            )
        self._options = self._merged(fields, extra_body, name)
        # A word such as "none" for a local server is no secret, and stands in any text.
        self._secrets = (*((key,) if key else ()), *secret_headers(headers))
        self._target = Target(dialect, endpoint_of(url), model)
        self._clients = self._clients_type(
            api_key=key,
            base_url=url,
            timeout=connection.timeout,
            max_retries=connection.max_retries,
            headers=headers,
            client=client,
            http_client=connection.http_client,
            isolated=dialect.isolated,
        )

    @classmethod
    def _merged(
        cls,
        fields: Mapping[str, object],
        extra_body: Mapping[str, object] | None,
        name: str,
    ) -> dict[str, object]:
        """Return the fields of every request; lists of tools are joined."""
        options = dict(fields)
        extra = {}
        if extra_body is not None:
            extra = snapshot("extra_body", extra_body, provider=name)
        taken = sorted(cls._reserved & extra.keys())
        if taken:
            raise ModelError(
                f"extra_body must not hold {taken[0]!r}: Lighter sets it",
                "invalid_request",
                provider=name,
            )
        tools, more = options.get("tools"), extra.get("tools")
        if isinstance(tools, list) and isinstance(more, list):
            extra["tools"] = [*tools, *more]
        return {**options, **extra}

    @classmethod
    def _key(cls, dialect: Dialect, connection: Connection) -> str | None:
        if connection.client is not None:
            known: object = connection.client.api_key
            return known if isinstance(known, str) else None
        return need_key(
            connection.api_key, variable=dialect.key_variable, provider=dialect.name
        )

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._target.name

    @property
    def model_id(self) -> str:
        """The model that requests ask for."""
        return self._target.model

    @property
    def capabilities(self) -> frozenset[str]:
        """The fields of a request, and the parts of a message, that are understood."""
        return frozenset({"output", "tool_choice"}) | self._target.dialect.parts

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
        async with aclosing(Owned(exchange.events())) as events:
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

    @abstractmethod
    def _encode(
        self, request: ModelRequest, notes: list[str], *, stream: bool
    ) -> bytes:
        """Return the body; say in `notes` what of the history is lost."""

    @abstractmethod
    def _codec(self, request: ModelRequest) -> Codec:
        """Return what reads the reply to the request."""

    async def _send(self, request: ModelRequest, *, stream: bool) -> Exchange:
        require_valid_history(request.messages, provider=self.name)
        if not request.messages:
            raise ModelError(
                f"there is nothing to send to {self._target.label}: the request has no"
                " messages",
                "invalid_request",
                provider=self.name,
            )
        notes: list[str] = []
        body = self._encode(request, notes, stream=stream)
        self._report(notes)
        return await self._open(request, body, stream=stream)

    async def _open(
        self, request: ModelRequest, body: bytes, *, stream: bool
    ) -> Exchange:
        codec = self._codec(request)
        return await Exchange.open(
            self._clients, body, codec, stream=stream, secrets=self._secrets
        )

    def _report(self, notes: Sequence[str]) -> None:
        for text in notes:
            note(text, provider=self.name)

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


def need_text(name: str, value: object, provider: str) -> None:
    """Refuse a value that is no text, naming the option.

    Raises:
        ModelError: `invalid_request`.
    """
    if not isinstance(value, str) or not value.strip():
        raise ModelError(
            f"{name} must be a text that is not blank, got {value!r}",
            "invalid_request",
            provider=provider,
        )
