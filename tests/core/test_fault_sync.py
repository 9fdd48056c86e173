"""The door from synchronous code: threads, loops, Ctrl-C, fork and exit."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.waiting import until

from lighter_core import Agent, TextDelta, ToolCall, tool
from lighter_core.testing import FakeProvider, Turn

_WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


def answering(text: str) -> Agent:
    return Agent(FakeProvider([text] * 60))


def calling(name: str, func: Any, answer: str = "ok") -> Agent:
    turn = Turn(tool_calls=[ToolCall("c", name, "")])
    return Agent(FakeProvider([turn, answer]), tools=[func])


def test_run_sync_works_again_and_again_in_the_main_thread() -> None:
    """KF-059: the loop behind the door outlives each call."""
    agent = answering("x")
    assert [agent.run_sync("go").text for _ in range(20)] == ["x"] * 20


def test_run_sync_adds_neither_threads_nor_loops() -> None:
    """KF-062: 200 calls use the one private loop."""
    answering("x").run_sync("go")
    before = threading.active_count()
    agent = Agent(FakeProvider(["x"] * 200))
    for _ in range(200):
        agent.run_sync("go")
    assert threading.active_count() <= before


async def test_run_sync_works_inside_a_running_loop() -> None:
    """KF-061: as in a notebook; it blocks that loop and returns."""
    assert answering("x").run_sync("go").text == "x"
    with answering("y").stream_sync("go") as stream:
        assert list(stream)[-1].text == "y"  # type: ignore[union-attr]


def test_run_sync_serves_eight_threads_at_once() -> None:
    """KF-103: one agent, eight threads, fifty runs each, no cross-talk."""

    def reply(request: Any) -> str:
        return str(request.messages[-1].text)

    agent = Agent(FakeProvider([reply] * 400))
    wrong: list[str] = []

    def work(number: int) -> None:
        for turn in range(50):
            text = f"{number}-{turn}"
            if agent.run_sync(text).text != text:
                wrong.append(text)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert wrong == []


def test_sync_tools_may_run_agents_three_deep() -> None:
    """KF-061: a sync tool runs on its own thread, so the door is open to it."""

    def nest(depth: int) -> Agent:
        if depth == 0:
            return answering("bottom")

        @tool
        def deeper() -> str:
            """Ask the next agent."""
            return nest(depth - 1).run_sync("go").text

        return calling("deeper", deeper, f"level {depth}")

    response = nest(3).run_sync("go")
    assert response.text == "level 3"
    assert response.messages[1].tool_output == '"level 2"'  # type: ignore[union-attr]


def test_a_dozen_parallel_runs_whose_tools_use_the_door_do_not_deadlock() -> None:
    """Sync tools never share a bounded executor with what they wait for."""

    @tool
    def inner() -> str:
        """Run an agent."""
        return answering("x").run_sync("go").text

    agent = Agent(FakeProvider([_turn_for] * 48), tools=[inner])

    async def main() -> None:
        async with asyncio.timeout(30):
            responses = await asyncio.gather(*(agent.run("go") for _ in range(24)))
        assert {r.text for r in responses} == {"ok"}

    asyncio.run(main())


def _turn_for(request: Any) -> Any:
    if request.messages[-1].role == "tool":
        return "ok"
    return Turn(tool_calls=[ToolCall("c", "inner", "")])


def test_run_sync_on_the_private_loop_itself_is_refused() -> None:
    """KF-061: an async tool that blocks its own loop gets a RuntimeError that says so."""
    seen: list[BaseException] = []

    @tool
    async def bad() -> str:
        """Block the loop."""
        try:
            answering("x").run_sync("go")
        except RuntimeError as error:
            seen.append(error)
        try:
            answering("x").stream_sync("go").__next__()
        except RuntimeError as error:
            seen.append(error)
        return "went on"

    assert calling("bad", bad).run_sync("go").text == "ok"
    assert "await agent.run" in str(seen[0])
    assert "agent.stream" in str(seen[1])


def test_context_variables_of_the_caller_are_visible_and_stay_the_callers() -> None:
    """KF-037, KF-062: in sync and async tools; what they set does not leak."""
    seen: list[str] = []

    @tool
    def who() -> str:
        """Say who."""
        seen.append(_WHO.get())
        _WHO.set("tool")
        return "x"

    _WHO.set("caller")
    calling("who", who).run_sync("go")
    with calling("who", who).stream_sync("go") as stream:
        list(stream)
    assert seen == ["caller", "caller"]
    assert _WHO.get() == "caller"


def test_stream_sync_reads_all_events_and_closes_early() -> None:
    """Leaving the block ends the run; a dropped iterator ends it too."""
    provider = FakeProvider([Turn(text="abcd", pieces=4)] * 3)
    agent = Agent(provider)
    with agent.stream_sync("go") as stream:
        texts = [e.text for e in stream if isinstance(e, TextDelta)]
    assert "".join(texts) == "abcd"
    with agent.stream_sync("go") as stream:
        next(stream)
    assert provider.closed_streams == 2
    assert list(stream) == []
    for _ in agent.stream_sync("go"):
        break
    deadline = time.monotonic() + 10
    while provider.closed_streams < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    assert provider.closed_streams == 3


def test_error_of_a_sync_run_is_freed_without_the_collector() -> None:
    """KF-106: neither door nor loop keep a failed run in a reference cycle."""

    class Boom(SystemExit):
        pass

    @tool
    def quit_now() -> str:
        """Quit."""
        raise Boom

    gc.collect()
    gc.disable()
    try:
        try:
            calling("quit_now", quit_now).run_sync("go")
        except Boom as error:
            gone = weakref.ref(error)
        deadline = time.monotonic() + 5
        while gone() is not None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert gone() is None
    finally:
        gc.enable()


def _start(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("door", ["run_sync", "stream_sync"])
def test_ctrl_c_cancels_the_run_and_its_cleanup_runs(door: str) -> None:
    """Ctrl-C ends the run, waits for `finally`, and is raised in the caller."""
    process = _start(
        f"""
        import asyncio
        from lighter_core import Agent, tool, ToolCall
        from lighter_core.testing import FakeProvider, Turn

        @tool
        async def wait() -> str:
            "Wait."
            try:
                print("ready", flush=True)
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.05)
                print("cleaned", flush=True)

        agent = Agent(
            FakeProvider([Turn(tool_calls=[ToolCall("c", "wait", "")])]), tools=[wait]
        )
        try:
            if "{door}" == "run_sync":
                agent.run_sync("go")
            else:
                with agent.stream_sync("go") as stream:
                    for event in stream:
                        pass
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == ("cleaned\ninterrupted\n", "", 0)


def test_fork_makes_a_new_door_in_the_child(fresh: Any) -> None:
    """A child after fork has its own private loop and worker threads."""
    result = fresh(
        """
        import os
        from lighter_core import Agent, tool, ToolCall
        from lighter_core.testing import FakeProvider, Turn

        @tool
        def work() -> str:
            "Work."
            return "x"

        def ask():
            turns = [Turn(tool_calls=[ToolCall("c", "work", "")]), "done"]
            return Agent(FakeProvider(turns), tools=[work]).run_sync("go").text

        print("parent", ask(), flush=True)
        child = os.fork()
        if child == 0:
            print("child", ask(), flush=True)
            raise SystemExit(0)
        _, status = os.waitpid(child, 0)
        print("parent", ask(), status)
        """
    )
    assert result.stdout == "parent done\nchild done\nparent done 0\n", result.stderr
    assert result.stderr == ""


def test_interpreter_exit_with_a_pending_run_is_quick_and_silent(fresh: Any) -> None:
    """KF-052: runs of daemon threads are cancelled at exit, their cleanup runs."""
    result = fresh(
        """
        import asyncio, threading
        from lighter_core import Agent, tool, ToolCall
        from lighter_core.testing import FakeProvider, Turn

        started = threading.Event()

        @tool
        async def wait() -> str:
            "Wait."
            started.set()
            try:
                await asyncio.sleep(60)
            finally:
                print("cleaned", flush=True)

        def run():
            turns = [Turn(tool_calls=[ToolCall("c", "wait", "")])]
            try:
                Agent(FakeProvider(turns), tools=[wait]).run_sync("go")
            except asyncio.CancelledError:
                pass

        threading.Thread(target=run, daemon=True).start()
        started.wait()
        """,
        timeout=30,
    )
    assert (result.stdout, result.stderr, result.returncode) == ("cleaned\n", "", 0)


def test_hanging_sync_tool_does_not_delay_the_exit(fresh: Any) -> None:
    """Worker threads are daemons: an abandoned tool cannot hold the interpreter."""
    result = fresh(
        """
        import asyncio, time
        from lighter_core import Agent, tool, ToolCall
        from lighter_core.testing import FakeProvider, Turn

        @tool
        def hang() -> str:
            "Hang."
            begun.append(True)
            time.sleep(60)
            return "x"

        begun = []

        async def main():
            turns = [Turn(tool_calls=[ToolCall("c", "hang", "")])]
            handle = Agent(FakeProvider(turns), tools=[hang]).start("go")
            while not begun:
                await asyncio.sleep(0.01)
            handle.cancel()
            response = await handle
            print(response.error.code, dict(handle.receipts))

        asyncio.run(main())
        """,
        timeout=30,
    )
    assert (result.stdout, result.stderr) == ("aborted {'c': 'unknown'}\n", "")


def test_asyncio_run_three_times_with_one_agent() -> None:
    """KF-059: an agent is not bound to the loop that it first ran on."""
    agent = answering("x")
    assert [asyncio.run(_text(agent)) for _ in range(3)] == ["x"] * 3


async def _text(agent: Agent) -> str:
    return (await agent.run("go")).text


def test_handle_can_be_cancelled_from_another_thread() -> None:
    """`RunHandle.cancel` is thread-safe and does nothing after the end."""

    async def main() -> None:
        @tool
        async def wait() -> str:
            """Wait."""
            begun.append(True)
            await asyncio.sleep(60)
            return "x"

        begun: list[bool] = []
        handle = calling("wait", wait).start("go")
        await until(lambda: begun)
        thread = threading.Thread(target=handle.cancel)
        thread.start()
        async with asyncio.timeout(10):
            response = await handle
        thread.join()
        assert response.error.code == "aborted"  # type: ignore[union-attr]
        handle.cancel()
        await asyncio.sleep(0)
        assert await handle is response

    asyncio.run(main())
