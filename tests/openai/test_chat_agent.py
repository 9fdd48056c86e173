"""An agent on Chat Completions: the tool loop over the wire."""

from __future__ import annotations

import json

import pytest
from support.chat_streams import body, call, reply, sse
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    Model,
    ToolCallDelta,
    UserMessage,
    tool,
)

FIRST = {
    "content": "I add.",
    "reasoning": "Add them.",
    "tool_calls": [call("add", '{"a":19,"b":23}'), call("add", '{"a":1,"b":1}', 2)],
}
LAST = {"content": "42."}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def streams(*said):
    return [Answer(headers=EVENT_STREAM, body=sse(reply(each))) for each in said]


def bodies(*said):
    return [
        Answer(
            headers=JSON_TYPE,
            body=json.dumps(body(each), separators=(",", ":")).encode(),
        )
        for each in said
    ]


@pytest.fixture
async def agent(server):
    model = Model.from_name("openai-chat:qwen3", base_url=f"{server.url}/v1")
    async with Agent(model, tools=[add]) as agent:
        yield agent


async def finish(agent) -> tuple[list, AgentResponse]:
    async with agent.stream("What is 19 + 23?") as stream:
        events = [event async for event in stream]
    assert isinstance(events[-1], AgentResponse)
    return events[:-1], events[-1]


async def test_tool_loop_over_the_wire(server, agent):
    """KF-018, KF-065: both ways give equal messages; `stop` beside calls is no end."""
    server.script(*streams(FIRST, LAST))
    events, streamed = await finish(agent)
    streamed.raise_if_failed()
    first, second = server.requests
    assert first.json["model"] == "qwen3"
    assert first.json["tools"][0]["function"]["name"] == "add"
    assert second.body.startswith(first.body.removesuffix(b"]}"))
    assert second.json["messages"][2] == {"role": "assistant", **FIRST}
    assert second.json["messages"][3:] == [
        {"role": "tool", "tool_call_id": "call_1", "content": "42"},
        {"role": "tool", "tool_call_id": "call_2", "content": "2"},
    ]
    pieces = [e.arguments for e in events if isinstance(e, ToolCallDelta)]
    assert "".join(pieces) == '{"a":19,"b":23}{"a":1,"b":1}'
    server.script(*bodies(FIRST, LAST))
    ran = (await agent.run("What is 19 + 23?")).raise_if_failed()
    assert ran.messages == streamed.messages
    assert ran.text == "42."
    assert ran.notes == []


async def test_ids_made_up_in_two_turns_differ(server, agent):
    """KF-017: a server without ids, the same call three times in one conversation."""
    asked = {
        "type": "function",
        "function": {"name": "add", "arguments": '{"a":1,"b":1}'},
    }
    said = {"tool_calls": [asked, asked]}
    server.script(*bodies(said, said, LAST))
    response = (await agent.run("Go.")).raise_if_failed()
    ids = [
        c.call_id
        for m in response.messages
        if m.role == "assistant"
        for c in m.tool_calls
    ]
    assert len(set(ids)) == 4
    sent = server.requests[2].json["messages"]
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == ids
    assert [c["id"] for m in sent for c in m.get("tool_calls", [])] == ids


async def test_failed_second_turn_keeps_the_first(server, agent):
    """KF-015, KF-024: the word of the service is kept, and so are earlier turns."""
    cut = Answer(headers=EVENT_STREAM, body=sse(reply({"content": "x"}, "length")))
    server.script(*streams(FIRST), cut)
    _, got = await finish(agent)
    assert got.status == "failed"
    assert (got.error.code, got.error.response_status) == ("bad_response", "length")
    assert [m.role for m in got.messages] == ["assistant", "tool", "tool"]


async def test_loss_is_in_the_notes_of_the_response(server, agent, caplog):
    """What of a foreign reply cannot be sent is said once, at WARNING too."""
    server.script(*bodies(LAST))
    foreign = AssistantMessage("Hi", reasoning="The secret thought.")
    history = [UserMessage("a"), foreign, UserMessage("b"), foreign, UserMessage("c")]
    response = (await agent.run(history)).raise_if_failed()
    (note,) = response.notes
    assert "'openai-chat'" in note
    assert "its reasoning" in note
    (record,) = [r for r in caplog.records if r.name == "lighter.notes"]
    assert (record.levelname, record.lighter_provider) == ("WARNING", "openai-chat")
    assert "secret" not in note + record.getMessage()
