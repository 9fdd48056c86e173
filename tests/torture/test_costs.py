"""T14: costs grow with the size of what is done and no faster; S4: hostile calls."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support import chat_streams, claude_streams, openai_streams
from support.interfaces import INTERFACES, Interface, ask
from support.torture import FULL, Results, size
from support.wire import Wire, wired

from lighter_core import (
    Agent,
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
    tool,
)
from lighter_core.testing import FakeProvider, Turn

GOAL = 2.3  # times the time for the double

measured = pytest.mark.skipif(
    not FULL,
    reason="measures time, for `make torture`: tests/benchmarks counts copies instead",
)
each = pytest.mark.parametrize("interface", INTERFACES, ids=lambda each: each.name)


def body(interface: Interface, kind: str, count: int) -> bytes:
    """A reply of a call with many small fragments of arguments, or of a long text."""
    text = "0123456é" * count
    if kind == "text":
        return body_of_text(interface, text)
    arguments = json.dumps({"text": text}, ensure_ascii=False)
    if interface.name == "claude":
        block = claude_streams.call("note", {"text": text})
        return claude_streams.sse(claude_streams.reply(block, stop="tool_use"))
    if interface.name == "openai-chat":
        call = chat_streams.call("note", arguments)
        events = chat_streams.reply({"tool_calls": [call]}, "tool_calls", 8)
        return chat_streams.sse(events)
    item = openai_streams.call("note", arguments)
    return openai_streams.sse(openai_streams.reply(item))


def body_of_text(interface: Interface, text: str) -> bytes:
    """A reply of a text in small fragments."""
    if interface.name == "claude":
        return claude_streams.sse(claude_streams.reply(claude_streams.text(text)))
    if interface.name == "openai-chat":
        return chat_streams.sse(chat_streams.reply({"content": text}, size=8))
    return openai_streams.sse(openai_streams.reply(openai_streams.message(text)))


async def best_of(times: int, work: Callable[[], Any]) -> float:
    """Seconds of one core."""
    found = []
    for _ in range(times):
        began = time.process_time()
        await work()
        found.append(time.process_time() - began)
    return min(found)


def long_text(interface: Interface, size: int) -> bytes:
    """A reply of a text of many bytes, in fragments of 64.

    Made from a reply of one fragment: dicts for all events would take gigabytes.
    """
    whole, mark = body_of_text(interface, "0123"), b'"0123"'
    fragment = "0123456é" * 7 + "01234567"
    count, blocks, done = size // 64, [], False
    for block in whole.split(b"\n\n"):
        if mark in block and not done:
            one = block.replace(mark, json.dumps(fragment).encode())
            blocks += [one] * count
            done = True
        else:
            blocks.append(block.replace(mark, json.dumps(fragment * count).encode()))
    return b"\n\n".join(blocks)


Read = Callable[[Any], Any]
Body = Callable[[int], bytes]


async def ratio(
    read: Read, interface: Interface, body: Body, count: int, tries: int = 4
) -> float:
    """How much longer the double takes; the least of some tries, if it is much.

    What else a machine does makes a try longer, and no quadratic reader quick.
    """
    found = []
    for _ in range(tries):
        seconds = []
        async with wired(interface) as (provider, wire):
            for each_count in (count, 2 * count):
                data = body(each_count)
                pieces = [data[i : i + 4096] for i in range(0, len(data), 4096)]
                wire.script(Wire(pieces))
                seconds.append(await best_of(2, lambda: read(provider)))
        found.append(seconds[1] / seconds[0])
        if found[-1] <= GOAL:
            break
    return min(found)


async def whole(provider: Any) -> None:
    await ask(provider, streamed=True)


@measured
@each
@pytest.mark.parametrize("kind", ["call", "text"])
async def test_T14_double_replies_take_double_time(
    interface: Interface, kind: str, results: Results
) -> None:
    """R10: arguments in small fragments and long texts are read in linear time."""
    count = 65_000
    found = await ratio(whole, interface, partial(body, interface, kind), count)
    assert found <= GOAL
    results.add(
        "T14",
        f"{kind} of {count * 16 // 1000} KB against half of it, {interface.name}",
        2,
        f"{found:.2f} times the time",
    )


@measured
@each
async def test_T14_ten_megabytes_of_text(
    interface: Interface, results: Results
) -> None:
    """R10: a text that no model writes; the half of it takes half the time."""
    most = 10_000_000
    message: list[AssistantMessage] = []

    async def read(provider: Any) -> None:
        message[:] = [await ask(provider, streamed=True)]

    found = await ratio(read, interface, partial(long_text, interface), most // 2)
    assert len(message[0].content.encode()) >= most * 0.99
    assert found <= GOAL
    results.add(
        "T14",
        f"text of {most // 1000:,} KB against half of it, {interface.name}",
        2,
        f"{found:.2f} times the time",
    )


@measured
async def test_T14_finds_it() -> None:
    """A reader that joins everything again at each fragment."""

    async def quadratic(provider: Any) -> None:
        from lighter_core import ModelRequest

        text = ""
        async for event in provider.stream(ModelRequest([UserMessage("x")])):
            text += getattr(event, "text", "")
            for _ in range(20):  # so that it outweighs what is linear
                json.dumps(text)

    make = partial(body, INTERFACES[0], "text")
    assert await ratio(quadratic, INTERFACES[0], make, 1_000) > GOAL


@measured
async def test_T14_the_loop_costs_little(results: Results) -> None:
    """R10, R11: for each model call, also behind a history of a thousand turns."""
    turns = 200

    @tool
    async def note() -> str:
        """Write a note."""
        return "x"

    def script() -> list[Any]:
        calls = [Turn(tool_calls=[ToolCall(f"c{n}", "note", "")]) for n in range(turns)]
        return [*calls, "end"]

    async def run(history: list[Message]) -> None:
        agent = Agent(FakeProvider(script()), tools=[note], limits=None)
        (await agent.run(history)).raise_if_failed()

    long: list[Message] = []
    for number in range(1_000):
        call = ToolCall(f"h{number}", "note", "")
        result = ToolMessage(call_id=call.call_id, tool_name="note", tool_output='"x"')
        reply = AssistantMessage("", tool_calls=[call])
        long += [UserMessage("u"), reply, result, AssistantMessage("a")]

    single: list[Message] = [UserMessage("go")]
    alone = await best_of(3, lambda: run(single)) / turns
    behind = await best_of(3, lambda: run([*long, UserMessage("go")])) / turns
    results.add(
        "T14",
        "a model call and a tool call of the loop, fake provider",
        turns,
        f"{alone * 1e6:.0f} µs; behind 1,000 turns {behind * 1e6:.0f} µs",
    )
    assert alone < 0.002
    assert behind < 0.01

    async def text_only() -> None:
        agent = Agent(FakeProvider(["x"] * turns))
        for _ in range(turns):
            await agent.run("go")

    one = await best_of(3, text_only) / turns
    results.add("T14", "a whole run of one model call", turns, f"{one * 1e6:.0f} µs")
    assert one < 0.002


NAMES = ("act", "ACT", " act", "act ", "act.__class__", "__init__", "functions.act")
NAMES += (
    "{0}",
    "%s",
    "act\n",
    "\u0430ct",
    "",
    "../act",
    "act;rm",
    "None",
    "tools[0]",
    "x" * 999,
)
VALUES = (
    "{}",
    '{"n": 1}',
    '{"n": 1, "self": 2}',
    '{"__class__": 1}',
    "[1]",
    "{",
    "\ud83e",
)
VALUES += (
    '{"n": "{0.__class__}"}',
    '{"n": 1e999}',
    "[" * 9_000,
    '{"n": ' + "9" * 5_000 + "}",
)


async def hostile(agent_of: Callable[[FakeProvider], Agent], ran: list[int]) -> int:
    """Many calls as no honest model makes them; count those that were executed."""
    chance = random.Random(7)
    rounds = size(4, 200)
    turns = [
        Turn(
            tool_calls=[
                ToolCall(f"{n}-{i}", chance.choice(NAMES), chance.choice(VALUES))
                for i in range(50)
            ]
        )
        for n in range(rounds)
    ]
    response = await agent_of(FakeProvider([*turns, "end"])).run("go")
    assert response.status == "completed", response.error
    calls = {
        c.call_id: c for m in response.messages for c in getattr(m, "tool_calls", ())
    }
    results = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert len(results) == 50 * rounds
    good = [m for m in results if not m.is_error]
    for message in good:
        call = calls[message.call_id]
        assert (call.tool_name, call.arguments) == ("act", '{"n": 1}')
    assert len(ran) == len(good)
    return len(results)


async def test_S4_hostile_calls_are_dispatched_to_nothing_else(
    results: Results,
) -> None:
    """Names and arguments reach registered tools with valid arguments, or nothing."""
    ran: list[int] = []

    @tool
    async def act(n: int) -> str:
        """Act."""
        ran.append(n)
        return "x"

    count = await hostile(
        lambda provider: Agent(provider, tools=[act], limits=None), ran
    )
    results.add("S4", "hostile calls of tools (S4)", count, "0 dispatched elsewhere")
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_S4_finds_it() -> None:
    """A tool that takes what it should not."""
    ran: list[int] = []

    @tool
    async def act(n: int = 0) -> str:
        """Act."""
        ran.append(n)
        return "x"

    with pytest.raises(AssertionError):
        await hostile(lambda provider: Agent(provider, tools=[act], limits=None), ran)
