"""llm: the asynchronous models of its own plugin for OpenAI, and their `chain`."""

from __future__ import annotations

from typing import Any

import llm
from llm.default_plugins.openai_models import AsyncChat, AsyncResponses
from llm.parts import Message, TextPart, ToolCallPart, ToolResultPart

from ..compare.work import ANSWER, QUESTION, TOOL, Item, Outcome
from . import noted


class Runner:
    """One model object for each model."""

    def __init__(self, protocol: str, url: str) -> None:
        self._kind = AsyncResponses if protocol == "responses" else AsyncChat
        self._url = url

    def prepare(self, model: str, items: list[Item]) -> tuple[Any, dict[str, Any]]:
        """Make the model, the tool and the history."""
        made = self._kind(
            model,
            key="key",
            model_name=model,
            api_base=f"{self._url}/v1",
            supports_tools=True,
        )
        messages = [_message(*item) for item in items]
        return made, {
            "messages": [*messages, llm.user(QUESTION)],
            "tools": [llm.Tool.function(noted.add, name=TOOL)],
            "chain_limit": 1000,
            "key": "key",
        }

    async def run(self, prepared: tuple[Any, dict[str, Any]]) -> Outcome:
        """Run the chain."""
        model, given = prepared
        out = noted.begin()
        out.text = await model.conversation().chain(stream=False, **given).text()
        return out

    async def stream(self, prepared: tuple[Any, dict[str, Any]]) -> Outcome:
        """Take the reply chunk by chunk."""
        model, given = prepared
        out = noted.begin()
        async for chunk in model.conversation().chain(**given):
            out.deltas.append(chunk)
        out.text = "".join(out.deltas)
        return out


def _message(kind: str, text: str, number: int) -> Message:
    id_ = f"call_old_{number}"
    match kind:
        case "user":
            return Message("user", [TextPart(text=text)])
        case "assistant":
            return Message("assistant", [TextPart(text=ANSWER)])
        case "call":
            values = {"a": number, "b": number}
            call = ToolCallPart(name=TOOL, arguments=values, tool_call_id=id_)
            return Message("assistant", [call])
        case _:
            result = ToolResultPart(name=TOOL, output="2000000", tool_call_id=id_)
            return Message("tool", [result])


def make(protocol: str, url: str) -> Runner:
    """Return the runner."""
    return Runner(protocol, url)
