"""What a check works with: providers whose replies it chooses, and what they sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from lighter_core import (
    AssistantMessage,
    Message,
    MessageEvent,
    ModelError,
    ModelRequest,
    OutputSpec,
    Provider,
    ProviderStreamEvent,
    SupportsAclose,
    ToolSpec,
    Usage,
    UserMessage,
)
from lighter_core.testing import Turn

from ._registry import NotApplicable, Seen, expect
from .case import Case, ScriptedTurn
from .server import EVENT_STREAM, Answer, HTTPRequest, Lane, shared_server
from .wires import Wire

__all__ = [
    "ADD",
    "HELLO",
    "USAGE",
    "WAYS",
    "Bench",
    "Either",
    "Reply",
    "Way",
    "ask",
    "events_of",
    "failing",
    "failures",
    "need_code",
    "say",
    "streamed",
    "streaming",
]

T = TypeVar("T")

USAGE = Usage(20, 10, cache_read_tokens=8, reasoning_tokens=6)
HELLO = Turn(text="Hello, world!", usage=USAGE, pieces=4)
ADD = ToolSpec(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


@dataclass(frozen=True, slots=True)
class Either:
    """What to answer to a request for a stream, and to one for a whole reply."""

    stream: Answer
    whole: Answer


Reply: TypeAlias = ScriptedTurn | Answer | Either


class Bench:
    """The surroundings of one check.

    Attributes:
        case: What is checked.
        patience: How many seconds to wait for what should happen at once.
    """

    def __init__(self, case: Case, *, patience: float = 5.0) -> None:
        self.case = case
        self.patience = patience
        self._made: list[Provider] = []
        self._lane: Lane | None = None

    @property
    def wire(self) -> Wire:
        """The interface that the provider speaks."""
        if self.case.wire is None:
            raise NotApplicable(f"{self.case.name} has no wire")
        return self.case.wire

    @property
    def lane(self) -> Lane:
        """The service, as far as this check is concerned."""
        if self._lane is None:
            self._lane = shared_server().lane()
        return self._lane

    @property
    def requests(self) -> list[HTTPRequest]:
        """What was sent to the service."""
        return self.lane.requests

    def provider(self, *replies: Reply, **options: object) -> Provider:
        """Make a provider whose service gives these replies, the last one for ever."""
        if self.case.wire is None:
            turns = [e for e in replies if not isinstance(e, Answer | Either)]
            made = self.case.scripted(turns)
            if made is None:
                raise NotApplicable(f"{self.case.name} cannot be scripted")
        else:
            self.play(*replies)
            url = self.lane.url + self.wire.base_path
            made = self.case.make(base_url=url, **options)
        return self.keep(made)

    def same_provider(self, *replies: Reply) -> Provider:
        """Return the provider made first, whose service gives these replies now."""
        if not self._made:
            return self.provider(*replies)
        self.play(*replies)
        return self._made[0]

    def speaker(self) -> Provider:
        """Make a provider that says something: hello, where that can be scripted."""
        if self.case.why_not("script") is None:
            return self.provider(HELLO)
        return self.keep(self.case.make())

    def keep(self, provider: Provider) -> Provider:
        """Close the provider after the check."""
        self._made.append(provider)
        return provider

    def play(self, *replies: Reply) -> None:
        """Let the service give these replies from now on."""
        wire, number = self.wire, iter(range(1_000_000))

        def answer(request: HTTPRequest) -> Answer:
            reply = replies[min(next(number), len(replies) - 1)]
            if isinstance(reply, Answer):
                return reply
            body = request.json
            streamed = wire.streamed(body)
            if isinstance(reply, Either):
                return reply.stream if streamed else reply.whole
            turn = reply if isinstance(reply, Turn) else reply(wire.prompt(body))
            if streamed:
                return streaming(wire.stream(turn))
            return Answer(pieces=[wire.whole(turn)])

        self.lane.answer = answer

    async def closed(self) -> bool:
        """Wait until no connection to the service is open; tell whether it came so."""
        return await self.lane.until(lambda: self.lane.open == 0, self.patience)

    async def aclose(self) -> None:
        """Close what was made."""
        for provider in self._made:
            if isinstance(provider, SupportsAclose):
                await provider.aclose()
        if self._lane is not None:
            shared_server().leave(self._lane)


def streaming(pieces: Sequence[bytes]) -> Answer:
    """Return an answer that is an event stream."""
    return Answer(pieces=pieces, headers=EVENT_STREAM)


def ask(
    *messages: Message | str,
    tools: Sequence[ToolSpec] = (),
    output: OutputSpec | None = None,
    tool_choice: str | None = None,
) -> ModelRequest:
    """Return a request; texts are user messages."""
    return ModelRequest(
        [UserMessage(each) if isinstance(each, str) else each for each in messages],
        tool_specs=tools,
        output=output,
        tool_choice=tool_choice,
    )


async def events_of(
    provider: Provider, request: ModelRequest
) -> list[ProviderStreamEvent]:
    """Return all events of a streamed reply."""
    async with aclosing(provider.stream(request)) as events:
        return [event async for event in events]


async def streamed(provider: Provider, request: ModelRequest) -> AssistantMessage:
    """Return the message that a streamed reply ends with."""
    events = await events_of(provider, request)
    last = events[-1] if events else None
    if not isinstance(last, MessageEvent):
        raise Seen(f"the stream's last event is {last!r}")
    return last.message


async def invoked(provider: Provider, request: ModelRequest) -> AssistantMessage:
    """Return a whole reply."""
    return await provider.invoke(request)


Way: TypeAlias = Callable[[Provider, ModelRequest], Awaitable[AssistantMessage]]
WAYS: tuple[tuple[str, Way], ...] = (("invoke", invoked), ("stream", streamed))


async def say(
    provider: Provider, request: ModelRequest
) -> list[tuple[str, AssistantMessage]]:
    """Return the reply by each way, with the way's name."""
    return [(name, await way(provider, request)) for name, way in WAYS]


async def failing(what: str, work: Awaitable[object]) -> ModelError:
    """Return the `ModelError` that the work raises; anything else breaks the contract."""
    try:
        result = await work
    except ModelError as error:
        return error
    except Exception as error:
        raise Seen(f"{what} raised {type(error).__name__}: {error}") from error
    raise Seen(f"{what} raised nothing and gave {result!r}")


async def failures(
    provider: Provider, request: ModelRequest
) -> list[tuple[str, ModelError]]:
    """Return the error of each way, with the way's name."""
    return [(name, await failing(name, way(provider, request))) for name, way in WAYS]


def need_code(where: str, error: ModelError, *codes: str) -> None:
    """Hold an error to one of the codes."""
    wanted = " or ".join(codes)
    expect(error.code in codes, f"{where}: {error.code}, not {wanted}: {error.message}")
