"""T11: loops that come and go, threads, forks, and the synchronous door."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from typing import Any

import pytest
from support.interfaces import BOTH, INTERFACES, Interface
from support.loopback import EVENT_STREAM, Answer
from support.threads import ServerThread
from support.torture import Results, size

from lighter_core import Agent, ToolCall, tool
from lighter_core.testing import FakeProvider, Turn

each = pytest.mark.parametrize("interface", BOTH, ids=lambda each: each.id)


async def ask(agent: Agent) -> str:
    """One answer, by stream."""
    async with agent.stream("go") as stream:
        events = [event async for event in stream]
    assert events[-1].error is None, events[-1].error
    return str(events[-1].text)


def agent_for(interface: Interface, url: str) -> Agent:
    return Agent(
        interface.provider(
            api_key="sk-test", model_id="m", base_url=url, max_retries=0, timeout=20
        )
    )


@each
def test_T11_one_agent_on_many_loops(interface: Interface, results: Results) -> None:
    """Loops in a row, loops in threads at once, loops whose ids come again."""
    loops = size(8, 200)
    with ServerThread() as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        server.script(Answer(headers=EVENT_STREAM, body=interface.streamed))
        agent = agent_for(interface, server.url)
        for _ in range(3):
            assert asyncio.run(ask(agent)) == "Hello!"

        def in_a_thread(number: int) -> list[str]:
            return [asyncio.run(ask(agent)) for _ in range(3)]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            found = list(pool.map(in_a_thread, range(4)))
        assert found == [["Hello!"] * 3] * 4
        ids = set()
        for _ in range(loops):
            loop = asyncio.new_event_loop()
            ids.add(id(loop))
            try:
                assert loop.run_until_complete(ask(agent)) == "Hello!"
            finally:
                loop.run_until_complete(agent.aclose())
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
                loop.close()
        gc.collect()
    results.add(
        "T11",
        f"loops that one agent of {interface.id} served",
        3 + 12 + loops,
        f"all answered; {loops} loops in a row had {len(ids)} ids",
    )


def door(agent: Agent) -> str:
    return agent.run_sync("go").raise_if_failed().text


def fake() -> Agent:
    @tool
    def work() -> str:
        """Work."""
        return "x"

    turns: list[Any] = [Turn(tool_calls=[ToolCall("c", "work", "")]), "done"]
    return Agent(FakeProvider(turns * 9), tools=[work])


def in_a_new_process(queue: Any) -> None:
    queue.put(door(fake()))


def test_T11_the_door_everywhere(results: Results) -> None:
    """Beside a closed loop, inside a running one, in threads, in tools, in children."""
    asyncio.set_event_loop(closed := asyncio.new_event_loop())
    closed.close()
    try:
        assert door(fake()) == "done"
    finally:
        asyncio.set_event_loop(None)

    async def inside() -> str:
        return door(fake())

    assert asyncio.run(inside()) == "done"

    @tool
    def outer() -> str:
        """Ask another agent from a thread."""
        return door(fake())

    @tool(thread=False)
    def inline() -> str:
        """Ask another agent on the loop itself."""
        return door(fake())

    calls = [ToolCall("1", "outer", ""), ToolCall("2", "inline", "")]
    nested = Agent(FakeProvider([Turn(tool_calls=calls), "end"]), tools=[outer, inline])
    response = asyncio.run(_run(nested))
    outputs = [m.tool_output for m in response.messages if m.role == "tool"]
    assert outputs == ['"done"', '"done"']
    threads = threading.active_count()
    for _ in range(50):
        assert door(fake()) == "done"
    assert threading.active_count() <= threads + 1

    spawn = multiprocessing.get_context("spawn")
    queue = spawn.Queue()
    process = spawn.Process(target=in_a_new_process, args=(queue,))
    process.start()
    assert queue.get(timeout=60) == "done"
    process.join(60)
    assert process.exitcode == 0
    results.add("T11", "the synchronous door, in 7 surroundings", 56, "all answered")


async def _run(agent: Agent) -> Any:
    return await agent.run("go")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_T11_a_forked_child_has_clients_of_its_own(
    transport: str, results: Results
) -> None:
    """A child uses neither the parent's loop nor its connections."""
    interface = next(each for each in INTERFACES if each.name == "openai")
    with ServerThread() as server:
        server.script(Answer(headers=EVENT_STREAM, body=interface.streamed))
        code = f"""
        import os
        from lighter_core import Agent
        from lighter_openai import OpenAIProvider
        options = {{"base_url": {server.url!r}, "transport": {transport!r}}}
        agent = Agent(OpenAIProvider("sk-test", "m", **options))

        def ask():
            with agent.stream_sync("go") as stream:
                return list(stream)[-1].raise_if_failed().text

        print("parent", ask(), flush=True)
        child = os.fork()
        if child == 0:
            print("child", ask(), flush=True)
            os._exit(0)
        print("status", os.waitpid(child, 0)[1], flush=True)
        print("parent", ask(), flush=True)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    wanted = ["parent Hello!", "child Hello!", "status 0", "parent Hello!"]
    assert done.stdout.splitlines() == wanted, done.stderr
    results.add("T11", "asking before, in and after a fork", 3, "all answered")


SEED = """
import asyncio
from lighter_core import Agent
from lighter_core._clients import ClientPool
from lighter_openai import OpenAIProvider

kept = []

async def shared(self):
    if not kept:
        kept.append(self._make())
    return kept[0]

{seed}
agent = Agent(OpenAIProvider("sk-test", "m", base_url={url!r}, max_retries=0))

async def ask():
    async with agent.stream("go") as stream:
        return [event async for event in stream][-1]

for _ in range(2):
    response = asyncio.run(ask())
    print(response.text or repr(response.error), flush=True)
"""


@pytest.mark.parametrize("seed", ["", "ClientPool.get = shared"])
def test_T11_finds_it(seed: str) -> None:
    """One client for all loops, as a plain SDK client would be."""
    interface = next(each for each in INTERFACES if each.name == "openai")
    with ServerThread() as server:
        server.script(Answer(headers=EVENT_STREAM, body=interface.streamed))
        done = subprocess.run(
            [sys.executable, "-c", SEED.format(seed=seed, url=server.url)],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    first, second = done.stdout.splitlines()
    assert first == "Hello!"
    assert (second == "Hello!") == (not seed), second
