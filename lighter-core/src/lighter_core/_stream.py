"""The stream of one run, for asynchronous and for synchronous consumers."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, NoReturn, Self

from ._channel import Channel, Sink
from ._state import RunState
from ._sync import run_sync
from .messages import Message, UserMessage
from .results import AgentResponse, AgentStreamEvent, OutputT_co

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["AgentStream", "SyncAgentStream"]

_CLOSE_WAIT = 5.0  # seconds; a tool that swallows a cancellation delays the end

# Tasks hold no reference to their stream, so something else must hold them.
_running: set[asyncio.Task[None]] = set()

Drive = Callable[[Sink], Awaitable[AgentResponse[object]]]


class _Outcome:
    """How the run's task ended, for the consumer to raise."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: BaseException | None = None


async def _drive(drive: Drive, channel: Channel, outcome: _Outcome) -> None:
    try:
        channel.emit(await drive(channel))
    except asyncio.CancelledError as error:
        if not channel.closed:  # not asked for by the consumer, who must not miss it
            outcome.error = error
        raise
    except BaseException as error:
        outcome.error = error
        if isinstance(error, KeyboardInterrupt | SystemExit) and not channel.waiting:
            raise  # the consumer may never ask again: through the loop as well
    finally:
        channel.close()


def _forget(task: asyncio.Task[None]) -> None:
    _running.discard(task)
    if not task.cancelled():
        task.exception()  # it has gone through the loop; no second report


def _abandon(channel: Channel, task: asyncio.Task[None]) -> None:
    channel.close()
    task.cancel()


class AgentStream(Generic[OutputT_co]):
    """The events of a run: deltas and tool events, then one `AgentResponse`.

    The run starts when the first event is asked for. No model call and no tool starts
    before the consumer, having read everything, asks for the next event; so nothing
    starts after a `break`. The request in flight then ends when the `async with` block
    is left, at `aclose()`, or when the stream object goes. Cancelling a pending
    `__anext__` (also by `asyncio.wait_for`) ends the run.

    Example:
        ```python
        async with agent.stream("Tell me about it.") as stream:
            async for event in stream:
                match event:
                    case TextDelta(text=text):
                        print(text, end="")
                    case AgentResponse(status="failed", error=error):
                        print(error)
                    case _:
                        pass
        ```
    """

    def __init__(self, drive: Drive, state: RunState) -> None:
        self._drive = drive
        self._state = state
        self._channel = Channel()
        self._outcome = _Outcome()
        self._context = contextvars.copy_context()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def messages(self) -> list[Message]:
        """The new messages completed so far, each tool call answered.

        A call that has no result yet is shown with an "interrupted" one, so the list
        can be appended to a history at any moment, also after an early stop.
        """
        return self._state.messages()

    def steer(self, message: str | UserMessage) -> None:
        """Say something before the next model call, from any task or thread.

        It joins the conversation behind the results of the tools that run now.

        Raises:
            RuntimeError: When the run has ended.
        """
        self._state.inbox.steer(message)

    def follow_up(self, message: str | UserMessage) -> None:
        """Say something once the run would stop, which then goes on, from any thread.

        Several follow-ups are answered one after the other.

        Raises:
            RuntimeError: When the run has ended.
        """
        self._state.inbox.follow_up(message)

    @property
    def undelivered(self) -> list[UserMessage]:
        """What `steer` and `follow_up` took and the run ended without."""
        return self._state.inbox.undelivered

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentStreamEvent[OutputT_co]:
        channel = self._channel
        if self._closed:
            raise StopAsyncIteration
        if channel.occupied:
            raise RuntimeError(
                "another task waits for this stream's next event; a stream has one"
                " consumer"
            )
        event: AgentStreamEvent[OutputT_co] | None = channel.take()
        if event is not None:
            return event
        if self._task is None:
            self._start()
        self._need_own_loop()
        try:
            await channel.wait()
        except asyncio.CancelledError:
            await self.aclose()
            raise
        event = channel.take()
        if event is not None:
            return event
        error, self._outcome.error = self._outcome.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame
        raise StopAsyncIteration

    def take_ready(self) -> list[AgentStreamEvent[OutputT_co]]:
        """Return the events that are there already, without asking for more."""
        ready: list[AgentStreamEvent[OutputT_co]] = []
        while not self._closed and (event := self._channel.take()) is not None:
            ready.append(event)
        return ready

    def _need_own_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(
                "this stream belongs to another event loop: consume it where its first"
                " event was asked for, or make a new one with agent.stream(…)"
            )

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(
            _drive(self._drive, self._channel, self._outcome), context=self._context
        )
        _running.add(task)
        task.add_done_callback(_forget)
        self._loop, self._task = loop, task

    async def aclose(self) -> None:
        """End the run and its request; return when it has ended.

        May be called more than once, and from another task. A tool that swallows its
        cancellation delays the return, by 5 seconds at most. Inside the run itself, in
        a tool or hook, it only asks for the end.
        """
        first, self._closed = not self._closed, True
        task = self._task
        if task is None or task.done():
            return
        loop = task.get_loop()
        if loop is not asyncio.get_running_loop():
            with suppress(RuntimeError):  # it is closed, and the run with it
                loop.call_soon_threadsafe(_abandon, self._channel, task)
            return
        if first:  # once: a second cancellation would cut a provider's clean-up short
            _abandon(self._channel, task)
        if task is not asyncio.current_task():
            await asyncio.wait([task], timeout=_CLOSE_WAIT)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        task, loop = self._task, self._loop
        if task is None or loop is None or task.done():
            return
        with suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(_abandon, self._channel, task)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream cannot be copied or pickled: it is a run in progress")

    def __repr__(self) -> str:
        if self._task is None:
            stage = "not started"
        else:
            stage = "ended" if self._task.done() else "running"
        return f"<AgentStream {stage}>"


class SyncAgentStream(Generic[OutputT_co]):
    """An `AgentStream` for synchronous code: a context manager and an iterator.

    Example:
        ```python
        with agent.stream_sync("Tell me about it.") as stream:
            for event in stream:
                if isinstance(event, TextDelta):
                    print(event.text, end="")
        ```
    """

    def __init__(self, stream: AgentStream[OutputT_co]) -> None:
        self._stream = stream
        self._ready: deque[AgentStreamEvent[OutputT_co]] = deque()

    @property
    def messages(self) -> list[Message]:
        """As `AgentStream.messages`."""
        return self._stream.messages

    def steer(self, message: str | UserMessage) -> None:
        """Say something before the next model call, from any task or thread.

        It joins the conversation behind the results of the tools that run now.

        Raises:
            RuntimeError: When the run has ended.
        """
        self._stream.steer(message)

    def follow_up(self, message: str | UserMessage) -> None:
        """Say something once the run would stop, which then goes on, from any thread.

        Several follow-ups are answered one after the other.

        Raises:
            RuntimeError: When the run has ended.
        """
        self._stream.follow_up(message)

    @property
    def undelivered(self) -> list[UserMessage]:
        """What `steer` and `follow_up` took and the run ended without."""
        return self._stream.undelivered

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> AgentStreamEvent[OutputT_co]:
        if not self._ready:
            run_sync(self._fetch, instead="async with agent.stream(…)")
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    async def _fetch(self) -> None:
        """Get the next event and what is there with it: a hop for each is slow.

        Nothing starts through that. The run waits until it is asked for more, and it is
        asked when everything fetched was taken.
        """
        event = await anext(self._stream, None)
        if event is not None:
            self._ready.append(event)
            self._ready.extend(self._stream.take_ready())

    def close(self) -> None:
        """End the run; as `AgentStream.aclose`."""
        self._ready.clear()
        run_sync(self._stream.aclose, instead="await stream.aclose()")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
