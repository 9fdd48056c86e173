"""Answers of a given form: natively, by a tool that must be called, in words."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel
from support.claude_streams import body, call, found, reply, search, sse, text
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer

from lighter_core import (
    Agent,
    ModelError,
    ModelRequest,
    OutputSpec,
    TextDelta,
    ToolCallDelta,
    ToolMessage,
    UserMessage,
    tool,
)


class Book(BaseModel):
    title: str
    pages: int


MOON = Book(title="Moon", pages=42)
GOOD = {"title": "Moon", "pages": 42}
SHOWN = json.dumps(GOOD)
THINKING = {"type": "enabled", "budget_tokens": 2000}
REFUSALS = [
    "'claude-test' does not support output format.",
    "output_config.format: Extra inputs are not permitted",
    "This model does not support structured outputs",
]


@tool
def count(shelf: str) -> int:
    """Count the books of a shelf."""
    return len(shelf)


def streamed(*blocks: dict, stop: str = "tool_use") -> Answer:
    return Answer(headers=EVENT_STREAM, body=sse(reply(*blocks, stop=stop)))


def whole(*blocks: dict, stop: str = "tool_use") -> Answer:
    return Answer(headers=JSON_TYPE, body=json.dumps(body(*blocks, stop=stop)).encode())


def refused(words: str, status: int = 400) -> Answer:
    error = {"type": "invalid_request_error", "message": words}
    return Answer(status, JSON_TYPE, json.dumps({"error": error}).encode())


def final(value: object = None, number: int = 9, name: str = "final_answer") -> dict:
    return call(name, GOOD if value is None else value, number)


def form_of(sent: dict) -> str:
    """How a request asks for the answer."""
    found = []
    if "format" in sent.get("output_config", {}):
        found.append("native")
    if "final_answer" in [t["name"] for t in sent.get("tools", [])]:
        found.append("tool")
    if "JSON Schema" in sent.get("system", ""):
        found.append("instruction")
    (form,) = found
    return form


@pytest.mark.parametrize(
    ("chosen", "form"),
    [
        ("auto", "native"),
        ("native", "native"),
        ("tool", "tool"),
        ("instruction", "instruction"),
    ],
)
async def test_the_option_decides_how_an_answer_is_asked_for(
    server, make, chosen, form
):
    """One way and no other; the answer is the same object in each."""
    said = final() if form == "tool" else text(SHOWN)
    server.script(whole(said, stop="end_turn"))
    agent = Agent(make(structured_output=chosen), tools=[count])
    response = await agent.run("A book?", output=Book)
    assert response.raise_if_failed().output == MOON
    assert response.text == SHOWN
    assert not response.notes
    assert form_of(server.requests[0].json) == form


async def test_the_tool_is_forced_and_holds_the_schema(server, make):
    """Alone it must be called; beside other tools one of them all."""
    server.script(whole(final()))
    provider = make(structured_output="tool")
    (await Agent(provider).run("A book?", output=Book)).raise_if_failed()
    (await Agent(provider, tools=[count]).run("A?", output=Book)).raise_if_failed()
    alone, beside = (request.json for request in server.requests)
    assert alone["tool_choice"] == {"type": "tool", "name": "final_answer"}
    assert beside["tool_choice"] == {"type": "any"}
    (answer,) = alone["tools"]
    assert answer == beside["tools"][-1]
    assert answer["input_schema"]["required"] == ["title", "pages"]
    assert answer["input_schema"]["additionalProperties"] is False
    assert "strict" not in answer


@pytest.mark.parametrize("by_stream", [True, False])
async def test_the_input_of_the_tool_is_the_answer(server, make, by_stream):
    """It is text for everybody: no call to execute, none to answer in the history."""
    answers = streamed if by_stream else whole
    server.script(
        answers(call("count", {"shelf": "abc"})),
        answers(text("Here it is:"), final()),
    )
    agent = Agent(make(structured_output="tool"), tools=[count])
    history: list = [UserMessage("A book?")]
    events: list = []
    if by_stream:
        async with agent.stream(history, output=Book) as stream:
            events = [event async for event in stream]
        response = events.pop()
    else:
        response = await agent.run(history, output=Book)
    assert response.raise_if_failed().output == MOON
    last = response.messages[-1]
    assert (last.content, last.tool_calls) == (SHOWN, ())
    assert last.native_intact()
    if by_stream:
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == SHOWN
        calls = [e.tool_name for e in events if isinstance(e, ToolCallDelta)]
        assert set(calls) == {"count"}
    history += [*response.messages, UserMessage("Another?")]
    server.script(whole(final({"title": "Sun", "pages": 1}, 10)))
    again = await agent.run(history, output=Book)
    assert again.raise_if_failed().output == Book(title="Sun", pages=1)
    assert not again.notes
    _, second, third = server.requests
    begin = second.body.replace(b'"stream":true', b'"stream":false')
    assert third.body.startswith(begin.removesuffix(b"]}"))
    assert third.json["messages"][3] == {
        "role": "assistant",
        "content": [text("Here it is:"), text(SHOWN)],
    }


async def test_an_answer_beside_calls_waits_for_their_results(server, make):
    """The calls are executed; what counts is what is answered after them."""
    early = final({"title": "?", "pages": 0})
    server.script(whole(call("count", {"shelf": "abc"}), early), whole(final()))
    agent = Agent(make(structured_output="tool"), tools=[count])
    response = await agent.run("A book?", output=Book)
    assert response.raise_if_failed().output == MOON
    assert [m.role for m in response.messages] == ["assistant", "tool", "assistant"]
    said = server.requests[1].json["messages"][1]["content"]
    assert said[1] == text('{"title": "?", "pages": 0}')


async def test_of_two_answers_the_first_counts(server, make):
    """Streamed too: the deltas are those of the answer."""
    twice = [final(), final({"title": "Sun", "pages": 1}, 10)]
    server.script(streamed(*twice), whole(*twice))
    provider = make(structured_output="tool")
    async with Agent(provider).stream("A book?", output=Book) as stream:
        events = [event async for event in stream]
    assert events[-1].raise_if_failed().output == MOON
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == SHOWN
    response = await Agent(provider).run("A book?", output=Book)
    assert response.raise_if_failed().output == MOON


@pytest.mark.parametrize("by_stream", [True, False])
async def test_text_in_place_of_the_tool_is_read_as_the_answer(server, make, by_stream):
    """A server may ignore that a tool is forced; then the repair turn is left."""
    answers = streamed if by_stream else whole
    server.script(
        answers(text("It is "), text("Moon."), stop="end_turn"), answers(final())
    )
    agent = Agent(make(structured_output="tool"))
    async with agent.stream("A book?", output=Book) as stream:
        events = [event async for event in stream] if by_stream else []
    response = events[-1] if by_stream else await agent.run("A book?", output=Book)
    assert response.raise_if_failed().output == MOON
    assert response.messages[0].content == "It is Moon."
    if by_stream:
        shown = "".join(e.text for e in events if isinstance(e, TextDelta))
        assert shown == "It is Moon." + SHOWN


async def test_blocks_of_hosted_tools_stay_around_the_answer(server, make):
    """Only the call of the answer becomes text."""
    hosted = [{"type": "web_search_20260209", "name": "web_search"}]
    server.script(whole(search("x"), found(), final()), whole(final()))
    agent = Agent(make(structured_output="tool", hosted_tools=hosted))
    first = await agent.run("A book?", output=Book)
    history = [UserMessage("A book?"), *first.messages, UserMessage("Again?")]
    (await agent.run(history, output=Book)).raise_if_failed()
    sent = server.requests[1].json
    assert sent["messages"][1]["content"] == [search("x"), found(), text(SHOWN)]
    assert sent["tool_choice"] == {"type": "any"}


async def test_a_function_may_have_the_name_of_the_tool(server, make):
    """Then the tool of the answer gets another one."""

    @tool
    def final_answer() -> str:
        """A function of the application."""
        return "done"

    server.script(whole(call("final_answer", {})), whole(final(name="final_answer_")))
    agent = Agent(make(structured_output="tool"), tools=[final_answer])
    response = await agent.run("A book?", output=Book)
    assert response.raise_if_failed().output == MOON
    assert isinstance(response.messages[1], ToolMessage)
    assert response.messages[1].tool_output == '"done"'


@pytest.mark.parametrize("words", REFUSALS)
async def test_a_refused_form_is_asked_for_in_another_way(server, make, words):
    """Older models: once per form of answer, and the notes say so."""
    server.script(refused(words), whole(final()), whole(final()))
    agent = Agent(make())
    response = await agent.run("A book?", output=Book)
    assert response.raise_if_failed().output == MOON
    (note,) = response.notes
    assert "'native'" in note
    assert "'tool'" in note
    assert (await agent.run("A book?", output=Book)).notes == []
    forms = [form_of(request.json) for request in server.requests]
    assert forms == ["native", "tool", "tool"]


async def test_a_tool_that_cannot_be_forced_is_given_up(server, make):
    """Servers that think by default refuse it: words are left."""
    server.script(
        refused(REFUSALS[0]),
        refused("Thinking mode does not support this tool_choice"),
        whole(text(SHOWN), stop="end_turn"),
    )
    agent = Agent(make())
    for _ in range(2):
        response = await agent.run("A book?", output=Book)
        assert response.raise_if_failed().output == MOON
    forms = [form_of(request.json) for request in server.requests]
    assert forms == ["native", "tool", "instruction", "instruction"]


@pytest.mark.parametrize(
    "options", [{"thinking": THINKING}, {"extra_body": {"thinking": THINKING}}]
)
async def test_with_thinking_no_tool_is_forced(server, make, options):
    """The service refuses the two together."""
    server.script(refused(REFUSALS[0]), whole(text(SHOWN), stop="end_turn"))
    response = await Agent(make(**options)).run("A book?", output=Book)
    assert response.raise_if_failed().output == MOON
    assert [form_of(r.json) for r in server.requests] == ["native", "instruction"]
    with pytest.raises(ModelError, match="'instruction'") as caught:
        make(structured_output="tool", **options)
    assert caught.value.code == "invalid_request"
    make(structured_output="tool", thinking={"type": "disabled"})


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("messages: at least one message is required", 400),
        ("output_config.effort: 'max' is not supported", 400),
        (REFUSALS[0], 404),
    ],
)
async def test_other_refusals_are_errors(server, make, words, status):
    """Nothing is sent again for what another form would not change."""
    server.script(refused(words, status))
    response = await Agent(make()).run("A book?", output=Book)
    assert response.status == "failed"
    assert len(server.requests) == 1


@pytest.mark.parametrize("chosen", ["native", "tool"])
async def test_a_chosen_form_is_never_left(server, make, chosen):
    """Who names one gets the service's own answer."""
    server.script(refused(f"{REFUSALS[0]} tool_choice"))
    response = await Agent(make(structured_output=chosen)).run("?", output=Book)
    assert isinstance(response.error, ModelError)
    assert response.error.http_status == 400
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("choice", "form"), [("none", "instruction"), ("count", "tool"), ("auto", "tool")]
)
async def test_a_tool_choice_of_a_hook_is_kept(server, make, choice, form):
    """Where no tool may be called, the answer is asked for in words."""
    server.script(whole(text(SHOWN), stop="end_turn"))
    spec = OutputSpec("Book", Book.model_json_schema())
    request = ModelRequest(
        [UserMessage("?")],
        tool_specs=[count.get_spec()],
        output=spec,
        tool_choice=choice,
    )
    await make(structured_output="tool").invoke(request)
    sent = server.requests[0].json
    assert form_of(sent) == form
    wanted = {"none": {"type": "none"}, "count": {"type": "tool", "name": "count"}}
    assert sent["tool_choice"] == wanted.get(choice, {"type": "any"})


def test_another_word_is_refused_at_construction(make):
    """With the words that there are."""
    with pytest.raises(ModelError, match="'auto', 'native', 'tool', 'instruction'"):
        make(structured_output="json")
