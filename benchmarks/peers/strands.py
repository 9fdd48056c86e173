"""strands-agents: an `Agent` for each conversation that runs; they are used again."""

from __future__ import annotations

from typing import Any

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager

from ..compare.work import ANSWER, QUESTION, TOOL, Item, Outcome
from . import noted


class Runner:
    """One model object for each model, and the agents that are idle."""

    def __init__(self, protocol: str, url: str) -> None:
        self._protocol, self._url = protocol, url

    def _model(self, model: str) -> Any:
        if self._protocol == "messages":
            from strands.models.anthropic import AnthropicModel

            return AnthropicModel(
                client_args={"api_key": "key", "base_url": self._url},
                model_id=model,
                max_tokens=4096,
            )
        client = {"api_key": "key", "base_url": f"{self._url}/v1"}
        if self._protocol == "responses":
            from strands.models.openai_responses import OpenAIResponsesModel

            return OpenAIResponsesModel(client_args=client, model_id=model)
        from openai import AsyncOpenAI
        from strands.models.openai import OpenAIModel

        return OpenAIModel(client=AsyncOpenAI(**client), model_id=model)

    def prepare(self, model: str, items: list[Item]) -> Prepared:
        """Make the model and the history."""
        return Prepared(self._model(model), [_message(*item) for item in items])

    async def run(self, prepared: Prepared) -> Outcome:
        """Run the agent."""
        out = noted.begin()
        agent = prepared.agent()
        result = await agent.invoke_async(QUESTION)
        out.text = "".join(part.get("text", "") for part in result.message["content"])
        prepared.idle.append(agent)
        return out

    async def stream(self, prepared: Prepared) -> Outcome:
        """Take the reply event by event."""
        out = noted.begin()
        agent = prepared.agent()
        async for event in agent.stream_async(QUESTION):
            if "data" in event:
                out.deltas.append(event["data"])
        out.text = "".join(out.deltas)
        prepared.idle.append(agent)
        return out


class Prepared:
    """The agents of a model, each with a conversation of its own."""

    def __init__(self, model: Any, messages: list[Any]) -> None:
        self._model, self._messages = model, messages
        self._tool = tool(name=TOOL)(noted.add)
        self.idle: list[Agent] = []

    def agent(self) -> Agent:
        """Return an agent at the beginning of the conversation."""
        if self.idle:
            agent = self.idle.pop()
            agent.messages[:] = self._messages
            return agent
        return Agent(
            model=self._model,
            messages=list(self._messages),
            tools=[self._tool],
            callback_handler=None,
            conversation_manager=NullConversationManager(),
        )


def _message(kind: str, text: str, number: int) -> Any:
    id_ = f"call_old_{number}"
    match kind:
        case "user":
            return {"role": "user", "content": [{"text": text}]}
        case "assistant":
            return {"role": "assistant", "content": [{"text": ANSWER}]}
        case "call":
            call = {"toolUseId": id_, "name": TOOL, "input": {"a": number, "b": number}}
            return {"role": "assistant", "content": [{"toolUse": call}]}
        case _:
            content = [{"text": "2000000"}]
            result = {"toolUseId": id_, "status": "success", "content": content}
            return {"role": "user", "content": [{"toolResult": result}]}


def make(protocol: str, url: str) -> Runner:
    """Return the runner."""
    return Runner(protocol, url)
