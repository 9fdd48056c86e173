"""The first agent: provider, model, agent, one question, one answer."""

from __future__ import annotations

from lighter_core import (
    Agent,
    AssistantMessage,
    Model,
    ModelError,
    ModelRequest,
    Provider,
    ToolCall,
    UserMessage,
    tool,
)
from lighter_core.testing import FakeProvider, Turn


async def test_a_few_lines_make_an_agent_that_answers() -> None:
    """Provider, model and agent are composed; `run` gives the reply."""
    provider = FakeProvider(["Crater & Co."])
    model = Model(provider)
    agent = Agent(model)
    result = await agent.run([UserMessage("Which name fits?")])
    assert result.status == "completed"
    last = result.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert last.content == "Crater & Co."
    assert result.text == "Crater & Co."


async def test_only_the_model_is_required() -> None:
    """An agent without tools, prompt and hooks of its own works."""
    result = await Agent(model=Model(FakeProvider(["hi"]))).run("x")
    assert result.text == "hi"


def test_agent_and_model_keep_what_they_are_made_of() -> None:
    """An agent has one model, a model has one provider, and both can be read."""
    provider = FakeProvider([])
    model = Model(provider)
    assert isinstance(provider, Provider)
    assert Agent(model).model is model
    assert model.provider is provider


def test_an_agent_takes_a_provider_directly() -> None:
    """The model in between may be left out."""
    provider = FakeProvider(["hi"])
    agent = Agent(provider)
    assert agent.model.provider is provider
    assert agent.run_sync("x").text == "hi"


def test_construction_sends_nothing() -> None:
    """No request is made before a run."""
    provider = FakeProvider(["never"])
    Agent(Model(provider), system_prompt="x")
    assert provider.requests == []


async def test_a_run_without_tools_calls_the_model_once() -> None:
    """A reply without tool calls ends the loop."""
    provider = FakeProvider(["first", "never"])
    result = await Agent(provider).run("x")
    assert len(provider.requests) == 1
    assert [m.role for m in result.messages] == ["assistant"]


async def test_the_loop_goes_on_until_the_model_asks_for_no_more_tools() -> None:
    """Each round's results are in the next request; the last reply ends the run."""

    @tool
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    provider = FakeProvider(
        [
            Turn(tool_calls=[ToolCall("c1", "double", '{"n":1}')]),
            Turn(tool_calls=[ToolCall("c2", "double", '{"n":2}')]),
            Turn(tool_calls=[ToolCall("c3", "double", '{"n":4}')]),
            "eight",
        ]
    )
    result = await Agent(provider, tools=[double]).run("x")
    assert len(provider.requests) == 4
    assert [m.tool_output for m in result.messages if m.role == "tool"] == [
        "2",
        "4",
        "8",
    ]
    for number, request in enumerate(provider.requests):
        assert request.messages[1] == UserMessage("x")
        assert request.messages[2:] == result.messages[: 2 * number]
    assert result.text == "eight"


async def test_a_failed_run_says_why_instead_of_raising() -> None:
    """`status` and `error` tell of a failing service."""
    error = ModelError("no service", "network_error")
    result = await Agent(FakeProvider([error])).run("x")
    assert result.status == "failed"
    assert result.error is error
    assert result.text == ""


async def test_runs_do_not_remember_earlier_runs() -> None:
    """The second request has nothing of the first run."""
    provider = FakeProvider(["one", "two"])
    agent = Agent(provider)
    await agent.run("first")
    await agent.run("second")
    assert provider.requests[1].messages[1:] == [UserMessage("second")]


def test_an_agent_runs_from_synchronous_code() -> None:
    """`run_sync` and `stream_sync` need no event loop of the caller's."""
    agent = Agent(FakeProvider(["one", "two"]))
    assert agent.run_sync("x").text == "one"
    with agent.stream_sync("x") as stream:
        events = list(stream)
    assert events[-1].type == "response"
    assert "".join(e.text for e in events if e.type == "text_delta") == "two"


async def test_run_sync_works_inside_a_running_loop() -> None:
    """A notebook's loop is blocked, not broken."""
    assert Agent(FakeProvider(["one"])).run_sync("x").text == "one"


async def test_a_run_inside_a_synchronous_run_says_what_to_write() -> None:
    """Waiting for the own loop would never end, so it is refused."""
    inner = Agent(FakeProvider(["inner"]))

    @tool(thread=False)
    def ask() -> str:
        """Ask the other agent."""
        return inner.run_sync("x").text

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "ask")]), "done"])
    result = Agent(provider, tools=[ask]).run_sync("x")
    output = result.messages[1]
    assert output.role == "tool"
    assert output.is_error
    assert "await agent.run" in output.tool_output


async def test_a_single_call_needs_no_agent() -> None:
    """A model can be called by itself."""
    reply = await Model(FakeProvider(["hi"])).invoke(ModelRequest([UserMessage("x")]))
    assert reply.content == "hi"
