"""Leaves a stream in the way that its argument names; run in a process of its own."""

import asyncio
import contextlib
import os
import signal
import sys
import threading

from lighter_core import ModelError, ModelRequest, TextDelta, UserMessage
from lighter_local import LocalProvider

REQUEST = ModelRequest([UserMessage("Count from one to two thousand in words.")])


async def first_delta(stream):
    async for event in stream:
        if isinstance(event, TextDelta):
            return event
    raise AssertionError("no text")


async def leave_by_break():
    async for _ in LocalProvider().stream(REQUEST):
        break


async def leave_by_aclose():
    stream = LocalProvider().stream(REQUEST)
    await first_delta(stream)
    await stream.aclose()
    await stream.aclose()


async def leave_by_cancel():
    stream = LocalProvider().stream(REQUEST)
    started = asyncio.Event()

    async def read():
        async for _ in stream:
            started.set()

    task = asyncio.create_task(read())
    await started.wait()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return
    raise AssertionError("the task was not cancelled")


async def leave_by_cancel_in_prompt():
    request = ModelRequest([UserMessage("Say something new. " * 700)])
    task = asyncio.create_task(LocalProvider().invoke(request))
    await asyncio.sleep(1.5)  # loaded, and in the middle of the prompt
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return
    raise AssertionError("the task was not cancelled")


async def leave_by_sigint():
    async for event in LocalProvider().stream(REQUEST):
        if isinstance(event, TextDelta):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(30)


def run_sigint():
    try:
        asyncio.run(leave_by_sigint())
    except KeyboardInterrupt:
        return
    raise AssertionError("no KeyboardInterrupt")


def run_open():
    """The loop is closed by hand and the stream stays open until the very end."""
    global kept, loop  # noqa: PLW0603
    loop = asyncio.new_event_loop()
    kept = LocalProvider().stream(REQUEST)
    loop.run_until_complete(first_delta(kept))


def run_exit_in_loop():
    """sys.exit() in the middle of a stream, on a loop nobody closes."""
    loop = asyncio.new_event_loop()

    async def work():
        async for event in LocalProvider().stream(REQUEST):
            if isinstance(event, TextDelta):
                sys.exit(0)

    loop.run_until_complete(work())


def run_daemon():
    """A daemon thread streams on a loop of its own while the main thread ends."""
    started = threading.Event()

    async def work():
        async for _ in LocalProvider().stream(REQUEST):
            started.set()

    def run():
        with contextlib.suppress(ModelError):  # "aborted", as the process ends
            asyncio.run(work())

    threading.Thread(target=run, daemon=True).start()
    assert started.wait(60)


def run_load():
    """The process ends while the model is being loaded."""
    loop = asyncio.new_event_loop()

    async def work():
        task = asyncio.create_task(LocalProvider().invoke(REQUEST))
        await asyncio.sleep(0.02)
        return task

    globals()["kept"] = loop.run_until_complete(work()), loop


ASYNC = {
    "break": leave_by_break,
    "aclose": leave_by_aclose,
    "cancel": leave_by_cancel,
    "cancel-in-prompt": leave_by_cancel_in_prompt,
}
SYNC = {
    "sigint": run_sigint,
    "open": run_open,
    "exit": run_exit_in_loop,
    "daemon": run_daemon,
    "load": run_load,
}

if __name__ == "__main__":
    way = sys.argv[1]
    if way in ASYNC:
        asyncio.run(ASYNC[way]())
    else:
        SYNC[way]()
    sys.stdout.write("left\n")
