"""Prompts, grammars, decisions and replies: pure functions."""

from __future__ import annotations

import json
import math

import pytest

from lighter_core import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ModelError,
    ReasoningDelta,
    SystemMessage,
    TextDelta,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from lighter_core.adapters import ReplayNotes
from lighter_local import _errors as errors
from lighter_local._decide import call_likelihood, candidates, threshold_factor
from lighter_local._decode import Reply, new_call_ids
from lighter_local._examples import answer_prompt, call_prompt
from lighter_local._grammar import call_grammar, parse_call
from lighter_local._native import knows_tools
from lighter_local._prompt import (
    check_messages,
    native_messages,
    plain_messages,
    tool_list,
)

WEATHER = ToolSpec(
    "get_weather",
    "Tell the weather in a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
)
CALL = AssistantMessage(
    "", tool_calls=[ToolCall("call_1", "add", '{"a": 19, "b": 23}')]
)
RESULT = ToolMessage(call_id="call_1", tool_name="add", tool_output="42")
QUESTION = UserMessage("What is 19 + 23?")


def test_plain_messages_alternate_after_one_system_message():
    chat = plain_messages(
        [
            SystemMessage("Be kind."),
            QUESTION,
            CALL,
            RESULT,
            AssistantMessage("42."),
            SystemMessage("Be brief."),
            UserMessage([TextPart("And "), TextPart("then?")]),
            AssistantMessage(""),
            UserMessage("Well?"),
        ]
    )
    assert chat == [
        {"role": "system", "content": "Be kind.\n\nBe brief."},
        {"role": "user", "content": "What is 19 + 23?\nResult of add: 42"},
        {"role": "assistant", "content": "42."},
        {"role": "user", "content": "And then?\nWell?"},
    ]


def test_native_messages_keep_calls_and_results():
    blank = AssistantMessage("Hm.", tool_calls=[ToolCall("c", "now", " ")])
    late = ToolMessage(call_id="c", tool_name="now", tool_output="no", is_error=True)
    chat = native_messages([QUESTION, CALL, RESULT, AssistantMessage(""), blank, late])
    assert [each["role"] for each in chat] == [
        *("user", "assistant", "tool", "assistant", "tool")
    ]
    assert chat[1]["tool_calls"][0]["function"] == {
        "name": "add",
        "arguments": '{"a": 19, "b": 23}',
    }
    assert chat[3]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert chat[4]["content"] == "no"
    assert tool_list([WEATHER])[0]["function"]["name"] == "get_weather"


@pytest.mark.parametrize("kind", [ImagePart, FilePart])
def test_parts_that_are_no_text_are_named(kind):
    part = kind(b"x", None, "image/png")
    messages = [SystemMessage("x"), UserMessage([TextPart("what?"), part])]
    with pytest.raises(ModelError) as caught:
        check_messages(messages, ReplayNotes())
    assert caught.value.code == "invalid_request"
    assert "messages[1].content[1]" in caught.value.message
    assert kind.__name__ in caught.value.message


@pytest.mark.parametrize("messages", [[], [SystemMessage("only")]])
def test_nothing_to_answer_is_refused(messages):
    with pytest.raises(ModelError, match="no message"):
        check_messages(messages, ReplayNotes())


def test_the_grammar_has_a_rule_for_each_tool(add):
    nested = ToolSpec("nested", "x", {"$defs": {"P": {}}, "$ref": "#/$defs/P"})
    lines = call_grammar([add, WEATHER, nested]).splitlines()
    assert lines[:2] == ["%llguidance {}", "start: call_0 | call_1 | call_2"]
    for line, spec in zip(lines[2:], (add, WEATHER, nested), strict=True):
        head, _, rest = line.partition(" %json ")
        assert json.loads(head.split(": ", 1)[1]) == (
            f'{{"name": "{spec.name}", "arguments": '
        )
        schema = json.loads(rest.removesuffix(' "}"'))
        assert schema["type"] == "object"
        assert schema["x-guidance"]["whitespace_flexible"] is False
        assert ("additionalProperties" in schema) == (spec is not nested)


def test_a_call_is_parsed_and_checked(add):
    text = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
    assert parse_call(text, [add]) == ("add", '{"a":1,"b":2}')
    for bad in (
        *("", "Hello", "[]", '{"name": "add"}'),
        '{"name": "sub", "arguments": {}}',
        '{"name": "add", "arguments": [1]}',
    ):
        with pytest.raises(ModelError) as caught:
            parse_call(bad, [add])
        assert caught.value.code == "bad_response"


def test_tools_are_narrowed_by_words_and_numbers(add):
    books = ToolSpec("search_books", "Search for books.", WEATHER.parameters)
    tools = [add, WEATHER, books]

    def names(text):
        return [spec.name for spec in candidates([UserMessage(text)], tools)]

    assert names("What is 19 + 23?") == ["add"]
    assert names("What is nineteen and three?") == ["add"]
    assert names("How is the WEATHER?") == ["get_weather"]
    assert names("Is there a book?") == ["search_books"]
    assert names("A book for 18 and a pen for 4?") == ["add", "search_books"]
    assert names("Hello!") == ["get_weather", "search_books"]
    assert candidates([UserMessage("Add them.")], [add]) == []


def test_numbers_of_earlier_turns_count(add):
    messages = [QUESTION, AssistantMessage("Hm?"), UserMessage("Add them, please.")]
    assert candidates(messages, [add]) == [add]


def test_evidence_lowers_the_threshold(add):
    def factor(text):
        return threshold_factor([UserMessage(text)], [add])

    assert factor("Hello!") == 1
    assert factor("What is 19 + 23?") == 0.5
    assert factor("Add something.") == 0.1


def test_likelihood_sums_the_tokens_that_open_an_object():
    options = [("{", 0.25), (' {"', 0.125), ("The", 0.5)]
    top = [{"token": token, "logprob": math.log(p)} for token, p in options]
    content = [{"token": "The", "logprob": -0.7, "top_logprobs": top}]
    found = {"choices": [{"delta": {}, "logprobs": {"content": content}}]}
    assert call_likelihood(found) == pytest.approx(0.375)
    assert call_likelihood({"choices": [{"delta": {}}]}) is None


def test_call_prompt_has_examples_that_fit_the_schemas(add):
    odd = ToolSpec(
        "odd",
        "Do odd things.",
        {
            "type": "object",
            "properties": {
                "kind": {"enum": ["x", "y"]},
                "on": {"type": "boolean"},
                "many": {"type": "array", "items": {"type": "number"}},
                "deep": {"type": "object"},
                "size": {"type": "integer", "default": 3},
                "free": {},
            },
        },
    )
    for tools in ([add], [odd], [add, odd], [ToolSpec("bare", "", {})]):
        chat = call_prompt([QUESTION], tools)
        assert chat[0]["role"] == "system"
        assert chat[-1] == {"role": "user", "content": "What is 19 + 23?"}
        roles = [each["role"] for each in chat[1:]]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
        calls = [each["content"] for each in chat if each["content"].startswith("{")]
        assert {parse_call(call, tools)[0] for call in calls} == {
            spec.name for spec in tools
        }


def test_call_prompt_holds_the_last_rounds(add):
    old = [UserMessage("Old"), AssistantMessage("older")]
    broken = AssistantMessage("", tool_calls=[ToolCall("call_2", "add", "{")])
    second = ToolMessage(call_id="call_2", tool_name="add", tool_output="?")
    messages = [*old, QUESTION, CALL, RESULT, AssistantMessage("42.")]
    messages += [UserMessage("Again"), broken, second, UserMessage("Now")]
    chat = call_prompt(messages, [add])
    assert [each["content"] for each in chat[-5:]] == [
        "What is 19 + 23?",
        '{"name": "add", "arguments": {"a":19,"b":23}}',
        "Again",
        '{"name": "add", "arguments": {}}',
        "Now",
    ]


def test_answer_prompt_has_only_the_question_and_its_results():
    history = [UserMessage("Earlier"), AssistantMessage("Yes"), QUESTION, CALL, RESULT]
    chat = answer_prompt(history)
    assert chat[-1]["content"] == "What is 19 + 23?\nResult: 42"
    assert chat[-2]["content"] == "The answer is 360."
    failed = ToolMessage(
        call_id="call_1", tool_name="add", tool_output="no", is_error=True
    )
    chat = answer_prompt([QUESTION, CALL, failed])
    assert chat[-1]["content"] == "What is 19 + 23?\nError: no"
    two = AssistantMessage(
        "", tool_calls=[ToolCall("a", "add", "{}"), ToolCall("b", "get_weather", "{}")]
    )
    results = [
        ToolMessage(call_id="a", tool_name="add", tool_output="1"),
        ToolMessage(call_id="b", tool_name="get_weather", tool_output='"wet"'),
    ]
    chat = answer_prompt([QUESTION, two, *results])
    assert chat[-1]["content"] == (
        'What is 19 + 23?\nResult of add: 1\nResult of get_weather: "wet"'
    )


def _chunk(finish=None, **delta):
    return {"choices": [{"delta": delta, "finish_reason": finish}]}


def _read(reply, *chunks):
    return [delta for each in chunks for delta in reply.feed(each)]


USAGE = {
    "choices": [],
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 8},
    },
}


def test_a_text_reply():
    reply = Reply(Usage(5, 1, 4))
    deltas = _read(
        reply,
        _chunk(role="assistant", content=None),
        _chunk(reasoning_content="Hm."),
        _chunk(content="Hel"),
        _chunk(content="lo\ud800"),
        _chunk("stop"),
        USAGE,
    )
    assert deltas == [
        ReasoningDelta("Hm."),
        TextDelta("Hel"),
        TextDelta("lo\ufffd"),
    ]
    assert reply.message([]) == AssistantMessage(
        "Hello\ufffd",
        reasoning="Hm.",
        usage=Usage(15, 3, 12),
        stop_reason="stop",
    )


def test_calls_come_in_pieces():
    reply = Reply()

    def piece(index, **function):
        return _chunk(tool_calls=[{"index": index, "function": function}])

    _read(
        reply,
        piece(0, name="add", arguments="{"),
        piece(0, arguments="}"),
        piece(1, name="now", arguments="{}"),
        _chunk("tool_calls"),
    )
    message = reply.message([QUESTION, CALL, RESULT])
    assert message.tool_calls == (
        ToolCall("call_2", "add", "{}"),
        ToolCall("call_3", "now", "{}"),
    )
    assert message.stop_reason == "tool_calls"


@pytest.mark.parametrize(("finish", "status"), [("length", "length"), (None, None)])
def test_a_cut_reply_is_an_error(finish, status):
    reply = Reply()
    call = [{"index": 0, "function": {"name": "add", "arguments": "{}"}}]
    _read(reply, _chunk(finish, tool_calls=call))
    with pytest.raises(ModelError) as caught:
        reply.message([])
    assert caught.value.code == "bad_response"
    assert caught.value.response_status == status


def test_call_ids_are_new_in_the_conversation():
    odd = AssistantMessage("", tool_calls=[ToolCall("call_2", "add", "{}")])
    assert new_call_ids([], 2) == ["call_1", "call_2"]
    assert new_call_ids([odd], 2) == ["call_3", "call_4"]
    assert new_call_ids([CALL, odd], 1) == ["call_3"]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("invalid_request_error", "invalid_request"),
        ("not_supported_error", "invalid_request"),
        ("server_error", "server_error"),
        ("unavailable_error", "server_error"),
        ("never_seen", "unknown"),
    ],
)
def test_error_chunks_are_mapped(kind, code):
    error = errors.chunk_error({"error": {"type": kind, "message": "why"}})
    assert error is not None
    assert (error.code, error.vendor_code) == (code, kind)
    assert "why" in error.message
    assert errors.chunk_error({"choices": []}) is None
    assert errors.chunk_error("text") is None


def test_other_errors_are_mapped():
    plain = errors.chunk_error({"error": "why"})
    assert plain is not None
    assert (plain.code, plain.vendor_code) == ("unknown", None)
    missing = errors.map_failure(ImportError("no module"))
    assert missing.code == "invalid_request"
    assert "pip install lighter-local" in missing.message
    known = ModelError("x", "aborted")
    assert errors.map_failure(known) is known


@pytest.mark.parametrize(
    ("properties", "known"),
    [
        ({"chat_template_caps": {"supports_tools": True}}, True),
        ({"chat_template_caps": {"supports_tools": False}}, False),
        ({"chat_template": "{% if tools %}"}, True),
        ({"chat_template": "{{ messages }}"}, False),
        ({}, False),
    ],
)
def test_templates_that_know_tools(properties, known):
    assert knows_tools(properties) is known
