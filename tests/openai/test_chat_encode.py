"""Requests of the Chat Completions interface, without SDK and network."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from support.chat_streams import body, call

from lighter_core import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ModelError,
    ModelRequest,
    OutputSpec,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from lighter_core.adapters import ReplayNotes
from lighter_openai._chat_calls import Turn
from lighter_openai._chat_decode import decode_chat_body
from lighter_openai._chat_encode import ChatMessages, encode_chat_request
from lighter_openai._dialect import CHAT, OPENAI, PLACEHOLDER, Target

TARGET = Target(CHAT, "http://127.0.0.1/v1", "m")
ASK = UserMessage("hello")
SPEC = ToolSpec("add", "Add.", {"type": "object", "properties": {}})


def encode(messages, *, notes=None, target=TARGET, stream=False, **rest) -> bytes:
    fields = ("tool_specs", "tool_choice", "output")
    request = ModelRequest(messages, **{k: rest.pop(k) for k in fields if k in rest})
    options = rest.pop("options", {})
    found, writer = ReplayNotes(), ChatMessages(target, rest.pop("reasoning", "keep"))
    body = encode_chat_request(
        request, target, options, stream=stream, notes=found, writer=writer, **rest
    )
    if notes is not None:
        notes += found.texts
    return body


def sent(messages, **rest) -> list[dict[str, Any]]:
    return json.loads(encode(messages, **rest))["messages"]


def got(
    message: dict[str, Any], target=TARGET, finish="tool_calls"
) -> AssistantMessage:
    text = json.dumps(body(message, finish), ensure_ascii=False)
    return decode_chat_body(text.encode(), target, Turn())


def result(call_id="call_1", output="3", name="add") -> ToolMessage:
    return ToolMessage(call_id=call_id, tool_name=name, tool_output=output)


CALLING = {
    "content": "I add.",
    "reasoning_content": "Think.",
    "tool_calls": [call("add", '{"a":  1}')],
}


def test_messages_of_all_roles():
    """System messages keep their place; calls and results have their ids."""
    history = [
        SystemMessage("Be brief."),
        ASK,
        AssistantMessage("Hi", tool_calls=[ToolCall("c1", "add", '{"a": 1}')]),
        result("c1"),
        SystemMessage("Now longer."),
    ]
    asked = {"name": "add", "arguments": '{"a": 1}'}
    assert sent(history) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
        {
            "role": "assistant",
            "content": "Hi",
            "tool_calls": [{"id": "c1", "type": "function", "function": asked}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "system", "content": "Now longer."},
    ]


def test_parts_of_user_messages():
    """Text, images by address and bytes, files, audio."""
    parts = [
        TextPart("What is it?"),
        ImagePart(url="https://example.org/cat.png"),
        ImagePart(b"\x89", media_type="image/png"),
        FilePart(b"%PDF", media_type="application/pdf", name="a.pdf"),
        FilePart(b"x", media_type="text/plain"),
        FilePart(b"RIFF", media_type="audio/wav"),
    ]
    assert sent([UserMessage(parts)])[0]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iQ=="}},
        {
            "type": "file",
            "file": {
                "filename": "a.pdf",
                "file_data": "data:application/pdf;base64,JVBERg==",
            },
        },
        {
            "type": "file",
            "file": {
                "filename": "file.txt",
                "file_data": "data:text/plain;base64,eA==",
            },
        },
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    ]


def test_file_by_its_address_is_refused_by_name():
    """The interface has no place for it: said before anything is sent."""
    with pytest.raises(ModelError, match="FilePart") as caught:
        encode([UserMessage([FilePart(url="https://example.org/a.pdf")])])
    assert caught.value.code == "invalid_request"


def test_what_is_no_image_is_refused_as_one():
    """Which images a server takes, it knows itself; a PDF is none anywhere."""
    other = ImagePart(b"x", media_type="image/heic")
    (part,) = sent([UserMessage([other])])[0]["content"]
    assert part["image_url"]["url"] == "data:image/heic;base64,eA=="
    with pytest.raises(ModelError, match="no ImagePart of type 'application/pdf'"):
        encode([UserMessage([ImagePart(b"x", media_type="application/pdf")])])


@pytest.mark.parametrize("strict", [False, True])
def test_tools_say_strict_only_when_they_are(strict):
    """Left out it means false; not every server knows the word."""
    spec = replace(SPEC, strict=strict)
    (tool,) = json.loads(encode([ASK], tool_specs=[spec]))["tools"]
    function = {
        "name": "add",
        "description": "Add.",
        "parameters": dict(SPEC.parameters),
    }
    want = {**function, "strict": True} if strict else function
    assert tool == {"type": "function", "function": want}


@pytest.mark.parametrize(
    ("choice", "want"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("add", {"type": "function", "function": {"name": "add"}}),
    ],
)
def test_tool_choice(choice, want):
    """The three words, and a name; nothing without tools, which services refuse."""
    whole = json.loads(encode([ASK], tool_choice=choice, tool_specs=[SPEC]))
    assert whole["tool_choice"] == want
    notes: list[str] = []
    alone = json.loads(encode([ASK], tool_choice=choice, notes=notes))
    assert "tool_choice" not in alone
    assert bool(notes) is (choice in {"required", "add"})


def test_output_becomes_a_response_format():
    """Strict where the schema is closed and needs all its properties."""
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    fields = json.loads(encode([ASK], output=OutputSpec("An answer", schema)))
    assert fields["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "An_answer", "schema": schema, "strict": True},
    }


def test_options_are_fields_and_tools_are_joined():
    """`extra_body` wins; the usage is asked for in streams only."""
    options = {
        "stream_options": {"include_usage": True},
        "tools": [{"type": "x"}],
        "response_format": {"type": "json_object"},
        "n": 2,
    }
    whole = json.loads(encode([ASK], options=options, tool_specs=[SPEC]))
    assert [tool["type"] for tool in whole["tools"]] == ["function", "x"]
    assert (whole["n"], whole["stream"]) == (2, False)
    assert "stream_options" not in whole
    streamed = json.loads(encode([ASK], options=options, stream=True))
    assert streamed["stream_options"] == {"include_usage": True}


# --- replay ------------------------------------------------------------------------


def test_reply_is_sent_back_as_it_came():
    """KF-065, KF-069: spacing, unknown fields and reasoning; results by their ids."""
    reply = got({**CALLING, "x_new": {"a": [1.50]}})
    raw = encode([ASK, reply, result()])
    assert reply.native.items[1:-1].encode() in raw
    message = json.loads(raw)["messages"][1]
    assert message["reasoning_content"] == "Think."
    assert message["x_new"] == {"a": [1.5]}
    assert message["tool_calls"][0]["function"]["arguments"] == '{"a":  1}'


def test_history_is_append_only_and_survives_a_copy():
    """KF-069, KF-071: a longer history begins with the bytes of the shorter one."""
    history = [ASK, got(CALLING), result()]
    first = encode(history[:1])
    second = encode(history)
    assert second.startswith(first.removesuffix(b"]}"))
    assert encode(pickle.loads(pickle.dumps(history))) == second


def test_odd_call_ids_stay_where_the_reply_is_native():
    """An id of the service's own form, on both sides; rebuilt, both are digests."""
    odd = "functions.add:0"
    reply = got({"tool_calls": [{**CALLING["tool_calls"][0], "id": odd}]})
    history = [ASK, reply, result(odd)]
    _, assistant, tool = sent(history)
    assert assistant["tool_calls"][0]["id"] == tool["tool_call_id"] == odd
    _, assistant, tool = sent([ASK, replace(reply, native=None), result(odd)])
    assert assistant["tool_calls"][0]["id"] == tool["tool_call_id"]
    assert tool["tool_call_id"].startswith("call_")


def test_legacy_calls_are_answered_in_their_form():
    """The older form has a name instead of an id."""
    reply = got({"function_call": {"name": "add", "arguments": "{}"}})
    _, assistant, tool = sent([ASK, reply, result(reply.tool_calls[0].call_id)])
    assert assistant["function_call"] == {"name": "add", "arguments": "{}"}
    assert tool == {"role": "function", "name": "add", "content": "3"}
    rebuilt = sent(
        [ASK, replace(reply, native=None), result(reply.tool_calls[0].call_id)]
    )
    assert rebuilt[1]["tool_calls"][0]["id"] == rebuilt[2]["tool_call_id"]


OTHERS = {
    "another endpoint": replace(TARGET, endpoint="http://127.0.0.2/v1"),
    "another model": replace(TARGET, model="other"),
    "another service": Target(OPENAI, "http://127.0.0.1/v1", "m"),
}


@pytest.mark.parametrize("why", OTHERS)
def test_other_provenance_is_rebuilt_and_noted(why):
    """KF-067: no reasoning of others; one sentence, without content."""
    notes: list[str] = []
    reply = got(CALLING, OTHERS[why])
    message = sent([ASK, reply, result(), reply, result()], notes=notes)[1]
    assert set(message) == {"role", "content", "tool_calls"}
    (note,) = notes
    assert why in note
    assert "its reasoning" in note
    assert "Think" not in note


def test_edited_reply_is_rebuilt_and_noted():
    """KF-066: what was edited never takes its old form along."""
    notes: list[str] = []
    reply = replace(got(CALLING), content="Other.")
    message = sent([ASK, reply, result()], notes=notes)[1]
    assert message["content"] == "Other."
    assert "reasoning_content" not in message
    assert "edited" in notes[0]


def test_nothing_is_noted_where_nothing_is_lost():
    """Text and calls alone are the same, rebuilt or not."""
    notes: list[str] = []
    plain = {"content": "Hi", "tool_calls": [call("add", "{}")]}
    reply = got(plain, OTHERS["another model"])
    encode([ASK, reply, result(), AssistantMessage("Hi")], notes=notes)
    assert notes == []


def test_reasoning_can_be_left_out():
    """`never`: all three fields go, the rest stays byte for byte."""
    details = [{"type": "reasoning.text", "text": "Think."}]
    reply = got({**CALLING, "reasoning": "Think.", "reasoning_details": details})
    message = sent([ASK, reply, result()], reasoning="drop")[1]
    assert set(message) == {"role", "content", "tool_calls"}
    assert b'{\\"a\\":  1}' in encode([ASK, reply, result()], reasoning="drop")


@pytest.mark.parametrize(
    ("message", "want"),
    [
        (
            AssistantMessage(
                "", reasoning="Mine.", tool_calls=[ToolCall("call_1", "add")]
            ),
            "Mine.",
        ),
        (AssistantMessage("", tool_calls=[ToolCall("call_1", "add")]), PLACEHOLDER),
        (got({"tool_calls": [call("add", "{}")]}), PLACEHOLDER),
        (got(CALLING), "Think."),
        (got(CALLING, OTHERS["another model"]), "Think."),
    ],
)
def test_service_that_demands_reasoning_gets_it_on_each_turn_with_calls(message, want):
    """KF-065: its own, the public text of others, or a placeholder."""
    notes: list[str] = []
    assistant = sent([ASK, message, result()], reasoning="require", notes=notes)[1]
    assert assistant["reasoning_content"] == want
    assert notes == []


def test_demanded_reasoning_of_turns_without_calls():
    """Its own text goes along; another service's does not."""
    own = got({"content": "Hi", "reasoning_content": "Think."}, finish="stop")
    edited = replace(own, content="Ho")
    foreign = AssistantMessage("Hi", reasoning="Think.")
    messages = sent([ASK, own, ASK, edited, ASK, foreign], reasoning="require")
    thoughts = [m.get("reasoning_content") for m in messages if m["role"] != "user"]
    assert thoughts == ["Think.", "Think.", None]


def test_rebuilt_messages_that_say_nothing_are_left_out():
    """KF-072: no empty assistant message; blank arguments become an object."""
    assert sent([ASK, AssistantMessage(""), ASK]) == sent([ASK, ASK])
    message = AssistantMessage("", tool_calls=[ToolCall("c1", "now", " ")])
    assistant = sent([ASK, message, result("c1")])[1]
    assert assistant["tool_calls"][0]["function"]["arguments"] == "{}"
    assert assistant["content"] == ""


def test_lone_surrogates_are_replaced():
    """KF-042: what is sent is UTF-8."""
    raw = encode([UserMessage("a\ud800b"), AssistantMessage("\udfff")])
    assert "a\ufffdb" in raw.decode("utf-8")


def test_values_without_a_json_form_are_refused():
    """With a sentence, before anything is sent."""
    with pytest.raises(ModelError, match="JSON") as caught:
        encode([ASK], options={"x": object()})
    assert caught.value.code == "invalid_request"


def _round(id_: str, name: str = "add") -> list:
    calling = AssistantMessage(tool_calls=[ToolCall(id_, name, "{}")])
    return [calling, result(id_, name=name)]


def ids(messages) -> list[str]:
    found = [c["id"] for m in messages for c in m.get("tool_calls", ())]
    assert [m["tool_call_id"] for m in messages if m["role"] == "tool"] == found
    assert len(set(found)) == len(found)
    assert all(1 <= len(each) <= 40 for each in found)
    return found


def test_ids_of_rebuilt_calls_are_short_and_unique():
    """KF-017: from servers that count from zero, or that give long ids."""
    history = [ASK, *_round("call_0"), *_round("call_0"), *_round("x" * 60)]
    first = ids(sent(history))
    assert first[0] == "call_0"
    assert ids(sent([*history, ASK, *_round("call_0")]))[:3] == first
    own = got({"tool_calls": [call("add", "{}", 0)]})
    mixed = ids(sent([*history, ASK, own, result("call_0")]))
    assert mixed[:3] == first
    assert ids(sent([ASK, own, result("call_0"), *history]))[0] == "call_0"


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("functions.add", "functions_add"),
        ("a b!", "a_b_"),
        ("é", "_"),
        ("", "_"),
        ("w" * 65, "w" * 64),
        ("add", "add"),
    ],
)
def test_names_that_a_model_made_up_are_accepted_elsewhere(name, want):
    """KF-082: the call of a tool that nobody has, in a rebuilt message."""
    assistant = sent([ASK, *_round("c1", name or "")])[1]
    assert assistant["tool_calls"][0]["function"]["name"] == want


@pytest.mark.parametrize("text", ['{"a": 1', "[1]", "null", "three", '{"a": NaN}'])
def test_arguments_that_are_no_object_travel_inside_one(text):
    """Servers read them as JSON for their templates, at each later request again."""
    call = ToolCall("call_1", "add", text)
    own = AssistantMessage(tool_calls=[call])
    native = got(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "add", "arguments": text},
                }
            ],
        }
    )
    for message in (own, native):
        written = sent([UserMessage("x"), message, result()])[1]["tool_calls"][0]
        assert json.loads(written["function"]["arguments"]) == {"_raw": text}
