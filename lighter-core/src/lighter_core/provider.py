"""The contract between Lighter and a model service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Literal, Protocol, runtime_checkable

from ._dataclass import dataclass
from .events import ProviderStreamEvent
from .messages import AssistantMessage, Message
from .requests import ModelRequest

__all__ = [
    "Provider",
    "ReplayFinding",
    "SupportsAclose",
    "SupportsReplayReport",
    "SupportsWarmUp",
    "replay_report_of",
]


@runtime_checkable
class Provider(Protocol):
    """Connects a model service: converts requests, replies and errors.

    One provider serves many runs at once, from several event loops: it keeps no
    history of a conversation. Failures are raised as `ModelError`;
    `asyncio.CancelledError` is never caught for good.

    A provider may have an attribute `capabilities`, a `frozenset[str]` of what it can
    do beyond text and tools; absent means empty. The words: `"output"` and
    `"tool_choice"` for these fields of a request, `"image"` and `"file"` for these parts
    of a user message.
    """

    @property
    def name(self) -> str:
        """A stable name of the service, such as `"openai"`."""
        ...

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the complete reply.

        It equals the message that `stream` would end with. An incomplete or failed
        generation raises `ModelError`; it is never returned as a reply.
        """
        ...

    def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield deltas as they arrive, then exactly one `MessageEvent`.

        The text deltas joined equal the message's `content`, the reasoning deltas its
        `reasoning or ""`. When the service's stream ends early, raise `ModelError`
        instead of yielding a message. The caller always closes the generator; closing
        it releases the connection.
        """
        ...


@runtime_checkable
class SupportsAclose(Protocol):
    """A provider that holds resources."""

    async def aclose(self) -> None:
        """Release connections; may be called more than once."""
        ...


@runtime_checkable
class SupportsWarmUp(Protocol):
    """A provider that can do beforehand what its first request would do."""

    async def warm_up(self) -> None:
        """Load libraries and make clients for the running loop; send nothing.

        May be called more than once, and from several tasks at once; requests need not
        wait for it. What it raises, each request would raise.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReplayFinding:
    """One thing of a history that does not reach a service as it is.

    Attributes:
        path: Where it stands, e.g. `"messages[3]"` or `"messages[3].tool_calls[0]"`;
            `"messages"` for the history as a whole.
        kind: `"dropped"`: the service does not get it. `"rewritten"`: it gets it in
            another form. `"refused"`: the request fails.
        text: What happens and why, in one sentence without any content.
    """

    path: str
    kind: Literal["dropped", "rewritten", "refused"]
    text: str


@runtime_checkable
class SupportsReplayReport(Protocol):
    """A provider that can tell beforehand what becomes of a history."""

    def replay_report(self, messages: Sequence[Message]) -> list[ReplayFinding]:
        """Return what would be dropped, rewritten or refused; nothing is sent.

        The messages pass `check_history`. The texts of what is not refused are the
        notes that a request with these messages makes; what is refused makes the
        request fail with `invalid_request`. It changes nothing, and the same history
        gives the same findings as long as the provider has learnt nothing new.
        """
        ...


def replay_report_of(
    provider: Provider, messages: Sequence[Message]
) -> list[ReplayFinding]:
    """Return what a provider says, or what must be said of one that says nothing."""
    if isinstance(provider, SupportsReplayReport):
        return provider.replay_report(messages)
    return [
        ReplayFinding(
            f"messages[{number}]",
            "dropped",
            f"only {each.native.provider!r} can read the native context of its replies;"
            f" {provider.name!r} does not say what it makes of their public fields",
        )
        for number, each in enumerate(messages)
        if isinstance(each, AssistantMessage)
        and each.native is not None
        and each.native.provider != provider.name
    ]
