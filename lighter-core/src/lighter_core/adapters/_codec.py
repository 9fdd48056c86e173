"""What an adapter brings to read replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from ..errors import ModelError
from ..events import ProviderStreamEvent
from ..messages import AssistantMessage
from ._faults import Service

__all__ = ["Codec", "Decoder", "LateDecoder"]


class Decoder(Protocol):
    """Turns the events of one streamed reply into Lighter's."""

    @property
    def message(self) -> AssistantMessage | None:
        """The reply, once the service has said that it is complete."""
        ...

    @property
    def ignored(self) -> int:
        """How many events were ignored."""
        ...

    def feed(self, data: bytes) -> list[ProviderStreamEvent]:
        """Take the data of one event; return what it brings.

        Raises:
            ModelError: For an error event, a reply that failed, and wrong shapes.
        """
        ...

    def ended_early(self) -> ModelError:
        """Return the error for a stream that ended without saying how."""
        ...


@runtime_checkable
class LateDecoder(Decoder, Protocol):
    """A decoder of replies after whose end more may follow, such as the usage.

    Once the reply is complete, what follows is waited for no longer than two seconds,
    and a connection that breaks breaks nothing.
    """

    @property
    def finished(self) -> bool:
        """Whether the service has said that the reply is complete."""
        ...

    def finish(self) -> list[ProviderStreamEvent]:
        """Set `message`, since nothing more comes; return what is still to be shown.

        Raises:
            ModelError: When the service has not said that the reply is complete.
        """
        ...


class Codec(Protocol):
    """What a vendor's replies and errors mean."""

    @property
    def service(self) -> Service:
        """Whom requests are for."""
        ...

    def error_of(self, error: Exception) -> ModelError:
        """Return the error for an exception of the SDK or the transport."""
        ...

    def error_in_reply(self, error: Mapping[str, object]) -> ModelError:
        """Return the error for one that stands in a reply with status 200."""
        ...

    def decode_body(self, body: bytes) -> AssistantMessage:
        """Return the message of a reply that came whole.

        Raises:
            ModelError: For a reply that failed, is incomplete or is none at all.
        """
        ...

    def decoder(self) -> Decoder:
        """Make a decoder for one streamed reply."""
        ...
