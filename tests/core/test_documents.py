"""Messages as JSON documents: nothing is lost, nothing foreign is taken."""

from __future__ import annotations

import copy
import json
import pickle
import runpy
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import given, settings
from support.histories import ANY_HISTORIES, valid_histories
from support.torture import examples

from lighter_core import (
    AssistantMessage,
    HistoryError,
    ImagePart,
    Message,
    NativeContext,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    check_history,
    messages_from_json,
    messages_to_json,
    repair_history,
)

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = Path(__file__).parents[2] / "docs" / "history-v1.schema.json"


@given(ANY_HISTORIES)
@settings(max_examples=examples(300), deadline=None)
def test_a_document_gives_the_same_messages_and_the_same_text(
    history: list[Message],
) -> None:
    text = messages_to_json(history)
    again = messages_from_json(text)
    assert again == history
    assert messages_to_json(again) == text
    assert messages_from_json(text.encode("utf-8")) == history
    for before, after in zip(history, again, strict=True):
        if isinstance(before, AssistantMessage) and isinstance(after, AssistantMessage):
            assert after.native_intact() == before.native_intact()


@given(ANY_HISTORIES)
@settings(max_examples=examples(100), deadline=None)
def test_copies_and_pickles_lose_nothing(history: list[Message]) -> None:
    assert copy.deepcopy(history) == history
    assert [copy.copy(each) for each in history] == history
    assert pickle.loads(pickle.dumps(history)) == history


FOLLOWS = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))


@given(ANY_HISTORIES)
@settings(max_examples=examples(100), deadline=None)
def test_documents_follow_the_published_schema(history: list[Message]) -> None:
    FOLLOWS.validate(json.loads(messages_to_json(history)))


@given(ANY_HISTORIES)
@settings(max_examples=examples(100), deadline=None)
def test_repairing_and_writing_go_together(history: list[Message]) -> None:
    repaired = repair_history(history).messages
    assert check_history(messages_from_json(messages_to_json(repaired))) == []


@given(valid_histories())
@settings(max_examples=examples(100), deadline=None)
def test_repair_keeps_a_valid_prefix_as_it_is(history: list[Message]) -> None:
    """From each prefix of messages: valid again, and what was valid is the same."""
    for end in range(len(history) + 1):
        prefix = history[:end]
        valid = end
        while check_history(history[:valid]):
            valid -= 1
        repaired = repair_history(prefix).messages
        assert check_history(repaired) == []
        assert repaired[:valid] == history[:valid]
        assert repair_history(repaired).messages == repaired


# The form.


def test_the_form_of_each_message_is_fixed() -> None:
    """The golden file of version 1 is written again letter by letter."""
    text = (GOLDEN / "history-v1.json").read_text("utf-8").rstrip("\n")
    messages = messages_from_json(text)
    assert {type(each).__name__ for each in messages} == {
        "SystemMessage",
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
    }
    assert messages_to_json(messages) == text
    replies = [each for each in messages if isinstance(each, AssistantMessage)]
    assert any(each.native_intact() for each in replies)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("history-*.json")), ids=str)
def test_every_released_form_can_be_read(path: Path) -> None:
    assert messages_from_json(path.read_bytes())


def test_the_table_has_every_field_of_every_class() -> None:
    """A class that gains a field needs a decision about the documents."""
    from lighter_core._document_schema import document_schema

    found: dict[type, set[str]] = {}

    def walk(node: object) -> None:
        if isinstance(node, dict):
            table = cast("dict[str, object]", node)
            if table.get("type") == "dataclass":
                found[cast("type", table["cls"])] = set(
                    cast("list[str]", table["fields"])
                )
            for value in table.values():
                walk(value)
        elif isinstance(node, list | tuple):
            for value in cast("list[object]", node):
                walk(value)

    walk(document_schema(1))
    assert len(found) == 10  # four messages, three parts, call, usage, native context
    for cls, names in found.items():
        assert names == {each.name for each in fields(cls)}, cls


def test_what_holds_its_default_is_left_out() -> None:
    text = messages_to_json(
        [
            UserMessage("hi"),
            AssistantMessage("", tool_calls=[ToolCall("c", "t")], usage=Usage(1, 2)),
            ToolMessage(call_id="c", tool_name="t", tool_output="3"),
        ]
    )
    assert text == (
        '{"version":1,"messages":['
        '{"role":"user","content":"hi"},'
        '{"role":"assistant","content":"",'
        '"tool_calls":[{"call_id":"c","tool_name":"t","arguments":""}],'
        '"usage":{"input_tokens":1,"output_tokens":2}},'
        '{"role":"tool","call_id":"c","tool_name":"t","tool_output":"3"}]}'
    )


def test_text_is_readable_and_lone_surrogates_are_escaped() -> None:
    text = messages_to_json([UserMessage("é😀\ud800x"), AssistantMessage("\udfff")])
    assert "é😀\\ud800x" in text
    assert text.encode("utf-8")
    assert messages_from_json(text) == [
        UserMessage("é😀\ud800x"),
        AssistantMessage("\udfff"),
    ]


def test_parts_and_surrogates_in_one_document() -> None:
    """The slower way, which knows surrogates, reads the same form."""
    history: list[Message] = [
        UserMessage([ImagePart(b"\x00\xff", media_type="image/png")]),
        AssistantMessage("\ud800", usage=Usage(1, 2), tool_calls=[ToolCall("a", "b")]),
    ]
    assert messages_from_json(messages_to_json(history)) == history


def test_halves_of_a_pair_come_back_joined() -> None:
    assert messages_from_json(messages_to_json([UserMessage("\ud83d\ude00")])) == [
        UserMessage("😀")
    ]


# What is refused.

REFUSED = {
    "": (None, "not JSON"),
    "{": (None, "not JSON"),
    "[]": ("", "the document: Input should be an object"),
    "{}": ("version", "version must be 1"),
    '{"version":2,"messages":[],"new":1}': ("version", "newer version"),
    '{"version":true,"messages":[]}': ("version", "version must be 1"),
    '{"version":1.0,"messages":[]}': ("version", "version must be 1"),
    '{"version":1}': ("messages", "required"),
    '{"version":1,"messages":[],"new":1}': ("new", "not known"),
    '{"version":1,"messages":{}}': ("messages", "valid array"),
    '{"version":1,"messages":[1]}': ("messages[0]", "object"),
    '{"version":1,"messages":[{"role":"user","content":"a"},{}]}': (
        "messages[1]",
        "role",
    ),
    '{"version":1,"messages":[{"role":"root","content":"a"}]}': ("messages[0]", "root"),
    '{"version":1,"messages":[{"role":"user","content":"a","new":1}]}': (
        "messages[0].new",
        "not known",
    ),
    '{"version":1,"messages":[{"role":"user","content":1}]}': (
        "messages[0].content",
        "valid",
    ),
    '{"version":1,"messages":[{"role":"user","content":[{"type":"text"}]}]}': (
        "messages[0].content[0].text",
        "required",
    ),
    '{"version":1,"messages":[{"role":"user","content":[{"type":"image"}]}]}': (
        "messages[0].content[0]",
        "needs either data or url",
    ),
    '{"version":1,"messages":[{"role":"user","content":[{"type":"file","data":"@",'
    '"media_type":"a/b"}]}]}': ("messages[0].content[0].data", "base64"),
    '{"version":1,"messages":[{"role":"assistant","content":"","tool_calls":[{'
    '"call_id":"a","tool_name":"b","arguments":{}}]}]}': (
        "messages[0].tool_calls[0].arguments",
        "string",
    ),
    '{"version":1,"messages":[{"role":"assistant","content":"","usage":{'
    '"input_tokens":true,"output_tokens":1}}]}': (
        "messages[0].usage.input_tokens",
        "integer",
    ),
    '{"version":1,"messages":[{"role":"assistant","content":"","usage":{'
    '"input_tokens":-1,"output_tokens":1}}]}': (
        "messages[0].usage.input_tokens",
        "0",
    ),
    '{"version":1,"messages":[{"role":"assistant","content":"","native":{"v":1,'
    '"provider":"","endpoint":"","api":"","model":"","items":"{}","seal":""}}]}': (
        "messages[0].native.items",
        "array",
    ),
    '{"version":1,"messages":[{"role":"tool","call_id":"a","tool_name":"b",'
    '"tool_output":"c","is_error":1}]}': ("messages[0].is_error", "boolean"),
    '{"version":1,"messages":NaN}': ("messages", "valid array"),
    '{"version":1,"messages":[]} x': (None, "not JSON"),
}


@pytest.mark.parametrize("document", REFUSED)
def test_faults_are_refused_with_their_place(document: str) -> None:
    path, words = REFUSED[document]
    with pytest.raises(HistoryError) as caught:
        messages_from_json(document)
    assert caught.value.path == path
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "document", [d for d in REFUSED if d.startswith('{"version":1')]
)
def test_faults_are_refused_beside_surrogates_too(document: str) -> None:
    """Documents with escapes of surrogates are read another way, with equal results."""
    first = '"messages":[{"role":"user","content":"\\ud800"},'
    document = document.replace('"messages":[{', f"{first}{{")
    with pytest.raises(HistoryError):
        messages_from_json(document)


def test_wrong_values_are_refused_when_written() -> None:
    with pytest.raises(TypeError, match="got str"):
        messages_to_json(["hi"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="str or bytes, got list"):
        messages_from_json([])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Usage\.input_tokens"):
        Usage(-1)
    with pytest.raises(ValueError, match=r"Usage\.output_tokens"):
        Usage(1, True)


UNREADABLE = {
    "no JSON": "nonsense",
    "no array": "{}",
    "blank": "",
    "not a number of JSON": "[NaN]",
    "too deep": "[" * 100_000 + "]" * 100_000,
}


@pytest.mark.parametrize("items", UNREADABLE.values(), ids=UNREADABLE)
def test_what_could_not_be_read_again_is_not_written(items: str) -> None:
    """It would be found out when the conversation is needed."""
    native = NativeContext(
        provider="p", endpoint="e", api="a", model="m", items=items, seal="s"
    )
    history = [UserMessage("hi"), AssistantMessage("secret", native=native)]
    with pytest.raises(HistoryError, match="no document can") as caught:
        messages_to_json(history)
    assert caught.value.path == "messages[1]"
    assert "secret" not in str(caught.value)


def test_numbers_that_python_does_not_write_are_refused_with_their_place() -> None:
    usage = Usage(10**5000, 0)
    with pytest.raises(HistoryError) as caught:
        messages_to_json([UserMessage("hi"), AssistantMessage("a", usage=usage)])
    assert caught.value.path == "messages[1]"


@pytest.mark.parametrize(
    "field", [{"v": "1"}, {"v": -1}, {"v": True}, {"items": []}, {"provider": None}]
)
def test_native_context_checks_its_fields(field: dict[str, Any]) -> None:
    """As the other classes do: a wrong one would be found when it is stored or read."""
    given: dict[str, Any] = {
        **dict.fromkeys(("provider", "endpoint", "api", "model", "seal"), "x"),
        "items": "[]",
        **field,
    }
    with pytest.raises(
        (TypeError, ValueError), match=f"NativeContext.{next(iter(field))}"
    ):
        NativeContext(**given)


def test_long_documents_are_refused_unread() -> None:
    with pytest.raises(HistoryError, match="more than max_bytes=10"):
        messages_from_json('{"version":1,"messages":[]}', max_bytes=10)


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"version":1,"messages":['])
def test_deep_documents_are_refused(opening: str) -> None:
    with pytest.raises(HistoryError):
        messages_from_json(opening * 100_000)


def test_deep_native_items_are_refused() -> None:
    native = {
        "v": 1,
        "provider": "p",
        "endpoint": "e",
        "api": "a",
        "model": "m",
        "items": "[" * 100_000 + "]" * 100_000,
        "seal": "s",
    }
    message = {"role": "assistant", "content": "", "native": native}
    with pytest.raises(HistoryError, match="too deep") as caught:
        messages_from_json(json.dumps({"version": 1, "messages": [message]}))
    assert caught.value.path == "messages[0].native.items"


def test_the_published_schema_follows_the_table() -> None:
    """`python scripts/history_schema.py` writes the file again."""
    place = SCHEMA.parents[1] / "scripts" / "history_schema.py"
    written = runpy.run_path(str(place))["rendered"]()
    assert SCHEMA.read_text("utf-8") == written
