"""Messages and options to request bodies, without SDK and network."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel
from support.openai_streams import call, message, reasoning, response

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
from lighter_core._output import plan_output
from lighter_core.adapters import ReplayNotes
from lighter_openai._decode import decode_body
from lighter_openai._dialect import OPENAI, Target
from lighter_openai._encode import encode_request

TARGET = Target(OPENAI, "http://127.0.0.1/v1", "gpt-test")
ITEMS = [reasoning("why"), message("Adding."), call("add", '{"a": 1.0}')]


def encode(*messages: Any, target: Target = TARGET, **fields: Any) -> dict[str, Any]:
    """Encode and parse; the body is valid UTF-8 and strict JSON."""
    options = fields.pop("options", {})
    request = ModelRequest(list(messages), **fields)
    body = encode_request(request, target, options, stream=True)
    return json.loads(body.decode("utf-8"))


def decoded(items: list[Any] = ITEMS, target: Target = TARGET) -> AssistantMessage:
    return decode_body(json.dumps(response(items)).encode(), target)


def answer(message: AssistantMessage) -> list[ToolMessage]:
    return [
        ToolMessage(call_id=c.call_id, tool_name=c.tool_name, tool_output="3")
        for c in message.tool_calls
    ]


def test_fixed_fields_are_always_sent():
    """KF-063: nothing is stored, encrypted reasoning is asked for."""
    body = encode(UserMessage("Hi"))
    assert body == {
        "model": "gpt-test",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [{"role": "user", "content": "Hi"}],
    }


def test_messages_of_all_roles_become_items():
    """System messages stay in place; a result keeps its text as it is."""
    body = encode(
        SystemMessage("Be brief."),
        UserMessage("Add."),
        AssistantMessage("", tool_calls=[ToolCall("c1", "add", '{"a": 1}')]),
        ToolMessage(call_id="c1", tool_name="add", tool_output="boom", is_error=True),
        SystemMessage("Now in French."),
        AssistantMessage("Voilà", reasoning="secret thoughts"),
    )
    assert body["input"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add."},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "add",
            "arguments": '{"a": 1}',
        },
        {"type": "function_call_output", "call_id": "c1", "output": "boom"},
        {"role": "system", "content": "Now in French."},
        {"type": "message", "role": "assistant", "content": "Voilà"},
    ]


def test_parts_of_user_messages():
    """Text, images and files, by bytes or by address."""
    body = encode(
        UserMessage(
            [
                TextPart("Look:"),
                ImagePart(b"\x89PNG", media_type="image/png"),
                ImagePart(url="https://host/cat.png"),
                FilePart(b"%PDF", media_type="application/pdf"),
                FilePart(b"%PDF", media_type="application/pdf", name="a.pdf"),
                FilePart(url="https://host/b.pdf"),
            ]
        )
    )
    assert body["input"][0]["content"] == [
        {"type": "input_text", "text": "Look:"},
        {
            "type": "input_image",
            "image_url": "data:image/png;base64,iVBORw==",
            "detail": "auto",
        },
        {"type": "input_image", "image_url": "https://host/cat.png", "detail": "auto"},
        {
            "type": "input_file",
            "filename": "file.pdf",
            "file_data": "data:application/pdf;base64,JVBERg==",
        },
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,JVBERg==",
        },
        {"type": "input_file", "file_url": "https://host/b.pdf"},
    ]


def test_files_that_are_images_and_data_urls():
    """An image is sent as one; a `data:` URL as base64, whatever its form."""
    body = encode(
        UserMessage(
            [
                FilePart(b"\x89PNG", media_type="image/png"),
                FilePart(url="https://host/c", media_type="image/webp"),
                FilePart(url="data:text/plain,a%20b"),
            ]
        )
    )
    first, second, third = body["input"][0]["content"]
    assert first["image_url"] == "data:image/png;base64,iVBORw=="
    assert second["image_url"] == "https://host/c"
    assert third == {
        "type": "input_file",
        "filename": "file.txt",
        "file_data": "data:text/plain;base64,YSBi",
    }


@pytest.mark.parametrize(
    "part",
    [
        ImagePart(b"x", media_type="image/tiff"),
        ImagePart(url="https://host/a", media_type="image/tiff"),
        ImagePart(url="data:image/tiff;base64,AAAA"),
        FilePart(b"x", media_type="image/tiff"),
    ],
)
def test_images_of_another_type_are_refused_by_name(part):
    """Before anything is sent."""
    with pytest.raises(ModelError, match=r"ImagePart of type 'image/tiff'.*image/webp"):
        encode(UserMessage([part]))


@pytest.mark.parametrize("strict", [False, True])
def test_tools_say_whether_they_are_strict(strict):
    """Left out, the service might try strict on its own."""
    schema = MappingProxyType({"type": "object", "properties": {}})
    spec = ToolSpec("add", "Add numbers.", schema, strict=strict)
    assert encode(UserMessage("x"), tool_specs=[spec])["tools"] == [
        {
            "type": "function",
            "name": "add",
            "description": "Add numbers.",
            "parameters": {"type": "object", "properties": {}},
            "strict": strict,
        }
    ]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("add", {"type": "function", "name": "add"}),
    ],
)
def test_tool_choice(choice, sent):
    """The three words, or the one tool to call; services refuse it without tools."""
    asked = {"tool_choice": choice, "tool_specs": [ToolSpec("add", "", {})]}
    assert encode(UserMessage("x"), **asked)["tool_choice"] == sent
    assert "tool_choice" not in encode(UserMessage("x"), tool_choice=choice)
    hosted = {"tools": [{"type": "web_search"}]}
    alone = encode(UserMessage("x"), tool_choice=choice, options=hosted)
    assert alone["tool_choice"] == sent


CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "string"}}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "additionalProperties": True}, False),
        ({**CLOSED, "properties": {"a": {"type": "object"}}}, False),
        ({**CLOSED, "$defs": {"b": CLOSED}}, True),
        ({"anyOf": [CLOSED, {"type": "object"}]}, False),
    ],
)
def test_output_is_strict_where_the_schema_allows(schema, strict):
    """The service refuses strict for open schemas, so they go without."""
    body = encode(UserMessage("x"), output=OutputSpec("my answer!", schema))
    assert body["text"] == {
        "format": {
            "type": "json_schema",
            "name": "my_answer_",
            "schema": schema,
            "strict": strict,
        }
    }


def test_options_are_merged():
    """Fields of `extra_body` win; tools, include and text are joined."""
    options = {
        "reasoning": {"summary": "auto"},
        "max_output_tokens": 5,
        "tools": [{"type": "web_search"}],
        "include": ["web_search_call.results"],
        "text": {"verbosity": "low"},
        "store": True,
    }
    spec = ToolSpec("add", "", {})
    body = encode(
        UserMessage("x"),
        options=options,
        tool_specs=[spec],
        output=OutputSpec("o", CLOSED),
    )
    assert [t["type"] for t in body["tools"]] == ["function", "web_search"]
    assert body["include"] == ["reasoning.encrypted_content", "web_search_call.results"]
    assert body["text"].keys() == {"format", "verbosity"}
    own = {"text": {"format": {"type": "json_object"}}}
    body_ = encode(UserMessage("x"), options=own, output=OutputSpec("o", CLOSED))
    assert body_["text"] == own["text"]
    assert body["store"] is True
    assert body["max_output_tokens"] == 5
    assert body["reasoning"] == {"summary": "auto"}


def test_native_items_are_sent_byte_for_byte():
    """KF-063, KF-069: reasoning, text and call leave as they came."""
    raw = '[{ "type":"message","x":1e400,"content":[{"type":"output_text","text":"\\u00e9"}]}]'
    body = '{"status":"completed","output":' + raw + "}"
    reply = decode_body(body.encode(), TARGET)
    sent = encode_request(ModelRequest([reply]), TARGET, {}, stream=False)
    assert f'"input":{raw}'.encode() in sent
    reply = decoded()
    assert encode(reply, *answer(reply))["input"][:3] == ITEMS


def test_history_is_append_only():
    """A longer history begins with the bytes of the shorter one."""
    reply = decoded()
    history = [SystemMessage("s"), UserMessage("u"), reply, *answer(reply)]
    bodies = [
        encode_request(ModelRequest(history[:n]), TARGET, {}, stream=True)
        for n in (2, 4)
    ]
    assert bodies[1].startswith(bodies[0].removesuffix(b"]}"))


def test_copies_and_pickles_are_replayed_too():
    """KF-069: native context is data, no object identity."""
    import copy
    import pickle

    reply = decoded()
    for twin in (copy.deepcopy(reply), pickle.loads(pickle.dumps(reply))):
        assert encode(twin, *answer(twin)) == encode(reply, *answer(reply))


REBUILT = [
    {"type": "message", "role": "assistant", "content": "Adding."},
    {
        "type": "function_call",
        "call_id": "call_1",
        "name": "add",
        "arguments": '{"a": 1.0}',
    },
]


@pytest.mark.parametrize(
    "target",
    [
        replace(TARGET, model="gpt-other"),
        replace(TARGET, endpoint="http://other/v1"),
        replace(TARGET, dialect=replace(OPENAI, name="other")),
        replace(TARGET, dialect=replace(OPENAI, api="chat")),
    ],
    ids=["model", "endpoint", "provider", "api"],
)
def test_other_provenance_is_rebuilt_from_public_fields(target):
    """No ids, no reasoning; text and calls stay."""
    reply = decoded()
    assert encode(reply, *answer(reply), target=target)["input"][:2] == REBUILT


def test_broken_seal_is_rebuilt_from_public_fields():
    """KF-066: an edited message never takes its old items along."""
    reply = decoded()
    edited = replace(reply, content="Adding!")
    assert encode(edited, *answer(edited))["input"][0]["content"] == "Adding!"
    bare = replace(reply, tool_calls=())
    assert encode(bare)["input"] == [REBUILT[0]]
    future = replace(reply, native=replace(reply.native, v=2))
    assert encode(future, *answer(future))["input"][:2] == REBUILT


def test_phase_is_kept_for_another_model():
    """Later models read it; it needs no ids."""
    items = [message("Wait.", phase="commentary"), call("add", "{}")]
    reply = decoded([reasoning("r"), *items])
    sent = encode(reply, *answer(reply), target=replace(TARGET, model="gpt-next"))
    assert sent["input"][0] == {
        "type": "message",
        "role": "assistant",
        "content": "Wait.",
        "phase": "commentary",
    }
    other = replace(TARGET, endpoint="http://other/v1")
    assert "phase" not in encode(reply, *answer(reply), target=other)["input"][0]


def test_same_reply_twice_repeats_no_ids():
    """A history that was merged with itself is refused for its duplicate ids."""
    reply = decoded()
    sent = encode(reply, *answer(reply), reply, *answer(reply))["input"]
    assert [item["id"] for item in sent if "id" in item] == ["rs_1", "msg_1", "fc_1"]


def test_call_ids_are_normalised_on_both_sides_when_rebuilt():
    """Long or odd ids of other services become the same digest on both sides."""
    odd = "toolu:" + "x" * 80
    sent = encode(
        AssistantMessage(tool_calls=[ToolCall(odd, "t", "{}")]),
        ToolMessage(call_id=odd, tool_name="t", tool_output="1"),
    )["input"]
    assert sent[0]["call_id"] == sent[1]["call_id"]
    assert len(sent[0]["call_id"]) <= 64
    reply = decoded([{**call("t", "{}"), "call_id": odd}])
    sent = encode(reply, *answer(reply))["input"]
    assert [item["call_id"] for item in sent] == [odd, odd]


def test_empty_replies_are_skipped():
    """KF-072: a message without text and calls becomes no item."""
    empty = decoded([])
    only_thoughts = decoded([reasoning("hm")])
    sent = encode(UserMessage("a"), empty, only_thoughts, UserMessage("b"))["input"]
    assert [item["content"] for item in sent] == ["a", "b"]


def test_lone_surrogates_are_replaced():
    """KF-042: in any place of the request, in values and in keys."""
    bad = "a\udc97b"
    body = encode(
        UserMessage(bad),
        AssistantMessage(bad, tool_calls=[ToolCall("c", "t", f'{{"{bad}":1}}')]),
        ToolMessage(call_id="c", tool_name="t", tool_output=f'"{bad}"'),
        tool_specs=[ToolSpec("t", bad, {bad: 1})],
    )
    assert body["input"][0]["content"] == "a\ufffdb"
    assert "\udc97" not in json.dumps(body, ensure_ascii=False)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x", object()])
def test_values_without_a_json_form_are_refused(value):
    """Before anything is sent, as an error of the request."""
    spec = ToolSpec("t", "", {"default": value})
    with pytest.raises(ModelError) as caught:
        encode(UserMessage("x"), tool_specs=[spec])
    assert caught.value.code == "invalid_request"
    assert caught.value.__cause__ is not None


def test_inputs_are_left_alone():
    """Encoding changes neither the request nor the options."""
    options = {"tools": [{"type": "web_search"}], "include": ["x"]}
    request = ModelRequest([UserMessage("x")], tool_specs=[ToolSpec("t", "", {})])
    before = (repr(request), repr(options), repr(OPENAI))
    encode_request(request, TARGET, options, stream=True)
    assert (repr(request), repr(options), repr(OPENAI)) == before


def test_ids_and_names_of_rebuilt_calls_are_accepted_and_unique():
    """KF-017, KF-082: one id in several replies, names that a model made up."""
    rounds = []
    for name in ("functions.add", "w" * 65):
        calling = AssistantMessage(tool_calls=[ToolCall("call_0", name, "{}")])
        answer = ToolMessage(call_id="call_0", tool_name=name, tool_output="1")
        rounds += [calling, answer]
    items = encode(*rounds)["input"]
    calls = [item for item in items if item["type"] == "function_call"]
    assert [item["name"] for item in calls] == ["functions_add", "w" * 64]
    sent = [item["call_id"] for item in calls]
    assert len(set(sent)) == 2
    answers = [i["call_id"] for i in items if i["type"] == "function_call_output"]
    assert answers == sent


def test_own_reply_with_a_name_that_services_refuse_is_rebuilt():
    """KF-082: sent back as it came, it would end the conversation for good."""
    reply = decoded([reasoning("why"), call("functions.add", "{}")])
    notes = ReplayNotes()
    request = ModelRequest([UserMessage("a"), reply, *answer(reply)])
    body = json.loads(encode_request(request, TARGET, {}, stream=True, notes=notes))
    assert [item.get("type") for item in body["input"]][1:] == [
        "function_call",
        "function_call_output",
    ]
    assert body["input"][1]["name"] == "functions_add"
    assert "refuse" in notes.texts[0]


def test_the_form_of_an_ordinary_model_is_strict():
    """Objects that do not say whether they are open are closed; names fool nobody."""

    class Book(BaseModel):
        title: str
        properties: list[int]

    spec = plan_output(Book).spec
    sent = encode(UserMessage("x"), output=spec)["text"]["format"]
    assert sent["strict"] is True
    assert sent["schema"]["additionalProperties"] is False
    assert "additionalProperties" not in spec.schema
