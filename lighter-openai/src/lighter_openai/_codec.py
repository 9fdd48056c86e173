"""Both interfaces as the core's exchange sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lighter_core import AssistantMessage, ModelError
from lighter_core.adapters import Decoder

from ._dialect import Target
from ._errors import error_in_reply, error_of

__all__ = ["ServiceCodec"]


class ServiceCodec:
    """Reads the replies and errors of one service.

    Args:
        target: Whom the request is for.
        whole: Reads a reply that came whole.
        streamed: Makes a decoder for one streamed reply.
    """

    def __init__(
        self,
        target: Target,
        whole: Callable[[bytes, Target], AssistantMessage],
        streamed: Callable[[Target], Decoder],
    ) -> None:
        self.service = target
        self._whole = whole
        self._streamed = streamed

    def error_of(self, error: Exception) -> ModelError:
        """Return the error for an exception of the SDK or the transport."""
        return error_of(error, self.service)

    def error_in_reply(self, error: Mapping[str, object]) -> ModelError:
        """Return the error for one that stands in a reply with status 200."""
        return error_in_reply(self.service, error, response_status=None)

    def decode_body(self, body: bytes) -> AssistantMessage:
        """Return the message of a reply that came whole."""
        return self._whole(body, self.service)

    def decoder(self) -> Decoder:
        """Make a decoder for one streamed reply."""
        return self._streamed(self.service)
