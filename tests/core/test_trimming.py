"""Histories that have become too long."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.histories import valid_histories
from support.torture import examples

from lighter_core import (
    Agent,
    AssistantMessage,
    ImagePart,
    Message,
    ModelRequest,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    check_history,
    hookimpl,
)
from lighter_core._trimming import size_of
from lighter_core.history import TrimmedHistory, trim
from lighter_core.messages import seal_native
from lighter_core.testing import FakeProvider


def sealed(message: AssistantMessage, provider: str = "claude") -> AssistantMessage:
    return seal_native(
        message, provider=provider, endpoint="e", api="a", model="m", items="[]"
    )


def conversation(turns: int, rounds: int = 1, size: int = 10) -> list[Message]:
    history: list[Message] = [SystemMessage("s" * size)]
    for turn in range(turns):
        history.append(UserMessage(f"{turn}".ljust(size, "u")))
        for number in range(rounds):
            call = ToolCall(f"c{turn}-{number}", "t", "{}")
            history.append(sealed(AssistantMessage("a" * size, tool_calls=[call])))
            history.append(
                ToolMessage(call_id=call.call_id, tool_name="t", tool_output="r" * size)
            )
        history.append(sealed(AssistantMessage("b" * size)))
    return history


def total(messages: Sequence[Message]) -> int:
    return sum(size_of(each) for each in messages)


def test_what_fits_stays_as_it_is() -> None:
    history = conversation(3)
    found = trim(history, max_size=total(history))
    assert found == TrimmedHistory(history, [], [])
    assert all(a is b for a, b in zip(found.messages, history, strict=True))


def test_whole_turns_go_and_the_head_stays() -> None:
    history = [*conversation(10), UserMessage("now")]
    found = trim(history, max_size=200)
    assert found.messages[0] is history[0]
    assert isinstance(found.messages[1], UserMessage)
    assert check_history(found.messages) == []
    assert total(found.messages) <= 200
    assert found.messages[-1] is history[-1]
    assert len(found.messages) + len(found.dropped) == len(history)
    assert (
        found.notes[0]
        == f"left out the {len(found.dropped)} oldest messages: too large"
    )


def test_rounds_of_the_last_turn_go_when_it_is_too_large_alone() -> None:
    history = conversation(1, rounds=20)[:-1]  # the model is about to be asked
    found = trim(history, max_size=200)
    assert found.messages[:2] == history[:2]
    assert check_history(found.messages) == []
    assert total(found.messages) <= 200
    assert found.messages[-2:] == history[-2:]


def test_the_last_round_stays_however_large() -> None:
    history = conversation(1, rounds=3, size=1000)[:-1]
    found = trim(history, max_size=50)
    assert [each.role for each in found.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]


def test_context_bound_to_what_went_is_left_out_and_later_one_is_kept() -> None:
    history: list[Message] = []
    for turn in range(12):
        history += [UserMessage("u" * 10), sealed(AssistantMessage(f"{turn:10}"))]
    history.append(UserMessage("u" * 10))
    found = trim(history, max_size=100)
    natives = [m.native for m in found.messages if isinstance(m, AssistantMessage)]
    assert None in natives
    assert natives[-1] is not None
    first_kept = next(n for n, each in enumerate(natives) if each is not None)
    assert None not in natives[first_kept:]  # a contiguous head has lost it
    assert any("bound to messages that were left out" in note for note in found.notes)
    free = trim(history, max_size=100, bound=())
    assert all(m.native for m in free.messages if isinstance(m, AssistantMessage))


def requests(history: Sequence[Message]) -> list[int]:
    """Return where the model was asked: before each reply, and at the end."""
    return [
        *(n for n, each in enumerate(history) if isinstance(each, AssistantMessage)),
        len(history),
    ]


@given(valid_histories(), st.integers(1, 120), st.sampled_from([0.25, 0.5, 1.0]))
@settings(max_examples=examples(300), deadline=None)
def test_every_cut_is_valid_and_the_prefix_changes_at_cuts_only(
    history: list[Message], largest: int, keep: float
) -> None:
    before: TrimmedHistory | None = None
    for end in requests(history):
        found = trim(history[:end], max_size=largest, keep=keep)
        assert check_history(found.messages) == []
        assert trim(history[:end], max_size=largest, keep=keep) == found
        if before is not None and len(found.dropped) == len(before.dropped):
            assert found.messages[: len(before.messages)] == before.messages
        if before is not None:
            gone = {id(each) for each in before.dropped}
            assert gone <= {id(each) for each in found.dropped}
        if total(found.messages) > largest:  # nothing more could go
            rounds = [m for m in found.messages if isinstance(m, AssistantMessage)]
            assert len(rounds) <= 1
            assert sum(isinstance(m, UserMessage) for m in found.messages) <= 1
        before = found


@given(valid_histories(), st.integers(1, 120))
@settings(max_examples=examples(200), deadline=None)
def test_trimming_twice_is_trimming_once(history: list[Message], largest: int) -> None:
    found = trim(history, max_size=largest)
    if total(found.messages) <= largest:
        assert trim(found.messages, max_size=largest).dropped == []


def test_sizes() -> None:
    assert size_of(UserMessage("four")) == 4
    parts = [TextPart("abc"), ImagePart(b"x" * 10**5, media_type="image/png")]
    assert size_of(UserMessage(parts)) == 4003
    call = ToolCall("id", "name", '{"a":1}')
    assert size_of(AssistantMessage("ab", reasoning="c", tool_calls=[call])) == 14
    assert size_of(ToolMessage(call_id="i", tool_name="n", tool_output="xyz")) == 3


def test_sizes_can_be_tokens() -> None:
    history = conversation(4)
    found = trim(history, max_size=5, size=lambda _: 1)
    assert len(found.messages) <= 5


@pytest.mark.parametrize(("largest", "keep"), [(0, 0.5), (10, 0), (10, 1.5), (-1, 1)])
def test_senseless_limits_are_refused(largest: int, keep: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        trim([], max_size=largest, keep=keep)


def test_a_long_history_is_cut_in_linear_work() -> None:
    """100,000 messages: a quadratic way would not end."""
    asked = 0

    def size(message: Message) -> int:
        nonlocal asked
        asked += 1
        return size_of(message)

    history = conversation(25_000)
    found = trim(history, max_size=1000, size=size)
    assert total(found.messages) <= 1000
    assert asked == len(history)


def test_in_a_hook_each_request_fits_and_the_run_keeps_all() -> None:
    class Fit:
        @hookimpl
        def before_model(self, request: ModelRequest) -> ModelRequest:
            kept = trim(request.messages, max_size=300).messages
            return ModelRequest(kept, tool_specs=request.tool_specs)

    provider = FakeProvider(["x" * 50] * 20)
    agent = Agent(provider, hooks=[Fit()])
    history: list[Message] = []
    for turn in range(20):
        history.append(UserMessage(f"{turn}" * 10))
        history += agent.run_sync(history).messages
    assert len(history) == 40
    assert all(total(request.messages) <= 300 for request in provider.requests)
    heads = [request.messages[1] for request in provider.requests]
    changes = sum(a != b for a, b in pairwise(heads))
    assert changes <= 8  # cut rarely, not at each request
