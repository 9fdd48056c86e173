"""An agent on the provider: tool loops, hosted tools and pauses over the wire."""

from __future__ import annotations

import json

import pytest
from support.claude_streams import (
    USAGE,
    body,
    call,
    found,
    reply,
    search,
    sse,
    text,
    thinking,
)
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    HostedToolItem,
    Model,
    ModelError,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UserMessage,
    tool,
)

FIRST = [thinking("Add them."), text("Let me see."), call("add", {"a": 19, "b": 23})]
SECOND = [
    thinking(""),
    call("add", {"a": 1, "b": 2}, 2),
    call("add", {"a": 3, "b": 4}, 3),
]
LAST = [text("42.")]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def reason_of(blocks) -> str:
    return "tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn"


def streams(*replies) -> list[Answer]:
    return [
        Answer(headers=EVENT_STREAM, body=sse(reply(*each, stop=reason_of(each))))
        for each in replies
    ]


def bodies(*replies) -> list[Answer]:
    return [
        Answer(
            headers=JSON_TYPE,
            body=json.dumps(body(*each, stop=reason_of(each))).encode(),
        )
        for each in replies
    ]


@pytest.fixture
async def agent(server):
    model = Model.from_name(
        "claude", model_id="claude-test", api_key="sk-ant-test", base_url=server.url
    )
    async with Agent(model, tools=[add]) as agent:
        yield agent


async def finish(agent) -> tuple[list, AgentResponse]:
    async with agent.stream("What is 19 + 23?") as stream:
        events = [event async for event in stream]
    assert isinstance(events[-1], AgentResponse)
    return events[:-1], events[-1]


async def test_tool_loop_over_the_wire(server, agent):
    """KF-018, KF-063: thinking goes back in its place, each request extends the last."""
    server.script(*streams(FIRST, SECOND, LAST))
    events, response = await finish(agent)
    streamed = response.raise_if_failed()
    first, second, third = server.requests
    assert first.json["tools"][0]["name"] == "add"
    assert second.json["messages"][1] == {"role": "assistant", "content": FIRST}
    assert second.json["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "42"}
    ]
    assert third.json["messages"][3]["content"] == SECOND
    assert [b["content"] for b in third.json["messages"][4]["content"]] == ["3", "7"]
    assert second.body.startswith(first.body.removesuffix(b"]}"))
    assert third.body.startswith(second.body.removesuffix(b"]}"))
    shown = [e.arguments for e in events if isinstance(e, ToolCallDelta)]
    assert "".join(shown).startswith('{"a": 19, "b": 23}')
    assert streamed.usage == Usage(96, 30, 24, 12, 18)
    server.script(*bodies(FIRST, SECOND, LAST))
    ran = (await agent.run("What is 19 + 23?")).raise_if_failed()
    assert ran.text == streamed.text == "42."
    assert [m.role for m in ran.messages] == [m.role for m in streamed.messages]
    assert server.requests[5].json["messages"] == third.json["messages"]


async def test_ended_turn_with_nothing_ends_the_run(server, agent):
    """The service sometimes says nothing behind a tool's result."""
    server.script(*streams(FIRST, []))
    _, response = await finish(agent)
    assert response.raise_if_failed().text == ""
    assert [m.role for m in response.messages] == ["assistant", "tool", "assistant"]


@pytest.mark.parametrize("reason", ["max_tokens", "invented"])
async def test_failed_second_turn_keeps_the_first(server, agent, reason):
    """KF-015, KF-024: the words of the service are kept, and so are earlier turns."""
    cut = sse(reply(text("x" * 200), call("add", {"a": 1, "b": 2}, 2), stop=reason))
    server.script(*streams(FIRST), Answer(headers=EVENT_STREAM, body=cut))
    _, got = await finish(agent)
    assert got.status == "failed"
    assert got.error.code == "bad_response"
    assert got.error.response_status == reason
    assert [m.role for m in got.messages] == ["assistant", "tool"]


async def test_refusal_is_seen_by_the_application(server, agent):
    """KF-014: no call of it is executed, and the conversation can go on without it."""
    details = {"category": "cyber", "explanation": "Against the rules."}
    blocks = [call("add", {"a": 1, "b": 2})]
    refused = sse(reply(*blocks, stop="refusal", stop_details=details))
    server.script(Answer(headers=EVENT_STREAM, body=refused), *streams(LAST))
    _, got = await finish(agent)
    assert got.raise_if_failed().text == "Against the rules."
    assert got.stop_reason == "refusal"
    assert len(got.messages) == 1
    history = [UserMessage("a"), *got.messages, UserMessage("b")]
    async with agent.stream(history) as stream:
        async for _ in stream:
            pass
    assert [m["role"] for m in server.requests[1].json["messages"]] == ["user"]


async def test_foreign_history_goes_on_and_is_reported(server, agent):
    """KF-064: what was lost stands in the response's notes, once."""
    server.script(*bodies(LAST))
    other = AssistantMessage("Hi", reasoning="thought")
    response = await agent.run(
        [UserMessage("a"), other, UserMessage("b"), other, UserMessage("c")]
    )
    assert len(response.notes) == 1
    assert "without its reasoning" in response.notes[0]


HOSTED = [{"type": "web_search_20260209", "name": "web_search"}]
PAUSED = [thinking("Search."), text("Looking. "), search("x")]
MORE = [found(), thinking("Enough."), search("y", 2)]
DONE = [found(2), text("It is so.")]


def paused(*blocks, streamed: bool = True) -> Answer:
    if streamed:
        data = sse(reply(*blocks, stop="pause_turn"))
        return Answer(headers=EVENT_STREAM, body=data)
    data = json.dumps(body(*blocks, stop="pause_turn")).encode()
    return Answer(headers=JSON_TYPE, body=data)


@pytest.mark.parametrize("streamed", [True, False])
async def test_paused_reply_goes_on_by_itself(server, make, streamed):
    """One message with all blocks; what came so far is sent again as it came."""
    last = (streams if streamed else bodies)(DONE)
    server.script(
        paused(*PAUSED, streamed=streamed), paused(*MORE, streamed=streamed), *last
    )
    provider = make(hosted_tools=HOSTED)
    request = ModelRequest([UserMessage("question")])
    events: list = []
    if streamed:
        events = [event async for event in provider.stream(request)]
        got = events.pop().message
    else:
        got = await provider.invoke(request)
    assert json.loads(got.native.items) == [*PAUSED, *MORE, *DONE]
    assert got.native_intact()
    assert got.content == "Looking. It is so."
    assert got.reasoning == "Search.\n\nEnough."
    assert got.stop_reason == "end_turn"
    assert got.usage.output_tokens == 3 * USAGE["output_tokens"]
    first, second, third = server.requests
    assert first.json["tools"] == HOSTED
    assert second.body.startswith(first.body.removesuffix(b"]}"))
    assert second.json["messages"][1] == {"role": "assistant", "content": PAUSED}
    assert third.json["messages"][1]["content"] == [*PAUSED, *MORE]
    if streamed:
        text_ = "".join(e.text for e in events if isinstance(e, TextDelta))
        thought = "".join(e.text for e in events if isinstance(e, ReasoningDelta))
        assert (text_, thought) == (got.content, got.reasoning)
        names = [e.name for e in events if isinstance(e, HostedToolItem)]
        assert names == ["server_tool_use", "web_search_tool_result"] * 2


@pytest.mark.parametrize("streamed", [True, False])
async def test_container_goes_on_after_a_pause(server, make, streamed):
    """The continuation and later requests name it, however the reply came."""
    box = {"container": {"id": "container_1", "expires_at": "2026-07-01T00:00:01Z"}}
    answers = [
        Answer(headers=EVENT_STREAM, body=sse(reply(*blocks, stop=stop, **box)))
        if streamed
        else Answer(
            headers=JSON_TYPE, body=json.dumps(body(*blocks, stop=stop, **box)).encode()
        )
        for blocks, stop in ((PAUSED, "pause_turn"), (MORE + DONE, "end_turn"))
    ]
    server.script(*answers, answers[1])
    provider = make(hosted_tools=HOSTED)
    history: list = [UserMessage("question")]
    for _ in range(2):
        request = ModelRequest(history)
        if streamed:
            events = [event async for event in provider.stream(request)]
            got = events[-1].message
        else:
            got = await provider.invoke(request)
        history += [got, UserMessage("more")]
    first, second, third = server.requests
    assert "container" not in first.json
    assert second.json["container"] == third.json["container"] == "container_1"
    assert second.json["messages"][1]["content"] == PAUSED
    assert third.json["messages"][1]["content"] == [*PAUSED, *MORE, *DONE]


@pytest.mark.parametrize("streamed", [True, False])
async def test_pauses_have_a_limit(server, make, streamed):
    """Five times it goes on by itself; then it is the seed's error."""
    server.script(paused(*PAUSED, streamed=streamed))
    provider = make(hosted_tools=HOSTED)
    request = ModelRequest([UserMessage("question")])

    async def ask() -> None:
        if streamed:
            async for _ in provider.stream(request):
                pass
        else:
            await provider.invoke(request)

    with pytest.raises(ModelError) as caught:
        await ask()
    assert caught.value.code == "bad_response"
    assert caught.value.response_status == "pause_turn"
    assert "paused too often" in caught.value.message
    assert "hosted_tools=" not in caught.value.message
    assert len(server.requests) == 6
    await server.until_open(1)


async def test_pause_without_hosted_tools_is_an_error(server, make):
    """Nobody asked for what could pause: a reply that is not complete is none."""
    server.script(paused(*PAUSED))
    with pytest.raises(ModelError) as caught:
        async for _ in make().stream(ModelRequest([UserMessage("x")])):
            pass
    assert caught.value.response_status == "pause_turn"
    assert "hosted_tools=" in caught.value.message
    assert len(server.requests) == 1


async def test_hosted_tools_stand_behind_functions(server, make):
    """Their items are shown by an agent's stream and executed by nobody here."""
    server.script(*streams([search("x"), found(), text("So.")]))
    async with Agent(make(hosted_tools=HOSTED), tools=[add]).stream("x") as stream:
        events = [event async for event in stream]
    assert [t["name"] for t in server.requests[0].json["tools"]] == [
        "add",
        "web_search",
    ]
    assert sum(isinstance(e, HostedToolItem) for e in events) == 2
    assert events[-1].raise_if_failed().text == "So."
