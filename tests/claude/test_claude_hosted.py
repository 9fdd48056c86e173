"""Hosted tools beside functions: what is answered, what is sent back, what is not."""

from __future__ import annotations

import json

import pytest
from support.claude_streams import (
    begin,
    body,
    call,
    end,
    found,
    reply,
    search,
    sse,
    started,
    text,
    thinking,
)
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer

from lighter_core import (
    Agent,
    AssistantMessage,
    Message,
    ModelError,
    ModelRequest,
    SystemMessage,
    ToolMessage,
    UserMessage,
    tool,
)

HOSTED = [{"type": "web_search_20260209", "name": "web_search"}]
OPEN = [thinking("Both."), search("x"), call("add", {"a": 1, "b": 2})]
CLOSED = [found(), text("It is 3.")]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def whole(*blocks: dict, stop: str = "end_turn") -> Answer:
    return Answer(headers=JSON_TYPE, body=json.dumps(body(*blocks, stop=stop)).encode())


def streamed(*blocks: dict, stop: str = "end_turn") -> Answer:
    return Answer(headers=EVENT_STREAM, body=sse(reply(*blocks, stop=stop)))


async def ask(make, server, *blocks: dict, stop: str = "tool_use") -> AssistantMessage:
    """A reply of the service, as the provider reads it."""
    server.script(whole(*blocks, stop=stop))
    provider = make(hosted_tools=HOSTED)
    got = await provider.invoke(ModelRequest([UserMessage("q")]))
    server.requests.clear()
    return got


async def sent(make, server, *messages: Message, **options) -> tuple[list, list[str]]:
    """The turns that arrive for a history, and the notes of the run."""
    server.script(whole(text("ok")))
    agent = Agent(make(hosted_tools=HOSTED, **options), system_prompt=None)
    response = await agent.run(list(messages))
    response.raise_if_failed()
    return server.requests[-1].json["messages"], response.notes


def result(number: int = 1) -> ToolMessage:
    return ToolMessage(call_id=f"toolu_{number}", tool_name="add", tool_output="3")


@pytest.mark.parametrize("answers", [whole, streamed])
@pytest.mark.parametrize("stop", ["tool_use", "pause_turn"])
async def test_a_hosted_call_beside_a_function_goes_on_with_its_result(
    server, make, answers, stop
):
    """Results only are sent, and the reply as it came; the hosted result comes then.

    A pause makes no difference: the call in it must be answered first.
    """
    server.script(answers(*OPEN, stop=stop), answers(*CLOSED), answers(text("Bye.")))
    agent = Agent(make(hosted_tools=HOSTED), tools=[add])
    history: list[Message] = [UserMessage("both")]
    for words in ("It is 3.", "Bye."):
        if answers is whole:
            response = await agent.run(history)
        else:
            async with agent.stream(history) as stream:
                response = [event async for event in stream][-1]
        assert response.raise_if_failed().text == words
        assert not response.notes
        history += [*response.messages, UserMessage("more")]
    first, second, third = server.requests
    turns = second.json["messages"]
    assert turns[1] == {"role": "assistant", "content": OPEN}
    assert [block["type"] for block in turns[2]["content"]] == ["tool_result"]
    assert second.body.startswith(first.body.removesuffix(b"]}"))
    assert third.body.startswith(second.body.removesuffix(b"]}"))
    assert third.json["messages"][3]["content"] == CLOSED


async def test_a_pause_with_a_call_is_joined_to_what_came_before(server, make):
    """First it pauses by itself, then for the function."""
    server.script(
        whole(search("x"), stop="pause_turn"),
        whole(found(), call("add", {"a": 1, "b": 2}), search("y", 2), stop="tool_use"),
        whole(found(2), text("Done.")),
    )
    agent = Agent(make(hosted_tools=HOSTED), tools=[add])
    response = await agent.run("both")
    assert response.raise_if_failed().text == "Done."
    assert [m.role for m in response.messages] == ["assistant", "tool", "assistant"]
    turns = server.requests[2].json["messages"]
    kinds = [block["type"] for block in turns[1]["content"]]
    assert kinds == [
        "server_tool_use",
        "web_search_tool_result",
        "tool_use",
        "server_tool_use",
    ]


async def test_a_pause_inside_a_call_is_an_error_of_its_own(server, make):
    """A call without its end is never executed, and it did not pause too often."""
    bare = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}}
    cut = [started(), begin(0, bare), *end("pause_turn")]
    server.script(Answer(headers=EVENT_STREAM, body=sse(cut)))
    async with Agent(make(hosted_tools=HOSTED), tools=[add]).stream("x") as stream:
        response = [event async for event in stream][-1]
    assert isinstance(response.error, ModelError)
    assert response.error.response_status == "pause_turn"
    assert "often" not in response.error.message
    assert "hosted_tools=" not in response.error.message
    assert len(server.requests) == 1


@pytest.mark.parametrize("between", [[], [result()]], ids=["stopped", "answered"])
async def test_a_hosted_call_without_a_result_ends_with_the_turn(server, make, between):
    """The user goes on: the service would refuse the call for ever, so it is left out."""
    first = await ask(make, server, *OPEN)
    history = [UserMessage("q"), first, *between, UserMessage("Forget it.")]
    turns, notes = await sent(make, server, *history)
    assert [block["type"] for block in turns[1]["content"]] == ["tool_use"]
    kinds = [block["type"] for block in turns[2]["content"]]
    assert kinds == ["tool_result", "text"]
    assert any("what tools of the service did" in each for each in notes)


async def test_the_results_of_a_lost_call_are_left_out_too(server, make):
    """The reply with the call was edited: its hosted result has nothing to belong to."""
    from dataclasses import replace

    first = await ask(make, server, *OPEN)
    second = await ask(make, server, *CLOSED, stop="end_turn")
    edited = replace(first, content="Let me see.")
    history = [UserMessage("q"), edited, result(), second, UserMessage("more")]
    turns, notes = await sent(make, server, *history)
    assert turns[1]["content"][0] == text("Let me see.")
    assert turns[3]["content"] == [text("It is 3.")]
    assert len(notes) == 2
    whole_, _ = await sent(make, server, *[UserMessage("q"), first, *history[2:]])
    assert whole_[3]["content"] == CLOSED


async def test_code_that_calls_functions_may_stay_open_over_many_replies(server, make):
    """Its result comes when it has ended; a break in between takes all of it out."""
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    code = {**search("x"), "name": "code_execution"}
    first = await ask(make, server, code, call("add", {"a": 1, "b": 2}, caller=caller))
    again = call("add", {"a": 3, "b": 4}, 2, caller=caller)
    second = await ask(make, server, again)
    third = await ask(make, server, found(), text("Done."), stop="end_turn")
    rounds = [UserMessage("q"), first, result(), second, result(2)]
    turns, notes = await sent(make, server, *rounds, third, UserMessage("more"))
    assert not notes
    assert [block["type"] for block in turns[1]["content"]] == [
        "server_tool_use",
        "tool_use",
    ]
    assert turns[3]["content"] == [again]
    turns, notes = await sent(make, server, *rounds, UserMessage("Stop."))
    assert len(notes) == 1
    replies = [b for t in turns if t["role"] == "assistant" for b in t["content"]]
    assert [block["type"] for block in replies] == ["tool_use", "tool_use"]
    assert not any("caller" in block for block in replies)


@pytest.mark.parametrize(("mode", "kept"), [("merge", True), ("in_place", False)])
async def test_a_system_message_behind_the_results_ends_the_turn_in_its_place(
    server, make, mode, kept
):
    """Merged into `system` it stands nowhere in between."""
    first = await ask(make, server, *OPEN)
    history = [UserMessage("q"), first, result(), SystemMessage("Be brief.")]
    turns, notes = await sent(make, server, *history, system_messages=mode)
    kinds = [block["type"] for block in turns[1]["content"]]
    assert ("server_tool_use" in kinds) is kept
    assert bool(notes) is not kept


async def test_a_function_with_the_name_of_a_hosted_tool_is_refused(server, make):
    """Before anything is sent: the service takes each name once."""

    @tool
    def web_search(query: str) -> str:
        """Search."""
        return query

    for options in ({"hosted_tools": HOSTED}, {"extra_body": {"tools": HOSTED}}):
        response = await Agent(make(**options), tools=[web_search]).run("x")
        assert isinstance(response.error, ModelError)
        assert response.error.code == "invalid_request"
        assert "'web_search'" in response.error.message
    assert server.requests == []


async def test_toolsets_have_no_name(server, make):
    """The service's own definitions of whole families carry a type only."""
    sets = [{"type": "computer_toolset_20260801"}, {"type": "browser_toolset_20260801"}]
    server.script(whole(text("ok")))
    await make(hosted_tools=sets).invoke(ModelRequest([UserMessage("x")]))
    assert server.requests[0].json["tools"] == sets
