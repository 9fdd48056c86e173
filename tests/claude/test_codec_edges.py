"""Branches of the encoder that odd histories reach."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.claude_streams import body, call, found, search, text, thinking

from lighter_claude._decode import decode_body
from lighter_claude._encode import Options, encode_request
from lighter_claude._target import Target
from lighter_claude._turns import Turns
from lighter_core import (
    ImagePart,
    Message,
    ModelRequest,
    TextPart,
    ToolMessage,
    UserMessage,
)
from lighter_core.adapters import RefusedContext, ReplayNotes

TARGET = Target("http://host", "claude-test")


def test_a_refused_reply_without_thinking_goes_as_it_came_and_nothing_is_noted() -> (
    None
):
    """What the service refuses is thinking: where there is none, nothing is lost."""
    reply = decode_body(json.dumps(body(text("Hi"))).encode(), TARGET)
    history: list[Message] = [UserMessage("hello"), reply, UserMessage("again")]
    refused = RefusedContext()
    refused.add(history)
    notes = ReplayNotes()
    options = Options(fields={"max_tokens": 100})
    sent = encode_request(
        ModelRequest(history),
        TARGET,
        options,
        stream=True,
        turns=Turns(TARGET, refused=refused),
        notes=notes,
    )
    (block,) = json.loads(sent)["messages"][1]["content"]
    assert (block["type"], block["text"]) == ("text", "Hi")
    assert reply in refused
    assert list(notes.texts) == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ([TextPart(" "), TextPart("")], True),
        ([TextPart(" "), TextPart("Wait.")], False),
        ([ImagePart(b"x", media_type="image/png")], False),
        (" \n", True),
        ("Wait.", False),
    ],
    ids=["blank parts", "parts", "image", "blank", "text"],
)
def test_what_the_user_says_ends_a_turn_that_a_hosted_tool_left_open(
    said: Any, kept: bool
) -> None:
    """Blank texts are not sent, so they end nothing."""
    blocks = (thinking("a"), search("x"), call("add", {"a": 1}))
    first = decode_body(json.dumps(body(*blocks, stop="tool_use")).encode(), TARGET)
    (asked,) = first.tool_calls
    result = ToolMessage(
        call_id=asked.call_id, tool_name=asked.tool_name, tool_output="3"
    )
    later = decode_body(json.dumps(body(found(), text("Done."))).encode(), TARGET)
    history = [UserMessage("go"), first, result, UserMessage(said), later]
    options = Options(fields={"max_tokens": 100})
    sent = encode_request(
        ModelRequest([*history, UserMessage("again")]), TARGET, options, stream=True
    )
    (reply, *_) = [m for m in json.loads(sent)["messages"] if m["role"] == "assistant"]
    kinds = [block["type"] for block in reply["content"]]
    assert ("server_tool_use" in kinds) is kept
