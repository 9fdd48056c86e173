"""Streams under early exits, cancellations and collection: nothing runs on, nothing leaks."""

# ruff: noqa: ASYNC110, PT012

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

import pytest
from support.waiting import timeout_once, until

from lighter_core import (
    AfterAgentHook,
    AfterModelHook,
    Agent,
    AgentResponse,
    AgentStream,
    AssistantMessage,
    BeforeAgentHook,
    BeforeModelHook,
    MessageEvent,
    ModelRequest,
    ProviderStreamEvent,
    TextDelta,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    UserMessage,
    check_history,
    tool,
)
from lighter_core.testing import FakeProvider, Pause, Turn

pytestmark = pytest.mark.usefixtures("no_leaks")

_WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


class Ledger:
    """What ran, in order."""

    def __init__(self) -> None:
        self.ran: list[str] = []


def scenario(**options: Any) -> tuple[Agent, FakeProvider, Ledger]:
    """Return an agent whose script has two rounds of two calls and a last answer."""
    ledger = Ledger()

    @tool
    async def note(text: str) -> str:
        """Write a note."""
        ledger.ran.append(text)
        await asyncio.sleep(0)
        return text

    def calls(*texts: str) -> list[ToolCall]:
        return [ToolCall(f"id-{t}", "note", f'{{"text": "{t}"}}') for t in texts]

    provider = FakeProvider(
        [
            Turn(text="one two", reasoning="hm", tool_calls=calls("a", "b")),
            Turn(tool_calls=calls("c", "d")),
            Turn(text="the end"),
        ]
    )
    return Agent(provider, tools=[note], **options), provider, ledger


async def whole() -> list[Any]:
    agent, _, _ = scenario()
    return [event async for event in agent.stream("go")]


EVENTS = 2 + 2 + 4 + 4 + 2 + 1
BREAKS = range(EVENTS + 1)


def assert_all_ended(provider: FakeProvider) -> None:
    assert provider.closed_streams == len(provider.requests)


def assert_nothing_unasked(events: list[Any], ledger: Ledger) -> None:
    """A tool ran only when its start was seen and the next event was asked for."""
    started = [
        e.call.arguments[10:-2] for e in events if isinstance(e, ToolCallStarted)
    ]
    if events and isinstance(events[-1], ToolCallStarted):
        started = started[:-1]
    assert ledger.ran == started


async def test_the_scenario_has_the_events_that_the_matrix_counts_on() -> None:
    """The break matrix covers every event of the script."""
    assert len(await whole()) == EVENTS


@pytest.mark.parametrize("k", BREAKS)
async def test_break_inside_async_with_lets_nothing_more_happen(k: int) -> None:
    """KF-051: leaving at event k raises nothing and ends the request in flight."""
    agent, provider, ledger = scenario()
    events: list[Any] = []
    async with agent.stream("go") as stream:
        while len(events) < k:
            events.append(await anext(stream))
    assert_all_ended(provider)
    assert_nothing_unasked(events, ledger)
    ran, asked = list(ledger.ran), len(provider.requests)
    await asyncio.sleep(0.01)
    assert (ledger.ran, len(provider.requests)) == (ran, asked)
    assert check_history([UserMessage("go"), *stream.messages]) == []


@pytest.mark.parametrize("k", BREAKS)
async def test_bare_break_with_the_stream_held_lets_no_tool_and_no_call_start(
    k: int,
) -> None:
    """KF-049, KF-051: after a bare break the consumer's stream starts nothing more."""
    agent, provider, ledger = scenario()
    stream = agent.stream("go")
    events: list[Any] = []
    if k:
        async for event in stream:
            events.append(event)
            if len(events) == k:
                break
    asked = len(provider.requests)
    for _ in range(30):
        await asyncio.sleep(0)
    assert_nothing_unasked(events, ledger)
    assert len(provider.requests) == asked
    assert check_history([UserMessage("go"), *stream.messages]) == []
    finished = [e.message for e in events if isinstance(e, ToolCallFinished)]
    assert [m for m in stream.messages if m in finished] == finished
    await stream.aclose()
    assert_all_ended(provider)


@pytest.mark.parametrize("k", range(1, EVENTS + 1))
async def test_break_with_a_temporary_stream_ends_the_run(k: int) -> None:
    """KF-052: a stream that nobody holds ends its run by itself."""
    agent, provider, ledger = scenario()
    events: list[Any] = []
    async for event in agent.stream("go"):
        events.append(event)
        if len(events) == k:
            break
    for _ in range(30):
        await asyncio.sleep(0)
    assert_all_ended(provider)
    assert_nothing_unasked(events, ledger)


async def test_second_tool_of_a_batch_waits_for_the_consumer() -> None:
    """A break at the end of the first tool keeps the second of the batch from running."""
    agent, provider, ledger = scenario()
    stream = agent.stream("go")
    async for event in stream:
        if isinstance(event, ToolCallFinished):
            break
    await asyncio.sleep(0.01)
    assert ledger.ran == ["a"]
    messages = stream.messages
    assert [m.is_error for m in messages[1:]] == [False, True]  # type: ignore[union-attr]
    await stream.aclose()
    assert stream.messages == messages
    assert len(provider.requests) == 1


async def test_next_model_call_waits_for_the_consumer() -> None:
    """After the last event of a round the model is not asked until the consumer asks."""
    agent, provider, _ = scenario()
    async with agent.stream("go") as stream:
        seen = 0
        async for event in stream:
            seen += isinstance(event, ToolCallFinished)
            if seen == 2:
                break
        await asyncio.sleep(0.01)
        assert len(provider.requests) == 1
        await anext(stream)
        assert len(provider.requests) == 2


async def test_slow_consumer_reads_every_event_and_the_provider_stays_bounded() -> None:
    """At most 64 events are read ahead of a consumer that does not ask."""
    made = 0

    class Endless:
        name = "endless"

        async def invoke(self, request: ModelRequest) -> AssistantMessage:
            raise NotImplementedError

        async def stream(
            self, request: ModelRequest
        ) -> AsyncGenerator[ProviderStreamEvent, None]:
            nonlocal made
            for _ in range(1000):
                made += 1
                yield TextDelta("x")
            yield MessageEvent(AssistantMessage("x" * 1000))

    stream = Agent(Endless()).stream("go")
    await anext(stream)
    for _ in range(20):
        await asyncio.sleep(0)
    assert made <= 66
    text = "x"
    async for event in stream:
        if isinstance(event, TextDelta):
            text += event.text
            if len(text) % 100 == 0:
                await asyncio.sleep(0.001)
        assert made - len(text) <= 66
    assert len(text) == 1000


async def test_stream_never_iterated_does_nothing() -> None:
    """A stream that nobody reads starts no task, makes no call and warns of nothing."""
    agent, provider, _ = scenario()
    stream = agent.stream("go")
    async with agent.stream("go"):
        pass
    await stream.aclose()
    del stream
    gc.collect()
    assert provider.requests == []


async def test_closed_stream_stays_ended() -> None:
    """After aclose the stream ends, also one that was never started."""
    agent, provider, _ = scenario()
    fresh_one, started = agent.stream("go"), agent.stream("go")
    await anext(started)
    for stream in (fresh_one, started):
        await stream.aclose()
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
    assert_all_ended(provider)


async def test_exhausted_stream_stays_exhausted() -> None:
    """Asking again after the end gives the end again."""
    agent, _, _ = scenario()
    stream = agent.stream("go")
    assert len([event async for event in stream]) == EVENTS
    assert [event async for event in stream] == []


@pytest.mark.parametrize("k", range(EVENTS))
async def test_cancelling_a_pending_next_ends_the_run(k: int) -> None:
    """KF-052: cancellation inside __anext__ reaches the provider and is raised again."""
    gate = asyncio.Event()
    agent, _, ledger = scenario()
    stream = agent.stream("go")
    for _ in range(k):
        await anext(stream)
    task = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    waiting = not task.done()
    task.cancel()
    if waiting:
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
    assert check_history([UserMessage("go"), *stream.messages]) == []
    del gate, ledger
    await stream.aclose()


async def test_cancel_in_the_body_ends_the_request() -> None:
    """KF-052: the block's exit waits for the provider's own clean-up."""
    agent, provider, _ = scenario()

    async def consume() -> None:
        async with agent.stream("go") as stream:
            async for _ in stream:
                await asyncio.sleep(60)

    task = asyncio.create_task(consume())
    await until(lambda: provider.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert_all_ended(provider)


def waiting_tool(log: list[str]) -> Any:
    @tool
    async def wait() -> str:
        """Wait."""
        log.append("started")
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            log.append("cleaned")
        return "never"

    return wait


ONE_CALL = [Turn(tool_calls=[ToolCall("c1", "wait", "")]), "never"]


@pytest.mark.parametrize("way", ["cancel", "timeout", "aclose", "group", "handle"])
async def test_stopping_a_run_inside_a_tool_waits_for_the_tools_cleanup(
    way: str,
) -> None:
    """KF-046, KF-054: the tool has finished its finally block, its call is closed."""
    log: list[str] = []
    agent = Agent(FakeProvider(ONE_CALL), tools=[waiting_tool(log)])
    stream = agent.stream("go")

    async def consume() -> None:
        async with stream:
            async for _ in stream:
                pass

    messages = []
    if way == "timeout":
        with pytest.raises(TimeoutError):
            async with timeout_once(lambda: log):
                await consume()
    elif way == "group":

        async def fail() -> None:
            await until(lambda: log)
            raise ValueError("other")

        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(consume())
                group.create_task(fail())
    elif way == "handle":
        handle = agent.start("go")
        await until(lambda: log)
        handle.cancel()
        response = await handle
        assert response.status == "failed"
        assert response.error.code == "aborted"  # type: ignore[union-attr]
        assert handle.receipts == {"c1": "cancelled"}
        messages = response.messages
    else:
        task = asyncio.create_task(consume())
        await until(lambda: log)
        if way == "cancel":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await stream.aclose()
            await task
    assert log == ["started", "cleaned"]
    messages = messages or stream.messages
    assert [m.role for m in messages] == ["assistant", "tool"]
    assert check_history([UserMessage("go"), *messages]) == []


async def test_run_cancelled_in_a_tool_waits_for_the_tools_cleanup() -> None:
    """KF-054: cancelling `run` returns only after the tool's finally block."""
    log: list[str] = []
    agent = Agent(FakeProvider(ONE_CALL), tools=[waiting_tool(log)])
    task = asyncio.create_task(agent.run("go"))
    await until(lambda: log)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["started", "cleaned"]


async def test_wait_for_on_one_event_ends_the_run() -> None:
    """A timeout on a single event cancels the run, as documented."""
    agent = Agent(FakeProvider([[Pause(60), MessageEvent(AssistantMessage("x"))]]))
    stream = agent.stream("go")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(stream), 0.02)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_closing_with_a_pending_next_ends_both() -> None:
    """KF-055, KF-057: another task may close while __anext__ is pending."""
    provider = FakeProvider([[Pause(60), MessageEvent(AssistantMessage("x"))]])
    stream = Agent(provider).stream("go")
    pending = asyncio.ensure_future(anext(stream))
    stop = asyncio.ensure_future(until(lambda: provider.requests))
    done, _ = await asyncio.wait({pending, stop}, return_when=asyncio.FIRST_COMPLETED)
    assert done == {stop}
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await pending
    assert_all_ended(provider)


async def test_concurrent_closes_do_not_interrupt_the_providers_cleanup() -> None:
    """KF-053: a second aclose waits for the first and never cuts the clean-up short."""
    log: list[str] = []

    class Slow:
        name = "slow"

        async def invoke(self, request: ModelRequest) -> AssistantMessage:
            raise NotImplementedError

        async def stream(
            self, request: ModelRequest
        ) -> AsyncGenerator[ProviderStreamEvent, None]:
            try:
                yield TextDelta("x")
                await asyncio.sleep(60)
            finally:
                log.append("closing")
                await asyncio.sleep(0.02)
                log.append("closed")

    stream = Agent(Slow()).stream("go")
    await anext(stream)

    async def close_later() -> None:
        await asyncio.sleep(0.005)
        await stream.aclose()

    await asyncio.gather(stream.aclose(), close_later(), close_later())
    assert log == ["closing", "closed"]


async def test_aclose_from_inside_the_run_does_not_wait_for_itself() -> None:
    """A tool that closes its own stream ends the run without a deadlock."""
    streams: list[AgentStream] = []

    @tool
    async def stop() -> str:
        """Stop."""
        await streams[0].aclose()
        await asyncio.sleep(0)
        return "unreached"

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "stop", "")]), "never"])
    streams.append(Agent(provider, tools=[stop]).stream("go"))
    async with asyncio.timeout(5):
        events = [event async for event in streams[0]]
    assert [e.type for e in events] == ["tool_call_started"]
    assert len(provider.requests) == 1
    assert check_history([UserMessage("go"), *streams[0].messages]) == []
    streams.clear()


async def test_tool_that_swallows_its_cancellation_does_not_keep_the_run() -> None:
    """After aclose the run ends at its next step, even when a tool ate the cancel."""
    go_on = asyncio.Event()
    begun: list[bool] = []

    @tool
    async def stubborn() -> str:
        """Refuse to stop once."""
        begun.append(True)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await go_on.wait()
        return "done"

    call = ToolCall("c", "stubborn", "")
    provider = FakeProvider([Turn(tool_calls=[call]), "never"])
    stream = Agent(provider, tools=[stubborn]).stream("go")
    pending = asyncio.ensure_future(anext(stream))
    await pending
    pending = asyncio.ensure_future(anext(stream))
    await until(lambda: begun)
    closing = asyncio.ensure_future(stream.aclose())
    await asyncio.sleep(0)
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(pending, 2)  # the reader does not wait for the tool
    go_on.set()
    await closing
    await asyncio.sleep(0)
    assert len(provider.requests) == 1
    assert repr(stream) == "<AgentStream ended>"


async def test_second_consumer_is_refused_and_the_first_goes_on() -> None:
    """A stream has one consumer; the other is told so at once."""
    gate = asyncio.Event()
    reply = [Pause(until=gate), TextDelta("x"), MessageEvent(AssistantMessage("x"))]
    stream = Agent(FakeProvider([reply])).stream("go")
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="one consumer"):
        await anext(stream)
    gate.set()
    assert await first == TextDelta("x")
    assert [e.type async for e in stream] == ["response"]


async def test_second_consumer_cannot_steal_an_event_that_woke_the_first() -> None:
    """A consumer that was woken but has not run yet still owns its event."""
    gate = asyncio.Event()
    reply = [Pause(until=gate), TextDelta("x"), MessageEvent(AssistantMessage("x"))]
    stream = Agent(FakeProvider([reply])).stream("go")
    outcomes: list[object] = []

    async def read() -> None:
        try:
            outcomes.append(await anext(stream))
        except (RuntimeError, StopAsyncIteration) as error:
            outcomes.append(type(error))

    first = asyncio.create_task(read())
    await asyncio.sleep(0)
    gate.set()
    for _ in range(10):
        await read()
        if first.done():
            break
        await asyncio.sleep(0)
    await first
    assert StopAsyncIteration not in outcomes
    assert RuntimeError in outcomes
    assert TextDelta("x") in outcomes
    await stream.aclose()


@pytest.mark.parametrize("cycle", [False, True])
async def test_dropped_stream_is_collected_and_its_run_ends(cycle: bool) -> None:
    """KF-052: dropping the stream ends the request, also out of a reference cycle."""
    provider = FakeProvider([[TextDelta("a"), Pause(60)]])
    stream = Agent(provider).stream("go")
    await anext(stream)
    if cycle:
        stream.self = stream  # type: ignore[attr-defined]
    del stream
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0)
    assert_all_ended(provider)


@pytest.mark.parametrize("k", range(1, EVENTS))
async def test_garbage_stream_with_a_parked_run_is_never_destroyed_pending(
    k: int,
) -> None:
    """KF-052: a run that waits for its consumer alone is held until it has ended."""
    agent, provider, ledger = scenario()
    stream = agent.stream("go")
    events = [await anext(stream) for _ in range(k)]
    stream.self = stream  # type: ignore[attr-defined]
    for _ in range(10):
        await asyncio.sleep(0)
    del stream
    gc.collect()
    for _ in range(10):
        await asyncio.sleep(0)
    assert_all_ended(provider)
    assert_nothing_unasked(events, ledger)


async def test_stream_collected_in_another_thread_ends_on_its_own_loop() -> None:
    """The last reference may go in any thread."""
    provider = FakeProvider([[TextDelta("a"), Pause(60)]])
    box = [Agent(provider).stream("go")]
    await anext(box[0])
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    for _ in range(100):
        await asyncio.sleep(0.002)
        if provider.closed_streams:
            break
    assert_all_ended(provider)


def test_shutdown_with_a_held_stream_is_silent(fresh: Any) -> None:
    """KF-052: a program that ends with an open stream prints nothing to stderr."""
    result = fresh(
        """
        import asyncio
        from lighter_core import Agent, TextDelta
        from lighter_core.testing import FakeProvider, Pause
        held = []
        provider = FakeProvider([[TextDelta("a"), Pause(60)]] * 3)
        async def main():
            for _ in range(2):
                stream = Agent(provider).stream("go")
                await anext(stream)
                held.append(stream)
            async for _ in Agent(provider).stream("go"):
                break
        asyncio.run(main())
        print(provider.closed_streams)
        """
    )
    assert (result.stdout, result.stderr, result.returncode) == ("3\n", "", 0)


async def test_context_variables_are_those_of_the_stream_call() -> None:
    """KF-037: tools and hooks see the context of `agent.stream(…)`; nothing leaks out."""
    seen: list[str] = []

    @tool
    def who() -> str:
        """Say who."""
        seen.append(_WHO.get())
        _WHO.set("tool")
        return "x"

    hook = BeforeModelHook(
        hook_name="h", hook_function=lambda _: seen.append(_WHO.get())
    )
    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "who", "")]), "ok"])
    _WHO.set("at the call")
    stream = Agent(provider, tools=[who], hooks=[hook]).stream("go")
    _WHO.set("later")
    async for _ in stream:
        pass
    assert seen == ["at the call"] * 3
    assert _WHO.get() == "later"


@pytest.mark.parametrize("door", ["run", "stream", "start"])
async def test_input_is_copied_at_the_call(door: str) -> None:
    """The caller's list may change after the call; the run has its own copy."""
    agent, provider, _ = scenario(system_prompt=None)
    history = [UserMessage("go")]
    if door == "run":
        pending: Any = agent.run(history)
    elif door == "start":
        pending = agent.start(history)
    else:
        pending = agent.stream(history)
    history.append(UserMessage("later"))
    if door == "stream":
        async for _ in pending:
            pass
    else:
        await pending
    assert provider.requests[0].messages == [UserMessage("go")]
    assert len(history) == 2


async def test_messages_are_a_valid_history_at_every_moment() -> None:
    """KF-046: `stream.messages` can be appended to a history whenever one looks."""
    agent, _, _ = scenario()
    stream = agent.stream("go")
    seen: list[int] = []
    async for _ in stream:
        assert check_history([UserMessage("go"), *stream.messages]) == []
        seen.append(len(stream.messages))
    assert seen == sorted(seen)
    assert seen[-1] == 7


@pytest.mark.parametrize("door", ["run", "stream"])
@pytest.mark.parametrize("position", range(3))
async def test_messages_survive_a_failure_at_any_turn(door: str, position: int) -> None:
    """KF-010, KF-073: completed messages stay, partial ones never enter."""
    agent, provider, ledger = scenario()
    provider._faults[position, 1] = ConnectionError("cut")
    if door == "run":
        response = await agent.run("go")
    else:
        *_, response = [event async for event in agent.stream("go")]  # type: ignore[assignment]
    assert response.status == "failed"
    assert isinstance(response.error, ConnectionError)
    assert len(response.messages) == position * 3
    assert check_history([UserMessage("go"), *response.messages]) == []
    assert len(ledger.ran) == position * 2


# BaseExceptions: SystemExit and KeyboardInterrupt belong to whoever waits for the run.


def quitting_agent(place: str, error: BaseException) -> Agent:
    @tool
    def quit_sync() -> str:
        """Quit."""
        raise error

    @tool
    async def quit_async() -> str:
        """Quit."""
        raise error

    def quit_hook(_: object) -> None:
        raise error

    call = Turn(tool_calls=[ToolCall("c", place, "")])
    turns: list[Any] = [call, "after"]
    hooks: list[object] = []
    if place == "hook":
        hooks, turns = [AfterModelHook(hook_name="q", hook_function=quit_hook)], ["x"]
    elif place == "provider":
        turns = [[TextDelta("a"), error]]
    return Agent(FakeProvider(turns), tools=[quit_sync, quit_async], hooks=hooks)


PLACES = ["quit_sync", "quit_async", "hook", "provider"]


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        *(
            (place, kind)
            for place in PLACES
            for kind in (SystemExit, KeyboardInterrupt)
        ),
        ("hook", asyncio.CancelledError),
        ("provider", asyncio.CancelledError),
    ],
)
@pytest.mark.parametrize("door", ["run_sync", "stream_sync"])
def test_base_exceptions_reach_the_synchronous_caller(
    kind: type[BaseException], place: str, door: str
) -> None:
    """Design 9.4: the private loop survives, the exception is raised in the caller."""
    agent = quitting_agent(place, kind("stop"))
    with pytest.raises(kind):
        if door == "run_sync":
            agent.run_sync("go")
        else:
            with agent.stream_sync("go") as stream:
                for _ in stream:
                    pass
    assert Agent(FakeProvider(["alive"])).run_sync("?").text == "alive"


def test_base_exceptions_reach_the_asynchronous_caller(fresh: Any) -> None:
    """Design 9.4: in tool, hook and provider; the caller may catch what it awaits."""
    result = fresh(
        """
        import asyncio
        from lighter_core import *
        from lighter_core.testing import FakeProvider, Turn

        def agents(error):
            @tool
            def quit_sync() -> str:
                "Quit."
                raise error

            @tool
            async def quit_async() -> str:
                "Quit."
                raise error

            def quit_hook(_):
                raise error

            hook = AfterModelHook(hook_name="q", hook_function=quit_hook)
            called = lambda name: [Turn(tool_calls=[ToolCall("c", name, "")]), "after"]
            yield Agent(FakeProvider(called("quit_sync")), tools=[quit_sync])
            yield Agent(FakeProvider(called("quit_async")), tools=[quit_async])
            yield Agent(FakeProvider(["x"]), hooks=[hook])
            yield Agent(FakeProvider([error]))

        async def main(agent, door, error):
            try:
                if door == "run":
                    await agent.run("go")
                elif door == "start":
                    await agent.start("go")
                else:
                    async for _ in agent.stream("go"):
                        pass
            except type(error) as caught:
                assert caught is error
                print("caught", end=" ")

        for kind in (SystemExit, KeyboardInterrupt):
            for door in ("run", "stream", "start"):
                error = kind("stop")
                for agent in agents(error):
                    try:
                        asyncio.run(main(agent, door, error))
                    except kind:
                        print("LOST", door, agent)
        """
    )
    assert (result.stdout.split(), result.stderr) == (["caught"] * 24, "")


@pytest.mark.parametrize("event", ["before_agent", "before_model", "after_model"])
@pytest.mark.parametrize("door", ["run", "stream", "start"])
async def test_cancelled_error_of_a_hook_propagates(event: str, door: str) -> None:
    """KF-085: the same in run and stream: never a silent end, never a response."""
    kinds: dict[str, Any] = {
        "before_agent": BeforeAgentHook,
        "before_model": BeforeModelHook,
        "after_model": AfterModelHook,
    }

    def stop(_: object) -> None:
        raise asyncio.CancelledError("by the hook")

    hook = kinds[event](hook_name="stop", hook_function=stop)
    agent = Agent(FakeProvider(["x"]), hooks=[hook])
    with pytest.raises(asyncio.CancelledError, match="by the hook"):
        if door == "run":
            await agent.run("go")
        elif door == "start":
            await agent.start("go")
        else:
            async for _ in agent.stream("go"):
                pass


class Abrupt:
    """Yields a delta and quits at once, while its consumer has the delta to read."""

    name = "abrupt"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        raise self.error

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        yield TextDelta("x")
        raise self.error


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_quitting_while_the_consumer_does_not_wait_is_not_lost(
    kind: type[BaseException],
) -> None:
    """Design 9.4: through the loop, and to the consumer who asks again."""
    agent = Agent(Abrupt(kind("stop")))
    events: list[Any] = []

    async def main() -> None:
        async for event in agent.stream("go"):
            events.append(event)

    with pytest.raises(kind, match="stop"):
        asyncio.run(main())
    with pytest.raises(kind, match="stop"):
        events.extend(agent.stream_sync("go"))
    assert events == [TextDelta("x")]
    gc.collect()


# Checkpoint torture: cancel at every suspension of a scenario.


class Counted:
    """Awaits a coroutine and cancels the task at its suspension number `at`."""

    def __init__(self, coroutine: Any, at: int | None) -> None:
        self.coroutine = coroutine
        self.at = at
        self.suspensions = 0

    def __await__(self) -> Any:
        inner = self.coroutine.__await__()
        value, error = None, None
        while True:
            try:
                waited = inner.send(value) if error is None else inner.throw(error)
            except StopIteration as end:
                return end.value
            if self.suspensions == self.at:
                task = asyncio.current_task()
                assert task is not None
                asyncio.get_running_loop().call_soon(task.cancel)
            self.suspensions += 1
            value, error = None, None
            try:
                value = yield waited
            except BaseException as thrown:
                error = thrown


def torture_agent() -> tuple[Agent, FakeProvider, Ledger]:
    ledger = Ledger()

    @tool
    async def slow(text: str) -> str:
        """Work."""
        ledger.ran.append(text)
        await asyncio.sleep(0)
        await asyncio.sleep(0.0005)
        return text

    @tool
    def threaded(text: str) -> str:
        """Work in a thread."""
        ledger.ran.append(text)
        return text

    async def hook(_: object) -> None:
        await asyncio.sleep(0)

    calls = [
        ToolCall("1", "slow", '{"text": "a"}'),
        ToolCall("2", "threaded", '{"text": "b"}'),
    ]
    provider = FakeProvider([Turn(text="hello", tool_calls=calls), "the end"])
    hooks = [
        BeforeAgentHook(hook_name="1", hook_function=hook),
        BeforeModelHook(hook_name="2", hook_function=hook),
        AfterModelHook(hook_name="3", hook_function=hook),
        AfterAgentHook(hook_name="4", hook_function=hook),
    ]
    return Agent(provider, tools=[slow, threaded], hooks=hooks), provider, ledger


async def torture(
    consume: Callable[[Agent, list[Any]], Awaitable[None]], at: int | None
) -> int:
    """Run the scenario once; return the number of its suspensions."""
    agent, provider, ledger = torture_agent()
    box: list[Any] = []
    counted = Counted(consume(agent, box), at)

    async def main() -> None:
        await counted

    task = asyncio.create_task(main())
    if at is None:
        await task
    else:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)
    if box:
        assert check_history([UserMessage("go"), *box[0].messages]) == []
        assert_all_ended(provider)
    assert len(set(ledger.ran)) == len(ledger.ran)
    calls, ran = len(provider.requests), len(ledger.ran)
    await asyncio.sleep(0)
    assert (len(provider.requests), len(ledger.ran)) == (calls, ran)
    return counted.suspensions


async def _by_run(agent: Agent, box: list[Any]) -> None:
    await agent.run("go")


async def _by_start(agent: Agent, box: list[Any]) -> None:
    await agent.start("go")


async def _by_stream(agent: Agent, box: list[Any]) -> None:
    box.append(agent.stream("go"))
    async with box[0] as stream:
        async for _ in stream:
            await asyncio.sleep(0)


@pytest.mark.parametrize("consume", [_by_run, _by_start, _by_stream])
async def test_cancel_at_every_suspension_propagates_and_leaks_nothing(
    consume: Callable[[Agent, list[Any]], Awaitable[None]],
) -> None:
    """Checkpoint torture: for each suspension k of the consumer, cancel there."""
    suspensions = await torture(consume, None)
    assert suspensions >= 1
    for at in range(suspensions - 1):
        await torture(consume, at)


async def test_cancel_of_the_runs_own_task_at_every_suspension_is_not_silent() -> None:
    """Checkpoint torture of the task behind a stream: its consumer is told."""
    loop = asyncio.get_running_loop()
    counted: list[Counted] = []
    at: int | None = None

    def factory(loop: Any, coroutine: Any, **options: Any) -> Any:
        if coroutine.__name__ == "_drive":
            counted.append(Counted(coroutine, at))
            coroutine = _await(counted[-1])
        return asyncio.Task(coroutine, loop=loop, **options)

    async def _await(each: Counted) -> None:
        await each

    loop.set_task_factory(factory)
    try:
        agent, _, _ = torture_agent()
        assert len([e async for e in agent.stream("go")]) >= 6
        for at in range(counted[0].suspensions):
            agent, provider, _ = torture_agent()
            stream = agent.stream("go")
            events: list[Any] = []
            with suppress(asyncio.CancelledError):
                async for event in stream:
                    events.append(event)
                raise AssertionError(f"ended silently at {at}: {events}")
            assert not any(isinstance(e, AgentResponse) for e in events)
            assert_all_ended(provider)
            assert check_history([UserMessage("go"), *stream.messages]) == []
    finally:
        loop.set_task_factory(None)


@pytest.mark.parametrize("when", ["both", "run first", "waiter first"])
async def test_cancelling_the_waiter_is_never_lost_to_a_cancelled_handle(
    when: str,
) -> None:
    """Only task cancellation raises CancelledError, and it always does."""
    log: list[str] = []
    agent = Agent(FakeProvider(ONE_CALL), tools=[waiting_tool(log)])
    handle = agent.start("go")

    async def wait() -> AgentResponse:
        return await handle

    waiter = asyncio.create_task(wait())
    await until(lambda: log)
    if when == "waiter first":
        waiter.cancel()
        handle.cancel()
    else:
        handle.cancel()
        if when == "run first":
            await asyncio.sleep(0)
        waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    while not handle.done():
        await asyncio.sleep(0)
    assert log == ["started", "cleaned"]


async def test_handle_that_nobody_keeps_runs_to_its_end() -> None:
    """A run started and forgotten is not collected in the middle."""
    done = asyncio.Event()

    @tool
    async def finish() -> str:
        """Finish."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.01, waiter.set_result, None)
        await waiter
        done.set()
        return "x"

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "finish", "")]), "ok"])
    Agent(provider, tools=[finish]).start("go")
    for _ in range(5):
        gc.collect()
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await done.wait()


async def test_run_that_is_closed_in_another_context_is_silent() -> None:
    """KF-055: a coroutine dropped half-way is closed wherever the collector runs."""
    coroutine = Agent(FakeProvider(["x"])).run("go")
    contextvars.copy_context().run(coroutine.send, None)
    coroutine.close()


async def test_closing_styles_of_foreign_streams_are_all_awaited() -> None:
    """KF-058: aclose, async close, sync close or none: the right one, once."""
    log: list[str] = []

    class Base:
        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> Any:
            if log and log[-1] == "sent":
                raise StopAsyncIteration
            log.append("sent")
            return MessageEvent(AssistantMessage("x"))

    class WithAclose(Base):
        async def aclose(self) -> None:
            await asyncio.sleep(0)
            log.append("aclose")

        def close(self) -> None:
            log.append("wrong")

    class WithAsyncClose(Base):
        async def close(self) -> None:
            await asyncio.sleep(0)
            log.append("close")

    class WithClose(Base):
        def close(self) -> None:
            log.append("close")

    class Foreign:
        name = "foreign"

        def __init__(self, kind: type[Base]) -> None:
            self.kind = kind

        async def invoke(self, request: ModelRequest) -> AssistantMessage:
            raise NotImplementedError

        def stream(self, request: ModelRequest) -> Any:
            return self.kind()

    for kind, wanted in [
        (WithAclose, ["sent", "aclose"]),
        (WithAsyncClose, ["sent", "close"]),
        (WithClose, ["sent", "close"]),
        (Base, ["sent"]),
    ]:
        log.clear()
        *_, response = [e async for e in Agent(Foreign(kind)).stream("go")]
        assert isinstance(response, AgentResponse)
        assert response.text == "x"
        assert log == wanted


async def test_model_stream_closes_the_providers_stream() -> None:
    """KF-056: closing the generator of `Model.stream` closes the inner one."""
    agent, provider, _ = scenario()
    async with aclosing(
        agent.model.stream(ModelRequest([UserMessage("go")]))
    ) as events:
        async for _ in events:
            break
    assert_all_ended(provider)
