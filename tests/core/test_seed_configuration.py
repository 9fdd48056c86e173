"""What is set where: system prompt, tools, hooks, model."""

from __future__ import annotations

import pytest

from lighter_core import (
    Agent,
    AgentRequest,
    BeforeAgentHook,
    BeforeModelHook,
    Message,
    Model,
    ModelRequest,
    RunLimits,
    SystemMessage,
    ToolCall,
    UserMessage,
    tool,
)
from lighter_core.testing import FakeProvider, Turn


@tool
def ping() -> str:
    """Answer."""
    return "pong"


def first_message(provider: FakeProvider) -> Message:
    return provider.requests[0].messages[0]


async def test_default_system_prompt_is_a_helpful_assistant() -> None:
    """Without a prompt of the application the default is sent."""
    provider = FakeProvider(["x"])
    await Agent(provider).run("x")
    assert first_message(provider) == SystemMessage("You are a helpful assistant.")


@pytest.mark.parametrize("prompt", ["Be brief.", SystemMessage("Be brief.")])
async def test_own_system_prompt_replaces_the_default(prompt: object) -> None:
    """A text or a `SystemMessage`."""
    provider = FakeProvider(["x"])
    await Agent(provider, system_prompt=prompt).run("x")  # type: ignore[arg-type]
    assert provider.requests[0].messages == [
        SystemMessage("Be brief."),
        UserMessage("x"),
    ]


async def test_no_system_prompt_sends_none() -> None:
    """`None` leaves it out."""
    provider = FakeProvider(["x"])
    await Agent(provider, system_prompt=None).run("x")
    assert provider.requests[0].messages == [UserMessage("x")]


async def test_system_prompt_goes_before_every_call_and_not_into_the_result() -> None:
    """Each request starts with it, once; no response has it."""
    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "ping")]), "x", "y"])
    agent = Agent(provider, tools=[ping], system_prompt="Be brief.")
    first = await agent.run("1")
    second = [e async for e in agent.stream("2")][-1]
    assert len(provider.requests) == 3
    for request in provider.requests:
        roles = [m.role for m in request.messages]
        assert roles[0] == "system"
        assert roles.count("system") == 1
    assert second.type == "response"
    for message in [*first.messages, *second.messages]:
        assert message.role != "system"


async def test_system_prompt_is_added_to_a_history_that_starts_with_one() -> None:
    """The agent's comes first, the history's stays."""
    provider = FakeProvider(["x"])
    own = SystemMessage("From the history.")
    await Agent(provider, system_prompt="Mine.").run([own, UserMessage("x")])
    assert provider.requests[0].messages == [
        SystemMessage("Mine."),
        own,
        UserMessage("x"),
    ]


async def test_before_agent_sees_no_system_prompt_and_before_model_does() -> None:
    """It is added between the two."""
    seen: dict[str, list[str]] = {}

    def agent_hook(request: AgentRequest) -> None:
        seen["agent"] = [m.role for m in request.messages]

    def model_hook(request: ModelRequest) -> None:
        seen["model"] = [m.role for m in request.messages]

    agent = Agent(
        FakeProvider(["x"]),
        hooks=[
            BeforeAgentHook(hook_name="a", hook_function=agent_hook),
            BeforeModelHook(hook_name="m", hook_function=model_hook),
        ],
    )
    await agent.run("x")
    assert seen == {"agent": ["user"], "model": ["system", "user"]}


@pytest.mark.parametrize("option", ["model", "tools", "system_prompt", "hooks"])
def test_a_run_takes_messages_and_deps_only(option: str) -> None:
    """Another configuration needs another agent."""
    agent = Agent(FakeProvider([]))
    for method in (agent.run, agent.stream, agent.run_sync, agent.stream_sync):
        with pytest.raises(TypeError, match=option):
            method("x", **{option: None})  # type: ignore[operator]


async def test_several_agents_share_one_model() -> None:
    """Another agent with the same model has its own prompt and tools."""
    provider = FakeProvider(["a", "b"])
    model = Model(provider)
    await Agent(model, system_prompt="One.", tools=[ping]).run("x")
    await Agent(model, system_prompt="Two.").run("x")
    assert [r.messages[0] for r in provider.requests] == [
        SystemMessage("One."),
        SystemMessage("Two."),
    ]
    assert [len(r.tool_specs) for r in provider.requests] == [1, 0]


def test_configuration_is_by_keyword() -> None:
    """Only the model may be positional."""
    with pytest.raises(TypeError):
        Agent(FakeProvider([]), [ping])  # type: ignore[misc]


def test_limits_are_by_keyword_and_checked() -> None:
    """A limit is a positive integer or `None`; `True` is no integer."""
    for value in (0, -1, True, "3", 1.5):
        with pytest.raises(ValueError, match="positive int or None"):
            RunLimits(model_calls=value)  # type: ignore[arg-type]
    assert RunLimits().model_calls == 100
    assert RunLimits(model_calls=None).model_calls is None
