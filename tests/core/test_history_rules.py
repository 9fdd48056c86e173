"""What a check of a history finds and what a repair does, example by example."""

from __future__ import annotations

from typing import Any

import pytest

from lighter_core import (
    AssistantMessage,
    Message,
    ModelError,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    check_history,
    repair_history,
)
from lighter_core.history import (
    INTERRUPTED,
    HistoryProblem,
    interrupted_result,
    repair_with_origins,
    require_valid_history,
)

GO = UserMessage("go")
END = AssistantMessage("ok")


def asks(*ids: str) -> AssistantMessage:
    return AssistantMessage(
        "",
        tool_calls=[ToolCall(each, "t", f'{{"n": {n}}}') for n, each in enumerate(ids)],
    )


def gives(call_id: str, output: str = "1") -> ToolMessage:
    return ToolMessage(call_id=call_id, tool_name="t", tool_output=output)


def none(call_id: str) -> ToolMessage:
    return ToolMessage(
        call_id=call_id, tool_name="t", tool_output=INTERRUPTED, is_error=True
    )


def stray(index: int, call_id: str) -> HistoryProblem:
    text = f"the tool result {call_id!r} answers no call that waits for one here"
    return HistoryProblem(f"messages[{index}]", text, call_id)


def unanswered(index: int, number: int, call_id: str) -> HistoryProblem:
    text = f"the tool call {call_id!r} has no result directly after it"
    return HistoryProblem(f"messages[{index}].tool_calls[{number}]", text, call_id)


def twice(index: int, number: int, call_id: str) -> HistoryProblem:
    text = f"the call id {call_id!r} is used twice in one message"
    return HistoryProblem(f"messages[{index}].tool_calls[{number}]", text, call_id)


def empty(index: int, number: int) -> HistoryProblem:
    text = "a tool call has an empty id"
    return HistoryProblem(f"messages[{index}].tool_calls[{number}]", text, "")


def dropped(call_id: str) -> str:
    return (
        f"dropped: the tool result {call_id!r} answers no call that waits for one here"
    )


def closed(call_id: str) -> str:
    return f"closed: the call {call_id!r} had no result"


def moved(call_id: str) -> str:
    return f"moved: the result {call_id!r} stands behind its call now"


def renamed(old: str, new: str) -> str:
    return f"renamed: the call id {old!r} became {new!r}"


# What is given; what the check says; the messages and the notes of the repair; where
# the repaired messages come from: a place, or a call by its two numbers.
EXAMPLES: dict[
    str, tuple[list[Message], list[Any], list[Message], list[str], list[Any]]
] = {
    "nothing": ([], [], [], [], []),
    "valid": (
        [SystemMessage("s"), GO, asks("a", "b"), gives("a"), gives("b"), END, GO],
        [],
        [SystemMessage("s"), GO, asks("a", "b"), gives("a"), gives("b"), END, GO],
        [],
        [0, 1, 2, 3, 4, 5, 6],
    ),
    "one id in two rounds": (
        [asks("a"), gives("a", "1"), asks("a"), gives("a", "2")],
        [],
        [asks("a"), gives("a", "1"), asks("a"), gives("a", "2")],
        [],
        [0, 1, 2, 3],
    ),
    "results without calls": (
        [gives("x"), GO, gives("y"), END],
        [stray(0, "x"), stray(2, "y")],
        [GO, END],
        [dropped("x"), dropped("y")],
        [1, 3],
    ),
    "a second result": (
        [asks("a"), gives("a", "1"), gives("a", "2"), GO, asks("b")],
        [stray(2, "a"), unanswered(4, 0, "b")],
        [asks("a"), gives("a", "1"), GO, asks("b"), none("b")],
        [dropped("a"), closed("b")],
        [0, 1, 3, 4, (4, 0)],
    ),
    "no result at the end": (
        [GO, asks("a", "b"), gives("a")],
        [unanswered(1, 1, "b")],
        [GO, asks("a", "b"), gives("a"), none("b")],
        [closed("b")],
        [0, 1, 2, (1, 1)],
    ),
    "no result of the first": (
        [asks("a", "b"), gives("b"), GO],
        [unanswered(0, 0, "a"), stray(1, "b"), unanswered(0, 1, "b")],
        [asks("a", "b"), none("a"), gives("b"), GO],
        [closed("a"), moved("b")],
        [0, (0, 0), 1, 2],
    ),
    "results in another order": (
        [asks("a", "b"), gives("b"), gives("a")],
        [stray(1, "b"), unanswered(0, 1, "b")],
        [asks("a", "b"), gives("a"), gives("b")],
        [moved("a"), moved("b")],
        [0, 2, 1],
    ),
    "a result behind another message": (
        [asks("a"), GO, gives("a"), END],
        [unanswered(0, 0, "a"), stray(2, "a")],
        [asks("a"), gives("a"), GO, END],
        [moved("a")],
        [0, 2, 1, 3],
    ),
    "a result before its call": (
        [gives("a"), asks("a")],
        [stray(0, "a"), unanswered(1, 0, "a")],
        [asks("a"), none("a")],
        [dropped("a"), closed("a")],
        [1, (1, 0)],
    ),
    "a result behind a later call of its id": (
        [asks("a"), asks("a"), gives("a"), gives("a", "2")],
        [unanswered(0, 0, "a"), stray(3, "a")],
        [asks("a"), none("a"), asks("a"), gives("a")],
        [closed("a"), dropped("a")],
        [0, (0, 0), 1, 2],
    ),
    "an empty id": (
        [asks(""), gives("")],
        [empty(0, 0)],
        [asks("call_1"), gives("call_1")],
        [renamed("", "call_1")],
        [0, 1],
    ),
    "empty ids, and one that looks like theirs": (
        [asks("call_1", "", ""), gives("call_1"), gives(""), gives("")],
        [empty(0, 1), empty(0, 2)],
        [
            asks("call_1", "call_2", "call_3"),
            gives("call_1"),
            gives("call_2"),
            gives("call_3"),
        ],
        [renamed("", "call_2"), renamed("", "call_3")],
        [0, 1, 2, 3],
    ),
    "ids given twice": (
        [asks("a", "a", "a_1", "a"), gives("a", "1"), gives("a", "2"), gives("a_1")],
        [twice(0, 1, "a"), twice(0, 3, "a"), unanswered(0, 3, "a")],
        [
            asks("a", "a_1", "a_1_1", "a_2"),
            gives("a", "1"),
            gives("a_1", "2"),
            gives("a_1_1"),
            none("a_2"),
        ],
        [
            renamed("a", "a_1"),
            renamed("a_1", "a_1_1"),
            renamed("a", "a_2"),
            closed("a_2"),
        ],
        [0, 1, 2, 3, (0, 3)],
    ),
    "an empty id without a result": (
        [asks("a", ""), gives("a"), GO, asks("b"), gives("b")],
        [empty(0, 1), unanswered(0, 1, "")],
        [asks("a", "call_1"), gives("a"), none("call_1"), GO, asks("b"), gives("b")],
        [renamed("", "call_1"), closed("call_1")],
        [0, 1, (0, 1), 2, 3, 4],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_check_says_what_is_wrong_and_where(name: str) -> None:
    """Every problem is found, not the first one only."""
    given, problems, *_ = EXAMPLES[name]
    found = check_history(tuple(given))
    assert sorted(found, key=str) == sorted(problems, key=str)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_repair_says_what_it_did_and_where_messages_come_from(name: str) -> None:
    """Notes are for people; places are for those who explain a history."""
    given, _, messages, notes, places = EXAMPLES[name]
    repaired, origins = repair_with_origins(given)
    assert repaired.messages == messages
    assert repaired.notes == notes
    assert repair_history(iter(given)) == repaired
    assert origins == [
        f"messages[{place}]"
        if isinstance(place, int)
        else "messages[{}].tool_calls[{}]".format(*place)
        for place in places
    ]


def test_the_second_of_two_equal_calls_is_told_as_the_second() -> None:
    """Its place is counted; another one may look the same."""
    same = AssistantMessage("", tool_calls=[ToolCall("a", "t"), ToolCall("a", "t")])
    found = check_history([same, gives("a")])
    assert found == [twice(0, 1, "a"), unanswered(0, 1, "a")]


def test_a_closing_result_says_what_it_is_told_to() -> None:
    """Its text is the caller's, or that the run was interrupted."""
    call = ToolCall("c", "t")
    assert interrupted_result(call) == none("c")
    assert interrupted_result(call, "stopped").tool_output == "stopped"
    assert interrupted_result(call, "stopped").is_error


@pytest.mark.parametrize("value", [None, 5, "text", {"a": 1}, GO])
def test_other_things_are_no_history(value: Any) -> None:
    """They are told by the name of their type, before anything is done."""
    kind = type(value).__name__
    told = f"^a history is a sequence of messages, got {kind}$"
    with pytest.raises(TypeError, match=told):
        check_history(value)


@pytest.mark.parametrize("value", [None, 5, "text", {"role": "user"}])
def test_other_things_are_no_messages(value: Any) -> None:
    """At each place of a history, also when nothing would have looked at them."""
    told = f"^a history holds messages, got {type(value).__name__}$"
    for history in ([value], [GO, value], [asks("a"), gives("a"), value]):
        with pytest.raises(TypeError, match=told):
            check_history(history)
        with pytest.raises(TypeError, match=told):
            repair_history(history)


def test_a_faulty_history_is_refused_with_its_first_problem() -> None:
    """The error names the provider, and what helps."""
    require_valid_history([GO, END], provider="acme")
    history = [GO, asks("a"), GO, gives("a")]
    with pytest.raises(ModelError) as caught:
        require_valid_history(history, provider="acme")
    assert caught.value.code == "invalid_request"
    assert caught.value.provider == "acme"
    assert str(caught.value) == (
        "the tool call 'a' has no result directly after it (messages[1].tool_calls[0]):"
        " every service refuses such a history; pass it through"
        " lighter_core.repair_history first, or let Agent.run do so"
    )


def test_subclasses_of_messages_are_messages():
    class Tagged(UserMessage):
        """A user's own kind."""

    history = [Tagged("a"), AssistantMessage("b"), Tagged("c")]
    assert check_history(history) == []
    assert repair_history(history).messages == history
    assert ModelRequest(history).messages == history
