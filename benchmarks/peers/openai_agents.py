"""openai-agents: `Runner.run` and `Runner.run_streamed`, with tracing switched off."""

from __future__ import annotations

from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    function_tool,
    set_tracing_disabled,
)
from agents import (
    Runner as Agents,
)
from openai import AsyncOpenAI

from ..compare.runners.wire import question, wire_items
from ..compare.work import QUESTION, TOOL, Item, Outcome
from . import noted


class Runner:
    """One agent for each model; one client."""

    def __init__(self, protocol: str, url: str) -> None:
        set_tracing_disabled(True)
        self._kind = (
            OpenAIResponsesModel
            if protocol == "responses"
            else OpenAIChatCompletionsModel
        )
        self._client = AsyncOpenAI(api_key="key", base_url=f"{url}/v1")

    def prepare(self, model: str, items: list[Item]) -> tuple[Any, list[Any]]:
        """Make the agent; its histories have the form of Responses always."""
        named = function_tool(name_override=TOOL)(noted.add)
        made = self._kind(model=model, openai_client=self._client)
        agent = Agent(name="bench", model=made, tools=[named])
        return agent, [*wire_items("responses", items), question(QUESTION)]

    async def run(self, prepared: tuple[Any, list[Any]]) -> Outcome:
        """Run the agent."""
        agent, items = prepared
        out = noted.begin()
        result = await Agents.run(agent, list(items), max_turns=1000)
        out.text = result.final_output
        return out

    async def stream(self, prepared: tuple[Any, list[Any]]) -> Outcome:
        """Take the reply event by event."""
        agent, items = prepared
        out = noted.begin()
        result = Agents.run_streamed(agent, list(items))
        async for event in result.stream_events():
            if (
                event.type == "raw_response_event"
                and event.data.type == "response.output_text.delta"
            ):
                out.deltas.append(event.data.delta)
        out.text = result.final_output
        return out


def make(protocol: str, url: str) -> Runner:
    """Return the runner."""
    return Runner(protocol, url)
