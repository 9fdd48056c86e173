"""Wrong arguments are refused where they are given, in words that say what to write."""

from __future__ import annotations

import re

import pytest

from lighter_core import (
    AfterModelHook,
    Agent,
    AgentRequest,
    AssistantMessage,
    BeforeAgentHook,
    BeforeModelHook,
    HookError,
    Model,
    ModelRequest,
    ProviderContractError,
    ToolCall,
    ToolDefinitionError,
    UserMessage,
    tool,
)
from lighter_core.testing import FakeProvider, Turn


@tool
def ping() -> str:
    """Answer."""
    return "pong"


def keep(_: object) -> None:
    return None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hooks": {"before_model": keep}}, "Agent(hooks=…) takes a list, got dict"),
        ({"hooks": "audit"}, "Agent(hooks=…) takes a list, got str"),
        (
            {"hooks": BeforeModelHook(hook_name="h", hook_function=keep)},
            "Agent(hooks=…) takes a list, got BeforeModelHook",
        ),
        ({"tools": ping}, "Agent(tools=…) takes a list, got FunctionTool"),
        ({"tools": "acme"}, "Agent(tools=…) takes a list, got str"),
        (
            {"system_prompt": 7},
            "Agent(system_prompt=…) takes a str, a SystemMessage or None",
        ),
        ({"limits": 7}, "Agent(limits=…) takes a RunLimits or None, got int"),
    ],
)
def test_agent_refuses_arguments_of_the_wrong_kind(
    options: dict[str, object], words: str
) -> None:
    """The message names the argument, what it got and what to write."""
    with pytest.raises(TypeError, match=re.escape(words)):
        Agent(FakeProvider([]), **options)  # type: ignore[arg-type]


def test_agent_refuses_a_function_that_is_no_tool() -> None:
    """A plain function in `tools` is an error that names `@tool`."""
    with pytest.raises(ToolDefinitionError, match="with @tool"):
        Agent(FakeProvider([]), tools=[len])  # type: ignore[list-item]


def test_agent_refuses_a_model_that_is_none() -> None:
    """The model must be a provider, a model or a name."""
    with pytest.raises(TypeError, match="needs a Provider object"):
        Agent(object())  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["run", "run_sync", "stream", "stream_sync"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (7, "got int"),
        ({"messages": []}, "got dict"),
        ([UserMessage("x"), "y"], r"messages\[1\] must be"),
    ],
)
def test_a_run_refuses_what_is_no_history_at_once(
    method: str, given: object, words: str
) -> None:
    """The mistake is raised by the call itself, before anything starts."""
    provider = FakeProvider(["never"])
    with pytest.raises(TypeError, match=words):
        getattr(Agent(provider), method)(given)
    assert provider.requests == []


async def test_model_refuses_what_is_no_request() -> None:
    """A list of messages must be put into a `ModelRequest`."""
    model = Model(FakeProvider(["never"]))
    with pytest.raises(TypeError, match=r"write ModelRequest\(messages\)"):
        await model.invoke([UserMessage("x")])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"write ModelRequest\(messages\)"):
        async for _ in model.stream("x"):  # type: ignore[arg-type]
            pass


@pytest.mark.parametrize("kind", [ModelRequest, AgentRequest])
@pytest.mark.parametrize("given", ["hello", UserMessage("hello"), None])
def test_requests_take_a_sequence_of_messages(kind: type, given: object) -> None:
    """A text would otherwise be taken apart into letters."""
    with pytest.raises(TypeError, match="must be a sequence of messages"):
        kind(given)


async def test_hooks_cannot_smuggle_in_what_is_no_message() -> None:
    """A request cannot hold other things; the error says which hook made it."""
    before_model = BeforeModelHook(
        hook_name="m",
        hook_function=lambda request: ModelRequest([*request.messages, "x"]),  # type: ignore[list-item]
    )
    before_agent = BeforeAgentHook(
        hook_name="a",
        hook_function=lambda _: AgentRequest(["x"]),  # type: ignore[list-item]
    )
    for hook in (before_model, before_agent):
        provider = FakeProvider(["never"])
        response = await Agent(provider, hooks=[hook]).run("hi")
        assert isinstance(response.error, TypeError)
        assert "must hold messages, got str" in str(response.error)
        assert any(hook.hook_name in note for note in response.error.__notes__)
        assert provider.requests == []


@pytest.mark.parametrize("ids", [("c", "c"), ("c", "")])
async def test_calls_that_cannot_be_answered_are_refused(ids: tuple[str, str]) -> None:
    """Empty and doubled call ids fail the run, and whoever gave them is named."""
    calls = [ToolCall(each, "ping") for each in ids]
    response = await Agent(FakeProvider([Turn(tool_calls=calls)]), tools=[ping]).run(
        "x"
    )
    assert isinstance(response.error, ProviderContractError)
    assert response.messages == []

    hook = AfterModelHook(
        hook_name="h", hook_function=lambda _: AssistantMessage(tool_calls=calls)
    )
    agent = Agent(FakeProvider(["x"]), tools=[ping], hooks=[hook])
    response = await agent.run("x")
    assert isinstance(response.error, HookError)
    assert response.error.event == "after_model"
    assert response.messages == []
