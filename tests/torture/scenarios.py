"""T3 and T4: what is interrupted, in which way, and what must hold behind it."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.checkpoints import Checkpoints
from support.interfaces import INTERFACES
from support.leak_guard import LeakGuard
from support.replies import FINAL, STREAMS
from support.wire import Wire, wired

from lighter_core import (
    Agent,
    AgentResponse,
    AgentStream,
    Message,
    Model,
    ModelRequest,
    SessionNotFoundError,
    ToolCall,
    UserMessage,
    check_history,
    hookimpl,
    tool,
)
from lighter_core.fallback import FallbackProvider
from lighter_core.retry import RetryProvider
from lighter_core.sessions import Session, SQLiteStore
from lighter_core.testing import FakeProvider, Pause, Turn


@dataclass
class Watch:
    """What one run of a scenario did."""

    ran: list[str] = field(default_factory=list)
    inside: int = 0  # tools between their first line and their `finally`
    stream: AgentStream[Any] | None = None
    messages: list[Message] | None = None
    session: Any = None


def tools_of(watch: Watch) -> list[Any]:
    @tool
    async def slow(text: str) -> str:
        """Work in steps."""
        watch.ran.append(text)
        watch.inside += 1
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(0.0005)
        finally:
            watch.inside -= 1
        return text

    @tool
    def threaded(text: str) -> str:
        """Work in a thread."""
        watch.ran.append(text)
        return text

    @tool
    async def note(text: str, n: int) -> str:
        """Write a note."""
        watch.ran.append(f"{text}{n}{len(watch.ran)}")
        return "noted"

    return [slow, threaded, note]


def script() -> list[Any]:
    calls = [
        ToolCall("1", "slow", '{"text": "a"}'),
        ToolCall("2", "threaded", '{"text": "b"}'),
    ]
    more = [ToolCall("3", "slow", '{"text": "c"}')]
    return [
        Turn(text="hello", reasoning="hm", tool_calls=calls),
        Turn(tool_calls=more),
        [Pause(0.0005), *_events("the end")],
    ]


def _events(text: str) -> list[Any]:
    from lighter_core import AssistantMessage, MessageEvent, TextDelta

    return [TextDelta(text), MessageEvent(AssistantMessage(text))]


class SlowHooks:
    """Each hook waits once before it does nothing."""

    @hookimpl
    async def before_agent(self, request: Any) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def before_model(self, request: Any) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def after_model(self, message: Any) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def before_tool(self, call: Any) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def after_tool(self, message: Any) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def around_model(self, request: Any, call_model: Any) -> Any:
        await asyncio.sleep(0)
        return await call_model(request)

    @hookimpl
    async def around_tool(self, call: Any, call_tool: Any) -> Any:
        await asyncio.sleep(0)
        return await call_tool(call)

    @hookimpl
    async def after_agent(self, messages: Any) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def on_run_end(self, response: Any) -> None:
        await asyncio.sleep(0)


Door = Callable[[Agent, Watch], Awaitable[None]]


async def by_run(agent: Agent, watch: Watch) -> None:
    watch.messages = (await agent.run("go")).messages


async def by_start(agent: Agent, watch: Watch) -> None:
    watch.messages = (await agent.start("go")).messages


async def by_stream(agent: Agent, watch: Watch) -> None:
    watch.stream = agent.stream("go")
    async with watch.stream as stream:
        async for event in stream:
            if isinstance(event, AgentResponse):
                watch.messages = event.messages


async def by_model(agent: Agent, watch: Watch) -> None:
    request = ModelRequest([UserMessage("go")])
    async for _ in agent.model.stream(request):
        pass
    await agent.model.invoke(request)


@asynccontextmanager
async def plain(watch: Watch) -> AsyncIterator[Agent]:
    yield Agent(FakeProvider(script()), tools=tools_of(watch))


@asynccontextmanager
async def parallel(watch: Watch) -> AsyncIterator[Agent]:
    agent = Agent(FakeProvider(script()), tools=tools_of(watch), parallel_tools=True)
    yield agent


@asynccontextmanager
async def hooked(watch: Watch) -> AsyncIterator[Agent]:
    yield Agent(FakeProvider(script()), tools=tools_of(watch), hooks=[SlowHooks()])


@asynccontextmanager
async def nested(watch: Watch) -> AsyncIterator[Agent]:
    inner = Agent(FakeProvider(script()), tools=tools_of(watch))

    @tool
    async def ask() -> str:
        """Ask the other agent."""
        return (await inner.run("go")).text

    outer = FakeProvider([Turn(tool_calls=[ToolCall("n", "ask", "")]), "done"])
    yield Agent(outer, tools=[ask])


@asynccontextmanager
async def wrapped(watch: Watch) -> AsyncIterator[Agent]:
    from lighter_core import ModelError

    down = [ModelError("down", "server_error") for _ in range(2)]
    first = RetryProvider(FakeProvider(down), tries=2, wait=0.0005)
    provider = FallbackProvider([first, FakeProvider(script(), name="second")])
    yield Agent(provider, tools=tools_of(watch))


def on_wire(name: str) -> Callable[[Watch], Any]:
    interface = next(each for each in INTERFACES if each.name == name)
    own = [each for each in STREAMS if each.interface is interface]
    body = min(own, key=lambda each: abs(each.calls - 2)).body

    @asynccontextmanager
    async def scenario(watch: Watch) -> AsyncIterator[Agent]:
        async with wired(interface) as (provider, wire):
            step = len(body) // 12
            pieces = [body[at : at + step] for at in range(0, len(body), step)]
            wire.script(Wire(pieces, slow=True), Wire(FINAL[name], slow=True))
            agent = Agent(Model(provider), tools=tools_of(watch))
            yield agent
            assert wire.open == 0, "a response was left open"

    return scenario


@asynccontextmanager
async def stored(watch: Watch) -> AsyncIterator[Agent]:
    agent = Agent(FakeProvider(script()), tools=tools_of(watch))
    with tempfile.TemporaryDirectory() as folder:
        async with SQLiteStore(Path(folder) / "s.db") as store:
            watch.session = Session(agent, store, "s")
            yield agent
            with suppress(SessionNotFoundError):
                kept = (await store.load("s")).messages
                assert check_history(kept) == [], "what is stored is no history"


async def by_session(agent: Agent, watch: Watch) -> None:
    watch.messages = (await watch.session.run("go")).messages


# Name: what makes the agent, how it is run, and whose suspensions are counted.
SCENARIOS: dict[str, tuple[Callable[[Watch], Any], Door, str]] = {
    "run": (plain, by_run, "caller"),
    "start": (plain, by_start, "run"),
    "stream, its consumer": (plain, by_stream, "caller"),
    "stream, its task": (plain, by_stream, "run"),
    "run with hooks": (hooked, by_run, "caller"),
    "stream with hooks, its task": (hooked, by_stream, "run"),
    "agent in a tool": (nested, by_run, "caller"),
    "retry and fallback": (wrapped, by_run, "caller"),
    "OpenAI, stream, its task": (on_wire("openai"), by_stream, "run"),
    "Claude, stream, its consumer": (on_wire("claude"), by_stream, "caller"),
    "Claude, stream, its task": (on_wire("claude"), by_stream, "run"),
    "Chat, stream, its task": (on_wire("openai-chat"), by_stream, "run"),
    "start with hooks": (hooked, by_start, "run"),
    "stream with hooks, its consumer": (hooked, by_stream, "caller"),
    "agent in a tool, stream, its task": (nested, by_stream, "run"),
    "retry and fallback, stream, its task": (wrapped, by_stream, "run"),
    "DeepSeek, stream, its task": (on_wire("deepseek"), by_stream, "run"),
    "OpenAI, stream, its consumer": (on_wire("openai"), by_stream, "caller"),
    "parallel tools": (parallel, by_run, "caller"),
    "parallel tools, stream, its task": (parallel, by_stream, "run"),
    "session": (stored, by_session, "caller"),
    "model, directly": (plain, by_model, "caller"),
}
MODES = ("cancel", "late cancel", "timeout", "aclose")
_RUNS = ("_drive", "_run", "run_loop", "_journalled", "_supervised")


@dataclass
class Broken:
    """How one interruption ended; the time is the processor's, whatever else runs."""

    seen: int
    acted: bool
    seconds: float


async def interrupt(name: str, at: int | None, mode: str, make: Any = None) -> Broken:
    """Run a scenario and break in at a suspension; check all that must hold then."""
    made, door, where = SCENARIOS[name]
    watch = Watch()
    loop = asyncio.get_running_loop()
    counted: list[Checkpoints] = []
    began = [0.0]
    async with LeakGuard(fds=False), (make or made)(watch) as agent:
        limit = asyncio.timeout(None)
        task: asyncio.Task[Any] | None = None

        def act(waited: Any) -> None:
            began[0] = time.process_time()
            target = asyncio.current_task()
            assert target is not None
            if mode == "cancel":
                target.cancel()
            elif mode == "late cancel":
                if waited is None:
                    target.cancel()
                else:
                    waited.add_done_callback(lambda _: target.cancel())
            elif mode == "timeout":
                limit.reschedule(loop.time())
            elif watch.stream is not None:
                closers.append(loop.create_task(watch.stream.aclose()))

        closers: list[asyncio.Task[None]] = []

        def counting(coroutine: Any) -> Any:
            counted.append(Checkpoints(coroutine, at=at, act=act))
            return _await(counted[-1])

        def factory(loop: Any, coroutine: Any, **options: Any) -> Any:
            if not counted and where == "run" and coroutine is not first:
                coroutine = counting(coroutine)
            return asyncio.Task(coroutine, loop=loop, **options)

        async def main() -> None:
            async with limit:
                await door(agent, watch)

        first = main()
        if where == "caller":
            first = counting(first)
        ending: BaseException | None = None
        loop.set_task_factory(factory)
        try:
            task = loop.create_task(first)
            done, _ = await asyncio.wait([task], timeout=10)
            assert done, "hung"
            ending = asyncio.CancelledError() if task.cancelled() else task.exception()
            seconds = time.process_time() - began[0]
            await asyncio.gather(*closers)
        finally:
            loop.set_task_factory(None)
        _check_ending(ending, watch, counted, at, mode)
        _check_world(watch)
    [only] = counted
    return Broken(only.seen, only.acted, seconds)


async def _await(counted: Checkpoints) -> Any:
    return await counted


def _check_ending(
    ending: BaseException | None,
    watch: Watch,
    counted: list[Checkpoints],
    at: int | None,
    mode: str,
) -> None:
    if at is None or not counted[0].acted or mode == "aclose":
        assert ending is None, repr(ending)
    elif mode == "timeout":
        assert isinstance(ending, TimeoutError), f"no timeout: {ending!r}"
    else:
        assert isinstance(ending, asyncio.CancelledError), f"swallowed: {ending!r}"


def _check_world(watch: Watch) -> None:
    assert watch.inside == 0, "a tool runs on"
    assert len(set(watch.ran)) == len(watch.ran), f"a tool ran twice: {watch.ran}"
    messages = watch.messages
    if watch.stream is not None:
        messages = watch.stream.messages
    if messages is not None:
        problems = check_history([UserMessage("go"), *messages])
        assert problems == [], f"not a history: {problems}"
