"""Histories are the application's: passed in, appended to, kept valid."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from dataclasses import asdict, replace

import pytest
from pydantic import TypeAdapter

from lighter_core import (
    Agent,
    AssistantMessage,
    Message,
    Model,
    ModelError,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    check_history,
    repair_history,
    tool,
)
from lighter_core.adapters import seal_native
from lighter_core.testing import FakeProvider, Turn

CALL = ToolCall("c1", "add", '{"a":19,"b":23}')
ASKS = AssistantMessage(tool_calls=[CALL])
RESULT = ToolMessage(call_id="c1", tool_name="add", tool_output="42")


@tool
def add(a: int, b: int) -> int:
    """Calculate the sum of two numbers."""
    return a + b


async def test_conversation_goes_on_with_the_appended_messages() -> None:
    """The second request has the whole first round."""
    provider = FakeProvider([Turn(tool_calls=[CALL]), "42", "43"])
    agent = Agent(provider, tools=[add])
    history: list[Message] = [UserMessage("19 + 23?")]
    history += (await agent.run(history)).raise_if_failed().messages
    history.append(UserMessage("And one more?"))
    history += (await agent.run(history)).raise_if_failed().messages
    assert [m.role for m in history] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert provider.requests[2].messages[1:] == history[:-1]


async def test_system_prompt_is_not_doubled_as_the_history_grows() -> None:
    """It is put in front of each call and never comes back in the result."""
    provider = FakeProvider(["a", "b"])
    agent = Agent(provider, system_prompt="Be brief.")
    history: list[Message] = [UserMessage("1")]
    history += (await agent.run(history)).messages
    history.append(UserMessage("2"))
    history += (await agent.run(history)).messages
    for request in provider.requests:
        systems = [m for m in request.messages if isinstance(m, SystemMessage)]
        assert systems == [SystemMessage("Be brief.")]
    assert not any(isinstance(m, SystemMessage) for m in history)


async def test_saving_the_last_reply_alone_loses_calls_and_results() -> None:
    """All new messages must be kept: the reply is only one of three."""
    agent = Agent(FakeProvider([Turn(tool_calls=[CALL]), "42"]), tools=[add])
    response = await agent.run("x")
    assert response.messages[1:2] == [RESULT]
    assert len(response.messages) == 3


async def test_one_agent_holds_several_conversations() -> None:
    """Histories stay apart, also at the same time."""

    def echo(request: ModelRequest) -> str:
        return f"{len(request.messages)}"

    agent = Agent(FakeProvider([echo] * 4), system_prompt=None)
    short: list[Message] = [UserMessage("a")]
    long: list[Message] = [UserMessage("a"), AssistantMessage("b"), UserMessage("c")]
    for _ in range(2):
        first, second = await asyncio.gather(agent.run(short), agent.run(long))
        short += [*first.messages, UserMessage("on")]
        long += [*second.messages, UserMessage("on")]
    texts = [m.content for m in short if isinstance(m, AssistantMessage)]
    assert texts == ["1", "3"]
    texts = [m.content for m in long if isinstance(m, AssistantMessage)]
    assert texts == ["b", "3", "5"]


def _native() -> AssistantMessage:
    return seal_native(
        AssistantMessage("hi", reasoning="hm", tool_calls=[CALL]),
        provider="p",
        endpoint="https://example.test/v1",
        api="a",
        model="m",
        items='[{"type":"reasoning","secret":"s"}]',
    )


def test_native_context_survives_json_copies_and_pickles() -> None:
    """A saved and restored message can be replayed like the original."""
    message = _native()
    adapter: TypeAdapter[list[Message]] = TypeAdapter(list[Message])
    stored = json.dumps([asdict(message), asdict(RESULT)])
    restored = adapter.validate_json(stored)
    assert restored == [message, RESULT]
    for each in (
        restored[0],
        copy.copy(message),
        copy.deepcopy(message),
        pickle.loads(pickle.dumps(message)),
    ):
        assert isinstance(each, AssistantMessage)
        assert each.native == message.native
        assert each.native_intact()


@pytest.mark.parametrize(
    "change",
    [
        {"content": "ho"},
        {"reasoning": None},
        {"tool_calls": ()},
        {"tool_calls": [ToolCall("c1", "add", '{"a":1,"b":1}')]},
    ],
)
def test_native_context_of_an_edited_message_is_not_intact(
    change: dict[str, object],
) -> None:
    """Replay would send what the message no longer says."""
    edited = replace(_native(), **change)  # type: ignore[arg-type]
    assert edited.native is not None
    assert not edited.native_intact()


def test_native_context_without_any_is_not_intact() -> None:
    """A message built by hand has none."""
    assert not AssistantMessage("hi").native_intact()


# Histories that services would refuse.

BROKEN = {
    "call without result": [UserMessage("x"), ASKS],
    "call without result before a user message": [ASKS, UserMessage("and?")],
    "result without call": [UserMessage("x"), RESULT],
    "result before its call": [RESULT, ASKS],
    "second result": [ASKS, RESULT, RESULT],
    "result behind another message": [ASKS, UserMessage("x"), RESULT],
}


@pytest.mark.parametrize("history", BROKEN.values(), ids=BROKEN.keys())
async def test_run_repairs_its_input_and_says_so(history: list[Message]) -> None:
    """The model gets a valid history, the notes say what changed, the input stays."""
    before = list(history)
    assert check_history(history)
    for streamed in (False, True):
        provider = FakeProvider(["fine"])
        agent = Agent(provider, system_prompt=None)
        if streamed:
            response = [e async for e in agent.stream(history)][-1]
        else:
            response = await agent.run(history)
        assert response.type == "response"
        assert response.status == "completed"
        assert response.notes
        assert all(isinstance(note, str) and "c1" in note for note in response.notes)
        assert check_history(provider.requests[0].messages) == []
        assert [m.role for m in response.messages] == ["assistant"]
    assert history == before


async def test_run_leaves_a_valid_history_alone() -> None:
    """No notes, the same objects."""
    history = [UserMessage("x"), ASKS, RESULT, AssistantMessage("42"), UserMessage("y")]
    provider = FakeProvider(["fine"])
    response = await Agent(provider, system_prompt=None).run(history)
    assert response.notes == []
    sent = provider.requests[0].messages
    assert all(a is b for a, b in zip(sent, history, strict=True))


async def test_an_interrupted_call_gets_an_error_result() -> None:
    """The model is told that the call never had a result."""
    provider = FakeProvider(["fine"])
    await Agent(provider, system_prompt=None).run([ASKS, UserMessage("and?")])
    closed = provider.requests[0].messages[1]
    assert isinstance(closed, ToolMessage)
    assert closed.call_id == "c1"
    assert closed.is_error
    assert "interrupted" in closed.tool_output


@pytest.mark.parametrize("history", BROKEN.values(), ids=BROKEN.keys())
def test_repair_is_idempotent_and_makes_a_history_valid(history: list[Message]) -> None:
    """Repairing twice changes nothing more."""
    once = repair_history(history)
    again = repair_history(once.messages)
    assert check_history(once.messages) == []
    assert again.messages == once.messages
    assert again.notes == []


@pytest.mark.parametrize("history", BROKEN.values(), ids=BROKEN.keys())
async def test_model_refuses_a_broken_history_before_anything_is_sent(
    history: list[Message],
) -> None:
    """A direct call raises `invalid_request` naming the call id."""
    provider = FakeProvider(["never", "never"])
    model = Model(provider)
    with pytest.raises(ModelError, match="'c1'") as caught:
        await model.invoke(ModelRequest(history))
    assert caught.value.code == "invalid_request"
    with pytest.raises(ModelError, match="'c1'") as caught:
        async for _ in model.stream(ModelRequest(history)):
            pass
    assert caught.value.code == "invalid_request"
    assert provider.requests == []
