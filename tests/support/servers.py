"""Models of each installed provider, made for a server, and conversations with them."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    Message,
    Model,
    ModelError,
    ModelRequest,
    PluginNotFoundError,
    RunContext,
    RunHandle,
    SystemMessage,
    Tool,
    UserMessage,
    explain_replay,
    messages_from_json,
    messages_to_json,
    repair_history,
    tool,
)
from lighter_core.adapters import ReplayNotes

from .strict import StrictServer, Turn

__all__ = ["NAMES", "Conversation", "body_of", "check_explained", "make_model"]

NAMES = ("openai", "claude", "deepseek", "openai-chat", "deepseek-chat")
"""The strict services; the last one is reached through `openai-chat`."""

Mode = Literal["run", "stream", "start"]


def make_model(name: str, base_url: str, **options: Any) -> Model:
    """Return a model of the provider, or skip the test when it is not installed."""
    options = {"model_id": "m", "timeout": 20, "max_retries": 0, **options}
    if name == "deepseek-chat":
        name = "openai-chat"
        options["replay_reasoning"] = "always"
    try:
        return Model.from_name(name, base_url=base_url, api_key="key-123456", **options)
    except PluginNotFoundError as err:
        pytest.skip(f"the provider is not installed: {err}")


def body_of(model: Model, history: list[Message]) -> bytes | str:
    """Return the body of the request that a model's provider would send, or its error."""
    provider: Any = model.provider
    try:
        body: bytes = provider._encode(
            ModelRequest(history), ReplayNotes(), stream=True
        )
    except ModelError as error:
        return str(error)
    return body


def check_explained(history: list[Message], model: Model) -> None:
    """Fail when an explanation differs from what the next request says of itself."""
    before = copy.deepcopy(history)
    found = explain_replay(history, model)
    assert explain_replay(history, model) == found
    assert history == before
    for each in found:
        assert each.path == "messages" or eval(each.path, {"messages": history})
    repaired = repair_history(history).messages
    told = explain_replay(repaired, model)
    assert [each.text for each in found if "repairs it" not in each.text] == [
        each.text for each in told
    ]
    if not repaired:
        return
    provider, notes, refusal = model.provider, ReplayNotes(), None
    try:
        provider._encode(ModelRequest(repaired), notes, stream=True)  # type: ignore[attr-defined]
    except ModelError as error:
        refusal = str(error)
    assert refusal == next((e.text for e in told if e.kind == "refused"), None)
    kept = {each.text for each in told if each.kind != "refused"}
    assert kept == {*notes.texts} or (refusal and {*notes.texts} <= kept)


@dataclass
class Conversation:
    """One history that runs of several providers continue.

    Attributes:
        server: The strict services.
        history: All messages so far.
        executed: How often each call was executed, by its argument `n`.
        responses: The responses of all runs that gave one.
    """

    server: StrictServer
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    system_prompt: str | SystemMessage | None = "Be brief."
    history: list[Message] = field(default_factory=list)
    executed: Counter[int] = field(default_factory=Counter)
    responses: list[AgentResponse[Any]] = field(default_factory=list)
    _agents: dict[str, Agent] = field(default_factory=dict)
    _models: dict[str, Model] = field(default_factory=dict)
    _handle: RunHandle[Any] | None = None

    async def say(
        self,
        name: str,
        text: str | None,
        *turns: Turn,
        mode: Mode = "run",
        leave: int | None = None,
    ) -> AgentResponse[Any] | None:
        """Let a provider's agent answer; append what came to the history.

        Args:
            name: The service.
            text: What the user says; `None` continues without.
            turns: What the service answers.
            mode: How the agent is run.
            leave: Leave the stream after so many events.
        """
        self.server.services[name].script(*turns)
        if text is not None:
            self.history.append(UserMessage(text))
        agent = self._agent(name)
        async with asyncio.timeout(30):
            if mode == "stream":
                return await self._stream(agent, leave)
            self._handle = agent.start(self.history)
            response = await self._handle
        self._handle = None
        return self._take(response)

    async def _stream(
        self, agent: Agent, leave: int | None
    ) -> AgentResponse[Any] | None:
        number = 0
        async with agent.stream(self.history) as stream:
            async for event in stream:
                number += 1
                if isinstance(event, AgentResponse):
                    return self._take(event)
                if number == leave:
                    break
        self.history += stream.messages
        return None

    def _take(self, response: AgentResponse[Any]) -> AgentResponse[Any]:
        self.history += response.messages
        self.responses.append(response)
        return response

    def _agent(self, name: str) -> Agent:
        if name not in self._agents:
            model = make_model(
                name, self.server.base_url(name), **self.options.get(name, {})
            )
            self._models[name] = model
            self._agents[name] = Agent(
                model, tools=[self._tool()], system_prompt=self.system_prompt
            )
        return self._agents[name]

    def _tool(self) -> Tool:
        conversation = self

        @tool
        async def work(n: int, run: RunContext[None], how: str = "") -> str:
            """Do a piece of work.

            Args:
                n: Its number.
                how: What comes of it.
            """
            conversation.executed[n] += 1
            if how == "fail":
                raise ValueError("it went wrong")
            if how == "cancel" and conversation._handle is not None:
                conversation._handle.cancel()
                await asyncio.sleep(5)
            return {"lone": "x\ud83ey", "empty": "", "blank": " \n"}.get(how, "done")

        return work

    @property
    def replies(self) -> list[AssistantMessage]:
        """The replies in the history."""
        return [m for m in self.history if isinstance(m, AssistantMessage)]

    def check(self) -> None:
        """Fail when a service refused something, or a call was executed twice."""
        assert self.server.refusals == [], self.server.refusals
        twice = [n for n, times in self.executed.items() if times > 1]
        assert twice == [], f"executed twice: {twice}"

    def check_documents(self) -> None:
        """Fail when a JSON document loses something, or changes a coming request."""
        again = messages_from_json(messages_to_json(self.history))
        assert again == self.history
        before, after = (
            repair_history(each).messages for each in (self.history, again)
        )
        for model in self._models.values():
            assert body_of(model, after) == body_of(model, before)
            check_explained(self.history, model)

    async def aclose(self) -> None:
        """Close the clients."""
        for agent in self._agents.values():
            await agent.aclose()
