"""The SDK's client for the Messages interface.

This module and `_errors.py` are the only ones that import the SDK, and only inside
functions: importing it takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lighter_core.adapters import Connection, Sender, split_query

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

__all__ = ["Clients"]


class Clients(Sender):
    """Sends requests with the running loop's own client, or with one that was given."""

    sdk: ClassVar[str] = "anthropic"
    path: ClassVar[str] = "/v1/messages"
    request_id_header: ClassVar[str] = "request-id"

    def __init__(self, api_key: str, base_url: str, connection: Connection) -> None:
        super().__init__(connection)
        self._api_key = api_key
        self._base_url = base_url
        if connection.client is None:
            self._address = self.below(base_url)

    def make(self) -> AsyncAnthropic:
        """Make a client for the running loop."""
        import anthropic

        url, query = split_query(self._base_url)
        return anthropic.AsyncAnthropic(
            api_key=self._api_key,
            base_url=url,
            default_query=query,
            default_headers=self.headers or None,
            http_client=self.transport(),
        )
