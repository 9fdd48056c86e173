"""Hooks compiled into one chain for each event."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from .context import RunContext
from .errors import HookError
from .hooks import AROUND_TAKES, EVENTS, Hook, checked_replacement
from .messages import ToolCall, ToolMessage
from .pausing import ApprovalRequest

if TYPE_CHECKING:
    from .plugins.objects import Implementation
    from .results import AgentResponse

__all__ = ["HookChain"]

_T = TypeVar("_T")
_Step = Callable[..., Awaitable[Any]]

logger: logging.Logger = logging.getLogger("lighter.hooks")

_ROUNDS = 4  # in which gates that change calls must come to rest


class HookChain:
    """The hooks of an agent, in the order in which they run.

    `before_*` hooks run in the order of the list, `after_*` hooks in reverse: the first
    hook is the outermost.

    Args:
        hooks: Hook objects and plugin objects.

    Raises:
        HookError: For anything that would silently not run.
    """

    __slots__ = ("_steps",)

    def __init__(self, hooks: Iterable[object] = ()) -> None:
        given = list(hooks)
        steps: dict[str, list[_Step]] = {event: [] for event in EVENTS}
        _refuse_twice(given)
        plugins = [each for each in given if not isinstance(each, Hook)]
        implementations = _implementations(plugins) if plugins else {}
        for each in given:
            if isinstance(each, Hook):
                hook: Hook[Any, Any] = each  # pyright: ignore[reportUnknownVariableType]
                steps[hook.event].append(_hook_step(hook))
                continue
            for implementation in implementations[id(each)]:
                steps[implementation.event].append(_plugin_step(implementation))
        for event in EVENTS:
            if event.startswith("after_") or event == "on_run_end":
                steps[event].reverse()
        self._steps = steps

    def has(self, event: str) -> bool:
        """Tell whether any hook is registered for the event."""
        return bool(self._steps[event])

    async def run(self, event: str, value: _T, run: RunContext[Any]) -> _T:
        """Pass a value through the event's hooks.

        Raises:
            HookError: When a hook returns a value of the wrong type.
            BaseException: Whatever a hook raises, the same object.
        """
        for step in self._steps[event]:
            value = await step(value, run)
        return value

    async def decide(
        self, call: ToolCall, run: RunContext[Any], *, approved: bool = False
    ) -> ToolCall | ToolMessage | ApprovalRequest:
        """Ask the `before_tool` hooks until one answers the call or all let it pass.

        A hook that changes the call is followed by all others again: the call runs only
        in a form that each of them has let pass. One that asks for a person's approval
        lets it pass as far as the others are concerned: who denies, wins over it.

        Args:
            call: The call.
            run: The run.
            approved: Whether a person has approved the call already.

        Raises:
            HookError: When hooks change each other's changes without an end.
            BaseException: Whatever a hook raises, the same object.
        """
        gates = self._steps["before_tool"]
        decision, passed = call, 0
        waits: ApprovalRequest | None = None
        cancelled = _cancel_requests()
        for step in gates * _ROUNDS:
            given: ToolCall | ToolMessage | ApprovalRequest = await step(decision, run)
            if isinstance(given, ApprovalRequest):
                waits = waits or (None if approved else given)
                given = decision
            made = replace(given, call_id=call.call_id)
            if _cancel_requests() > cancelled:  # a gate has swallowed it
                raise asyncio.CancelledError
            if isinstance(made, ToolMessage):
                return made
            passed = passed + 1 if made == decision else 1
            decision = made
            if passed == len(gates):
                return decision if waits is None else waits
        raise HookError(
            f"the before_tool hooks have changed the call of {call.tool_name!r} in each"
            f" of {_ROUNDS} rounds; a hook that changes a call must leave it alone once it"
            " is changed",
            event="before_tool",
        )

    async def around(
        self,
        event: str,
        value: Any,
        run: RunContext[Any],
        call: Callable[[Any], Awaitable[Any]],
    ) -> Any:
        """Run the `around_*` hooks, the first outermost, with the call inside."""
        for step in reversed(self._steps[event]):
            call = partial(step, run=run, call=call)
        return await call(value)

    async def end(self, response: AgentResponse[object], run: RunContext[Any]) -> None:
        """Run the `on_run_end` hooks; one that raises stops none of the others."""
        cancelled = _cancel_requests()
        for step in self._steps["on_run_end"]:
            try:
                await step(response, run)
            except (Exception, asyncio.CancelledError):  # a border: the run has ended
                if _cancel_requests() > cancelled:  # it came from outside the hook
                    raise
                logger.exception("an on_run_end hook failed")


def _cancel_requests() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _refuse_twice(given: Sequence[object]) -> None:
    seen: set[int] = set()
    for each in given:
        if id(each) in seen:
            raise HookError(f"the hook {each!r} is listed twice", hook=repr(each))
        seen.add(id(each))


def _implementations(plugins: list[object]) -> dict[int, list[Implementation]]:
    from .plugins.objects import read_hook_plugins  # imports pluggy

    return read_hook_plugins(plugins)


def _hook_step(hook: Hook[Any, Any]) -> _Step:
    async def step(value: Any, run: RunContext[Any]) -> Any:
        try:
            return await hook.execute(value, run)
        except Exception as error:
            _say_who(error, f"raised by the {hook.event} hook {hook.hook_name!r}")
            raise

    return step


def _plugin_step(implementation: Implementation) -> _Step:
    function, event = implementation.function, implementation.event
    name, taken = implementation.plugin, frozenset(implementation.arguments)

    async def step(
        value: Any,
        run: RunContext[Any],
        call: Callable[[Any], Awaitable[Any]] | None = None,
    ) -> Any:
        given = {implementation.value_name: value, "run": run}
        inner = None
        if call is not None:
            inner = given[implementation.call_name] = _Inside(call, implementation)
        try:
            result = function(**{key: given[key] for key in taken})
            if inspect.isawaitable(result):
                result = await result
        except Exception as error:
            if inner is None or error is not inner.raised:
                _say_who(error, f"raised by the {event} hook of plugin {name!r}")
            raise
        finally:
            if inner is not None:
                inner.raised = None  # its traceback holds this frame
        if result is None and call is None:
            return value
        return checked_replacement(event, result, hook=event, plugin=name)

    return step


class _Inside:
    """The call inside an `around_*` hook.

    It holds the hook to what the call takes, and knows what the call raised, which the
    hook did not.
    """

    __slots__ = ("_call", "_hook", "raised")

    def __init__(
        self, call: Callable[[Any], Awaitable[Any]], hook: Implementation
    ) -> None:
        self._call, self._hook = call, hook
        self.raised: Exception | None = None

    async def __call__(self, value: Any) -> Any:
        kind = AROUND_TAKES[self._hook.event]
        if not isinstance(value, kind):
            raise HookError(
                f"the {self._hook.event} hook of plugin {self._hook.plugin!r} gave"
                f" {self._hook.call_name} a {type(value).__name__}; it takes the"
                f" {kind.__name__}",
                hook=self._hook.event,
                event=self._hook.event,
                plugin=self._hook.plugin,
            )
        try:
            return await self._call(value)
        except Exception as error:
            self.raised = error
            raise


def _say_who(error: Exception, note: str) -> None:
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
