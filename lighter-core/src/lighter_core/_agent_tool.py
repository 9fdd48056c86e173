"""An agent that other agents call as a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ._channel import Sink
from ._loop import run_loop
from ._setup import LoopSetup, new_run
from .context import RunContext
from .errors import ToolError
from .results import AgentStreamEvent, NestedEvent
from .tools import Tool

if TYPE_CHECKING:
    from .results import AgentResponse

__all__ = ["agent_tool"]

_PARAMETERS = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "description": "What to do, with everything that must be known for it.",
        }
    },
    "required": ["task"],
    "additionalProperties": False,
}


def agent_tool(
    setup: LoopSetup, name: str, description: str, timeout: float | None
) -> Tool:
    """Return a tool that runs an agent on a task and answers with its last text."""

    async def run_task(arguments: dict[str, Any], run: RunContext[Any]) -> str:
        state = new_run(_task(arguments), None, run.deps)
        outer = run._progress  # noqa: SLF001 - the run's own part of its context  # pyright: ignore[reportPrivateUsage]
        state.progress.parent = outer
        reader = cast("Sink | None", outer.sink)
        sink = None if reader is None else _NestedSink(reader, run)
        return _answer(await run_loop(setup, state, sink), name)

    return Tool(
        name=name,
        description=description,
        parameters=_PARAMETERS,
        func=run_task,
        timeout=timeout,
    )


def _task(arguments: dict[str, Any]) -> str:
    task: object = arguments.get("task")
    if not isinstance(task, str) or not task.strip():
        raise ToolError("invalid arguments: task must be a text that is not blank")
    return task


def _answer(response: AgentResponse[object], name: str) -> str:
    if response.paused is not None:
        names = sorted({each.call.tool_name for each in response.pending})
        raise ToolError(
            f"the agent {name!r} could not go on: it may not call {', '.join(names)}"
            " without a person's approval, and cannot ask for it here"
        )
    if response.error is not None:
        raise ToolError(f"the agent {name!r} failed: {response.error}")
    return response.text


class _NestedSink:
    """Hands a nested run's events to whoever streams the outer one, marked as nested."""

    def __init__(self, outer: Sink, run: RunContext[Any]) -> None:
        self._outer = outer
        self._call_id, self._tool_name = str(run.call_id), str(run.tool_name)

    def emit(self, event: AgentStreamEvent) -> bool:
        return self._outer.emit(NestedEvent(self._call_id, self._tool_name, event))

    def offer(self, event: AgentStreamEvent) -> None:
        self._outer.offer(NestedEvent(self._call_id, self._tool_name, event))

    async def room(self) -> None:
        await self._outer.room()

    async def barrier(self) -> None:
        await self._outer.barrier()
