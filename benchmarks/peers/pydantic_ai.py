"""pydantic-ai: an `Agent` with a tool; streams with `run_stream`."""

from __future__ import annotations

import os
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import UsageLimits

from ..compare.work import ANSWER, QUESTION, TOOL, Item, Outcome
from . import noted


class Runner:
    """One agent for each model."""

    def __init__(self, protocol: str, url: str) -> None:
        self._protocol, self._url = protocol, url

    def _model(self, model: str) -> Any:
        if self._protocol == "messages":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            provider = AnthropicProvider(api_key="key", base_url=self._url)
            return AnthropicModel(model, provider=provider)
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        kind = (
            OpenAIResponsesModel if self._protocol == "responses" else OpenAIChatModel
        )
        provider = OpenAIProvider(api_key="key", base_url=f"{self._url}/v1")
        return kind(model, provider=provider)

    def prepare(self, model: str, items: list[Item]) -> tuple[Any, list[ModelMessage]]:
        """Make the agent and its history."""
        agent = Agent(self._model(model))
        agent.tool_plain(noted.add, name=TOOL)
        return agent, [_message(*item) for item in items]

    async def run(self, prepared: tuple[Any, list[ModelMessage]]) -> Outcome:
        """Run the agent."""
        agent, history = prepared
        out = noted.begin()
        limits = UsageLimits(request_limit=None)
        result = await agent.run(QUESTION, message_history=history, usage_limits=limits)
        out.text = result.output
        return out

    async def stream(self, prepared: tuple[Any, list[ModelMessage]]) -> Outcome:
        """Take the text delta by delta."""
        agent, history = prepared
        out = noted.begin()
        async with agent.run_stream(QUESTION, message_history=history) as result:
            async for text in result.stream_text(delta=True, debounce_by=None):
                out.deltas.append(text)
            out.text = "".join(out.deltas)
        return out


def _message(kind: str, text: str, number: int) -> ModelMessage:
    id_ = f"call_old_{number}"
    match kind:
        case "user":
            return ModelRequest([UserPromptPart(text)])
        case "assistant":
            return ModelResponse([TextPart(ANSWER)])
        case "call":
            values = {"a": number, "b": number}
            return ModelResponse([ToolCallPart(TOOL, values, tool_call_id=id_)])
        case _:
            return ModelRequest([ToolReturnPart(TOOL, "2000000", tool_call_id=id_)])


def make(protocol: str, url: str) -> Runner:
    """Return the runner."""
    os.environ.setdefault("LOGFIRE_IGNORE_NO_CONFIG", "1")
    return Runner(protocol, url)
