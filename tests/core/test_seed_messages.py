"""Messages: roles, fields, defaults, immutability."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import get_args

import pytest

from lighter_core import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)

CALL = ToolCall("call_7", "add", '{"a":19,"b":23}')
ALL = [
    SystemMessage("s"),
    UserMessage("u"),
    AssistantMessage("a", reasoning="r", tool_calls=[CALL], usage=Usage(1, 2)),
    ToolMessage(call_id="c", tool_name="t", tool_output="1"),
    CALL,
]
BY_TYPE = pytest.mark.parametrize("message", ALL, ids=lambda m: type(m).__name__)


def test_roles_tell_messages_apart() -> None:
    """Each class has its role."""
    assert [m.role for m in ALL[:4]] == ["system", "user", "assistant", "tool"]  # type: ignore[union-attr]


def test_system_and_user_messages_have_content() -> None:
    """One positional argument."""
    assert SystemMessage("s").content == "s"
    assert UserMessage("u").content == "u"
    assert UserMessage("u").text == "u"


def test_assistant_message_defaults() -> None:
    """Without options there are no calls and no reasoning."""
    message = AssistantMessage("hi")
    assert message.content == "hi"
    assert message.tool_calls == ()
    assert message.reasoning is None
    assert message.usage is None
    assert message.stop_reason is None
    assert message.native is None


def test_assistant_message_with_calls_may_have_no_text() -> None:
    """Content is then empty."""
    message = AssistantMessage(tool_calls=[CALL])
    assert message.content == ""
    assert message.tool_calls == (CALL,)


def test_tool_call_has_id_name_and_unparsed_arguments() -> None:
    """Arguments are JSON text."""
    assert CALL.call_id == "call_7"
    assert CALL.tool_name == "add"
    assert CALL.arguments == '{"a":19,"b":23}'
    with pytest.raises(TypeError, match="arguments must be a str"):
        ToolCall("c", "add", {"a": 1})  # type: ignore[arg-type]


def test_tool_message_defaults_to_success() -> None:
    """`is_error` is false unless said otherwise."""
    message = ToolMessage(call_id="c", tool_name="t", tool_output="42")
    assert (message.call_id, message.tool_name, message.tool_output) == ("c", "t", "42")
    assert message.is_error is False
    failed = ToolMessage(call_id="c", tool_name="t", tool_output="x", is_error=True)
    assert failed.is_error is True


@BY_TYPE
def test_fields_cannot_be_set(message: object) -> None:
    """Messages are frozen."""
    for field in dataclasses.fields(message):  # type: ignore[arg-type]
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(message, field.name, "other")


def test_tool_calls_cannot_be_changed_in_place() -> None:
    """A list is taken as a tuple, so the caller's list stays the caller's."""
    calls = [CALL]
    message = AssistantMessage(tool_calls=calls)
    calls.clear()
    assert message.tool_calls == (CALL,)
    assert isinstance(message.tool_calls, tuple)


@BY_TYPE
def test_messages_compare_copy_and_pickle_by_value(message: object) -> None:
    """Copies are equal."""
    assert copy.copy(message) == message
    assert copy.deepcopy(message) == message
    assert pickle.loads(pickle.dumps(message)) == message
    assert dataclasses.replace(message) == message  # type: ignore[type-var]


@pytest.mark.parametrize(
    "make",
    [
        lambda: SystemMessage(7),
        lambda: UserMessage(7),
        lambda: UserMessage(["text"]),
        lambda: AssistantMessage(None),
        lambda: AssistantMessage("x", reasoning=7),
        lambda: AssistantMessage("x", tool_calls=["add"]),
        lambda: ToolMessage(call_id="c", tool_name="t", tool_output=42),
        lambda: ToolCall(7, "t"),
    ],
)
def test_fields_of_the_wrong_type_are_refused(make: object) -> None:
    """The mistake shows where the message is made."""
    with pytest.raises(TypeError, match="must"):
        make()  # type: ignore[operator]


def test_message_is_a_union_to_annotate_with() -> None:
    """`Message` stands for the four classes; it is not a class itself."""
    assert set(get_args(Message)) == {
        SystemMessage,
        UserMessage,
        AssistantMessage,
        ToolMessage,
    }
    assert not isinstance(Message, type)


def test_a_tool_round_trip_can_be_written_by_hand() -> None:
    """Call and result are linked by their id; `match` reads each by its class."""
    messages: list[Message] = [
        UserMessage("What is 19 + 23?"),
        AssistantMessage(tool_calls=[CALL]),
        ToolMessage(call_id=CALL.call_id, tool_name="add", tool_output="42"),
        AssistantMessage("It is 42."),
    ]
    read: list[object] = []
    for message in messages:
        match message:
            case ToolMessage(tool_output=output):
                read.append(output)
            case UserMessage() | AssistantMessage() | SystemMessage():
                read.append(message.content)
    assert read == ["What is 19 + 23?", "", "42", "It is 42."]


def test_user_content_may_have_parts() -> None:
    """Text, images and files stand beside each other."""
    message = UserMessage(
        [
            TextPart("What "),
            ImagePart(url="https://example.test/cat.png"),
            FilePart(b"%PDF", media_type="application/pdf", name="a.pdf"),
            TextPart("is this?"),
        ]
    )
    assert isinstance(message.content, tuple)
    assert message.text == "What is this?"
    with pytest.raises(ValueError, match="either data or url"):
        ImagePart()


def test_usage_adds_up() -> None:
    """Token counts of several calls are summed field by field."""
    assert Usage(1, 2, 3, 4, 5) + Usage(10, 20, 30, 40, 50) == Usage(11, 22, 33, 44, 55)
    assert Usage(1, 2).total_tokens == 3
