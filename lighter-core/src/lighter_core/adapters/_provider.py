"""What all providers on a vendor's SDK have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, NoReturn

from .._closing import Owned
from .._notes import note
from ..errors import ModelError
from ..events import ProviderStreamEvent
from ..messages import AssistantMessage, Message
from ..provider import ReplayFinding
from ..requests import ModelRequest
from ._codec import Codec
from ._exchange import Exchange, unsent
from ._faults import Service
from ._losses import ReplayNotes
from ._refused import RefusedContext
from ._secrets import Secrets
from ._sender import Sender
from ._writing import check_request

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["SDKProvider"]


class SDKProvider(ABC):
    """A provider on a vendor's SDK.

    A subclass checks its options, and brings `_encode` and `_codec`; it may bring
    `_lost` and `capabilities`. It keeps no history and serves many runs at once.

    Args:
        service: Whom requests are for.
        sender: Sends them.
        secrets: What must not show in errors and logs; `None` and empty ones are left
            out.
        recover: Whether a request whose native context is refused is sent once more
            without it.

    Example:
        ```python
        class AcmeProvider(SDKProvider):
            def __init__(self, api_key: str | None = None, model_id: str | None = None):
                key = need_key(api_key, variable="ACME_API_KEY", provider="acme")
                model = need_model_id(model_id, variable="ACME_MODEL", provider="acme")
                service = AcmeService(model)
                super().__init__(service, AcmeSender(key), secrets=[key])

            def _encode(self, request, notes, *, stream):
                return encode_request(request, self._service, notes, stream=stream)

            def _codec(self, request):
                return AcmeCodec(self._service)
        ```
    """

    def __init__(
        self,
        service: Service,
        sender: Sender,
        *,
        secrets: Iterable[str | None] = (),
        recover: bool = True,
    ) -> None:
        self._service = service
        self._sender = sender
        self._secrets = Secrets(secrets)
        self._recover = recover
        self._refused = RefusedContext()

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._service.name

    @property
    def model_id(self) -> str:
        """The model that requests ask for."""
        return self._service.model

    @property
    def capabilities(self) -> frozenset[str]:
        """The fields of a request, and the parts of a message, that are understood."""
        return frozenset()

    @property
    def max_retries(self) -> int:
        """How often a failed request is repeated before its error is raised."""
        return self._sender.max_retries

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the complete reply; it equals the message that `stream` ends with.

        Raises:
            ModelError: For every failure; `code` says which kind it is.
        """
        exchange = await self._send(request, stream=False)
        try:
            return await _message_of(exchange)
        except ModelError as err:
            reduced = self._reduced(request, exchange.sent, err, stream=False)
            if reduced is None:
                raise
        return await _message_of(await self._post(request, reduced, stream=False))

    def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield deltas as they arrive, then one `MessageEvent` with the whole reply.

        The connection is released before the message is yielded, and when the generator
        is closed.

        Raises:
            ModelError: For every failure; `code` says which kind it is.
        """
        return self._streamed(request)

    def _events(
        self, request: ModelRequest, exchange: Exchange
    ) -> Owned[ProviderStreamEvent]:
        """Yield what the reply to a request brings; the caller closes it, always.

        Raises:
            ModelError: As in `stream`.
        """
        return Owned(self._streamed(request, exchange))

    async def _streamed(
        self, request: ModelRequest, exchange: Exchange | None = None
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield what the reply to a request brings, which is sent unless it was.

        Where the service refuses the native context inside its reply, before anything
        of that was handed on, the request is sent once more without it.
        """
        if exchange is None:
            exchange = await self._send(request, stream=True)
        shown, reduced = False, None
        try:
            async with aclosing(exchange.events()) as events:
                async for event in events:
                    shown = True
                    yield event
        except ModelError as err:
            if not shown:
                reduced = self._reduced(request, exchange.sent, err, stream=True)
            if reduced is None:
                raise
        if reduced is not None:
            exchange = await self._post(request, reduced, stream=True)
            async with aclosing(exchange.events()) as events:
                async for event in events:
                    yield event

    def replay_report(self, messages: Sequence[Message]) -> list[ReplayFinding]:
        """Return what a request with these messages would drop, rewrite or refuse.

        What refuses and rewrites is the code that writes requests; nothing is sent.
        `lighter_core.explain_replay` also tells about calls without results.
        """
        request, notes = ModelRequest(messages), ReplayNotes(report=True)
        try:
            self._need_messages(request)
            self._encode(request, notes, stream=False)
        except ModelError:
            if not notes.refused:  # else it follows from what is said already
                with notes.needed():
                    raise
        return notes.findings

    async def warm_up(self) -> None:
        """Import the SDK and make the running loop's client; nothing is sent.

        The first request does the same. Called while an application starts, it takes
        that time from the first answer; called again, it does nothing. The import runs
        on a worker thread, once for the process, so other tasks go on. A client is one
        loop's own: warm up on the loop that will send requests.

        Raises:
            ModelError: Where every request would fail in the same way, such as without
                the SDK.
        """
        try:
            await self._sender.warm_up()
        except Exception as err:
            codec = self._codec(ModelRequest([]))
            raise unsent(err, self._sender, codec, self._secrets) from err

    async def aclose(self) -> None:
        """Close the connections; may be called more than once, and used again after."""
        await self._sender.aclose()

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
        self, request: ModelRequest, notes: ReplayNotes, *, stream: bool
    ) -> bytes:
        """Return the body; say in `notes` what of the history is lost, and where.

        It changes nothing of the provider: `replay_report` asks it too. Leave out the
        native context of replies that are in `self._refused`.

        Raises:
            ModelError: `invalid_request` for what the service cannot take.
        """

    @abstractmethod
    def _codec(self, request: ModelRequest) -> Codec:
        """Return what reads the reply to the request."""

    def _lost(self, error: ModelError) -> str | None:  # noqa: ARG002
        """Return a note about what is lost when an error asks to do without it.

        `None` for every error but a service's refusal of its own native context.
        """
        return None

    async def _send(self, request: ModelRequest, *, stream: bool) -> Exchange:
        """Check a request and send it.

        Raises:
            ModelError: For every failure.
        """
        check_request(request.messages, provider=self.name)
        self._need_messages(request)
        return await self._open(request, stream=stream)

    def _need_messages(self, request: ModelRequest) -> None:
        if not request.messages:
            raise ModelError(
                f"there is nothing to send to {self._service.label}: the request has no"
                " messages",
                "invalid_request",
                provider=self.name,
            )

    async def _open(self, request: ModelRequest, *, stream: bool) -> Exchange:
        """Send a request; once more when the service refuses the native context in it.

        A context that was refused once is refused for ever, so it is remembered. A
        refusal inside a reply comes later: `invoke` and `stream` see to it.
        """
        notes = ReplayNotes()
        body = self._encode(request, notes, stream=stream)
        for text in notes.texts:
            note(text, provider=self.name)
        try:
            return await self._post(request, body, stream=stream)
        except ModelError as err:
            reduced = self._reduced(request, body, err, stream=stream)
            if reduced is None:
                raise
        return await self._post(request, reduced, stream=stream)

    def _reduced(
        self, request: ModelRequest, sent: bytes, error: ModelError, *, stream: bool
    ) -> bytes | None:
        """Return the body to send once more, and say so; `None` when nothing helps."""
        lost = self._lost(error) if self._recover else None
        if lost is None:
            return None
        self._refused.add(request.messages)
        body = self._encode(request, ReplayNotes(), stream=stream)
        if body == sent:
            return None
        note(lost, provider=self.name)
        return body

    async def _post(
        self, request: ModelRequest, body: bytes, *, stream: bool
    ) -> Exchange:
        codec = self._codec(request)
        return await Exchange.open(
            self._sender, body, codec, stream=stream, secrets=self._secrets
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(model_id={self.model_id!r},"
            f" base_url={self._service.endpoint!r})"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled: it holds a key and"
            " connections; share it, or make another one from the same options"
        )


async def _message_of(exchange: Exchange) -> AssistantMessage:
    try:
        return await exchange.message()
    finally:
        await exchange.aclose()
