"""A run writes only what is new: the same bytes and notes as writing all anew."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.claude_streams import body, call, text, thinking

from lighter_claude._decode import decode_body
from lighter_claude._encode import Options, encode_request
from lighter_claude._replay import has_hosted
from lighter_claude._target import Target
from lighter_claude._turns import Turns
from lighter_core import (
    AssistantMessage,
    Message,
    ModelError,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from lighter_core.adapters import RefusedContext, ReplayNotes

TARGET = Target("http://host", "m")
SEARCH = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv", "content": []}


def own(*blocks: dict) -> AssistantMessage:
    return decode_body(json.dumps(body(*blocks)).encode(), TARGET)


def result(reply: AssistantMessage) -> list[Message]:
    return [
        ToolMessage(call_id=c.call_id, tool_name=c.tool_name, tool_output=" ")
        for c in reply.tool_calls
    ]


def pieces(hosted: bool) -> st.SearchStrategy[list[list[Message]]]:
    called = own(thinking("hm"), text("Hi "), call("add", {"a": 1}))
    foreign = AssistantMessage(
        "Ho ", reasoning="Hm.", tool_calls=[ToolCall("odd id", "odd name", "[1]")]
    )
    said = own(text("Hi "))
    choices: list[list[Message]] = [
        [UserMessage("a")],
        [UserMessage(" ")],
        [SystemMessage("s")],
        [SystemMessage("t"), SystemMessage(" ")],
        [said],
        [replace(said, content="Ho ")],
        [AssistantMessage("")],
        [called, *result(called)],
        [foreign, *result(foreign)],
    ]
    if hosted:
        open_ = own(SEARCH, call("add", {"a": 2}))
        choices += [[own(SEARCH, FOUND, text("x"))], [open_, *result(open_)]]
        choices.append([own(FOUND, text("y"))])
    return st.lists(st.sampled_from(choices), min_size=1, max_size=8)


def written(
    messages: list[Message], mode: str, turns: Turns
) -> tuple[bytes | str, list[str]]:
    notes = ReplayNotes()
    options = Options(fields={"max_tokens": 10}, system_messages=mode)
    request = ModelRequest(messages)
    try:
        sent: bytes | str = encode_request(
            request, TARGET, options, stream=False, turns=turns, notes=notes
        )
    except ModelError as error:
        sent = error.message
    return sent, notes.texts


@pytest.mark.parametrize("mode", ["merge", "in_place"])
@pytest.mark.parametrize("hosted", [False, True], ids=["plain", "hosted"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_going_on_gives_the_bytes_and_notes_of_writing_all_anew(mode, hosted, data):
    found = data.draw(pieces(hosted))
    history: list[Message] = [UserMessage("first")]
    turns = Turns(TARGET, mode)
    kept = 0
    for piece in found:
        history += piece
        if not turns.fits(history):
            turns = Turns(TARGET, mode)
        else:
            kept += 1
        fresh = written(history, mode, Turns(TARGET, mode))
        sent, notes = written(history, mode, turns)
        assert sent == fresh[0]
        assert [text for text in notes if text not in fresh[1]] == []
    if not any(map(has_hosted, history)):
        assert kept == len(found)  # nothing was written twice


def test_a_history_with_hosted_tools_is_written_anew():
    """What comes later decides how a reply that left one open is sent."""
    open_ = own(SEARCH, call("add", {"a": 2}))
    history: list[Message] = [UserMessage("a")]
    turns = Turns(TARGET)
    written(history, "merge", turns)
    longer = [*history, open_, *result(open_)]
    assert turns.fits([*history, UserMessage("b")])
    assert not turns.fits(longer)
    turns = Turns(TARGET)
    written(longer, "merge", turns)
    assert not turns.fits([*longer, UserMessage("b")])


def test_replies_that_were_refused_stay_out():
    reply = own(thinking("hm"), text("Hi"))
    refused = RefusedContext()
    turns = Turns(TARGET, refused=refused)
    refused.add([reply])
    sent, notes = written([UserMessage("a"), reply, UserMessage("b")], "merge", turns)
    assert b"hm" not in sent
    assert len(notes) == 1
    sent, notes = written(
        [UserMessage("a"), reply, UserMessage("b"), UserMessage("c")], "merge", turns
    )
    assert b"hm" not in sent
    assert notes == []
