"""Histories from many sources: what is sent of them, and what is said to be lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.chat_streams import body as chat_body
from support.chat_streams import call as chat_call
from support.openai_streams import call, message, reasoning, response, thought
from support.torture import examples

from lighter_core import (
    AssistantMessage,
    Message,
    ModelRequest,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from lighter_core.adapters import RefusedContext, ReplayNotes
from lighter_openai._chat_calls import Turn
from lighter_openai._chat_decode import decode_chat_body
from lighter_openai._chat_encode import (
    ChatMessages,
    Reasoning,
    encode_chat_request,
)
from lighter_openai._decode import decode_body
from lighter_openai._dialect import CHAT, OPENAI, Target
from lighter_openai._encode import encode_request
from lighter_openai._input import InputItems

URL = "http://127.0.0.1/v1"
PLAIN = replace(
    OPENAI, name="plain", plain_reasoning=True, placeholder="(none)", calls_last=True
)
RESPONSES, CLEAR, CHATTING = (Target(d, URL, "m") for d in (OPENAI, PLAIN, CHAT))
ASK = UserMessage("Go on.")
Encode = Callable[..., bytes]


def _encode_chat(reasoning: Reasoning) -> Encode:
    def encode(messages: list[Message], notes: list[str] | None = None) -> bytes:
        request, found = ModelRequest(messages), ReplayNotes()
        writer = ChatMessages(CHATTING, reasoning)
        body = encode_chat_request(
            request, CHATTING, {}, stream=False, writer=writer, notes=found
        )
        if notes is not None:
            notes += found.texts
        return body

    return encode


def _encode_items(target: Target) -> Encode:
    def encode(
        messages: list[Message],
        notes: list[str] | None = None,
        refused: RefusedContext | tuple[()] = (),
    ) -> bytes:
        request, found = ModelRequest(messages), ReplayNotes()
        writer = InputItems(target, refused)
        body = encode_request(
            request, target, {}, stream=False, writer=writer, notes=found
        )
        if notes is not None:
            notes += found.texts
        return body

    return encode


ENCODERS: dict[str, Encode] = {
    "responses": _encode_items(RESPONSES),
    "plain": _encode_items(CLEAR),
    **{f"chat {word}": _encode_chat(word) for word in get_args(Reasoning)},
}


def _own(ids: list[str], number: int, target: Target) -> AssistantMessage:
    """A reply of the target's service."""
    if target.dialect.api == "chat":
        calls = [{**chat_call("t", "{}"), "id": id_} for id_ in ids]
        said = {"content": "Hi", "reasoning_content": "Hm.", "tool_calls": calls}
        text = json.dumps(chat_body(said))
        return decode_chat_body(text.encode(), target, Turn())
    made = thought if target is CLEAR else reasoning
    items = [made("Hm.", id_=f"rs_{number}"), message("Hi", id_=f"msg_{number}")]
    for place, id_ in enumerate(ids):
        items.append({**call("t", "{}", number * 10 + place), "call_id": id_})
    return decode_body(json.dumps(response(items)).encode(), target)


KINDS = ("own", "foreign", "edited", "model", "endpoint", "repeated")
REPLIES = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.lists(
            st.sampled_from(["call_0", "call_1", "odd:" + "x" * 60, "y" * 50]),
            max_size=2,
            unique=True,
        ),
    ),
    min_size=1,
    max_size=6,
)


def _history(replies: list[tuple[str, list[str]]], target: Target) -> list[Message]:
    found: list[Message] = [ASK]
    first: AssistantMessage | None = None
    for number, (kind, ids) in enumerate(replies):
        reply = _own(ids, number, target)
        if kind == "foreign":
            calls = [ToolCall(id_, "t", "{}") for id_ in ids]
            reply = AssistantMessage("Hi", reasoning="Hm.", tool_calls=calls)
        elif kind == "edited":
            reply = replace(reply, content="Ho")
        elif kind == "model":
            reply = _own(ids, number, replace(target, model="n"))
        elif kind == "endpoint":
            reply = _own(ids, number, replace(target, endpoint="http://other"))
        elif kind == "repeated" and first is not None:
            reply = first
        first = first or reply
        found.append(reply)
        found += [
            ToolMessage(call_id=c.call_id, tool_name="t", tool_output="1")
            for c in reply.tool_calls
        ]
        found.append(ASK)
    return found


def _target(name: str) -> Target:
    return {"responses": RESPONSES, "plain": CLEAR}.get(name, CHATTING)


def _calls(body: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the ids of calls and of results, in order."""
    if "messages" in body:
        sent = body["messages"]
        calls = [c["id"] for m in sent for c in m.get("tool_calls", ())]
        return calls, [m["tool_call_id"] for m in sent if m["role"] == "tool"]
    kinds = ("function_call", "function_call_output")
    first, second = (
        [item["call_id"] for item in body["input"] if item.get("type") == kind]
        for kind in kinds
    )
    return first, second


@pytest.mark.parametrize("name", ENCODERS)
@settings(max_examples=examples(120), deadline=None)
@given(replies=REPLIES)
def test_longer_history_begins_with_the_bytes_of_the_shorter_one(name, replies):
    """Ids too depend only on what stands before them; each result has its call's."""
    history = _history(replies, _target(name))
    whole = ENCODERS[name](history)
    for end, each in enumerate(history):
        if each is ASK:
            part = ENCODERS[name](history[: end + 1])
            assert whole.startswith(part.removesuffix(b"]}"))
    calls, results = _calls(json.loads(whole))
    assert calls == results


def _writers(name: str) -> tuple[Encode, InputItems | ChatMessages]:
    target = _target(name)
    if target is not CHATTING:
        return encode_request, InputItems(target)
    return encode_chat_request, ChatMessages(target, name.removeprefix("chat "))


@pytest.mark.parametrize("name", ENCODERS)
@settings(max_examples=120, deadline=None)
@given(replies=REPLIES, cuts=st.sets(st.integers(1, 30)))
def test_going_on_gives_the_bytes_and_notes_of_writing_all_anew(name, replies, cuts):
    """A run writes only what is new, wherever its requests cut the history."""
    target = _target(name)
    history = _history(replies, target)
    encode, writer = _writers(name)
    said: list[str] = []
    for end in [*sorted(cut for cut in cuts if cut < len(history)), len(history)]:
        request, notes = ModelRequest(history[:end]), ReplayNotes()
        assert writer.fits(request.messages)
        body = encode(request, target, {}, stream=False, writer=writer, notes=notes)
        said += [text for text in notes.texts if text not in said]
        fresh: list[str] = []
        assert body == ENCODERS[name](history[:end], fresh)
        assert said == fresh
    assert not writer.fits(history[:-1])
    assert not writer.fits([UserMessage("Another."), *history[1:]])


@pytest.mark.parametrize("name", ENCODERS)
@settings(max_examples=examples(120), deadline=None)
@given(replies=REPLIES)
def test_no_rebuilt_call_has_the_id_of_another(name, replies):
    """KF-017: only a service itself may give one id twice."""
    seen: set[str] = set()
    for kind, ids in replies:  # no two of the service's own replies share an id
        if kind != "foreign":
            ids[:] = [id_ for id_ in ids if id_ not in seen]
            seen.update(ids)
    some = [(kind, ids) for kind, ids in replies if kind != "repeated"]
    calls, _ = _calls(json.loads(ENCODERS[name](_history(some, _target(name)))))
    assert len(set(calls)) == len(calls)


LOST = "an earlier reply was sent to 'openai' without its reasoning: "
WHY = {
    "another service wrote it": lambda own: replace(
        own, native=replace(own.native, provider="acme")
    ),
    "another version of Lighter kept it": lambda own: replace(
        own, native=replace(own.native, v=2)
    ),
    "it came from another endpoint": lambda own: replace(
        own, native=replace(own.native, endpoint="http://other/v1")
    ),
    "it was edited since": lambda own: replace(own, content="Ho"),
    "another model wrote it": lambda own: replace(
        own, native=replace(own.native, model="n")
    ),
    "it carries no native context": lambda own: replace(own, native=None),
}


@pytest.mark.parametrize("name", ["responses", "chat keep"])
@pytest.mark.parametrize("why", WHY)
def test_note_says_the_real_reason(name, why):
    """One sentence, with what is lost and why."""
    notes: list[str] = []
    own = _own([], 1, _target(name))
    ENCODERS[name]([ASK, WHY[why](own), ASK], notes)
    target = _target(name)
    assert notes == [
        f"an earlier reply was sent to {target.name!r} without its reasoning: {why}"
    ]


def test_reply_that_stands_twice_loses_its_reasoning_with_a_note():
    """OpenAI refuses ids and reasoning that are there twice; the second copy goes bare."""
    own, notes = _own([], 1, RESPONSES), list[str]()
    ENCODERS["responses"]([ASK, own, ASK, own, ASK], notes)
    assert notes == [f"{LOST}it stands in the history twice"]
    notes.clear()
    ENCODERS["plain"]([ASK, replace(own, native=None), ASK], notes)
    assert notes, "reasoning of another service is not sent"
    notes.clear()
    clear = _own([], 1, CLEAR)
    ENCODERS["plain"]([ASK, clear, ASK, clear, ASK], notes)
    assert notes == [], "in the clear it is sent again"


def test_reply_that_the_service_could_not_read_is_noted_in_each_later_run():
    """What was refused once is left out for good, and each run says so."""
    own, notes, refused = _own([], 1, RESPONSES), list[str](), RefusedContext()
    refused.add([own])
    encode = _encode_items(RESPONSES)
    encode([ASK, own, ASK], notes, refused)  # type: ignore[call-arg]
    assert notes == [f"{LOST}the service refused its native context"]


def test_reply_with_the_id_of_an_earlier_rebuilt_call_is_rebuilt_too():
    """The service would refuse the second one; ids before it stay as they were sent."""
    made = AssistantMessage(tool_calls=[ToolCall("call_0", "t", "{}")])
    answer = ToolMessage(call_id="call_0", tool_name="t", tool_output="1")
    own, notes = _own(["call_0"], 1, RESPONSES), list[str]()
    body = json.loads(ENCODERS["responses"]([ASK, made, answer, own, answer], notes))
    (first, second), results = _calls(body)
    assert (first, results) == ("call_0", [first, second])
    assert second != first
    assert notes == [f"{LOST}an earlier call has the id of one of its calls"]
