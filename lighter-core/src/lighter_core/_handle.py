"""A run in the background that can be cancelled from anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import suppress
from typing import Any, Generic, cast

from ._state import Receipt, RunState
from .errors import ModelError
from .messages import Message, UserMessage
from .results import AgentResponse, OutputT_co

__all__ = ["RunHandle"]

_CLOSE_WAIT = 5.0  # seconds; a tool that swallows a cancellation delays the end

# The loop itself holds its tasks weakly; a run may outlive its handle.
_running: set[asyncio.Task[AgentResponse[object] | BaseException]] = set()


class RunHandle(Generic[OutputT_co]):
    """A started run: await it for its response.

    After `cancel()` awaiting it returns a failed response whose error is a `ModelError`
    with code `"aborted"`. Only the cancellation of the awaiting task raises
    `CancelledError`; it ends the run too.

    Example:
        ```python
        handle = agent.start("Count the books.")
        button.on_click(handle.cancel)
        response = await handle
        ```
    """

    def __init__(
        self, run: Callable[[], Awaitable[AgentResponse[object]]], state: RunState
    ) -> None:
        self._state = state
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(_guarded(run, state))
        _running.add(self._task)
        self._task.add_done_callback(_running.discard)

    def cancel(self) -> None:
        """End the run, from any task or thread; does nothing once it has ended."""
        with suppress(RuntimeError):  # the loop is closed: so is the run
            self._loop.call_soon_threadsafe(self._cancel_here)

    def _cancel_here(self) -> None:
        if not self._task.done() and not self._state.aborted:
            self._state.aborted = True
            self._task.cancel()

    def done(self) -> bool:
        """Tell whether the run has ended."""
        return self._task.done()

    @property
    def messages(self) -> list[Message]:
        """The new messages completed so far, each tool call answered."""
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

    @property
    def receipts(self) -> Mapping[str, Receipt]:
        """How each started tool call ended, by call id.

        `"finished"`, `"cancelled"`, or `"unknown"` for a worker thread that was left
        behind and may go on to its end.
        """
        return dict(self._state.receipts)

    def __await__(self) -> Generator[Any, None, AgentResponse[OutputT_co]]:
        return self._wait().__await__()

    async def _wait(self) -> AgentResponse[OutputT_co]:
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(
                "this run belongs to another event loop: await its handle where"
                " agent.start was called"
            )
        self._state.awaited = True
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            # Waited for here, not by the task: the run may answer a cancellation with
            # a response, and the waiting task's own must be raised all the same.
            if not self._state.aborted:
                self._task.cancel()
            await asyncio.wait([self._task], timeout=_CLOSE_WAIT)
            raise
        result = self._task.result()
        try:
            if isinstance(result, BaseException):
                raise result
            return cast("AgentResponse[OutputT_co]", result)
        finally:
            del result  # its traceback holds this frame


async def _guarded(
    run: Callable[[], Awaitable[AgentResponse[object]]], state: RunState
) -> AgentResponse[object] | BaseException:
    """Hand a BaseException on as a value: it belongs to whoever awaits the handle."""
    try:
        return await run()
    except asyncio.CancelledError:
        if not state.aborted:
            raise
        error = ModelError("the run was cancelled through its handle", "aborted")
        return state.response("failed", error)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit) and not state.awaited:
            raise  # nobody may ever await the handle: through the loop
        return error
