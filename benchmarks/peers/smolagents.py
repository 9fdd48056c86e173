"""smolagents: a `ToolCallingAgent` for each run at a time, in threads, as it blocks.

It tells its model of calls and results in plain text and takes a call of `final_answer` for
the end of a run, so the service answers it on a path of its own.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from smolagents import OpenAIModel, Tool, ToolCallingAgent
from smolagents.memory import ActionStep, TaskStep, ToolCall
from smolagents.monitoring import LogLevel, Timing

from ..compare.work import ANSWER, QUESTION, TOOL, TOOL_TEXT, Item, Outcome, add_up
from . import noted


class Add(Tool):
    """The tool as a class, since their decorator takes no name."""

    name = TOOL
    description = TOOL_TEXT
    inputs = {  # noqa: RUF012 - its base class wants it so
        "a": {"type": "integer", "description": "A number."},
        "b": {"type": "integer", "description": "A number."},
    }
    output_type = "integer"

    def forward(self, a: int, b: int) -> int:
        """Note the call and add."""
        noted.outcome.get().calls.append((a, b))
        return add_up(a, b)


class Runner:
    """Agents that are idle, and threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._threads = ThreadPoolExecutor(32)

    def prepare(self, model: str, items: list[Item]) -> Prepared:
        """Make the model and the history."""
        made = OpenAIModel(model, api_base=f"{self._url}/told/v1", api_key="key")
        return Prepared(made, [_step(*item) for item in items])

    async def run(self, prepared: Prepared) -> Outcome:
        """Run the agent in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, prepared.run)

    async def stream(self, prepared: Prepared) -> Outcome:
        """Refuse it: what it would measure is no agent's work."""
        raise NotImplementedError(
            "its agent ends with a tool call, so no text of a reply is streamed"
        )


class Prepared:
    """The agents of a model."""

    def __init__(self, model: Any, steps: list[Any]) -> None:
        self._model, self._steps = model, steps
        self._idle: list[ToolCallingAgent] = []

    def run(self) -> Outcome:
        """Run an agent, from the beginning of the conversation."""
        out = noted.begin()
        agent = (
            self._idle.pop()
            if self._idle
            else ToolCallingAgent(
                [Add()], self._model, max_steps=1000, verbosity_level=LogLevel.OFF
            )
        )
        agent.memory.reset()
        agent.memory.steps.extend(self._steps)
        out.text = str(agent.run(QUESTION, reset=False))
        self._idle.append(agent)
        return out


def _step(kind: str, text: str, number: int) -> Any:
    timing = Timing(start_time=0.0, end_time=0.0)
    match kind:
        case "user":
            return TaskStep(task=text)
        case "assistant":
            return ActionStep(step_number=number, timing=timing, model_output=ANSWER)
        case "call":
            call = ToolCall(TOOL, {"a": number, "b": number}, f"call_old_{number}")
            return ActionStep(step_number=number, timing=timing, tool_calls=[call])
        case _:
            return ActionStep(step_number=number, timing=timing, observations="2000000")


def make(protocol: str, url: str) -> Runner:  # noqa: ARG001 - as the others
    """Return the runner."""
    return Runner(url)
