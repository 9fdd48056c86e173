"""LangChain: `create_agent`, `ainvoke`, and `astream` of its messages."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage

from ..compare.work import ANSWER, QUESTION, TOOL, Item, Outcome
from . import noted


class Runner:
    """One agent for each model."""

    def __init__(self, protocol: str, url: str) -> None:
        self._protocol, self._url = protocol, url

    def _model(self, model: str) -> Any:
        if self._protocol == "messages":
            from langchain_anthropic import ChatAnthropic

            return ChatAnthropic(
                model=model, api_key="key", base_url=self._url, max_tokens=4096
            )
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(
            model=model,
            api_key="key",
            base_url=f"{self._url}/v1",
            use_responses_api=self._protocol == "responses",
        )

    def prepare(self, model: str, items: list[Item]) -> tuple[Any, list[Any]]:
        """Make the agent and its history."""
        agent = create_agent(self._model(model), tools=[tool(TOOL)(noted.add)])
        return agent, [*(_message(*item) for item in items), HumanMessage(QUESTION)]

    async def run(self, prepared: tuple[Any, list[Any]]) -> Outcome:
        """Run the agent."""
        agent, messages = prepared
        out = noted.begin()
        config = {"recursion_limit": 10_000}
        state = await agent.ainvoke({"messages": list(messages)}, config)
        out.text = state["messages"][-1].text
        return out

    async def stream(self, prepared: tuple[Any, list[Any]]) -> Outcome:
        """Take the reply chunk by chunk."""
        agent, messages = prepared
        out = noted.begin()
        async for chunk, _ in agent.astream(
            {"messages": list(messages)}, stream_mode="messages"
        ):
            if isinstance(chunk, AIMessageChunk) and chunk.text:
                out.deltas.append(str(chunk.text))
        out.text = "".join(out.deltas)
        return out


def _message(kind: str, text: str, number: int) -> Any:
    id_ = f"call_old_{number}"
    match kind:
        case "user":
            return HumanMessage(text)
        case "assistant":
            return AIMessage(ANSWER)
        case "call":
            call = {"name": TOOL, "args": {"a": number, "b": number}, "id": id_}
            return AIMessage("", tool_calls=[call])
        case _:
            return ToolMessage("2000000", tool_call_id=id_)


def make(protocol: str, url: str) -> Runner:
    """Return the runner."""
    return Runner(protocol, url)
