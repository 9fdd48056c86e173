"""An agent's runs: input, loop, response."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import fields

import pytest

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    Message,
    Model,
    ModelError,
    SystemMessage,
    ToolCall,
    ToolDefinitionError,
    ToolMessage,
    Usage,
    UserMessage,
    tool,
)
from lighter_core.testing import FakeProvider, Turn

CALL = ToolCall("c1", "add", '{"a":19,"b":23}')


@tool
def add(a: int, b: int) -> int:
    """Calculate the sum of two numbers."""
    return a + b


def adding() -> FakeProvider:
    return FakeProvider([Turn(tool_calls=[CALL]), "It is 42."])


@pytest.mark.parametrize(
    "given",
    [
        "What?",
        UserMessage("What?"),
        [UserMessage("What?")],
        (UserMessage("What?"),),
    ],
)
async def test_input_is_a_text_a_message_or_a_history(given: object) -> None:
    """All forms reach the model as the same messages."""
    provider = FakeProvider(["x"])
    await Agent(provider, system_prompt=None).run(given)  # type: ignore[arg-type]
    assert provider.requests[0].messages == [UserMessage("What?")]


@pytest.mark.parametrize("way", ["run", "stream", "start"])
async def test_input_of_the_caller_is_not_changed(way: str) -> None:
    """List and messages are as before, although messages were added during the run."""
    history: list[Message] = [
        SystemMessage("s"),
        UserMessage("a"),
        AssistantMessage("b"),
        UserMessage("What is 19 + 23?"),
    ]
    before, items = copy.deepcopy(history), list(map(id, history))
    agent = Agent(adding(), tools=[add])
    if way == "run":
        await agent.run(history)
    elif way == "start":
        await agent.start(history)
    else:
        async for _ in agent.stream(history):
            pass
    assert history == before
    assert list(map(id, history)) == items


@pytest.mark.parametrize("way", ["run", "stream"])
async def test_input_is_copied_when_the_run_is_called(way: str) -> None:
    """What the caller appends later is no part of the run."""
    provider = FakeProvider(["x"])
    agent = Agent(provider, system_prompt=None)
    history: list[Message] = [UserMessage("a")]
    if way == "run":
        pending = agent.run(history)
        history.append(UserMessage("late"))
        await pending
    else:
        stream = agent.stream(history)
        history.append(UserMessage("late"))
        async for _ in stream:
            pass
    assert provider.requests[0].messages == [UserMessage("a")]


async def test_message_objects_are_handed_on_without_deep_copies() -> None:
    """Input messages reach the provider as the very objects; so do replies the caller."""
    question, reply = UserMessage("a"), AssistantMessage("b")
    provider = FakeProvider([reply])
    response = await Agent(provider).run([question])
    assert provider.requests[0].messages[1] is question
    assert response.messages[0] is reply


async def test_response_has_new_messages_only_in_order() -> None:
    """Call, result and reply; neither input nor system prompt."""
    history = [UserMessage("old"), AssistantMessage("older"), UserMessage("19 + 23?")]
    response = await Agent(adding(), tools=[add]).run(history)
    assert response.status == "completed"
    assert response.error is None
    assert response.messages == [
        AssistantMessage(tool_calls=[CALL], stop_reason="end_turn"),
        ToolMessage(call_id="c1", tool_name="add", tool_output="42"),
        AssistantMessage("It is 42.", stop_reason="end_turn"),
    ]


async def test_tool_results_stand_in_the_next_request() -> None:
    """The second call sees input, call and result after the system prompt."""
    provider = adding()
    response = await Agent(provider, tools=[add]).run("19 + 23?")
    roles = [m.role for m in provider.requests[1].messages]
    assert roles == ["system", "user", "assistant", "tool"]
    assert provider.requests[1].messages[2:] == response.messages[:2]


async def test_tool_definitions_stand_in_every_request() -> None:
    """The model is told of the tools each time."""
    provider = adding()
    await Agent(provider, tools=[add]).run("19 + 23?")
    assert [r.tool_specs for r in provider.requests] == [(add.get_spec(),)] * 2


def test_response_fields_and_their_defaults() -> None:
    """The fields are there by name; `type` marks it among the stream's events."""
    response = AgentResponse(status="completed", messages=[])
    assert {f.name for f in fields(response)} >= {
        "type",
        "status",
        "messages",
        "error",
        "usage",
        "stop_reason",
        "notes",
    }
    assert response.type == "response"
    assert response.error is None
    assert response.usage is None
    assert response.stop_reason is None
    assert response.notes == []
    assert response.text == ""


async def test_response_sums_usage_and_gives_the_last_stop_reason() -> None:
    """Tokens of all calls are added up."""
    provider = FakeProvider(
        [
            Turn(tool_calls=[CALL], usage=Usage(10, 5), stop_reason="tool_use"),
            Turn(text="42", usage=Usage(20, 7, 3, 2, 1), stop_reason="end_turn"),
        ]
    )
    response = await Agent(provider, tools=[add]).run("x")
    assert response.usage == Usage(30, 12, 3, 2, 1)
    assert response.usage.total_tokens == 42
    assert response.stop_reason == "end_turn"


async def test_response_text_is_the_last_assistant_text() -> None:
    """Tool messages and earlier texts do not count."""
    provider = FakeProvider([Turn(text="Let me see.", tool_calls=[CALL]), "42"])
    response = await Agent(provider, tools=[add]).run("x")
    assert response.text == "42"


async def test_raise_if_failed_gives_the_response_or_raises_its_error() -> None:
    """A completed response returns itself, a failed one raises the same object."""
    good = await Agent(FakeProvider(["x"])).run("x")
    assert good.raise_if_failed() is good
    error = ModelError("down", "server_error")
    bad = await Agent(FakeProvider([error])).run("x")
    with pytest.raises(ModelError) as caught:
        bad.raise_if_failed()
    assert caught.value is error


async def test_changing_a_response_changes_no_other_run() -> None:
    """The list of messages belongs to the caller."""
    agent = Agent(FakeProvider(["one", "two"]))
    first = await agent.run("x")
    first.messages.append(UserMessage("mine"))
    second = await agent.run("y")
    assert [m.role for m in second.messages] == ["assistant"]


async def test_one_agent_serves_many_runs_at_once() -> None:
    """Concurrent runs have their own messages."""

    def echo(request: object) -> str:
        last = request.messages[-1]  # type: ignore[attr-defined]
        return f"re {last.content}"

    agent = Agent(FakeProvider([echo] * 20))
    responses = await asyncio.gather(*(agent.run(f"q{n}") for n in range(20)))
    assert [r.text for r in responses] == [f"re q{n}" for n in range(20)]
    assert all(len(r.messages) == 1 for r in responses)


def test_two_tools_of_one_name_are_refused_at_construction() -> None:
    """Names must be unique in an agent."""
    with pytest.raises(ToolDefinitionError, match="two tools have the name 'add'"):
        Agent(FakeProvider([]), tools=[add, add])


def test_agent_shows_its_tools() -> None:
    """`tools` gives them in order; it is empty without any."""

    @tool
    def sub(a: int, b: int) -> int:
        """Subtract."""
        return a - b

    assert Agent(FakeProvider([]), tools=[add, sub]).tools == (add, sub)
    assert Agent(FakeProvider([])).tools == ()


async def test_tools_may_come_from_any_iterable() -> None:
    """A generator is read once, at construction."""
    provider = FakeProvider(
        [Turn(tool_calls=[CALL]), "ok", Turn(tool_calls=[CALL]), ""]
    )
    agent = Agent(provider, tools=(each for each in [add]))
    for _ in range(2):
        response = await agent.run("x")
        assert response.messages[1].tool_output == "42"  # type: ignore[union-attr]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
async def test_leaving_the_program_is_not_a_failed_run(error: BaseException) -> None:
    """Only `Exception` becomes a response."""

    class Leaving(FakeProvider):
        async def invoke(self, request: object) -> AssistantMessage:
            raise error

    with pytest.raises(type(error)):
        await Agent(Leaving([])).run("x")


async def test_cancelling_the_task_is_not_a_failed_run() -> None:
    """`CancelledError` passes."""
    arrived = asyncio.Event()

    class Slow(FakeProvider):
        async def invoke(self, request: object) -> AssistantMessage:
            arrived.set()
            await asyncio.Event().wait()
            raise AssertionError

    task = asyncio.ensure_future(Agent(Slow([])).run("x"))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_started_run_can_be_cancelled_through_its_handle() -> None:
    """Awaiting the handle then gives a failed response with the code `aborted`."""
    arrived = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        arrived.set()
        await asyncio.Event().wait()
        return "never"

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "wait")]), "never"])
    handle = Agent(provider, tools=[wait]).start("x")
    await arrived.wait()
    handle.cancel()
    response = await handle
    assert response.status == "failed"
    assert isinstance(response.error, ModelError)
    assert response.error.code == "aborted"
    assert [m.role for m in response.messages] == ["assistant", "tool"]
    assert response.messages[1].is_error  # type: ignore[union-attr]
    assert handle.receipts == {"c": "cancelled"}
    assert len(provider.requests) == 1


async def test_agent_closes_its_provider_when_asked() -> None:
    """`async with` and `aclose` reach a provider that has something to close."""

    class Closing(FakeProvider):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    provider = Closing(["x"])
    async with Agent(provider) as agent:
        await agent.run("x")
        assert provider.closed == 0
    assert provider.closed == 1
    async with Model(provider):
        pass
    assert provider.closed == 2
    await Agent(FakeProvider([])).aclose()
