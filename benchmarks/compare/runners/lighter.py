"""Lighter's agent with its providers, everything as an application has it."""

from __future__ import annotations

import json
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from lighter_core import (
    Agent,
    AssistantMessage,
    Message,
    Provider,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
    tool,
)

from ..replies import Protocol
from ..work import ANSWER, QUESTION, TOOL, Item, Outcome, add_up
from . import wire

_outcome: ContextVar[Outcome] = ContextVar("outcome")


@tool(name=TOOL)
async def add(a: int, b: int) -> int:
    """Add two numbers to a million."""
    _outcome.get().calls.append((a, b))
    return add_up(a, b)


@dataclass
class Prepared:
    """An agent and the history in front of the question."""

    agent: Agent
    messages: list[Message]


class Lighter:
    """One agent for each model, made once."""

    def __init__(self, protocol: Protocol, url: str, **options: Any) -> None:
        self._protocol = protocol
        self._url = url
        self._options = options

    def _provider(self, model: str) -> Provider:
        if self._protocol == "messages":
            from lighter_claude import ClaudeProvider

            return ClaudeProvider("key", model, base_url=self._url, **self._options)
        from lighter_openai import OpenAIChatProvider, OpenAIProvider

        kind = OpenAIProvider if self._protocol == "responses" else OpenAIChatProvider
        return kind("key", model, base_url=f"{self._url}/v1", **self._options)

    def prepare(self, model: str, items: list[Item]) -> Prepared:
        """Make the agent and its history."""
        messages = [_message(*item) for item in items]
        return Prepared(Agent(self._provider(model), tools=[add]), messages)

    async def run(self, prepared: Prepared) -> Outcome:
        """Run the agent."""
        out = Outcome()
        _outcome.set(out)
        question = [*prepared.messages, UserMessage(QUESTION)]
        response = (await prepared.agent.run(question)).raise_if_failed()
        if response.usage is None:
            raise ValueError("no usage")
        out.text = response.text
        return out

    async def stream(self, prepared: Prepared) -> Outcome:
        """Take the agent's stream event by event."""
        out = Outcome()
        async with prepared.agent.stream(
            [*prepared.messages, UserMessage(QUESTION)]
        ) as stream:
            async for event in stream:
                if type(event) is TextDelta:
                    out.deltas.append(event.text)
                elif event.type == "response":
                    out.text = event.raise_if_failed().text
        return out


def _message(kind: str, text: str, number: int) -> Message:
    id_ = f"call_old_{number}"
    match kind:
        case "user":
            return UserMessage(text)
        case "assistant":
            return AssistantMessage(ANSWER)
        case "call":
            call = ToolCall(id_, TOOL, json.dumps(wire.arguments(number)))
            return AssistantMessage("", tool_calls=[call])
        case _:
            return ToolMessage(call_id=id_, tool_name=TOOL, tool_output="2000000")


def make(protocol: Protocol, url: str) -> Lighter:
    """Return the runner."""
    return Lighter(protocol, url)
