"""How a service is reached: the options that all providers on an SDK share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ModelError
from ._options import (
    need_base_url,
    need_client,
    need_headers,
    need_http_client,
    need_integer,
    need_timeout,
)
from ._transport import Transport, need_transport

if TYPE_CHECKING:
    import httpx2

__all__ = ["Connection", "SDKClient"]


class SDKClient(Protocol):
    """What is used of an SDK's asynchronous client."""

    @property
    def base_url(self) -> object:
        """Where the client's requests go; its text is the URL."""
        ...

    @property
    def max_retries(self) -> int:
        """How often a request is repeated when nothing else is said."""
        ...

    @property
    def timeout(self) -> object:
        """How long its requests may take when nothing else is said."""
        ...

    @property
    def with_options(self) -> Callable[..., Any]:
        """Return a client with other options on the same connections."""
        ...

    @property
    def post(self) -> Callable[..., Awaitable[Any]]:
        """Send a request to a path below the base URL."""
        ...

    async def close(self) -> None:
        """Close the client and its connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How a service is reached, as an application gave it.

    Attributes:
        api_key: The key.
        base_url: The endpoint.
        timeout: Seconds, or the transport's own timeout.
        max_retries: How often a failed request is repeated.
        client: An SDK client to use as it is.
        http_client: A transport for the SDK's clients.
        extra_headers: Headers for every request.
        transport: Which of the SDK's own transports its clients get.
    """

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)
    timeout: float | httpx2.Timeout | None = None
    max_retries: int | None = None
    client: SDKClient | None = field(default=None, repr=False)
    http_client: httpx2.AsyncClient | None = None
    extra_headers: Mapping[str, str] | None = field(default=None, repr=False)
    transport: Transport | None = None

    def check(
        self, *, provider: str, client: str, variable: str | None, default: str
    ) -> str:
        """Check all but the key; return the base URL.

        A client brings its own key, endpoint and transport, which nothing else can
        change; a timeout, a number of retries and headers go with each request.

        Args:
            provider: The provider's name, for errors.
            client: The name of the SDK's class for a client, its module first.
            variable: The environment variable that holds the base URL, if any.
            default: The base URL when nothing else is given.

        Raises:
            ModelError: `invalid_request`, naming the option.
        """
        need_client(self.client, kind=client, provider=provider)
        need_http_client(self.http_client, provider=provider)
        need_integer("max_retries", self.max_retries, provider=provider, low=0)
        need_timeout(self.timeout, provider=provider)
        need_headers(self.extra_headers, provider=provider)
        need_transport(self.transport, sdk=client.partition(".")[0], provider=provider)
        if self.transport is not None and self.http_client is not None:
            raise ModelError(
                "transport cannot be given beside http_client, which is one: leave one"
                " of them out",
                "invalid_request",
                provider=provider,
            )
        if self.client is None:
            return need_base_url(
                self.base_url, variable=variable, default=default, provider=provider
            )
        for name in ("api_key", "base_url", "http_client", "transport"):
            if getattr(self, name) is not None:
                raise ModelError(
                    f"{name} cannot be given beside client, which has its own: make the"
                    f" {client} with it, or leave client out",
                    "invalid_request",
                    provider=provider,
                )
        return str(self.client.base_url)
