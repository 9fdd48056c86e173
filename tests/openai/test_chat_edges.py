"""Odd replies of servers that speak Chat Completions, piece by piece."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.chat_streams import body, call_chunk, chunk, sse

from lighter_core import AssistantMessage, ModelError, ToolCall, ToolCallDelta
from lighter_core.adapters import EventStreamSplitter, as_list
from lighter_openai._chat_calls import Turn
from lighter_openai._chat_decode import decode_chat_body
from lighter_openai._chat_stream import ChatStreamDecoder
from lighter_openai._dialect import CHAT, Target

TARGET = Target(CHAT, "http://127.0.0.1/v1", "m")


def decode(*events: Any) -> tuple[list[Any], AssistantMessage]:
    splitter, shown = EventStreamSplitter(), []
    decoder = ChatStreamDecoder(TARGET, Turn())
    for data in splitter.feed(sse(events)):
        shown += decoder.feed(data)
    shown += decoder.finish()
    assert decoder.message is not None
    return shown, decoder.message


def whole(**message: Any) -> AssistantMessage:
    text = json.dumps(body(message), ensure_ascii=False)
    return decode_chat_body(text.encode(), TARGET, Turn())


def native(message: AssistantMessage) -> dict[str, Any]:
    assert message.native is not None
    (found,) = as_list(json.loads(message.native.items)) or ()
    return found


@pytest.mark.parametrize("content", [5, True, {"text": "x"}])
def test_content_that_is_neither_text_nor_parts_is_a_bad_response(content: Any) -> None:
    with pytest.raises(ModelError, match="the content is") as caught:
        whole(content=content)
    assert caught.value.code == "bad_response"
    with pytest.raises(ModelError, match="the content is") as caught:
        decode(chunk({"content": content}), chunk({}, "stop"))
    assert caught.value.code == "bad_response"


def test_thoughts_among_the_parts_of_the_content_are_reasoning() -> None:
    """As a text, and as parts of their own; parts without text say nothing."""
    parts = [
        {"type": "thinking", "thinking": "First. "},
        {"type": "thinking", "thinking": [{"type": "text", "text": "Then."}, {"n": 1}]},
        {"type": "text", "text": "Hi"},
        {"type": "text"},
    ]
    for message in (
        whole(content=parts),
        decode(*[chunk({"content": [each]}) for each in parts], chunk({}, "stop"))[1],
    ):
        assert message.reasoning == "First. Then."
        assert message.content == "Hi"


def test_thoughts_in_a_field_and_in_the_content_are_read_once() -> None:
    """Servers that send both say the same in each."""
    thought = [{"type": "thinking", "thinking": "Hm."}]
    _, message = decode(
        chunk({"reasoning_content": "Hm."}),
        chunk({"content": thought}),
        chunk({"content": "Hi"}, "stop"),
    )
    assert message.reasoning == "Hm."
    assert message.content == "Hi"


@pytest.mark.parametrize("choice", ["x", 5, None, []])
def test_a_choice_that_is_no_object_is_a_bad_response(choice: Any) -> None:
    with pytest.raises(ModelError, match="a choice is") as caught:
        decode({**chunk(), "choices": [choice]})
    assert caught.value.code == "bad_response"


def test_an_error_inside_a_choice_ends_the_reply() -> None:
    """Some routers report the upstream's failure there, with status 200."""
    broken = chunk({"content": "Hi"})
    broken["choices"][0]["error"] = {"message": "upstream is gone", "code": 502}
    with pytest.raises(ModelError, match="upstream is gone"):
        decode(chunk({"content": "a"}), broken, chunk({}, "stop"))


def test_a_later_null_takes_nothing_from_an_entry_of_reasoning() -> None:
    """Pieces of an entry carry its signature once and null elsewhere."""
    entry = {"index": 0, "type": "reasoning.text"}
    _, message = decode(
        chunk({"reasoning_details": [{**entry, "text": "a", "signature": "s"}]}),
        chunk({"reasoning_details": [{**entry, "text": "b", "signature": None}]}),
        chunk({"content": "Hi"}, "stop"),
    )
    assert native(message)["reasoning_details"] == [
        {**entry, "text": "ab", "signature": "s"}
    ]


def test_a_name_again_behind_arguments_that_only_look_whole_goes_on() -> None:
    """Text that ends with a brace and does not parse is the call's middle."""
    function = {"name": "add", "arguments": '{"a": {}'}
    shown, message = decode(
        call_chunk(id="c1", function=function),
        call_chunk(function={"name": "add", "arguments": "}"}),
        chunk({}, "tool_calls"),
    )
    assert message.tool_calls == (ToolCall("c1", "add", '{"a": {}}'),)
    assert "".join(each.arguments for each in shown) == '{"a": {}}'

    shown, message = decode(
        call_chunk(id="c1", function={"name": "add", "arguments": '{"a": "}'}),
        call_chunk(function={"name": "add", "arguments": '{"}'}),
        chunk({}, "tool_calls"),
    )
    assert message.tool_calls == (ToolCall("c1", "add", '{"a": "}{"}'),)


def test_half_a_character_at_the_end_of_arguments_is_shown_as_it_is_kept() -> None:
    """The deltas join to the arguments of the call, to the last character."""
    odd = call_chunk(id="c1", function={"name": "add", "arguments": '{"a": "\ud83d'})
    text = json.dumps(odd)
    shown, message = decode(text, chunk({}, "tool_calls"))
    (made,) = message.tool_calls
    pieces = [each.arguments for each in shown if isinstance(each, ToolCallDelta)]
    assert "".join(pieces) == made.arguments
    assert made.arguments.startswith('{"a": "')
    made.arguments.encode()


def test_what_else_a_function_says_in_pieces_goes_back() -> None:
    """Services that sign a call do it beside its name; null takes nothing back."""
    _, message = decode(
        call_chunk(id="c1", function={"name": "add", "signature": "s", "x": None}),
        call_chunk(function={"arguments": "{}", "signature": None}),
        chunk({}, "tool_calls"),
    )
    (entry,) = native(message)["tool_calls"]
    assert entry["function"] == {"signature": "s", "name": "add", "arguments": "{}"}


def test_fields_that_say_nothing_are_not_sent_back() -> None:
    """Many servers write every field that they know into each piece."""
    _, message = decode(
        chunk({"content": "Hi", "refusal": "", "annotations": [], "audio": {}}),
        chunk({"citations": ["a"]}, "stop"),
    )
    assert native(message) == {
        "role": "assistant",
        "content": "Hi",
        "citations": ["a"],
    }


def test_entries_that_are_no_objects_stay_as_they_came() -> None:
    """Between pieces of an entry one ends it: what follows begins another."""
    entry = {"index": 0, "type": "reasoning.text"}
    _, message = decode(
        chunk({"reasoning_details": [{**entry, "text": "a"}, "odd", 5]}),
        chunk({"reasoning_details": [{**entry, "text": "b"}]}),
        chunk({"content": "Hi"}, "stop"),
    )
    assert native(message)["reasoning_details"] == [
        {**entry, "text": "a"},
        "odd",
        5,
        {**entry, "text": "b"},
    ]
