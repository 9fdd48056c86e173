"""What of a history reaches DeepSeek: its rules about reasoning, calls and roles."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest
from support.openai_streams import call, message, reasoning, response, thought

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
from lighter_deepseek import DeepSeekProvider
from lighter_deepseek._provider import DEEPSEEK
from lighter_openai import OpenAIProvider, responses

ASK = UserMessage("hello")
SPEC = ToolSpec("add", "Add.", {"type": "object", "properties": {}})
PLACEHOLDER = "(the reasoning of this turn is not known)"


def test_both_interfaces_say_the_same_for_unknown_reasoning():
    """One text, so that a history does not change with the interface."""
    assert responses.PLACEHOLDER == PLACEHOLDER
    assert DEEPSEEK.placeholder is responses.PLACEHOLDER


def provider(**options) -> DeepSeekProvider:
    return DeepSeekProvider("sk-test", **options)


def encode(messages, made=None, *, notes=None, **fields) -> dict:
    request = ModelRequest(messages, **{"tool_specs": [SPEC], **fields})
    found = ReplayNotes()
    body = (made or provider())._encode(request, found, stream=False)
    if notes is not None:
        notes += found.texts
    return json.loads(body)


def got(*items, made=None) -> AssistantMessage:
    body = json.dumps(response(list(items))).encode()
    made = made or provider()
    return made._codec(ModelRequest([ASK])).decode_body(body)


def results(message: AssistantMessage) -> list[ToolMessage]:
    return [
        ToolMessage(call_id=c.call_id, tool_name=c.tool_name, tool_output="1")
        for c in message.tool_calls
    ]


def kinds(body: dict) -> list[str]:
    return [item.get("type") or item["role"] for item in body["input"]]


def thoughts(body: dict) -> list[str]:
    return [
        item["content"][0]["text"]
        for item in body["input"]
        if item.get("type") == "reasoning"
    ]


def test_requests_say_only_what_the_service_knows():
    """No store, no include; system messages are `system`, never `developer`."""
    made = provider(reasoning_effort="high", max_output_tokens=9)
    history = [SystemMessage("Be brief."), ASK, SystemMessage("Now longer.")]
    output = OutputSpec("answer", {"type": "object"})
    assert encode(history, made, tool_choice="auto", output=output) == {
        "model": "deepseek-flash",
        "stream": False,
        "reasoning": {"effort": "high"},
        "max_output_tokens": 9,
        "tools": [
            {
                "type": "function",
                "name": "add",
                "description": "Add.",
                "parameters": dict(SPEC.parameters),
                "strict": False,
            }
        ],
        "tool_choice": "auto",
        "text": {
            "format": {
                "type": "json_schema",
                "name": "answer",
                "schema": {"type": "object"},
                "strict": False,
            }
        },
        "input": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hello"},
            {"role": "system", "content": "Now longer."},
        ],
    }


def test_reasoning_is_sent_back_before_its_calls():
    """KF-065: in the clear, as it came but for its status; with and without tools."""
    items = [thought("I add."), message("Adding."), call("add", "{}")]
    reply = got(*items)
    assert reply.reasoning == "I add."
    for specs in ([SPEC], []):
        body = encode([ASK, reply, *results(reply)], tool_specs=specs)
        mine = {k: v for k, v in items[0].items() if k != "status"}
        assert body["input"][1:4] == [mine, *items[1:]]
        assert kinds(body)[4:] == ["function_call_output"]


def test_reasoning_of_every_turn_is_sent_back():
    """KF-065: also of turns that are long over, also after a copy of the history."""
    one = got(thought("One."), call("add", "{}"))
    two = got(thought("Two."), message("Hi"))
    history = [ASK, one, *results(one), two, ASK]
    assert thoughts(encode(history)) == ["One.", "Two."]
    assert encode(pickle.loads(pickle.dumps(history))) == encode(history)


def test_turns_with_calls_never_lack_reasoning():
    """KF-065: none came, an empty one came, or it is not this service's."""
    turns = [
        got(call("add", "{}")),
        got(thought(), call("add", "{}")),
        got(thought(""), call("add", "{}")),
        AssistantMessage(tool_calls=[ToolCall("c", "add", "{}")]),
    ]
    for turn in turns:
        body = encode([ASK, turn, *results(turn)])
        assert kinds(body) == [
            "user",
            "reasoning",
            "function_call",
            "function_call_output",
        ]
        assert thoughts(body) == [PLACEHOLDER]
    assert thoughts(encode([ASK, AssistantMessage("Hi"), ASK])) == []


def test_nothing_is_made_up_when_thinking_is_off():
    """With `reasoning_effort="none"` no turn needs reasoning."""
    made = provider(reasoning_effort="none")
    turn = AssistantMessage(tool_calls=[ToolCall("c", "add", "{}")])
    body = encode([ASK, turn, *results(turn)], made)
    assert body["reasoning"] == {"effort": "none"}
    assert thoughts(body) == []
    own = got(thought("Mine."), call("add", "{}"))
    assert thoughts(encode([ASK, own, *results(own)], made)) == ["Mine."]


def test_foreign_reasoning_goes_along_on_turns_with_calls_only():
    """The table of degradation: public text, else a placeholder; noted where lost."""
    other = OpenAIProvider("sk-test", "gpt-test")
    items = [reasoning("A summary."), call("add", "{}")]
    calling = got(*items, made=other)
    talking = got(reasoning("A summary."), message("Hi"), made=other)
    notes: list[str] = []
    body = encode([ASK, calling, *results(calling)], notes=notes)
    assert thoughts(body) == ["A summary."]
    assert "encrypted_content" not in json.dumps(body)
    assert notes == []
    assert thoughts(encode([ASK, talking, ASK], notes=notes)) == []
    (note,) = notes
    assert note == (
        "an earlier reply was sent to 'deepseek' without its reasoning:"
        " another service wrote it"
    )


@pytest.mark.parametrize("change", ["content", "model", "endpoint"])
def test_own_reasoning_survives_edits_and_other_models(change):
    """It is plain text: it goes along where other services' contexts are lost."""
    options = {
        "model": {"model_id": "deepseek-v4-pro"},
        "endpoint": {"base_url": "http://127.0.0.1/x"},
    }
    reply = got(thought("Mine."), message("Hi"))
    if change == "content":
        reply = replace(reply, content="Ho")
    notes: list[str] = []
    body = encode([ASK, reply, ASK], provider(**options.get(change, {})), notes=notes)
    assert body["input"][1] == {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Mine."}],
    }
    assert body["input"][2]["content"] == reply.content
    assert notes == []


def test_calls_of_a_batch_stand_together_and_before_their_results():
    """KF-048: text or reasoning between calls goes before them."""
    items = [
        thought("One."),
        call("add", "{}", 1),
        message("Between."),
        thought("Two.", id_="rs_2"),
        call("add", "{}", 2),
    ]
    reply = got(*items)
    body = encode([ASK, reply, *results(reply)])
    assert kinds(body) == [
        "user",
        "reasoning",
        "message",
        "reasoning",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert [i["call_id"] for i in body["input"][4:]] == ["call_1", "call_2"] * 2


def test_history_is_append_only():
    """KF-069: the service's cache works on the beginning of a request."""
    made = provider()
    one = got(thought("One."), call("add", "{}"))
    history = [ASK, one, *results(one), AssistantMessage("Hi", reasoning="x"), ASK]
    before = b""
    for size in (1, 3, 4, 5):
        request = ModelRequest(history[:size], tool_specs=[SPEC])
        body = made._encode(request, ReplayNotes(), stream=True)
        assert body.startswith(before.removesuffix(b"]}"))
        before = body


def test_invalid_arguments_are_kept_as_they_are():
    """KF-014: the service may write them, and gets them back."""
    reply = got(thought("x"), call("add", '{"a": 1'))
    assert reply.tool_calls[0].arguments == '{"a": 1'
    for turn in (reply, replace(reply, native=None)):
        body = encode([ASK, turn, *results(turn)])
        (item,) = [i for i in body["input"] if i.get("type") == "function_call"]
        assert item["arguments"] == '{"a": 1'


def test_images_go_out_and_files_are_refused_by_name():
    """The service takes images in user messages, and nothing else beside text."""
    image = ImagePart(b"\x89", media_type="image/png")
    part = encode([UserMessage([TextPart("x"), image])])["input"][0]["content"][1]
    assert part["type"] == "input_image"
    file = FilePart(b"%PDF", media_type="application/pdf")
    with pytest.raises(ModelError, match="DeepSeek takes no FilePart") as caught:
        encode([UserMessage([file])])
    assert caught.value.code == "invalid_request"
    assert provider().capabilities == {"output", "tool_choice", "image"}


def test_other_services_never_get_this_reasoning():
    """KF-067: on the way back its plain text stays at home."""
    reply = got(thought("Mine."), call("add", "{}"))
    request = ModelRequest([ASK, reply, *results(reply)], tool_specs=[SPEC])
    notes = ReplayNotes()
    sent = OpenAIProvider("sk-test", "gpt-test")._encode(request, notes, stream=False)
    assert b"Mine." not in sent
    assert "its reasoning" in notes.texts[0]
