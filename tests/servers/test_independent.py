"""The adapters against servers that others wrote; the protocol, not the model's wit."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from support.servers import make_model

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    ModelError,
    ReasoningDelta,
    RunLimits,
    SystemMessage,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
    tool,
)

PROVIDERS = ["openai", "openai-chat", "claude", "deepseek"]
CHAT_PATHS = ["mistral/v1", "groq/openai/v1", "xai/v1", "together/v1", "ai21/v1"]

each = pytest.mark.parametrize("name", PROVIDERS)
each_way = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])

Make = Callable[..., Agent]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes agents that are closed after the test."""
    async with AsyncExitStack() as stack:
        made: list[Agent] = []

        def make(name: str, url: str, *, tools: Any = (), **options: Any) -> Agent:
            model = make_model(name, url, **options)
            made.append(Agent(model, tools=tools, limits=RunLimits(model_calls=4)))
            stack.push_async_callback(made[-1].aclose)
            return made[-1]

        yield make


async def ask(agent: Agent, text: str, *, streamed: bool) -> AgentResponse[Any]:
    """Ask; hold the deltas of a stream against the messages."""
    if not streamed:
        return await agent.run(text)
    said: list[str] = []
    thought: list[str] = []
    response: AgentResponse[Any] | None = None
    async with agent.stream(text) as stream:
        async for event in stream:
            match event:
                case TextDelta(text=piece):
                    said.append(piece)
                case ReasoningDelta(text=piece):
                    thought.append(piece)
                case AgentResponse():
                    response = event
    assert response is not None
    replies = [m for m in response.messages if isinstance(m, AssistantMessage)]
    if response.status == "completed":
        assert "".join(said) == "".join(m.content for m in replies)
        assert "".join(thought) == "".join(m.reasoning or "" for m in replies)
    return response


def calls_of(response: AgentResponse[Any]) -> list[tuple[str, Any]]:
    """Return name and arguments of each call; each of them has its result."""
    found = [
        call
        for message in response.messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    ]
    results = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert [each.call_id for each in found] == [each.call_id for each in results]
    return [(each.tool_name, json.loads(each.arguments)) for each in found]


# aimock.


def aimock_url(aimock: str, name: str) -> str:
    return aimock if name == "claude" else f"{aimock}/v1"


@each
@each_way
async def test_aimock_text(aimock: str, make: Make, name: str, streamed: bool) -> None:
    agent = make(name, aimock_url(aimock, name))
    response = await ask(agent, "hello aimock", streamed=streamed)
    assert response.raise_if_failed().text == "Hello, I am a mock with é and 🦊."


@each
@each_way
async def test_aimock_reasoning(
    aimock: str, make: Make, name: str, streamed: bool
) -> None:
    agent = make(name, aimock_url(aimock, name))
    response = await ask(agent, "think aimock", streamed=streamed)
    assert response.raise_if_failed().text == "Thought through."
    [reply] = response.messages
    assert isinstance(reply, AssistantMessage)
    assert reply.reasoning == "First this, then that."


@each
@each_way
async def test_aimock_tool_loop(
    aimock: str, make: Make, name: str, streamed: bool
) -> None:
    agent = make(name, aimock_url(aimock, name), tools=[add])
    response = await ask(agent, "add aimock", streamed=streamed)
    assert response.raise_if_failed().text == "19 + 23 = 42."
    assert calls_of(response) == [("add", {"a": 19, "b": 23})]


@each
@each_way
async def test_aimock_two_calls_beside_text(
    aimock: str, make: Make, name: str, streamed: bool
) -> None:
    agent = make(name, aimock_url(aimock, name), tools=[add])
    response = await ask(agent, "twice aimock", streamed=streamed)
    assert response.raise_if_failed().text == "3 and 7."
    assert calls_of(response) == [("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})]
    outputs = [m.tool_output for m in response.messages if isinstance(m, ToolMessage)]
    assert outputs == ["3", "7"]


@each
@each_way
async def test_aimock_errors(
    aimock: str, make: Make, name: str, streamed: bool
) -> None:
    """A scripted one, and the one for a request that no fixture matches."""
    agent = make(name, aimock_url(aimock, name))
    codes = []
    for text in ("limit aimock", "no such fixture"):
        response = await ask(agent, text, streamed=streamed)
        assert isinstance(response.error, ModelError)
        codes.append((response.error.code, response.error.http_status))
    assert codes == [("rate_limit", 429), ("invalid_request", 404)]


# llmock.


@each
@each_way
async def test_llmock_tool_loop(
    llmock: Any, make: Make, name: str, streamed: bool
) -> None:
    llmock.script(
        {
            "type": "reply",
            "tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}],
        },
        {"type": "reply", "text": "It is é🦊."},
    )
    agent = make(name, llmock.base_url(name), tools=[add])
    response = await ask(agent, "1 + 2?", streamed=streamed)
    assert response.raise_if_failed().text == "It is é🦊."
    assert calls_of(response) == [("add", {"a": 1, "b": 2})]
    assert response.usage is not None
    assert response.usage.output_tokens > 0
    assert llmock.findings() == []


@each_way
@pytest.mark.parametrize("path", CHAT_PATHS)
async def test_llmock_dialects_of_chat_completions(
    llmock: Any, make: Make, path: str, streamed: bool
) -> None:
    """As other vendors speak it: some have words of their own for the end."""
    agent = make("openai-chat", f"{llmock.url}/{path}", tools=[add])
    llmock.script(
        {
            "type": "reply",
            "tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}],
        },
        {"type": "reply", "text": "3."},
    )
    response = await ask(agent, "1 + 2?", streamed=streamed)
    assert response.raise_if_failed().text == "3."
    assert calls_of(response) == [("add", {"a": 1, "b": 2})]


@each
@pytest.mark.parametrize(("status", "streamed"), [(503, False), (529, True)])
async def test_llmock_outages_are_waited_out(
    llmock: Any, make: Make, name: str, status: int, streamed: bool
) -> None:
    llmock.script({"type": "fail", "status": status, "times": 1})
    agent = make(name, llmock.base_url(name), max_retries=2)
    (await ask(agent, "Hi.", streamed=streamed)).raise_if_failed()
    assert len(llmock.requests()) == 2
    assert llmock.findings() == []


@each
async def test_llmock_outages_are_server_errors(
    llmock: Any, make: Make, name: str
) -> None:
    llmock.script({"type": "fail", "status": 529})
    agent = make(name, llmock.base_url(name))
    response = await ask(agent, "Hi.", streamed=True)
    assert isinstance(response.error, ModelError)
    assert (response.error.code, response.error.http_status) == ("server_error", 529)
    assert len(llmock.requests()) == 1


@each
@each_way
async def test_llmock_rate_limits_are_obeyed(
    llmock: Any, make: Make, name: str, streamed: bool
) -> None:
    """The server itself judges whether its client waited as long as it was told."""
    llmock.script({"type": "fail", "status": 429, "retry_after": 0.3, "times": 1})
    agent = make(name, llmock.base_url(name), max_retries=2)
    (await ask(agent, "Hi.", streamed=streamed)).raise_if_failed()
    assert len(llmock.requests()) == 2
    assert llmock.findings() == []


@each
async def test_llmock_rate_limits_say_how_long(
    llmock: Any, make: Make, name: str
) -> None:
    llmock.script({"type": "fail", "status": 429, "retry_after": 7})
    agent = make(name, llmock.base_url(name))
    response = await ask(agent, "Hi.", streamed=False)
    assert isinstance(response.error, ModelError)
    assert (response.error.code, response.error.retry_after) == ("rate_limit", 7)


FAULTS = {
    "disconnect": {"network_error"},
    "truncate": {"bad_response"},
    "malformed": {"bad_response"},
    "stall": {"network_error"},
}


@each
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("after", [0, 2])
async def test_llmock_broken_streams_are_no_replies(
    llmock: Any, make: Make, name: str, kind: str, after: int
) -> None:
    """Nothing of them is taken for a reply, and no tool runs."""
    fault = {"type": "stream_fault", "kind": kind, "after_chunks": after}
    if kind == "stall":
        fault["stall_seconds"] = 30
    call = {"name": "add", "arguments": {"a": 1, "b": 2}}
    llmock.script(fault, {"type": "reply", "tool_calls": [call]})
    agent = make(name, llmock.base_url(name), tools=[add], timeout=0.5)
    response = await ask(agent, "1 + 2?", streamed=True)
    assert isinstance(response.error, ModelError)
    assert response.error.code in FAULTS[kind]
    assert response.messages == []


@each
@each_way
@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
async def test_llmock_broken_calls_get_an_error_result(
    llmock: Any, make: Make, name: str, streamed: bool, kind: str
) -> None:
    """The model is told, and the conversation goes on."""
    llmock.script({"type": "tool_fault", "kind": kind})
    agent = make(name, llmock.base_url(name), tools=[add])
    response = await ask(agent, "1 + 2?", streamed=streamed)
    if name == "claude" and kind == "malformed_arguments" and streamed:
        # Claude's calls are objects: pieces that do not add up to one are no reply.
        assert isinstance(response.error, ModelError)
        assert response.error.code == "bad_response"
        return
    response.raise_if_failed()
    results = [m for m in response.messages if isinstance(m, ToolMessage)]
    assert [result.is_error for result in results] == [True]


# llama.cpp.


# On a busy machine this server hangs up on connections that it has left unused meanwhile;
# what the SDKs do then by themselves is to ask again.
SMALL = {"model_id": "small", "max_output_tokens": 64, "max_retries": 2}


def llama_url(llama: str, name: str) -> str:
    return llama if name == "claude" else f"{llama}/v1"


@each
async def test_llama_text(llama: str, make: Make, name: str) -> None:
    agent = make(name, llama_url(llama, name), **SMALL)
    response = await ask(agent, "Say hello.", streamed=True)
    assert response.raise_if_failed().text
    assert response.usage is not None
    assert response.usage.output_tokens > 0


@pytest.mark.parametrize("name", ["openai", "openai-chat", "claude"])
@each_way
async def test_llama_tool_loop(
    llama: str, make: Make, name: str, streamed: bool
) -> None:
    """A call with arguments that fit the schema, its result, and an answer."""
    agent = make(name, llama_url(llama, name), tools=[add], **SMALL)
    response = await ask(agent, "Use add for 19 and 23.", streamed=streamed)
    response.raise_if_failed()
    assert calls_of(response) == [("add", {"a": 19, "b": 23})]
    assert response.text
    assert response.usage is not None
    assert response.usage.input_tokens > 0


@pytest.mark.parametrize("name", ["openai", "openai-chat", "claude"])
async def test_llama_takes_a_history_of_another_service(
    llama: str, make: Make, name: str
) -> None:
    """Text and a call without arguments, both written anew."""
    agent = make(name, llama_url(llama, name), **SMALL)
    history = [
        AssistantMessage("Hello, I add."),
        UserMessage("Add nothing."),
        AssistantMessage("So be it.", tool_calls=[ToolCall("functions.add:0", "add")]),
        ToolMessage(call_id="functions.add:0", tool_name="add", tool_output="0"),
        AssistantMessage("Nothing makes 0."),
        SystemMessage("Be brief."),
        UserMessage("Say hello."),
    ]
    response = await agent.run(history)
    assert response.raise_if_failed().text


async def test_llama_refuses_a_prompt_that_is_too_long(llama: str, make: Make) -> None:
    agent = make("openai-chat", f"{llama}/v1", **SMALL)
    response = await ask(agent, "word " * 5000, streamed=False)
    assert isinstance(response.error, ModelError)
    assert response.error.code == "invalid_request"
