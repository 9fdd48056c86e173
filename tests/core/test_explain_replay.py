"""What is said of a history before it is sent, without a service."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.histories import ANY_HISTORIES

from lighter_core import (
    AssistantMessage,
    Message,
    Model,
    ModelRequest,
    NativeContext,
    Provider,
    ReplayFinding,
    SupportsReplayReport,
    ToolCall,
    ToolMessage,
    UserMessage,
    check_history,
    explain_replay,
    repair_history,
)
from lighter_core.adapters import ReplayNotes
from lighter_core.fallback import FallbackProvider
from lighter_core.history import repair_with_origins
from lighter_core.messages import seal_native
from lighter_core.recording import ReplayProvider, record
from lighter_core.retry import RetryProvider
from lighter_core.testing import FakeProvider


class Telling(FakeProvider):
    """Says of each message that it is there, so that its place shows."""

    def replay_report(self, messages: Sequence[Message]) -> list[ReplayFinding]:
        assert check_history(messages) == []
        found: list[ReplayFinding] = []
        for number, each in enumerate(messages):
            path = f"messages[{number}]"
            found.append(ReplayFinding(path, "dropped", f"{self.name} {each.role}"))
            if isinstance(each, AssistantMessage):
                found += [
                    ReplayFinding(f"{path}.tool_calls[{k}]", "rewritten", call.call_id)
                    for k, call in enumerate(each.tool_calls)
                ]
        return found


def native(provider: str) -> AssistantMessage:
    return seal_native(
        AssistantMessage("Hi"),
        provider=provider,
        endpoint="https://host",
        api="x",
        model="m",
        items="[]",
    )


def exists(path: str, messages: Sequence[Message]) -> bool:
    """Tell whether a finding's path leads to something."""
    if path == "messages":
        return True
    names = {"messages": list(messages)}
    try:
        eval(path, {"__builtins__": {}}, names | {"messages": _Reachable(messages)})
    except (IndexError, AttributeError, SyntaxError, TypeError):
        return False
    return True


class _Reachable(list[Message]):
    """Refuses numbers from behind, which no path may have."""

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        if key < 0:
            raise IndexError(key)
        return super().__getitem__(key)


def test_a_provider_that_says_nothing_gets_a_word_about_native_context() -> None:
    history = [UserMessage("a"), native("claude"), native("fake"), AssistantMessage()]
    (finding,) = explain_replay(history, FakeProvider([]))
    assert (finding.path, finding.kind) == ("messages[1]", "dropped")
    assert "'claude'" in finding.text


def test_a_model_is_asked_through_its_provider() -> None:
    provider = Telling([])
    history = [UserMessage("a")]
    assert isinstance(provider, SupportsReplayReport)
    assert explain_replay(history, Model(provider)) == explain_replay(history, provider)


@pytest.mark.parametrize("wrong", [FakeProvider, "claude", None, object()])
def test_what_is_no_provider_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="Provider or a Model"):
        explain_replay([], wrong)  # type: ignore[arg-type]


def test_what_is_no_history_is_refused() -> None:
    with pytest.raises(TypeError, match="a history holds messages, got str"):
        explain_replay(["hello"], FakeProvider([]))  # type: ignore[list-item]


def test_places_are_those_of_the_given_history() -> None:
    """Repair drops, moves and makes up messages in between."""
    history: list[Message] = [
        ToolMessage(call_id="stray", tool_name="t", tool_output="0"),
        UserMessage("go"),
        AssistantMessage(tool_calls=[ToolCall("a", "t"), ToolCall("b", "t")]),
        UserMessage("well?"),
        ToolMessage(call_id="b", tool_name="t", tool_output="1"),
        AssistantMessage("end"),
    ]
    found = explain_replay(history, Telling([]))
    assert [(f.path, f.kind) for f in found[:4]] == [
        ("messages[0]", "refused"),
        ("messages[2].tool_calls[0]", "refused"),
        ("messages[2].tool_calls[1]", "refused"),
        ("messages[4]", "refused"),
    ]
    assert all("Agent.run repairs it" in each.text for each in found[:4])
    assert [(f.path, f.text) for f in found[4:]] == [
        ("messages[1]", "fake user"),
        ("messages[2]", "fake assistant"),
        ("messages[2].tool_calls[0]", "a"),
        ("messages[2].tool_calls[1]", "b"),
        ("messages[2].tool_calls[0]", "fake tool"),  # the result that was made up
        ("messages[4]", "fake tool"),
        ("messages[3]", "fake user"),
        ("messages[5]", "fake assistant"),
    ]


@given(ANY_HISTORIES)
def test_any_history_can_be_explained(history: list[Message]) -> None:
    """Twice the same, each place exists, nothing changes, repair leaves nothing."""
    before = copy.deepcopy(history)
    found = explain_replay(history, Telling([]))
    assert explain_replay(history, Telling([])) == found
    assert history == before
    assert all(exists(each.path, history) for each in found)
    repaired, origins = repair_with_origins(history)
    assert repaired == repair_history(history)
    for message, origin in zip(repaired.messages, origins, strict=True):
        if ".tool_calls[" not in origin:
            kept = eval(origin, {"messages": history})
            assert type(kept) is type(message)
            assert kept is message or isinstance(
                message, AssistantMessage | ToolMessage
            )
    again = explain_replay(repaired.messages, Telling([]))
    assert [each for each in again if each.kind == "refused"] == []


def test_providers_around_providers_ask_inside(tmp_path: Path) -> None:
    history = [UserMessage("a"), native("acme")]
    one, two = Telling([], name="one"), FakeProvider([], name="two")
    own = explain_replay(history, one)
    assert own
    assert explain_replay(history, RetryProvider(one)) == own
    recorded = record(Telling(["x"], name="one"), tmp_path / "run.jsonl")
    assert explain_replay(history, recorded) == own
    first, *others = explain_replay(history, FallbackProvider([two, one]))
    assert first == explain_replay(history, two)[0]
    assert [(each.path, each.text) for each in others] == [
        (each.path, f"one: {each.text}") for each in own
    ]
    for provider in (RetryProvider(one), recorded, FallbackProvider([one, two])):
        assert isinstance(provider, Provider)
        assert isinstance(provider, SupportsReplayReport)


async def test_a_replayed_recording_says_nothing(tmp_path: Path) -> None:
    """No service is asked, so nothing is written for one."""
    recorder = record(FakeProvider(["x"]), tmp_path / "run.jsonl")
    await recorder.invoke(ModelRequest([UserMessage("a")]))
    replay = ReplayProvider(tmp_path / "run.jsonl")
    assert explain_replay([UserMessage("a"), native("acme")], replay) == []


@given(st.lists(st.sampled_from(["one", "two"])))
def test_notes_say_each_sentence_once_and_findings_each_place(texts: list[str]) -> None:
    notes = ReplayNotes()
    for number, text in enumerate(texts):
        notes.at(number)
        notes.add(text, "dropped")
    notes.say("three")
    assert notes.texts == [*dict.fromkeys(texts), "three"]
    assert [each.path for each in notes.findings] == [
        f"messages[{number}]" for number in range(len(texts))
    ]


async def test_damaged_native_context_does_not_fail_a_recorded_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No document can hold it; the call is missing in the recording, and the log says so."""
    damaged = replace(native("fake"), native=replace(context(), items="nonsense"))
    recorder = record(FakeProvider([damaged]), tmp_path / "run.jsonl")
    with caplog.at_level(logging.WARNING, "lighter.recording"):
        assert await recorder.invoke(ModelRequest([UserMessage("a")])) == damaged
    assert "no document can" in caplog.text


def context() -> NativeContext:
    found = native("fake").native
    assert found is not None
    return found
