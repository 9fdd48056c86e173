"""The SDK's client, for both of its interfaces.

This module, `_azure.py` and `_errors.py` are the only ones that import the SDK, and only
inside functions: importing it takes seconds.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, cast

from lighter_core.adapters import Connection, Sender, split_query

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["ChatClients", "Clients"]


class Clients(Sender):
    """Sends requests with the running loop's own client, or with one that was given.

    Args:
        api_key: The key; without one no `Authorization` header is sent.
        base_url: The endpoint.
        connection: How the service is reached, as it was given.
        isolated: Whether the headers that the SDK takes from the environment are kept
            back: they belong to its key and to the service that it names.
    """

    sdk: ClassVar[str] = "openai"
    path: ClassVar[str] = "/responses"

    def __init__(
        self,
        api_key: str | None,
        base_url: str,
        connection: Connection,
        *,
        isolated: bool = False,
    ) -> None:
        super().__init__(connection)
        self._api_key = api_key
        self._base_url = base_url
        self._isolated = isolated
        if connection.client is None:
            self._address = self.below(base_url)

    def make(self) -> AsyncOpenAI:
        """Make a client for the running loop."""
        import openai

        url, query = split_query(self._base_url)
        return openai.AsyncOpenAI(
            api_key=self._api_key or "none",
            base_url=url,
            default_query=query,
            default_headers=self._default_headers() or None,
            http_client=self.transport(),
        )

    def _default_headers(self) -> dict[str, str]:
        """Return the headers of every request; an `Omit` keeps one back.

        A line of `OPENAI_CUSTOM_HEADERS` would win over the key, or go along with it.
        """
        import openai

        omitted = cast("str", openai.Omit())
        found: dict[str, str] = {}
        if self._isolated:
            lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
            names = [line.partition(":")[0].strip() for line in lines if ":" in line]
            names += ["OpenAI-Organization", "OpenAI-Project"]
            found = dict.fromkeys(names, omitted)
            found = {k: v for k, v in found.items() if k.lower() != "authorization"}
        if self._isolated and self._api_key is not None:
            found["Authorization"] = f"Bearer {self._api_key}"
        mine = {name.lower() for name in self.headers}
        found = {k: v for k, v in found.items() if k.lower() not in mine}
        return {**found, **self.headers}

    def _options(self, *, stream: bool) -> dict[str, object]:
        import openai

        options = super()._options(stream=stream)
        named = {name.lower() for name in self.headers}
        if (
            self._api_key is None
            and self._given is None
            and "authorization" not in named
        ):
            # The SDK lets a request go without a key only when told so each time.
            headers = cast("dict[str, object]", options["headers"])
            options["headers"] = {**headers, "Authorization": openai.Omit()}
        return options


class ChatClients(Clients):
    """The same for Chat Completions."""

    path: ClassVar[str] = "/chat/completions"
