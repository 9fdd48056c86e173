"""The hot paths, each in any size: `python -m benchmarks.paths GROUP [WORDS]`.

Does each path of a group once to warm up, then in size n and in size 2n, with a mark
before and after both; `benchmarks.instructions` runs it under callgrind and takes the
difference, so what does not grow with the work cancels out. Prints the names in order.
No network: the provider's sender hands out replies that are there already. Where bytes
are sent no path reaches into Lighter, but for the decoders and the splitter, which are
parts with a row of their own.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jiter import from_json

from benchmarks.compare import alone
from benchmarks.compare.replies import Protocol, streamed
from benchmarks.compare.runners.plain import Plain
from benchmarks.compare.work import ANSWER, QUESTION, pieces, scenario
from benchmarks.parts import interfaces
from benchmarks.parts.interfaces import body, codec, make_provider
from lighter_core import (
    Agent,
    AssistantMessage,
    Message,
    ModelRequest,
    TextDelta,
    ToolCall,
    Usage,
    UserMessage,
    messages_from_json,
    messages_to_json,
)
from lighter_core._notes import collect_notes
from lighter_core._sse import EventStreamSplitter
from lighter_core.adapters import SDKProvider
from lighter_core.adapters._sender import Reply

ROUNDS, TURNS = 10, 40
INTERFACES: tuple[Protocol, ...] = ("responses", "chat", "messages")
GROUPS = ("core", *INTERFACES)
Work = Callable[[], Awaitable[None]]
check = alone.check


@dataclass(frozen=True)
class Path:
    """A path, or what is the least that its work can cost.

    Attributes:
        size: How many repetitions the smaller of the two sizes has.
        make: Prepares so many repetitions.
        parts: How many units one repetition has.
        floor: The name of the path that does the least possible.
    """

    name: str
    size: int
    make: Callable[[int], Work]
    parts: int = 1
    floor: str | None = None


def paths(group: str) -> list[Path]:
    """Return the paths of a group."""
    for interface in INTERFACES:
        if interface == group:
            return _of_interface(interface)
    return _of_core()


def repeated(once: Callable[[], object]) -> Callable[[int], Work]:
    """Return work that is done again and again."""

    def make(times: int) -> Work:
        async def work() -> None:
            for _ in range(times):
                once()

        return work

    return make


def awaited(once: Callable[[], Awaitable[object]]) -> Callable[[int], Work]:
    """Return work that is awaited again and again."""

    def make(times: int) -> Work:
        async def work() -> None:
            for _ in range(times):
                await once()

        return work

    return make


# The framework alone


def _of_core() -> list[Path]:
    ready = alone.replies()
    usage = Usage(20, 10)
    short = Agent(alone.Ready([AssistantMessage(ANSWER, usage=usage)]))
    rounds = Agent(alone.Ready(ready), tools=[alone.add_async])
    plain = alone.RUNS * alone.ROUNDS
    call = ToolCall("call_1", "add_up", json.dumps({"a": 1, "b": 2}))
    messages = interfaces.conversation("responses", TURNS)
    document = messages_to_json(messages)
    data = json.loads(document)
    read, written = "floor: json.loads of it", "floor: json.dumps of it"

    async def answered() -> None:
        out = await alone.add_async.answer(call, None)
        check(out.tool_output == "1000003")

    def by_hand() -> None:
        values = json.loads(call.arguments)
        check(
            values.keys() == {"a", "b"} and all(type(v) is int for v in values.values())
        )
        check(json.dumps(alone.add_up(**values)) == "1000003")

    return [  # what needs no event loop first: its memory is always laid out alike
        Path(
            "160 messages to JSON",
            2,
            repeated(lambda: messages_to_json(messages)),
            floor=written,
        ),
        Path(written, 2, repeated(lambda: json.dumps(data))),
        Path(
            "160 messages from JSON",
            2,
            repeated(lambda: messages_from_json(document)),
            floor=read,
        ),
        Path(read, 2, repeated(lambda: json.loads(document))),
        Path("a tool call", 50, awaited(answered), floor="floor: by hand"),
        Path("floor: by hand", 50, repeated(by_hand)),
        Path("a run with a short reply", 30, awaited(lambda: short.run(QUESTION))),
        Path(
            "a round with an async tool",
            3,
            awaited(lambda: rounds.run(QUESTION)),
            alone.ROUNDS,
            "floor: a round of a plain loop",
        ),
        Path("floor: a round of a plain loop", 1, awaited(alone.plain_rounds), plain),
        Path("a streamed delta", 300, _core_deltas, floor="floor: a plain delta"),
        Path("floor: a plain delta", 300, _plain_deltas),
    ]


def _core_deltas(number: int) -> Work:
    said = pieces(number)
    agent = Agent(alone.Ready([AssistantMessage("".join(said))], number))
    return lambda: _drain(agent, number)


def _plain_deltas(number: int) -> Work:
    ready = alone.Ready([AssistantMessage("")], number)
    request = ModelRequest([UserMessage(QUESTION)])

    async def work() -> None:
        parts: list[str] = []
        async for event in ready.stream(request):
            if type(event) is TextDelta:
                parts.append(event.text)
        check(len(parts) == number)

    return work


async def _drain(agent: Agent, number: int) -> None:
    seen = 0
    async with agent.stream(QUESTION) as stream:
        async for event in stream:
            seen += type(event) is TextDelta
    check(seen == number)


# Each interface


class Handing:
    """Hands out replies in place of a provider's sender; keeps the last body sent."""

    def __init__(self, *replies: Sequence[bytes], kind: str) -> None:
        self._replies, self._kind = replies, kind
        self._next = 0
        self.sent = b""

    async def post(self, body: bytes, *, stream: bool) -> Reply:  # noqa: ARG002
        """Return the next reply, the first again behind the last."""
        self.sent = body
        reply = Handed(self._replies[self._next % len(self._replies)], self._kind)
        self._next += 1
        return Reply(reply, "x-request-id")  # type: ignore[arg-type]

    def provider(self, interface: str) -> SDKProvider:
        """Return a provider that sends here."""
        made = make_provider(interface)
        made._sender.post = self.post  # type: ignore[method-assign]  # noqa: SLF001
        return made


class Handed:
    """As much of the transport's response as is read."""

    status_code = 200
    is_stream_consumed = False

    def __init__(self, given: Sequence[bytes], kind: str) -> None:
        self.headers = {"content-type": kind}
        self.is_closed = False
        self._given = given

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        """Yield the pieces as they are."""
        for piece in self._given:
            yield piece
        self.is_closed = True

    aiter_raw = aiter_bytes

    async def aclose(self) -> None:
        """Nothing is open."""
        self.is_closed = True


def _of_interface(interface: Protocol) -> list[Path]:
    text = body(interface, "text")
    calls = [body(interface, "tools", ROUNDS, turn) for turn in range(ROUNDS + 1)]
    plain = Plain(interface)
    once, ten = plain.prepare("text-0", []), plain.prepare(f"tools-{ROUNDS}", [])
    decode = codec(interface).decode_body
    short = Agent(_whole(text).provider(interface))
    rounds = Agent(_whole(*calls).provider(interface), tools=[alone.add_async])
    splitter = "floor: jiter and the splitter"
    dumped = "floor: json.dumps of it, jiter of the reply"

    async def run_rounds() -> None:
        done = (await rounds.run(QUESTION)).raise_if_failed()
        check(len(done.messages) == 2 * ROUNDS + 1 and done.text == ANSWER)

    async def plain_rounds() -> None:
        found = await plain.run(ten)
        check(scenario(f"tools-{ROUNDS}").problem(found) is None)

    return [
        Path(
            "a whole reply decoded: text",
            20,
            repeated(lambda: decode(text)),
            floor="floor: jiter, text",
        ),
        Path("floor: jiter, text", 20, repeated(lambda: from_json(text))),
        Path(
            "a whole reply decoded: a tool call",
            20,
            repeated(lambda: decode(calls[0])),
            floor="floor: jiter, a tool call",
        ),
        Path("floor: jiter, a tool call", 20, repeated(lambda: from_json(calls[0]))),
        Path(
            "a call with 160 items of history, new ones",
            2,
            lambda number: _fresh(interface, number),
            floor=dumped,
        ),
        Path(
            "a call with a turn more than before, in a run",
            2,
            lambda number: _grown(interface, number),
            floor=dumped,
        ),
        Path(dumped, 2, lambda number: _dumped(interface, number)),
        Path(
            "a run with a short reply",
            10,
            awaited(lambda: short.run(QUESTION)),
            floor="floor: a plain run",
        ),
        Path("floor: a plain run", 10, awaited(lambda: plain.run(once))),
        Path(
            "a call in a run with ten tool rounds",
            2,
            awaited(run_rounds),
            ROUNDS + 1,
            "floor: a call of a plain loop",
        ),
        Path("floor: a call of a plain loop", 2, awaited(plain_rounds), ROUNDS + 1),
        Path(
            "a streamed delta",
            200,
            lambda number: _deltas(interface, number),
            floor=splitter,
        ),
        Path(splitter, 200, lambda number: _split(interface, number)),
    ]


def _whole(*bodies: bytes) -> Handing:
    return Handing(*([each] for each in bodies), kind="application/json")


def _pieces(interface: Protocol, number: int) -> list[bytes]:
    """Return one piece for each event, without the frame of an HTTP chunk."""
    parts = streamed(interface, "stream", number, 0)[1:-1]
    return [part[part.index(b"\r\n") + 2 : -2] for part in parts]


def _deltas(interface: Protocol, number: int) -> Work:
    handing = Handing(_pieces(interface, number), kind="text/event-stream")
    agent = Agent(handing.provider(interface))
    return lambda: _drain(agent, number)


def _split(interface: Protocol, number: int) -> Work:
    """Take the same pieces as bytes, split them, read each as JSON."""
    handed = Handed(_pieces(interface, number), "")

    async def work() -> None:
        seen, splitter = 0, EventStreamSplitter()
        async for piece in handed.aiter_bytes():
            for data in splitter.feed(piece):
                if data != b"[DONE]":
                    from_json(data)
                    seen += 1
        check(seen > number)

    return work


def _fresh(interface: Protocol, number: int) -> Work:
    """Send histories that no request held before."""
    histories = [
        _asking(interfaces.conversation(interface, TURNS)) for _ in range(number)
    ]
    handing = _whole(body(interface, "text"))
    provider = handing.provider(interface)

    async def work() -> None:
        for history in histories:
            await provider.invoke(ModelRequest(history))
            check(handing.sent.count(QUESTION.encode()) == TURNS + 1)

    return work


def _grown(interface: Protocol, number: int) -> Work:
    """Send a history, then the same with one turn more each time, as a run does."""
    history = interfaces.conversation(interface, TURNS + number + 1)
    handing = _whole(body(interface, "text"))
    provider = handing.provider(interface)

    async def work() -> None:
        with collect_notes([]):
            for turns in range(TURNS, TURNS + number + 1):
                await provider.invoke(ModelRequest(history[: turns * 4 + 1]))
                check(handing.sent.count(QUESTION.encode()) == turns + 1)

    return work


def _dumped(interface: Protocol, number: int) -> Work:
    """Write the same body as the standard library does, read the same reply."""
    handing = _whole(body(interface, "text"))
    request = ModelRequest(_asking(interfaces.conversation(interface, TURNS)))
    asyncio.run(handing.provider(interface).invoke(request))
    data: Any = json.loads(handing.sent)
    reply = body(interface, "text")

    async def work() -> None:
        for _ in range(number):
            json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
            from_json(reply)

    return work


def _asking(history: list[Message]) -> list[Message]:
    return [*history, UserMessage(QUESTION)]


def mark() -> None:
    """Let callgrind begin a new part: it watches for this function of the C library."""
    os.getsid(0)


def run(path: Path, mark: Callable[[], None]) -> None:
    """Do the work of a path in both sizes, between marks."""
    half, full = path.make(path.size), path.make(2 * path.size)
    with asyncio.Runner() as loop:
        loop.run(_awaited(path.make(path.size)))  # first uses
        for work in (half, full):
            gc.collect()
            gc.freeze()  # what is here already costs the paths nothing
            mark()
            loop.run(_awaited(work))
            mark()


async def _awaited(work: Work) -> None:
    await work()


def chosen(group: str, words: Sequence[str]) -> list[Path]:
    """Return the paths whose name has one of the words, and their floors."""
    of_group = paths(group)
    if not words:
        return of_group
    hit = [each for each in of_group if any(word in each.name for word in words)]
    kept = {each.name for each in hit} | {each.floor for each in hit}
    return [each for each in of_group if each.name in kept]


def main() -> None:
    """Run a group; print what the parts are."""
    of_group = chosen(sys.argv[1], sys.argv[2:])
    for path in of_group:
        run(path, mark)
    sizes = [(each.name, each.size * each.parts, each.floor) for each in of_group]
    print(json.dumps(sizes))


if __name__ == "__main__":
    main()
