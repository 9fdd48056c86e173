"""Chat Completions replies written by us, decoded without SDK and network."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.chat_streams import (
    body,
    call,
    call_chunk,
    call_chunks,
    chunk,
    reply,
    sse,
    usage_chunk,
)
from support.torture import examples

from lighter_core import (
    ModelError,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from lighter_core.adapters import EventStreamSplitter
from lighter_openai._chat_calls import Turn
from lighter_openai._chat_decode import decode_chat_body
from lighter_openai._chat_stream import ChatStreamDecoder
from lighter_openai._dialect import CHAT, Target

TARGET = Target(CHAT, "http://127.0.0.1/v1", "m")
EMOJI = "日本 \N{GRINNING FACE} ok"
FULL = {
    "content": f"Hello {EMOJI}",
    "reasoning_content": "First, think.",
    "tool_calls": [call("add", '{"a": 1}'), call("sub", '{"b": 2}', 2)],
}


def decode(
    raw: bytes, size: int | None = None, turn: Turn | None = None
) -> tuple[list[Any], Any]:
    """Decode the bytes, cut every `size` bytes; return deltas and message."""
    splitter, shown = EventStreamSplitter(), []
    decoder = ChatStreamDecoder(TARGET, turn or Turn())
    cuts = [raw[i : i + size] for i in range(0, len(raw), size)] if size else [raw]
    for data in [*(d for cut in cuts for d in splitter.feed(cut)), *splitter.finish()]:
        shown += decoder.feed(data)
        if decoder.message is not None:
            break
    shown += decoder.finish()
    got = decoder.message
    assert got is not None
    assert "".join(d.text for d in shown if isinstance(d, TextDelta)) == got.content
    thought = "".join(d.text for d in shown if isinstance(d, ReasoningDelta))
    assert thought == (got.reasoning or "")
    ids = [asked.call_id for asked in got.tool_calls]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    for asked in got.tool_calls:
        pieces = [d for d in shown if isinstance(d, ToolCallDelta)]
        mine = [d for d in pieces if d.call_id == asked.call_id]
        assert "".join(d.arguments for d in mine) == asked.arguments
        assert {d.tool_name for d in mine} <= {asked.tool_name}
    json.dumps([str(vars) for vars in shown], ensure_ascii=False).encode()
    return shown, got


def failure(raw: bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        decode(raw)
    return caught.value


def whole(message: Any = None, turn: Turn | None = None, **fields: Any) -> Any:
    text = json.dumps(body(message, **fields), ensure_ascii=False)
    return decode_chat_body(text.encode(), TARGET, turn or Turn())


def compact(message: Any, **fields: Any) -> Any:
    text = json.dumps(
        body(message, **fields), ensure_ascii=False, separators=(",", ":")
    )
    return decode_chat_body(text.encode(), TARGET, Turn())


def whole_failure(message: Any = None, **fields: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        whole(message, **fields)
    return caught.value


def kept(message: Any) -> dict[str, Any]:
    """The message object that is sent back."""
    (found,) = json.loads(message.native.items)
    return found


def test_all_public_fields_are_filled():
    """Text, reasoning, calls, usage and stop reason come from their fields."""
    _, got = decode(sse(reply(FULL, "tool_calls")))
    assert got.content == f"Hello {EMOJI}"
    assert got.reasoning == "First, think."
    assert got.tool_calls == (
        ToolCall("call_1", "add", '{"a": 1}'),
        ToolCall("call_2", "sub", '{"b": 2}'),
    )
    assert got.usage == Usage(20, 10, 8, 4, 6)
    assert got.stop_reason == "tool_calls"
    native = got.native
    assert (native.provider, native.api, native.model) == ("openai-chat", "chat", "m")
    assert native.endpoint == "http://127.0.0.1/v1"
    assert got.native_intact()


def test_whole_reply_equals_streamed_reply():
    """KF-018, KF-020: invoke and stream agree, native context included."""
    assert (
        compact(FULL, finish="tool_calls") == decode(sse(reply(FULL, "tool_calls")))[1]
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_cuts_change_nothing(size):
    """KF-002: bytes cut anywhere give the same."""
    raw = sse(reply(FULL, "tool_calls"))
    assert decode(raw, size) == decode(raw)


@settings(max_examples=examples(60), deadline=None)
@given(
    content=st.text(max_size=30),
    thought=st.text(max_size=30),
    arguments=st.lists(st.text(max_size=20), max_size=3),
    size=st.integers(1, 9),
)
def test_any_reply_survives_any_cut(content, thought, arguments, size):
    """Text, reasoning and arguments of any kind, in pieces of any size."""
    calls = [call("t", text, number) for number, text in enumerate(arguments)]
    said = {"content": content, "reasoning_content": thought, "tool_calls": calls}
    _, got = decode(sse(reply(said, size=size)), size)
    assert (got.content, got.reasoning or "") == (content, thought)
    assert [c.arguments for c in got.tool_calls] == arguments


def test_separator_characters_and_keep_alives_end_no_event():
    """KF-001, KF-003: U+2028 in text; comments and blank lines between events."""
    text = "a\u2028b\u2029c\u0085d"
    raw = sse(reply({"content": text}, size=50)).replace(
        b"data:", b": keep-alive\n\n\n\ndata:"
    )
    for size in (None, 1):
        assert decode(raw, size)[1].content == text


def test_surrogate_halves_in_two_events_are_joined():
    """KF-042: an emoji cut into its two escapes; a lone half becomes U+FFFD."""
    halves = [
        json.dumps(chunk({"content": "x"})).replace('"x"', '"\\ud83d"'),
        json.dumps(chunk({"content": "x"})).replace('"x"', '"\\ude00!"'),
        json.dumps(chunk({"content": "x"})).replace('"x"', '"\\ud83d"'),
    ]
    _, got = decode(sse([*halves, chunk(finish="stop")]))
    assert got.content == "\N{GRINNING FACE}!\ufffd"
    assert kept(got)["content"] == got.content


# --- how a reply ends ---------------------------------------------------------------


@pytest.mark.parametrize(
    "finish",
    [
        "stop",
        "tool_calls",
        "function_call",
        "eos",
        "eos_token",
        "stop_sequence",
        "end_turn",
    ],
)
def test_complete_replies_give_a_message(finish):
    """KF-015: the words for a complete reply; `stop` beside calls is one."""
    said = {"content": "Hi", "tool_calls": [call("add", "{}")]}
    for got in (whole(said, finish=finish), decode(sse(reply(said, finish)))[1]):
        assert got.stop_reason == finish
        assert len(got.tool_calls) == 1


@pytest.mark.parametrize(
    ("finish", "code"),
    [
        ("length", "bad_response"),
        ("model_length", "bad_response"),
        ("content_filter", "bad_response"),
        ("insufficient_system_resource", "server_error"),
        ("invented", "bad_response"),
    ],
)
def test_other_ends_are_errors_with_the_word_of_the_service(finish, code):
    """KF-015, KF-024: no message, even with whole calls; the word is on the error."""
    for error in (
        whole_failure(FULL, finish=finish),
        failure(sse(reply(FULL, finish))),
    ):
        assert (error.code, error.response_status) == (code, finish)
        assert finish in error.message


def test_reply_that_does_not_say_how_it_ended_is_an_error():
    """KF-007: null, nothing, and a stream that says only that it is done."""
    assert "how it ended" in whole_failure(FULL, finish=None).message
    events = [e for e in reply(FULL) if not e["choices"] or not _finish(e)]
    for done in (True, False):
        error = failure(sse(events, done=done))
        assert error.code == "bad_response"
        assert "ended before" in error.message
    assert failure(b"").code == "bad_response"


def _finish(event: dict) -> Any:
    return event["choices"][0]["finish_reason"]


def test_cut_stream_never_gives_a_message_before_the_finish_reason():
    """KF-007, KF-024: each prefix, byte by byte, is an error or the whole reply."""
    events = reply({"content": "Hé", "tool_calls": [call("add", '{"a":1}')]})
    raw = sse(events)
    end = raw.index(b'"finish_reason": "stop"')
    end = raw.index(b"\n\n", end)
    want = decode(raw)[1]
    for size in range(len(raw)):
        if size < end:
            assert failure(raw[:size]).code == "bad_response"
            continue
        _, got = decode(raw[:size])
        assert (got.content, got.tool_calls) == (want.content, want.tool_calls)
        assert got.native == want.native


def test_calls_announced_and_not_there_are_an_error():
    """An empty reply that says it asks for tools asks for nothing."""
    assert "no call" in whole_failure(finish="tool_calls").message
    assert whole({"content": "Hi"}, finish="tool_calls").content == "Hi"


def test_done_and_usage_are_optional():
    """KF-009: [DONE] missing, usage missing, usage in the chunk that finishes."""
    events = reply({"content": "Hi"})
    assert decode(sse(events, done=False))[1].usage == Usage(20, 10, 8, 4, 6)
    assert decode(sse(events[:-1]))[1].usage is None
    last = {**events[-2], "usage": events[-1]["usage"]}
    assert decode(sse([*events[:-2], last]))[1].usage == Usage(20, 10, 8, 4, 6)
    groq = {**events[-2], "x_groq": {"usage": {"prompt_tokens": 3}}}
    assert decode(sse([*events[:-2], groq]))[1].usage == Usage(3)
    nulls = [{**event, "usage": event.get("usage")} for event in events]
    assert decode(sse(nulls))[1].usage == Usage(20, 10, 8, 4, 6)


def test_finish_reason_said_twice_changes_nothing():
    """Some gateways repeat the last choice beside the usage."""
    events = reply(FULL, "tool_calls")
    again = {**events[-2], "usage": events[-1]["usage"]}
    assert decode(sse([*events[:-1], again]))[1] == decode(sse(events))[1]


@pytest.mark.parametrize(
    ("usage", "want"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(5, 2)),
        ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 4}, Usage(5, 0, 4)),
        ({"prompt_tokens": None, "prompt_tokens_details": None}, Usage()),
        ({"prompt_tokens": True, "completion_tokens": "9"}, Usage()),
        (None, None),
        ([], None),
    ],
)
def test_usage_of_many_shapes(usage, want):
    """Missing, null and odd numbers count as nothing."""
    assert whole({"content": "x"}, usage=usage).usage == want


def test_first_choice_counts():
    """KF-021: other choices are left alone, interleaved or first to end."""
    other = {**chunk({"content": "B"}, "stop")["choices"][0], "index": 1}
    mixed = [
        {**event, "choices": [*event["choices"], other]} if event["choices"] else event
        for event in reply({"content": "AAA"})
    ]
    assert decode(sse(mixed))[1].content == "AAA"
    several = body({"content": "A"})
    several["choices"].append(other)
    text = json.dumps(several).encode()
    assert decode_chat_body(text, TARGET, Turn()).content == "A"


# --- calls --------------------------------------------------------------------------


def test_interleaved_fragments_go_to_their_calls():
    """KF-016: by index, whatever the order in which the pieces come."""
    one, two = call_chunks(FULL["tool_calls"][0]), call_chunks(FULL["tool_calls"][1], 1)
    mixed = [e for pair in zip(two, one, strict=True) for e in pair]
    _, got = decode(sse([*mixed, chunk(finish="tool_calls")]))
    assert [c.arguments for c in got.tool_calls] == ['{"a": 1}', '{"b": 2}']
    assert [c.call_id for c in got.tool_calls] == ["call_1", "call_2"]


def _piece(index: int | None, id_: str | None, name: str | None, arguments: str) -> Any:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return call_chunk(
        index, **({"id": id_} if id_ is not None else {}), function=function
    )


TWO = [("add", '{"a": 1}'), ("add", '{"a": 2}')]


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, "x", "add", '{"a": 1}'), (0, "y", "add", '{"a": 2}')],
        [(0, "x", "add", '{"a"'), (0, None, None, ": 1}"), (0, "y", "add", '{"a": 2}')],
        [(None, "x", "add", '{"a": 1}'), (None, "y", "add", '{"a": 2}')],
        [
            (None, "x", "add", '{"a"'),
            (None, "y", "add", '{"a"'),
            (None, "x", None, ": 1}"),
            (None, "y", None, ": 2}"),
        ],
        [(0, "", "add", '{"a": 1}'), (0, "", "add", '{"a": 2}')],
        [(None, None, "add", '{"a": 1}'), (None, None, "add", '{"a": 2}')],
        [(0, "x", "add", '{"a": 1}'), (0, "x", "add", '{"a": 2}')],
        [(0, "x", "add", '{"a": 1}'), (1, "x", "add", '{"a": 2}')],
        [(0, None, "add", '{"a": 1}'), (1, None, "add", '{"a": 2}')],
        [(0, "x", "add", '{"a"'), (0, "x", "add", ": 1}"), (1, "y", "add", '{"a": 2}')],
        [
            (0, "x", "ad", ""),
            (0, None, "d", ""),
            (0, None, None, '{"a": 1}'),
            (1, "y", "add", '{"a": 2}'),
        ],
    ],
)
def test_calls_of_careless_servers_are_kept_apart(pieces):
    """KF-017, KF-019: one index for all, no index, no id, one id, repeated names."""
    _, got = decode(sse([*(_piece(*p) for p in pieces), chunk(finish="tool_calls")]))
    assert [(c.tool_name, c.arguments) for c in got.tool_calls] == TWO
    native = kept(got)["tool_calls"]
    assert [c["id"] for c in native] == [c.call_id for c in got.tool_calls]


def test_different_names_under_one_index_and_id_are_two_calls():
    """A gateway that gives parallel calls the same index and the same id."""
    pieces = [(0, "x", "add", '{"a": 1}'), (0, "x", "sub", '{"b": 2}')]
    _, got = decode(sse([*(_piece(*p) for p in pieces), chunk(finish="stop")]))
    assert [c.tool_name for c in got.tool_calls] == ["add", "sub"]
    assert got.tool_calls[0].call_id == "x"


@pytest.mark.parametrize("given", [None, "", "  ", "call_1"])
def test_missing_and_repeated_ids_are_made_unique(given):
    """KF-017: in a reply, in a conversation, the same for both ways and each time."""
    entry = {"type": "function", "function": {"name": "add", "arguments": "{}"}}
    if given is not None:
        entry["id"] = given
    turn = Turn(position=3, taken=frozenset({"call_1"}))
    said = {"tool_calls": [entry, entry]}
    one = whole(said, turn, finish="tool_calls")
    ids = [c.call_id for c in one.tool_calls]
    assert len({*ids, "call_1"}) == 3
    assert [c["id"] for c in kept(one)["tool_calls"]] == ids
    assert decode(sse(reply(said)), turn=turn)[1].tool_calls == one.tool_calls
    later = whole(said, Turn(5, frozenset({"call_1", *ids})), finish="tool_calls")
    assert not {c.call_id for c in later.tool_calls} & {*ids, "call_1"}
    assert whole(said, turn, finish="tool_calls") == one


@pytest.mark.parametrize("arguments", ["", "  ", None])
def test_blank_arguments_stay_blank_and_are_sent_back_as_an_object(arguments):
    """KF-022: the tool sees what came; templates that parse it get `{}`."""
    said = {"tool_calls": [call("now", "{}")]}
    said["tool_calls"][0]["function"]["arguments"] = arguments
    got = whole(said, finish="tool_calls")
    assert got.tool_calls[0].arguments == (arguments or "")
    assert kept(got)["tool_calls"][0]["function"]["arguments"] == "{}"


def test_arguments_that_are_an_object_become_text():
    """Some servers write an object where the interface has text."""
    said = {"tool_calls": [call("add", "{}")]}
    said["tool_calls"][0]["function"]["arguments"] = {"a": "é"}
    assert whole(said).tool_calls[0].arguments == '{"a":"é"}'
    assert decode(sse([*[chunk(said)], chunk(finish="stop")]))[1].tool_calls[
        0
    ].arguments == ('{"a":"é"}')


def test_invalid_arguments_are_kept():
    """KF-014: they reach the tool, which answers with an error result."""
    said = {"tool_calls": [call("add", '{"a": 1')]}
    for got in (whole(said), decode(sse(reply(said)))[1]):
        assert got.tool_calls[0].arguments == '{"a": 1'
        assert kept(got)["tool_calls"][0]["function"]["arguments"] == '{"a": 1'


def test_legacy_function_call():
    """The older form of a call, whole and in pieces."""
    asked = {"name": "add", "arguments": '{"a": 1}'}
    one = whole({"function_call": asked}, finish="function_call")
    pieces = [
        chunk({"function_call": {"name": "add", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ": 1}"}}),
        chunk(finish="function_call"),
    ]
    _, two = decode(sse(pieces))
    for got in (one, two):
        assert [(c.tool_name, c.arguments) for c in got.tool_calls] == [
            ("add", '{"a": 1}')
        ]
        assert kept(got)["function_call"] == asked
    assert one.tool_calls == two.tool_calls


def test_unknown_keys_of_calls_are_kept_and_the_index_goes():
    """What a service hides in a call, such as a signature, comes back to it."""
    extra = {"extra_content": {"google": {"thought_signature": "sig"}}}
    said = {"tool_calls": [call("add", "{}", index=0, **extra)]}
    for got in (whole(said), decode(sse(reply(said)))[1]):
        native = kept(got)["tool_calls"][0]
        assert native["extra_content"] == extra["extra_content"]
        assert "index" not in native


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": [{"id": "x", "type": "custom", "custom": {"name": "c"}}]},
        {"tool_calls": [{"id": "x", "type": "function", "function": {}}]},
        {"tool_calls": [{"id": "x", "function": {"name": "a", "arguments": [1]}}]},
        {"tool_calls": ["x"]},
        {"tool_calls": {"x": 1}},
        {"function_call": "x"},
        {"content": 7},
    ],
)
def test_messages_of_a_wrong_shape_are_a_bad_response(message):
    """KF-122: whole and streamed, never another exception."""
    assert whole_failure(message).code == "bad_response"
    assert failure(sse([chunk(message), chunk(finish="stop")])).code == "bad_response"


# --- texts --------------------------------------------------------------------------


def test_refusal_is_text_and_named_as_the_stop_reason():
    """KF-025: the same by both ways; the refusal goes back in its own field."""
    said = {"refusal": "I cannot."}
    for got in (whole(said), decode(sse(reply(said)))[1]):
        assert (got.content, got.stop_reason) == ("I cannot.", "refusal")
        assert kept(got) == {
            "role": "assistant",
            "content": None,
            "refusal": "I cannot.",
        }


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_is_read_from_either_field_and_kept_there(key):
    """KF-065: vLLM, DeepSeek and llama.cpp write one, OpenRouter, Groq, Ollama both."""
    said = {"content": "Hi", key: "Think."}
    for got in (whole(said), decode(sse(reply(said)))[1]):
        assert got.reasoning == "Think."
        assert kept(got)[key] == "Think."


def test_reasoning_said_in_two_fields_is_read_once():
    """vLLM wrote both names for a while; OpenRouter adds details."""
    details = [{"type": "reasoning.text", "text": "Think.", "index": 0}]
    said = {"content": "Hi", "reasoning": "Think.", "reasoning_details": details}
    for got in (
        whole(said),
        decode(sse(reply(said, size=99)))[1],
        whole({**said, "reasoning_content": "Think."}),
    ):
        assert got.reasoning == "Think."
        assert kept(got)["reasoning_details"] == details


def test_reasoning_details_are_joined_by_index_and_read_where_nothing_else_is():
    """OpenRouter: pieces of one entry, its signature in the last; two entries."""

    def detail(index, **fields):
        part = {"type": "reasoning.text", "index": index, **fields}
        return chunk({"reasoning_details": [part]})

    events = [
        detail(0, text="One, "),
        detail(0, text="two", signature=None),
        detail(0, signature="sig"),
        detail(1, text="."),
        chunk({"content": "Hi"}, "stop"),
    ]
    _, got = decode(sse(events))
    assert got.reasoning == "One, two."
    assert kept(got)["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "One, two", "signature": "sig"},
        {"type": "reasoning.text", "index": 1, "text": "."},
    ]


def test_content_in_parts_is_read():
    """Some services write parts, thinking among them."""
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Think."}]},
        {"type": "text", "text": "Hi"},
        {"type": "other"},
    ]
    assert whole({"content": parts}).content == "Hi"
    assert whole({"content": parts}).reasoning == "Think."
    events = [chunk({"content": parts}), chunk({"content": "!"}), chunk(finish="stop")]
    _, got = decode(sse(events))
    assert (got.content, got.reasoning) == ("Hi!", "Think.")


def test_empty_replies_are_never_sent_back():
    """KF-072: no text and no call is no message for the next request."""
    assert whole({"content": ""}).native is None
    assert whole({"content": None, "reasoning": "Hm."}).native is None


def test_unknown_fields_are_kept_and_empty_ones_go():
    """A field of the message that says something stays as it came."""
    annotations = [{"type": "url_citation", "url_citation": {"url": "https://x"}}]
    said = {"content": "Hi", "annotations": annotations, "audio": None, "x": 1e400}
    got = decode_chat_body(
        json.dumps(body(said)).replace("Infinity", "1e400").encode(), TARGET, Turn()
    )
    assert '"x":1e400' in got.native.items
    assert kept(got)["annotations"] == annotations
    assert "audio" not in kept(got)
    _, streamed = decode(sse(reply({"content": "Hi", "annotations": annotations})))
    assert kept(streamed)["annotations"] == annotations


# --- errors in a reply --------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "vendor_code"),
    [
        (
            {"message": "x", "type": "server_error", "code": None},
            "server_error",
            "server_error",
        ),
        ({"message": "x", "code": 429}, "rate_limit", "429"),
        ({"message": "x", "code": 502}, "server_error", "502"),
        (
            {"message": "x", "code": "rate_limit_exceeded"},
            "rate_limit",
            "rate_limit_exceeded",
        ),
        ({"message": "x", "type": "invented"}, "bad_response", "invented"),
        ("out of memory", "bad_response", None),
    ],
)
def test_errors_inside_a_reply_are_classified(error, code, vendor_code):
    """KF-010: a chunk, a body with status 200, a choice; text or object; any code."""
    begun = chunk({"content": "Hi"})
    in_choice = chunk(finish="error")
    in_choice["choices"][0]["error"] = error
    for found in (
        failure(sse([begun, {"error": error}])),
        failure(sse([begun, in_choice])),
        whole_failure(error=error),
    ):
        assert (found.code, found.vendor_code) == (code, vendor_code)
        assert found.provider == "openai-chat"
    for kind in ("object", "type"):
        flat = {kind: "error", "message": "It broke.", "code": 400}
        with pytest.raises(ModelError) as caught:
            decode_chat_body(json.dumps(flat).encode(), TARGET, Turn())
        for found in (failure(sse([begun, flat])), caught.value):
            assert found.code == "invalid_request"
            assert "It broke." in found.message


@pytest.mark.parametrize("data", ["{", "[1", '"x', "NaN"])
def test_event_that_is_no_json_is_a_bad_response(data):
    """KF-006: with the cause on the error."""
    error = failure(sse([chunk({"content": "x"}), data]))
    assert error.code == "bad_response"
    assert error.__cause__ is not None


@pytest.mark.parametrize("data", ["", "null", "7", "[]", '{"type":"ping"}', "{}"])
def test_events_that_say_nothing_are_ignored(data):
    """KF-011: bare values, pings and empty objects between the events."""
    events = reply({"content": "Hi"})
    mixed = [e for event in events for e in (data, event)]
    assert decode(sse(mixed))[1] == decode(sse(events))[1]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n\n",
        b"<html>",
        b"null",
        b"[]",
        b"{}",
        b'{"choices":[]}',
        b'{"choices":7}',
        b'{"choices":[7]}',
        b'{"choices":[{"finish_reason":"stop"}]}',
    ],
)
def test_bodies_that_are_no_reply_are_a_bad_response(raw):
    """KF-122: status 200 with something else in it."""
    with pytest.raises(ModelError) as caught:
        decode_chat_body(raw, TARGET, Turn())
    assert caught.value.code == "bad_response"


def test_blank_lines_before_a_body_are_nothing():
    """Keep-alive of a service that makes one wait."""
    raw = b"\n\n \n" + json.dumps(body({"content": "Hi"})).encode()
    assert decode_chat_body(raw, TARGET, Turn()).content == "Hi"


def test_usage_chunk_ends_the_reply():
    """KF-094: after finish reason and usage nothing more is waited for."""
    decoder = ChatStreamDecoder(TARGET, Turn())
    for event in reply({"content": "Hi"})[:-1]:
        decoder.feed(json.dumps(event).encode())
    assert decoder.finished
    assert decoder.message is None
    decoder.feed(json.dumps(usage_chunk()).encode())
    assert decoder.message is not None
    assert decoder.finish() == []


@pytest.mark.parametrize("named", [False, True])
def test_long_replies_are_not_decoded_in_quadratic_time(named):
    """KF-107: pieces are joined once, also of servers that repeat the call's name."""
    text = "12345678" * 4_000
    arguments = '{"a":"' + text + '"}'
    said = {"content": text, "reasoning": text, "tool_calls": [call("t", arguments)]}
    events = reply(said, size=4)
    details = [{"type": "reasoning.text", "index": 0, "text": "1234"}]
    events[1:1] = [chunk({"reasoning_details": details})] * 8_000
    if named:
        for event in events:
            for piece in (event["choices"] or [chunk()["choices"][0]])[0]["delta"].get(
                "tool_calls", ()
            ):
                piece["function"]["name"] = "t"
    _, got = decode(sse(events))
    assert got.content == text
    assert len(got.tool_calls) == 1
    assert got.tool_calls[0].arguments == arguments
    assert kept(got)["reasoning_details"][0]["text"] == "1234" * 8_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("x"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "content",
                    "tool_calls",
                    "function",
                    "name",
                    "arguments",
                    "index",
                    "id",
                    "delta",
                    "message",
                    "finish_reason",
                    "reasoning_details",
                    "type",
                    "refusal",
                    "reasoning",
                    "function_call",
                    "error",
                    "usage",
                    "text",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=14,
)


@settings(max_examples=examples(300), deadline=None)
@given(delta=JSON, choice=JSON, event=JSON)
def test_no_shape_of_a_chunk_is_a_crash(delta, choice, event):
    """KF-011, KF-122: whatever a field holds, the end is a message or a ModelError."""
    strange = chunk(finish="stop")
    strange["choices"][0] = {
        **(choice if isinstance(choice, dict) else {}),
        "delta": delta,
        "message": delta,
        "finish_reason": "stop",
    }
    if isinstance(event, dict):
        strange = {**event, **strange}
    raw = json.dumps(strange).encode()
    decoder = ChatStreamDecoder(TARGET, Turn())
    for work in (
        lambda: [decoder.feed(raw), decoder.finish()],
        lambda: decode_chat_body(raw, TARGET, Turn()),
        lambda: ChatStreamDecoder(TARGET, Turn()).feed(json.dumps(event).encode()),
    ):
        try:
            work()
        except ModelError as error:
            assert "\n" not in error.message  # noqa: PT017
