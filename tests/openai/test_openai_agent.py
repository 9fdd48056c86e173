"""An agent on the provider: the tool loop over the wire."""

from __future__ import annotations

import json

import pytest
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer
from support.openai_streams import (
    call,
    created,
    end,
    item_events,
    message,
    reasoning,
    reply,
    response,
    sse,
)

from lighter_core import Agent, AgentResponse, AssistantMessage, Model, tool

FIRST = [reasoning("Add them."), call("add", '{"a": 19, "b": 23}')]
LAST = [message("42.")]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def streams(*replies):
    return [Answer(headers=EVENT_STREAM, body=sse(reply(*items))) for items in replies]


def bodies(*replies):

    return [
        Answer(headers=JSON_TYPE, body=json.dumps(response(items)).encode())
        for items in replies
    ]


@pytest.fixture
async def agent(server):
    model = Model.from_name(
        "openai", model_id="gpt-test", api_key="sk-test", base_url=f"{server.url}/v1"
    )
    async with Agent(model, tools=[add]) as agent:
        yield agent


async def finish(agent) -> AgentResponse:
    async with agent.stream("What is 19 + 23?") as stream:
        events = [event async for event in stream]
    assert isinstance(events[-1], AgentResponse)
    return events[-1]


async def test_tool_loop_over_the_wire(server, agent):
    """KF-018, KF-063: both ways give equal messages; reasoning goes before its call."""
    server.script(*streams(FIRST, LAST))
    streamed = (await finish(agent)).raise_if_failed()
    first, second = server.requests
    assert first.json["tools"][0]["name"] == "add"
    assert second.json["input"][2:4] == FIRST
    assert second.json["input"][4] == {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": "42",
    }
    assert second.body.startswith(first.body.removesuffix(b"]}"))
    server.script(*bodies(FIRST, LAST))
    ran = (await agent.run("What is 19 + 23?")).raise_if_failed()
    assert ran.messages == streamed.messages
    assert ran.text == "42."


@pytest.mark.parametrize("status", ["incomplete", "invented"])
async def test_failed_second_turn_keeps_the_first(server, agent, status):
    """KF-015, KF-024: the words of the service are kept, and so are earlier turns."""
    events = [created(), *item_events(0, message("x" * 200))]
    last = end([message("x" * 200)], status)
    last["type"] = "response.completed" if status == "invented" else last["type"]
    server.script(
        *streams(FIRST), Answer(headers=EVENT_STREAM, body=sse([*events, last]))
    )
    got = await finish(agent)
    assert got.status == "failed"
    assert got.error.code == "bad_response"
    assert got.error.response_status == status
    assert [m.role for m in got.messages] == ["assistant", "tool"]
    assert isinstance(got.messages[0], AssistantMessage)
