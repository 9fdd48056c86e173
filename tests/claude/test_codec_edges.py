"""Branches of the encoder that odd histories reach."""

from __future__ import annotations

import json

from support.claude_streams import body, text

from lighter_claude._decode import decode_body
from lighter_claude._encode import Options, encode_request
from lighter_claude._target import Target
from lighter_core import Message, ModelRequest, UserMessage
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
        refused=refused,
        notes=notes,
    )
    (block,) = json.loads(sent)["messages"][1]["content"]
    assert (block["type"], block["text"]) == ("text", "Hi")
    assert reply in refused
    assert list(notes.texts) == []
