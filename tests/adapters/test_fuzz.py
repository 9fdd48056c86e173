"""Damaged replies: each ends as a valid message or as a documented error, in time.

`LIGHTER_FUZZ=10000` sets how many there are for each adapter (`make fuzz`).
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from typing import get_args

import httpx2
import pytest
from support.damage import damaged
from support.interfaces import ASK, Interface
from support.loopback import Answer
from support.recordings import FOLDER, REASON, exchanges
from support.recordings import Exchange as Recorded

from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelErrorCode,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolMessage,
    Usage,
    UserMessage,
)
from lighter_core.adapters import Exchange, ReplayNotes, Reply, Secrets

pytestmark = [
    pytest.mark.recordings,
    pytest.mark.skipif(not FOLDER.is_dir(), reason=REASON),
    pytest.mark.timeout(3_600),
]
COUNT = int(os.environ.get("LIGHTER_FUZZ", "300"))
OVER_LOOPBACK = max(COUNT // 10, 10)
MOST_SECONDS = 5.0  # for one reply; the deepest and longest need less than one
FAULT = "a fault of the adapter"
PIECES = (1, 7, 100, 10**9)


def recorded(interface: Interface) -> list[Recorded]:
    return [each for vendor in interface.vendors for each in exchanges(vendor)]


async def outcome(replies, *, streamed: bool) -> AssistantMessage | ModelError:
    """What a reply comes to; the deltas of a stream agree with its message."""
    try:
        if not streamed:
            return await replies
        events = [event async for event in replies]
    except ModelError as error:
        return error
    last = events[-1]
    assert isinstance(last, MessageEvent)
    assert sum(isinstance(event, MessageEvent) for event in events) == 1
    text = "".join(e.text for e in events if isinstance(e, TextDelta))
    thought = "".join(e.text for e in events if isinstance(e, ReasoningDelta))
    assert (text, thought) == (last.message.content, last.message.reasoning or "")
    return last.message


def check(found: AssistantMessage | ModelError, provider) -> None:
    """A message is whole and can be sent again; an error is a documented one."""
    if isinstance(found, ModelError):
        assert found.code in get_args(ModelErrorCode)
        assert found.message
        found.message.encode()
        assert FAULT not in found.message, repr(found.__cause__)
        return
    texts = [found.content, found.reasoning or "", found.stop_reason or ""]
    for call in found.tool_calls:
        texts += [call.call_id, call.tool_name, call.arguments]
        assert call.call_id
    for text in texts:
        text.encode()  # no half of a surrogate pair
    usage = found.usage or Usage()
    for name in ("input_tokens", "output_tokens", "reasoning_tokens"):
        assert type(getattr(usage, name)) is int
    results = [
        ToolMessage(call_id=each.call_id, tool_name=each.tool_name, tool_output="ok")
        for each in found.tool_calls
    ]
    history = [UserMessage("a"), found, *results, UserMessage("b")]
    provider._encode(ModelRequest(history), ReplayNotes(), stream=True).decode()


@pytest.mark.parametrize("part", range(4))
async def test_damaged_replies_end_well(interface, part):
    """Through exchange and codec; the exchange's own net catches nothing."""
    wrong: dict[str, str] = {}
    base = recorded(interface)
    provider = interface.provider("sk-test", "test", base_url="http://127.0.0.1:9")
    for number in range(part, COUNT, 4):
        chance = random.Random(f"{interface.name} {number}")
        source = chance.choice(base)
        body = damaged(source.body, chance)
        size = chance.choice(PIECES)

        async def pieces(body: bytes = body, size: int = size):
            size = max(size, len(body) // 200)
            for start in range(0, len(body), size):
                yield body[start : start + size]

        response = httpx2.Response(200, headers=source.headers, content=pieces())
        codec = provider._codec(ASK)
        exchange = Exchange(
            Reply(response, "x-request-id"), codec, Secrets(), time.perf_counter()
        )
        streamed = source.streamed if chance.random() < 0.9 else not source.streamed
        began = time.process_time()
        try:
            replies = exchange.events() if streamed else exchange.message()
            check(await outcome(replies, streamed=streamed), provider)
            assert time.process_time() - began < MOST_SECONDS, "too slow"
        except Exception as err:
            wrong[f"{type(err).__name__}: {err}"[:200]] = f"{number} {source.id}"
    assert wrong == {}


async def test_damaged_replies_end_well_over_the_wire(server, interface, make):
    """With the real SDK, recorded errors and broken connections among them."""
    wrong: dict[str, str] = {}
    base = recorded(interface)
    provider = make(timeout=MOST_SECONDS)
    for number in range(OVER_LOOPBACK):
        chance = random.Random(f"{interface.name} wire {number}")
        source = chance.choice(base)
        body = damaged(source.body, chance)
        end = chance.choice(["complete"] * 6 + ["cut", "reset"])
        status = source.status if chance.random() < 0.7 else chance.choice([400, 500])
        server.script(Answer(status, source.headers, body, end=end))
        streamed = source.streamed
        try:
            async with asyncio.timeout(2 * MOST_SECONDS):
                replies = provider.stream(ASK) if streamed else provider.invoke(ASK)
                check(await outcome(replies, streamed=streamed), provider)
        except Exception as err:
            wrong[f"{type(err).__name__}: {err}"[:200]] = f"{number} {source.id}"
    assert wrong == {}
