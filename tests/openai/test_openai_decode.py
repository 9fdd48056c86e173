"""Streams and bodies written by us, decoded without SDK and network."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.openai_streams import (
    added,
    call,
    created,
    done,
    end,
    item_events,
    message,
    reasoning,
    refusal,
    reply,
    response,
    sse,
    without,
)
from support.torture import examples

from lighter_core import (
    MessageEvent,
    ModelError,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from lighter_core.adapters import EventStreamSplitter, elements, members
from lighter_openai._decode import decode_body
from lighter_openai._dialect import OPENAI, Target
from lighter_openai._stream import StreamDecoder

TARGET = Target(OPENAI, "http://127.0.0.1/v1", "gpt-test")
EMOJI = "日本 \N{GRINNING FACE} ok"


def decode(body: bytes, size: int | None = None) -> tuple[list[Any], Any]:
    """Decode the bytes, cut every `size` bytes; return deltas and message."""
    splitter, decoder, shown = EventStreamSplitter(), StreamDecoder(TARGET), []
    cuts = [body[i : i + size] for i in range(0, len(body), size)] if size else [body]
    for data in [*(d for cut in cuts for d in splitter.feed(cut)), *splitter.finish()]:
        shown += decoder.feed(data)
        if decoder.message is not None:
            break
    if decoder.message is None:
        raise decoder.ended_early()
    got = decoder.message
    assert "".join(d.text for d in shown if isinstance(d, TextDelta)) == got.content
    thought = "".join(d.text for d in shown if isinstance(d, ReasoningDelta))
    assert thought == (got.reasoning or "")
    for asked in got.tool_calls:
        pieces = [d for d in shown if isinstance(d, ToolCallDelta)]
        mine = [d.arguments for d in pieces if d.call_id == asked.call_id]
        assert "".join(mine) == asked.arguments
        assert {d.tool_name for d in pieces} <= {c.tool_name for c in got.tool_calls}
    ids = {d.call_id for d in shown if isinstance(d, ToolCallDelta)}
    assert ids <= {c.call_id for c in got.tool_calls}
    for delta in shown:
        if isinstance(delta, TextDelta | ReasoningDelta):
            delta.text.encode()
        elif isinstance(delta, ToolCallDelta):
            delta.arguments.encode()
    return shown, got


def failure(body: bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        decode(body)
    return caught.value


def whole(output: Any, **fields: Any) -> Any:
    return decode_body(json.dumps(response(output, **fields)).encode(), TARGET)


ITEMS = [
    reasoning("First part", "", "Second part"),
    message("Hello ", EMOJI),
    call("add", '{"a": 1}'),
]


def test_all_public_fields_are_filled():
    """Text, reasoning, calls, usage and stop reason come from their items."""
    _, got = decode(sse(reply(*ITEMS)))
    assert got.content == "Hello " + EMOJI
    assert got.reasoning == "First part\n\nSecond part"
    assert got.tool_calls == (ToolCall("call_1", "add", '{"a": 1}'),)
    assert got.usage == Usage(20, 10, 8, 4, 6)
    assert got.stop_reason == "completed"
    assert got.native.provider == "openai"
    assert got.native.api == "responses"
    assert got.native.model == "gpt-test"
    assert got.native_intact()


def test_whole_reply_equals_streamed_reply():
    """KF-020: invoke and stream agree, native context included."""
    text = json.dumps(response(ITEMS), ensure_ascii=False)
    assert decode_body(text.encode(), TARGET) == decode(sse(reply(*ITEMS)))[1]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [None, 1, 2, 3, 7])
def test_line_ends_and_cuts_change_nothing(line_end, size):
    """KF-002, KF-004: LF, CRLF and CR give the same, cut anywhere."""
    body = sse(reply(*ITEMS), line_end=line_end)
    assert decode(body, size)[1] == decode(sse(reply(*ITEMS)))[1]


def test_separator_characters_in_text_end_no_line():
    """KF-001: U+2028, U+2029 and U+0085 arrive unchanged."""
    text = "a\u2028b\u2029c\u0085d"
    for size in (None, 1):
        assert decode(sse(reply(message(text))), size)[1].content == text


def test_event_over_several_data_lines_is_joined():
    """KF-005: pretty-printed JSON, fields in any order, id and retry between."""
    body = sse(reply(*ITEMS), indent=2)
    body = body.replace(b"event: response.completed\n", b"id: 7\nretry: 100\n")
    _, got = decode(body)
    assert got.content == "Hello " + EMOJI
    assert json.loads(got.native.items)[1]["content"][1]["text"] == EMOJI


def test_byte_order_mark_is_skipped():
    """KF-003: event streams are UTF-8, with or without the mark."""
    assert decode(b"\xef\xbb\xbf" + sse(reply(*ITEMS)))[1].content == "Hello " + EMOJI


def test_noise_between_events_changes_nothing():
    """KF-009, KF-011, KF-013: pings, comments, unknown types, bare values."""
    noise: list[Any] = [
        b": keep-alive\n\n",
        b"event: ping\ndata:\n\n",
        b"event: ping\n\n",
        b"data: null\n\n",
        b"data: 12\n\n",
        b'data: "text"\n\n',
        b"data: [1]\n\n",
        b'data: {"type": 5}\n\n',
        b"data: {}\n\n",
        {"type": "ping"},
        {"type": "response.brand_new.delta", "delta": {"deep": [1]}},
        {"type": "response.output_item.sparkle", "item": None},
    ]
    mixed: list[Any] = []
    for event in reply(*ITEMS):
        mixed += [*noise, event]
    assert decode(sse(mixed))[1] == decode(sse(reply(*ITEMS)))[1]


def test_unknown_items_and_parts_are_kept_as_native_context():
    """KF-011: hosted tools and new kinds of content crash nothing and are sent back."""
    hosted = {
        "id": "ws_1",
        "type": "web_search_call",
        "action": {"q": 1},
        "new": [None],
    }
    odd = message("known")
    odd["content"].append({"type": "hologram", "data": None})
    items = [hosted, {"type": "brand_new"}, odd]
    _, got = decode(
        sse([created(), *(done(i, x) for i, x in enumerate(items)), end(items)])
    )
    assert got.content == "known"
    assert json.loads(got.native.items) == items


def test_interleaved_calls_keep_their_own_arguments():
    """KF-016: fragments are keyed by item, calls are in the order of their index."""
    first, second = call("a", '{"x":"111111"}', 1), call("b", '{"y":"222222"}', 2)
    one, two = item_events(0, first), item_events(1, second)
    mixed = [e for pair in zip(one, two, strict=True) for e in pair]
    swapped = [e for pair in zip(two, one, strict=True) for e in pair]
    for events in (mixed, swapped):
        _, got = decode(sse([created(), *events, end([])]))
        assert [(c.tool_name, c.arguments) for c in got.tool_calls] == [
            ("a", '{"x":"111111"}'),
            ("b", '{"y":"222222"}'),
        ]


@pytest.mark.parametrize(
    "dropped",
    [
        ("sequence_number",),
        ("output_index", "content_index", "summary_index", "sequence_number"),
        ("item_id", "sequence_number"),
    ],
)
def test_missing_indexes_and_numbers_are_tolerated(dropped):
    """Servers such as llama.cpp's leave indexes and sequence numbers out."""
    body = sse(without(reply(*ITEMS), *dropped))
    _, got = decode(body)
    assert got == decode(sse(reply(*ITEMS)))[1]


def test_all_indexes_zero_and_ids_that_change_are_tolerated():
    """Gateways repeat index 0, or give an item another id in every event."""
    calls = [call("a", "{}", 1), call("b", "{}", 2)]
    zero = [
        {**e, "output_index": 0}
        for i, item in enumerate(calls)
        for e in item_events(i, item)
    ]
    assert len(decode(sse([created(), *zero, end([])]))[1].tool_calls) == 2
    fresh = [
        {**e, "item_id": f"x{n}"} if "item_id" in e else e
        for n, e in enumerate(reply(*ITEMS))
    ]
    assert decode(sse(fresh))[1] == decode(sse(reply(*ITEMS)))[1]


def test_surrogate_halves_meet():
    """KF-017: an emoji cut between two deltas arrives whole; a lone half is replaced."""
    item = message("A\N{GRINNING FACE}B")
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    kind = "response.output_text.delta"
    halves = [
        {"type": kind, **where, "delta": piece} for piece in ("A\ud83d", "\ude00B")
    ]
    events = [created(), added(0, item), *halves, done(0, item), end([item])]
    shown, got = decode(sse(events, ascii_only=True))
    assert got.content == "A\N{GRINNING FACE}B"
    assert [d.text for d in shown] == ["A", "\N{GRINNING FACE}B"]
    lone = message("x\ud83d")
    events = reply(lone, call("t", '{"a":"\ud83d"}'))
    _, got = decode(sse(events, ascii_only=True))
    assert got.content == "x\ufffd"
    assert got.tool_calls[0].arguments == '{"a":"\ufffd"}'
    got.native.items.encode()


def test_refusal_is_text_with_its_own_stop_reason():
    """KF-014: a refusal is visible and never looks like an empty answer."""
    _, got = decode(sse(reply(refusal("I cannot help with that."))))
    assert got.content == "I cannot help with that."
    assert got.stop_reason == "refusal"
    assert whole([refusal("")]).stop_reason == "refusal"


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter", "novelty"])
def test_incomplete_reply_is_an_error(reason):
    """KF-007, KF-012, KF-024: text or a call that was cut is no reply."""
    for item in (message("half a sen"), call("t", '{"a": "cut')):
        details = {"incomplete_details": {"reason": reason}}
        events = [
            created(),
            *item_events(0, item),
            end([item], "incomplete", **details),
        ]
        error = failure(sse(events))
        assert (error.code, error.response_status) == ("bad_response", "incomplete")
        assert error.vendor_code == reason
        with pytest.raises(ModelError) as caught:
            whole([item], status="incomplete", **details)
        assert caught.value.message == error.message


@pytest.mark.parametrize(
    ("vendor_code", "code"),
    [
        ("rate_limit_exceeded", "rate_limit"),
        ("insufficient_quota", "rate_limit"),
        ("server_error", "server_error"),
        ("overloaded_error", "server_error"),
        ("invalid_prompt", "invalid_request"),
        ("image_too_large", "invalid_request"),
        ("invalid_api_key", "auth_error"),
        ("never_seen", "bad_response"),
    ],
)
def test_errors_inside_a_reply_map_by_their_code(vendor_code, code):
    """KF-006, KF-123: failed replies, flat and nested error events."""
    found = {"code": vendor_code, "message": "It broke."}
    bodies = [
        ("failed", end([], "failed", error=found)),
        ("error", {"type": "error", **found, "param": None}),
        ("error", {"type": "error", "error": found}),
        ("error", {"type": "error", "error": {"type": vendor_code, "code": None}}),
    ]
    for status, event in bodies:
        error = failure(sse([created(), *item_events(0, message("part")), event]))
        assert (error.code, error.vendor_code) == (code, vendor_code)
        assert error.response_status == status
        assert error.http_status is None
    untyped = b'data: {"error": {"code": "%s"}}\n\n' % vendor_code.encode()
    assert failure(sse([created(), untyped])).code == code


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("cancelled", "aborted"),
        ("queued", "bad_response"),
        ("in_progress", "bad_response"),
        ("invented_word", "bad_response"),
    ],
)
def test_other_statuses_are_errors_with_that_word(status, code):
    """KF-015: whatever does not say `completed` is no reply."""
    with pytest.raises(ModelError) as caught:
        whole([message("text")], status=status)
    assert (caught.value.code, caught.value.response_status) == (code, status)
    event = {"type": "response.completed", "response": response([], status)}
    error = failure(sse([created(), event]))
    assert (error.code, error.response_status) == (code, status)


def test_stream_without_an_end_is_an_error():
    """KF-007: complete items without a terminal event are no reply."""
    events = reply(message("text"), call("t", "{}"))[:-1]
    error = failure(sse(events))
    assert (error.code, error.response_status) == ("bad_response", "in_progress")
    assert failure(b"").code == "bad_response"
    assert failure(b"data: [DONE]\n\n").code == "bad_response"


def test_missing_blank_line_after_the_last_event_is_tolerated():
    """Some servers end without it."""
    assert decode(sse(reply(*ITEMS)).rstrip(b"\n"))[1].tool_calls


@pytest.mark.parametrize("output", [[], [ITEMS[0]], None])
def test_items_come_from_their_own_events_when_the_last_event_has_fewer(output):
    """The terminal object may be empty, shorter or have none."""
    events = [*reply(*ITEMS)[:-1], end(output)]
    assert decode(sse(events))[1] == decode(sse(reply(*ITEMS)))[1]


def test_items_come_from_the_last_event_when_it_alone_has_them():
    """A server may send no item events at all, or no deltas."""
    bare = decode(sse([created(), end(ITEMS)]))[1]
    assert bare == decode(sse(reply(*ITEMS)))[1]
    no_deltas = [e for e in reply(*ITEMS) if not e["type"].endswith("delta")]
    assert decode(sse(no_deltas))[1] == bare


def test_tail_that_the_deltas_lacked_is_shown():
    """The finished text wins when the pieces are its beginning."""
    events = reply(reasoning("abcdefgh"), message("abcdefgh"))
    fewer = [
        e for e in events if not (e["type"].endswith("delta") and e["delta"] == "efgh")
    ]
    assert decode(sse(fewer))[1].content == "abcdefgh"


def test_texts_that_contradict_their_pieces_are_refused():
    """What was shown cannot be taken back."""
    events = reply(message("abcd"))
    for event in events:
        if event["type"].endswith("delta"):
            event["delta"] = "abXd"
    assert failure(sse(events)).code == "bad_response"
    events = reply(call("t", '{"a":1}'))
    for event in events:
        if event["type"].endswith("delta"):
            event["delta"] = "zzz"
    assert failure(sse(events)).code == "bad_response"


def test_reasoning_text_is_used_where_there_is_no_summary():
    """Open models show their reasoning; it is shown, but not sent back in the clear."""
    item = reasoning(content=[{"type": "reasoning_text", "text": "I think."}])
    where = {"item_id": "rs_1", "output_index": 0, "content_index": 0}
    kind = "response.reasoning_text"
    events = [
        created(),
        added(0, {**item, "content": []}),
        {"type": f"{kind}.delta", **where, "delta": "I "},
        {"type": f"{kind}.delta", **where, "delta": "think."},
        {"type": f"{kind}.done", **where, "text": "I think."},
        done(0, item),
        *item_events(1, message("Yes.")),
        end([]),
    ]
    _, got = decode(sse(events))
    assert got.reasoning == "I think."
    assert whole([item, message("Yes.")]).reasoning == "I think."
    kept = json.loads(got.native.items)
    assert [i["type"] for i in kept] == ["reasoning", "message"]
    assert "content" not in kept[0]


def test_opaque_reasoning_survives_in_every_combination():
    """KF-068: encrypted content with and without summaries, several around calls."""
    items = [
        reasoning("one", "two", id_="rs_1", blob="AAA"),
        call("t", "{}", 1),
        reasoning(id_="rs_2", blob="BBB", extra={"k": [1.0]}),
        call("t", "{}", 2),
        reasoning("three", id_="rs_3", blob="CCC", content=[]),
        message("end"),
    ]
    _, got = decode(sse(reply(*items)))
    assert json.loads(got.native.items) == items
    assert got.reasoning == "one\n\ntwo\n\nthree"


def test_what_the_service_refuses_is_stripped_from_reasoning():
    """Status and nulls go; everything else of the item stays, byte for byte."""
    raw = (
        '{"id":"rs_1","type":"reasoning","status":"completed","summary":[],'
        '"content":null, "score": 1.50e+1 ,"encrypted_content":"AAA"}'
    )
    items = f"[{raw},{json.dumps(message('x'))}]"
    body = '{"status":"completed","usage":null,"output":' + items + "}"
    got = decode_body(body.encode(), TARGET)
    assert got.native.items.startswith(
        '[{"id":"rs_1","type":"reasoning","summary":[],"score": 1.50e+1,'
        '"encrypted_content":"AAA"},'
    )
    assert got.usage is None


@pytest.mark.parametrize(
    "items",
    [
        [reasoning("only")],
        [reasoning("a"), reasoning("b", id_="rs_2")],
        [message(""), reasoning("a")],
        [reasoning("a", blob=None), message("")],
    ],
)
def test_reasoning_without_a_successor_is_not_kept(items):
    """KF-066, KF-072: nothing is sent back that the service refuses for ever."""
    _, got = decode(sse(reply(*items)))
    kept = json.loads(got.native.items) if got.native else []
    assert all(item["type"] == "message" for item in kept)
    assert got.reasoning
    _, got = decode(sse(reply(message("text", id_="msg_0"), *items)))
    assert json.loads(got.native.items)[0]["type"] == "message"
    assert json.loads(got.native.items)[-1]["type"] == "message"


@pytest.mark.parametrize(
    "items",
    [
        [reasoning("a"), message("")],
        [reasoning("a"), message(""), reasoning("b", id_="rs_2"), call("t", "{}")],
        [message(""), reasoning("a"), message("x", id_="msg_2"), call("t", "{}")],
    ],
)
def test_messages_without_text_stay_beside_encrypted_reasoning(items):
    """KF-066: each reasoning is held against the item behind it, whatever that says."""
    _, got = decode(sse(reply(*items)))
    assert json.loads(got.native.items) == items


def test_messages_without_text_go_where_no_reasoning_depends_on_them():
    """KF-072: some servers refuse them for ever."""
    assert whole([message("")]).native is None
    kept = json.loads(whole([message(""), call("t", "{}")]).native.items)
    assert [item["type"] for item in kept] == ["function_call"]
    unread = [reasoning("a", blob=None), message(""), call("t", "{}")]
    kept = json.loads(whole(unread).native.items)
    assert [item["type"] for item in kept] == ["function_call"]


def test_reasoning_without_encrypted_content_takes_all_ids_along():
    """KF-063: the service can neither read nor look it up; ids stand for the turn."""
    items = [
        reasoning("a", blob=None),
        reasoning(id_="rs_2"),
        message("x"),
        call("t", ""),
    ]
    _, got = decode(sse(reply(*items)))
    kept = json.loads(got.native.items)
    assert [i["type"] for i in kept] == ["reasoning", "message", "function_call"]
    assert not any("id" in item for item in kept)
    assert kept[2]["call_id"] == "call_1"


@pytest.mark.parametrize("arguments", ["", " ", "{}", "null", "[1]", '{"a":'])
def test_arguments_are_kept_as_they_came(arguments):
    """KF-021, KF-022, KF-023: the adapter neither parses nor mends arguments."""
    _, got = decode(sse(reply(call("t", arguments))))
    assert got.tool_calls[0].arguments == arguments


def test_native_items_are_the_bytes_of_the_service():
    """KF-069: unusual numbers, spacing, escapes and duplicate keys stay as they are."""
    raw = (
        '{ "type":"function_call","id":"fc_1","call_id":"c","name":"t",'
        '"arguments":"{\\"a\\": 1.0}","x":1e400,"y":1.0, "y":2,"z":"\\u00e9\\/"}'
    )
    body = '{"status":"completed","output":[' + raw + "]}"
    assert decode_body(body.encode(), TARGET).native.items == f"[{raw}]"
    event = '{"type":"response.output_item.done","output_index":0,"item":' + raw + "}"
    stream = f"data: {event}\n\n".encode() + sse([end([])])
    assert decode(stream)[1].native.items == f"[{raw}]"


WRONG_OUTPUTS = [
    None,
    {},
    "text",
    [None],
    [1],
    [["x"]],
    [{"type": "message", "content": None}],
    [{"type": "message", "content": "text"}],
    [{"type": "message", "content": [None]}],
    [{"type": "message", "content": [{"type": "output_text", "text": None}]}],
    [{"type": "message", "content": [{"type": "refusal"}]}],
    [{"type": "function_call", "call_id": "c", "name": "n", "arguments": {"a": 1}}],
    [{"type": "function_call", "call_id": "c", "name": "n"}],
    [{"type": "function_call", "call_id": None, "name": "n", "arguments": ""}],
    [{"type": "function_call", "call_id": "", "name": "n", "arguments": ""}],
    [{"type": "function_call", "call_id": "c", "name": 3, "arguments": ""}],
    [{"type": "reasoning", "summary": "text"}],
    [{"type": "reasoning", "summary": [{"type": "summary_text", "text": 1}]}],
]


@pytest.mark.parametrize("output", WRONG_OUTPUTS, ids=json.dumps)
def test_wrong_shapes_are_bad_responses(output):
    """KF-013: never an AttributeError, KeyError or TypeError from inside."""
    with pytest.raises(ModelError) as caught:
        whole(output)
    assert caught.value.code == "bad_response"
    assert failure(sse([created(), end(output)])).code == "bad_response"
    for index, item in enumerate(output if isinstance(output, list) else []):
        events = [created(), done(index, item), end([])]
        assert failure(sse(events)).code == "bad_response"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.output_text.delta", "delta": None},
        {"type": "response.output_text.delta", "delta": ["a"]},
        {"type": "response.function_call_arguments.delta"},
        {"type": "response.output_item.added", "item": None},
        {"type": "response.output_item.done"},
        {"type": "response.completed"},
        {"type": "response.completed", "response": []},
    ],
    ids=json.dumps,
)
def test_wrong_events_are_bad_responses(event):
    """KF-013: an event that lacks what it must have is refused."""
    assert failure(sse([created(), event])).code == "bad_response"


@pytest.mark.parametrize(
    "data",
    [b"{", b"{]}", b"NaN", b"\xff\xfe", b'{"a":"\xff"}', b'{"a":NaN}', b"[" * 100_000],
    ids=lambda d: repr(d[:12]),
)
def test_what_is_no_json_is_a_bad_response(data):
    """KF-008: undecodable events and bodies, deep nesting included."""
    assert failure(b"data: " + data + b"\n\n").code == "bad_response"
    with pytest.raises(ModelError) as caught:
        decode_body(data, TARGET)
    assert caught.value.code == "bad_response"


@pytest.mark.parametrize("body", [b"", b" ", b"null", b"[]", b"3", b"<html>", b"{}"])
def test_bodies_that_are_no_reply_are_bad_responses(body):
    """KF-122: HTML, empty and null bodies with status 200."""
    with pytest.raises(ModelError) as caught:
        decode_body(body, TARGET)
    assert caught.value.code == "bad_response"
    assert caught.value.http_status is None


def test_usage_of_any_shape_is_no_reason_to_fail():
    """Counters are a courtesy: what is missing or odd counts as nothing."""
    for usage in ({}, {"input_tokens": None, "input_tokens_details": 3}, {"x": 1}):
        assert whole([message("x")], usage=usage).usage == Usage()
    assert whole([message("x")], usage=None).usage is None


def test_reply_without_items_is_an_empty_message():
    """KF-072: it is complete and has nothing to send back."""
    _, got = decode(sse([created(), end([])]))
    assert (got.content, got.reasoning, got.native) == ("", None, None)


SMALL = [
    sse(reply(reasoning("ab"), message("Hi " + EMOJI))),
    sse(reply(message("Ok"), call("add", '{"a":1,"b":2}'))),
]


@pytest.mark.parametrize("body", SMALL)
def test_cut_at_every_byte_gives_the_whole_message_or_an_error(body):
    """KF-007: never half a message, wherever the stream is cut."""
    _, full = decode(body)
    codes: set[str] = set()
    complete = 0
    for stop in range(len(body) + 1):
        try:
            _, got = decode(body[:stop])
        except ModelError as error:
            codes.add(error.code)
        else:
            assert got == full
            complete += 1
    assert codes == {"bad_response"}
    assert 1 <= complete <= 4  # the last line ends may be missing, nothing else


def test_long_replies_are_not_decoded_in_quadratic_time():
    """KF-107: the pieces of a text and of arguments are joined once."""
    text = "12345678" * 10_000
    _, got = decode(sse(reply(message(text), call("t", text))))
    assert got.content == text
    assert got.tool_calls[0].arguments == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@settings(max_examples=examples(20), deadline=None)
@given(st.dictionaries(st.text(), JSON), st.sampled_from([None, 2]))
def test_members_are_cut_out_exactly(value, indent):
    """Each member's text parses to its value and stands in the text."""
    text = json.dumps(value, indent=indent, allow_nan=True)
    if "Infinity" in text:
        return
    found = members(text)
    assert {m.key: json.loads(m.text) for m in found} == value
    assert all(m.whole in text and m.whole.endswith(m.text) for m in found)


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(JSON), st.sampled_from([None, 2]))
def test_elements_are_cut_out_exactly(value, indent):
    """Each element's text parses to its value and stands in the text."""
    text = json.dumps(value, indent=indent)
    if "Infinity" in text:
        return
    assert [json.loads(each) for _, each in elements(text)] == value


@pytest.mark.parametrize(
    "text",
    ["", "[", "{", "1", '{"a"}', '{"a" 1}', "{1:2}", '{"a":1', '{"a":1]', "[1", "[1;"],
)
def test_cutting_refuses_what_is_no_json(text):
    """The cutter is fed with checked text only, and still never loops or guesses."""
    with pytest.raises(ValueError):
        members(text)
    with pytest.raises(ValueError):
        elements(text)


@settings(deadline=None)
@given(
    st.lists(st.text("aé\ud83d\ude00\N{GRINNING FACE}", max_size=4)), st.integers(0, 4)
)
def test_any_pieces_give_encodable_deltas_that_join_to_the_content(parts, lacking):
    """KF-017: surrogates anywhere, in any piece."""
    text = "".join(parts)
    item = message(text)
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    sent = parts[: len(parts) - lacking] if lacking else parts
    kind = "response.output_text.delta"
    deltas = [{"type": kind, **where, "delta": part} for part in sent]
    events = [created(), added(0, item), *deltas, done(0, item), end([item])]
    _, got = decode(sse(events, ascii_only=True))
    units = text.encode("utf-16-le", "surrogatepass")
    assert got.content == units.decode("utf-16-le", "replace")


def test_message_event_is_exported_for_consumers():
    """The decoder's message is what the provider wraps in a `MessageEvent`."""
    assert MessageEvent(decode(sse(reply(*ITEMS)))[1]).type == "message"


@pytest.mark.parametrize("odd", [[1], {}, {"a": 1}, 3, None])
def test_types_that_are_no_text_are_no_python_error(odd):
    """Anything may stand in JSON where a word is expected."""
    items = [
        {"type": "reasoning", "id": "rs", "summary": [{"type": odd, "text": "x"}]},
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi"}],
        },
    ]
    body = {"status": "completed", "output": items}
    assert decode_body(json.dumps(body).encode(), TARGET).content == "Hi"


def _broken(*events: Any) -> list[Any]:
    """A stream with the call of `add` begun, its pieces, and then the events."""
    asked = call("add", '{"a": 1}')
    begun = item_events(0, asked)[:-2]  # neither done event
    return [created(), *begun, *events]


CALL = call("add", '{"a": 1}')
WHERE = {"item_id": "fc_1", "output_index": 0}
LATE = {"type": "response.function_call_arguments.delta", **WHERE, "delta": " "}


@pytest.mark.parametrize(
    "events",
    [
        [done(0, CALL), LATE, end([CALL])],
        [done(0, call("add", '{"a": 2}')), end([])],
        [done(0, CALL), end([call("add", '{"a": 2}'), message("x")])],
        [done(0, {**CALL, "call_id": "call_9"}), end([])],
        [done(0, {**CALL, "name": "sub"}), end([])],
        [end([])],
        [done(1, message("x")), end([message("x")])],
        [end([message("x"), message("y", id_="msg_2")])],
    ],
    ids=["late", "item", "end", "id", "name", "nothing", "lacking", "others"],
)
def test_calls_that_contradict_their_pieces_are_refused(events):
    """What was shown of a call is never less or other than what the message holds."""
    assert failure(sse(_broken(*events))).code == "bad_response"


@pytest.mark.parametrize("at", [0, 3, 8])
def test_arguments_that_the_pieces_lacked_are_shown(at):
    """As for texts: the whole item may go on where the pieces ended."""
    events = [added(0, {**CALL, "arguments": ""})]
    events.append({**LATE, "delta": CALL["arguments"][:at]})
    shown, got = decode(sse([created(), *events, done(0, CALL), end([CALL])]))
    assert got.tool_calls == (ToolCall("call_1", "add", '{"a": 1}'),)
    assert len([e for e in shown if isinstance(e, ToolCallDelta)]) == (
        2 if 0 < at < 8 else 1
    )


def test_done_text_of_arguments_does_not_count():
    """The item decides; servers fill the event before it as they like."""
    said = {"type": "response.function_call_arguments.done", **WHERE, "arguments": ""}
    _, got = decode(sse(_broken(said, done(0, CALL), end([CALL]))))
    assert got.tool_calls[0].arguments == '{"a": 1}'


def test_two_items_with_one_id_are_two_calls():
    """Fragments go by call, and each call has its own."""
    twin = {**CALL, "call_id": "call_2", "arguments": "{}"}
    shown, got = decode(sse([created(), *item_events(0, CALL), end([CALL, twin])]))
    assert [c.arguments for c in got.tool_calls] == ['{"a": 1}', "{}"]
    assert shown[-1] == ToolCallDelta("call_2", "add", "{}")


def test_many_calls_are_not_decoded_in_quadratic_time():
    """KF-107: 20,000 calls of one reply."""
    calls = [call("t", "{}", number) for number in range(20_000)]
    decoder, events = (
        StreamDecoder(TARGET),
        [e for n, c in enumerate(calls) for e in (added(n, c), done(n, c))],
    )
    for event in [*events, end(calls)]:
        decoder.feed(json.dumps(event).encode())
    assert decoder.message is not None
    assert len(decoder.message.tool_calls) == 20_000


STEPS = st.lists(
    st.sampled_from(["added", "delta", "other", "done", "end item"]), max_size=8
)


@settings(max_examples=examples(300), deadline=None)
@given(
    steps=STEPS, whole_=st.sampled_from(["", "1", "11", "2", "112"]), last=st.booleans()
)
def test_fragments_are_the_arguments_or_the_reply_fails(steps, whole_, last):
    """In any order of events; `decode` compares for each reply that is complete."""
    item = call("t", whole_)
    made = {
        "added": added(0, {**item, "arguments": ""}),
        "delta": {**LATE, "delta": "1"},
        "other": {**LATE, "delta": "2"},
        "done": {
            **LATE,
            "type": "response.function_call_arguments.done",
            "arguments": "1",
        },
        "end item": done(0, item),
    }
    try:
        _, got = decode(
            sse([*(made[step] for step in steps), end([item] if last else [])])
        )
    except ModelError as error:
        assert error.code == "bad_response"  # noqa: PT017
    else:
        assert len(got.tool_calls) in {0, 1}
