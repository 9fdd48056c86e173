"""Answers of a given form over Chat Completions: by schema, object, tool, in words."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel
from support.chat_streams import body, call, reply, sse
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer

from lighter_core import (
    Agent,
    ModelError,
    ModelRequest,
    OutputSpec,
    TextDelta,
    ToolCallDelta,
    UserMessage,
    tool,
)
from lighter_openai import OpenAIChatProvider


class Book(BaseModel):
    title: str
    pages: int


MOON = Book(title="Moon", pages=42)
SHOWN = '{"title": "Moon", "pages": 42}'
OTHER = '{"title": "Sun", "pages": 1}'
REFUSALS = [
    "This response_format type is unavailable now",
    "'response_format' of type 'json_schema' is not supported with this model",
    "json mode cannot be combined with tool/function calling",
]


@tool
def count(shelf: str) -> int:
    """Count the books of a shelf."""
    return len(shelf)


def final(arguments: str = SHOWN, number: int = 9) -> dict:
    return call("final_answer", arguments, number)


def whole(message: dict, finish: str = "stop") -> Answer:
    return Answer(headers=JSON_TYPE, body=json.dumps(body(message, finish)).encode())


def streamed(message: dict, finish: str = "stop") -> Answer:
    return Answer(headers=EVENT_STREAM, body=sse(reply(message, finish)))


def refused(words: str, status: int = 400) -> Answer:
    told = json.dumps({"error": {"message": words, "type": "invalid_request_error"}})
    return Answer(status, JSON_TYPE, told.encode())


def way_of(sent: dict) -> str:
    """How a request asks for the answer."""
    form = sent.get("response_format", {}).get("type")
    told = any("JSON Schema" in str(m["content"]) for m in sent["messages"])
    if "final_answer" in [t["function"]["name"] for t in sent.get("tools", [])]:
        assert form is None
        assert not told
        return "tool"
    assert told is (form != "json_schema")
    return form or "instruction"


@pytest.mark.parametrize("way", ["json_schema", "json_object", "tool", "instruction"])
async def test_the_option_decides_how_an_answer_is_asked_for(server, make_chat, way):
    """One way and no other; the answer is the same object in each."""
    said = {"tool_calls": [final()]} if way == "tool" else {"content": SHOWN}
    server.script(whole(said))
    agent = Agent(make_chat(structured_output=way), tools=[count], system_prompt="Hi.")
    response = await agent.run("A book?", output=Book)
    assert response.raise_if_failed().output == MOON
    assert response.text == SHOWN
    assert not response.notes
    sent = server.requests[0].json
    assert way_of(sent) == way
    assert sent["messages"][0]["content"].startswith("Hi.")
    assert len(sent["messages"]) == 2


@pytest.mark.parametrize("by_stream", [True, False])
async def test_the_arguments_of_the_tool_are_the_answer(server, make_chat, by_stream):
    """Text for everybody; other text beside it is left out; the first answer counts."""
    answers = streamed if by_stream else whole
    server.script(
        answers({"tool_calls": [call("count", '{"shelf": "abc"}')]}, "tool_calls"),
        answers({"content": "Here:", "tool_calls": [final(), final(OTHER, 10)]}),
    )
    agent = Agent(make_chat(structured_output="tool"), tools=[count])
    history: list = [UserMessage("A book?")]
    if by_stream:
        async with agent.stream(history, output=Book) as stream:
            events = [event async for event in stream]
        response = events.pop()
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == SHOWN
        shown = {e.tool_name for e in events if isinstance(e, ToolCallDelta)}
        assert shown == {"count"}
    else:
        response = await agent.run(history, output=Book)
    assert response.raise_if_failed().output == MOON
    assert response.messages[-1].tool_calls == ()
    first, second = (request.json for request in server.requests)
    assert first["tool_choice"] == second["tool_choice"] == "required"
    server.script(whole({"tool_calls": [final(OTHER)]}))
    history += [*response.messages, UserMessage("Another?")]
    again = await agent.run(history, output=Book)
    assert again.raise_if_failed().text == OTHER
    assert not again.notes
    sent = server.requests[2].json["messages"]
    assert sent[-2] == {"role": "assistant", "content": SHOWN}


@pytest.mark.parametrize("by_stream", [True, False])
async def test_text_in_place_of_the_tool_is_read_as_the_answer(
    server, make_chat, by_stream
):
    """A server may ignore that a tool is forced."""
    server.script((streamed if by_stream else whole)({"content": SHOWN}))
    agent = Agent(make_chat(structured_output="tool"))
    if by_stream:
        async with agent.stream("A book?", output=Book) as stream:
            events = [event async for event in stream]
        response = events.pop()
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == SHOWN
    else:
        response = await agent.run("A book?", output=Book)
    assert response.raise_if_failed().output == MOON
    choice = {"type": "function", "function": {"name": "final_answer"}}
    assert server.requests[0].json["tool_choice"] == choice


@pytest.mark.parametrize("words", REFUSALS)
@pytest.mark.parametrize("status", [400, 422])
async def test_a_refused_form_is_asked_for_in_another_way(
    server, make_chat, words, status
):
    """The next one, and it is remembered; the notes say so."""
    server.script(refused(words, status), refused(words), whole({"content": SHOWN}))
    agent = Agent(make_chat())
    response = await agent.run("A book?", output=Book)
    assert response.raise_if_failed().output == MOON
    assert len(response.notes) == 2
    assert (await agent.run("A book?", output=Book)).notes == []
    ways = [way_of(request.json) for request in server.requests]
    assert ways == ["json_schema", "json_object", "instruction", "instruction"]


@pytest.mark.parametrize(
    ("way", "words", "status"),
    [
        ("auto", "the model does not exist", 400),
        ("auto", REFUSALS[0], 500),
        ("json_schema", REFUSALS[0], 400),
    ],
)
async def test_other_refusals_are_errors(server, make_chat, way, words, status):
    """Also where one way was chosen."""
    server.script(refused(words, status))
    response = await Agent(make_chat(structured_output=way)).run("?", output=Book)
    assert isinstance(response.error, ModelError)
    assert response.error.http_status == status
    assert len(server.requests) == 1


async def test_where_no_tool_may_be_called_words_are_left(server, make_chat):
    """The choice of a hook is kept."""
    server.script(whole({"content": SHOWN}))
    request = ModelRequest(
        [UserMessage("?")],
        tool_specs=[count.get_spec()],
        output=OutputSpec("Book", Book.model_json_schema()),
        tool_choice="none",
    )
    await make_chat(structured_output="tool").invoke(request)
    sent = server.requests[0].json
    assert way_of(sent) == "instruction"
    assert sent["tool_choice"] == "none"


async def test_a_response_format_of_the_caller_wins(server, make_chat):
    """What stands in extra_body is sent as it is."""
    own = {"response_format": {"type": "text"}}
    server.script(whole({"content": SHOWN}))
    for way in ("json_schema", "json_object"):
        agent = Agent(make_chat(structured_output=way, extra_body=own))
        (await agent.run("A book?", output=Book)).raise_if_failed()
        assert server.requests[-1].json["response_format"] == {"type": "text"}


def test_deepseek_is_asked_in_words():
    """It refuses schemas, and its object form may give an empty answer."""
    provider = OpenAIChatProvider(
        model_id="m", base_url="https://api.deepseek.com", structured_output="auto"
    )
    assert provider._ways == ["instruction"]
    assert "output" in provider.capabilities
