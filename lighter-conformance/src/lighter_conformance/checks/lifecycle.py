"""Loops, threads, connections: one provider serves many runs and leaves nothing open."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

from lighter_core import Agent, Provider, SupportsAclose
from lighter_core.testing import Turn

from .._bench import HELLO, USAGE, WAYS, Bench, Either, Way, ask, streaming
from .._registry import NotApplicable, Seen, check, expect
from ..server import Answer

__all__: list[str] = []


def _echo(prompt: str) -> Turn:
    return Turn(text=f"You said {prompt}", usage=USAGE, pieces=3)


def _stalled(bench: Bench) -> Either:
    """Answer with a begin and then nothing."""
    begin = streaming(bench.wire.stream(HELLO)[: -1 - bench.wire.ending])
    stalled = Answer(pieces=begin.pieces, headers=begin.headers, end="stall")
    return Either(stalled, Answer(pieces=[b"{"], end="stall"))


async def _need_closed(bench: Bench, when: str) -> None:
    expect(
        await bench.closed(), f"{when}, {bench.lane.open} connections are still open"
    )


@check("lifecycle", "script")
async def runs_do_not_mix(bench: Bench) -> None:
    """Twenty requests at once through one provider, some streamed, each get their own
    reply.
    """
    provider = bench.provider(_echo)
    texts = [f"number-{number}." for number in range(20)]
    ways = [work for _, work in WAYS]
    replies = await asyncio.gather(
        *(ways[number % 2](provider, ask(text)) for number, text in enumerate(texts))
    )
    pairs = zip(texts, (reply.content for reply in replies), strict=True)
    wrong = [(text, got) for text, got in pairs if got != f"You said {text}"]
    expect(not wrong, f"asked and got: {wrong}")


@check("lifecycle")
async def one_provider_on_three_loops(bench: Bench) -> None:
    """One provider works under `asyncio.run` three times in a row: nothing of it is bound
    to the first event loop.
    """
    provider = bench.speaker()
    for number in range(1, 4):
        for way, work in WAYS:
            try:
                await asyncio.to_thread(
                    asyncio.run, _once(work, provider, bench.case.prompt)
                )
            except Exception as error:
                raise Seen(
                    f"loop {number}, {way}: {type(error).__name__}: {error}"
                ) from error


async def _once(way: Way, provider: Provider, prompt: str) -> None:
    await way(provider, ask(prompt))


@check("lifecycle", "script")
async def one_provider_in_four_threads(bench: Bench) -> None:
    """One provider serves event loops in several threads at the same time."""
    provider = bench.provider(_echo)

    def run(number: int) -> str:
        async def main() -> str:
            texts: list[str] = []
            for _, work in WAYS:
                texts.append((await work(provider, ask(f"thread {number}"))).content)
            return " ".join(texts)

        return asyncio.run(main())

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(4) as pool:
        work = (loop.run_in_executor(pool, run, number) for number in range(4))
        found = await asyncio.gather(*work)
    wanted = [f"You said thread {n} You said thread {n}" for n in range(4)]
    expect(found == wanted, f"{found}")


@check("lifecycle")
async def run_sync_works_twice(bench: Bench) -> None:
    """`Agent.run_sync` works with it, again and again."""
    agent = Agent(bench.speaker(), system_prompt=None)
    for number in (1, 2):
        response = await asyncio.to_thread(agent.run_sync, bench.case.prompt)
        seen = f"run {number}: {response.status}, {response.error!r}"
        expect(response.status == "completed", seen)


@check("lifecycle", "http")
async def nothing_is_sent_before_iteration(bench: Bench) -> None:
    """`stream` sends nothing before its first event is asked for."""
    stream = bench.provider(HELLO).stream(ask("Hi."))
    await asyncio.sleep(0.05)
    sent = len(bench.requests)
    await stream.aclose()
    expect(sent == 0, f"{sent} requests were sent")


@check("lifecycle", "http")
async def leaving_a_stream_closes_the_connection(bench: Bench) -> None:
    """Closing the generator in the middle of a reply closes the connection: the service
    goes on generating, and charging, until then.
    """
    provider = bench.provider(_stalled(bench))
    async with aclosing(provider.stream(ask("Hi."))) as stream:
        async for _ in stream:
            break
    await _need_closed(bench, "after the stream was left")


@check("lifecycle", "http")
async def cancelling_a_stream_closes_the_connection(bench: Bench) -> None:
    """Cancelling a task in the middle of a stream raises `CancelledError` there and
    closes the connection.
    """
    provider = bench.provider(_stalled(bench))
    got = asyncio.Event()

    async def read() -> None:
        async with aclosing(provider.stream(ask("Hi."))) as stream:
            async for _ in stream:
                got.set()

    await _cancel(bench, asyncio.create_task(read()), got)
    await _need_closed(bench, "after the task was cancelled")


@check("lifecycle", "http")
async def cancelling_invoke_closes_the_connection(bench: Bench) -> None:
    """Cancelling a pending `invoke` raises `CancelledError` and closes the connection."""
    provider = bench.provider(Answer(end="stall", silent=True))
    task = asyncio.create_task(provider.invoke(ask("Hi.")))
    sent = await bench.lane.until(lambda: bool(bench.requests), bench.patience)
    expect(sent, "nothing was sent")
    await _cancel(bench, task, None)
    await _need_closed(bench, "after the task was cancelled")


async def _cancel(
    bench: Bench,
    task: asyncio.Task[object] | asyncio.Task[None],
    got: asyncio.Event | None,
) -> None:
    if got is not None:
        waiting = asyncio.create_task(got.wait())
        await asyncio.wait(
            {waiting, task}, timeout=bench.patience, return_when="FIRST_COMPLETED"
        )
        waiting.cancel()
        expect(got.is_set(), f"no event came within {bench.patience} s: {task!r}")
    task.cancel()
    _, pending = await asyncio.wait({task}, timeout=bench.patience)
    expect(not pending, f"it still runs {bench.patience} s after it was cancelled")
    if not task.cancelled():
        raise Seen(f"no CancelledError, but {task.exception() or task.result()!r}")


@check("lifecycle")
async def aclose_may_be_called_twice(bench: Bench) -> None:
    """`aclose`, where there is one, may be called more than once, before the first
    request too.
    """
    provider = bench.speaker()
    if not isinstance(provider, SupportsAclose):
        raise NotApplicable(f"{bench.case.name}: it has no aclose()")
    await provider.aclose()
    await provider.aclose()


@check("lifecycle", "http")
async def aclose_closes_connections(bench: Bench) -> None:
    """After `aclose` no connection is open."""
    provider = bench.provider(HELLO)
    for _, work in WAYS:
        await work(provider, ask("Hi."))
    if isinstance(provider, SupportsAclose):
        await provider.aclose()
    await _need_closed(bench, "after aclose()")
