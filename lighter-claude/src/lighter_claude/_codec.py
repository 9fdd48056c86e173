"""The Messages interface as the core's exchange sees it."""

from __future__ import annotations

from collections.abc import Mapping

from lighter_core import AssistantMessage, ModelError

from ._decode import decode_body
from ._errors import error_in_reply, error_of
from ._stream import StreamDecoder
from ._target import Target

__all__ = ["MessagesCodec"]


class MessagesCodec:
    """Reads the replies and errors of the service.

    Args:
        target: Whom the request is for.
        answer: The tool whose input is the answer, if there is one.
    """

    def __init__(self, target: Target, answer: str | None = None) -> None:
        self.service = target
        self._answer = answer

    def error_of(self, error: Exception) -> ModelError:
        """Return the error for an exception of the SDK or the transport."""
        return error_of(error, self.service)

    def error_in_reply(self, error: Mapping[str, object]) -> ModelError:
        """Return the error for one that stands in a reply with status 200."""
        return error_in_reply(self.service, error, response_status=None)

    def decode_body(self, body: bytes) -> AssistantMessage:
        """Return the message of a reply that came whole."""
        return decode_body(body, self.service, self._answer)

    def decoder(self) -> StreamDecoder:
        """Make a decoder for one streamed reply."""
        return StreamDecoder(self.service, self._answer)
