"""agno: an `Agent` with a tool, `arun`, and its stream of events; telemetry off."""

from __future__ import annotations

from typing import Any

from agno.agent import Agent
from agno.models.message import Message
from agno.tools import tool

from ..compare.work import ANSWER, QUESTION, TOOL, Item, Outcome
from . import noted


class Runner:
    """One agent for each model."""

    def __init__(self, protocol: str, url: str) -> None:
        self._protocol, self._url = protocol, url

    def _model(self, model: str) -> Any:
        if self._protocol == "messages":
            from agno.models.anthropic import Claude

            return Claude(
                id=model, api_key="key", client_params={"base_url": self._url}
            )
        from agno.models.openai import OpenAIChat, OpenAIResponses

        kind = OpenAIResponses if self._protocol == "responses" else OpenAIChat
        return kind(id=model, api_key="key", base_url=f"{self._url}/v1")

    def prepare(self, model: str, items: list[Item]) -> tuple[Any, list[Any]]:
        """Make the agent and its history."""
        named = tool(name=TOOL)(noted.add)
        agent = Agent(model=self._model(model), tools=[named], telemetry=False)
        messages = [_message(*item) for item in items]
        return agent, [*messages, Message(role="user", content=QUESTION)]

    async def run(self, prepared: tuple[Any, list[Any]]) -> Outcome:
        """Run the agent."""
        agent, messages = prepared
        out = noted.begin()
        out.text = (await agent.arun(list(messages))).content
        return out

    async def stream(self, prepared: tuple[Any, list[Any]]) -> Outcome:
        """Take the reply event by event."""
        agent, messages = prepared
        out = noted.begin()
        async for event in agent.arun(list(messages), stream=True):
            if event.event == "RunContent" and event.content:
                out.deltas.append(event.content)
        out.text = "".join(out.deltas)
        return out


def _message(kind: str, text: str, number: int) -> Message:
    id_ = f"call_old_{number}"
    match kind:
        case "user":
            return Message(role="user", content=text)
        case "assistant":
            return Message(role="assistant", content=ANSWER)
        case "call":
            function = {"name": TOOL, "arguments": f'{{"a": {number}, "b": {number}}}'}
            call = {"id": id_, "type": "function", "function": function}
            return Message(role="assistant", tool_calls=[call])
        case _:
            return Message(role="tool", content="2000000", tool_call_id=id_)


def make(protocol: str, url: str) -> Runner:
    """Return the runner."""
    return Runner(protocol, url)
