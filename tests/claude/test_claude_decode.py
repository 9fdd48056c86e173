"""Replies to messages: pure functions, fed with small replies of our own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.claude_streams import (
    USAGE,
    begin,
    block_events,
    body,
    call,
    delta,
    end,
    found,
    redacted,
    reply,
    search,
    sse,
    started,
    stop,
    text,
    thinking,
)
from support.torture import examples

from lighter_claude._decode import decode_body
from lighter_claude._stream import StreamDecoder
from lighter_claude._target import Target
from lighter_core import (
    AssistantMessage,
    HostedToolItem,
    ModelError,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from lighter_core.adapters import EventStreamSplitter

TARGET = Target("http://host", "claude-test")
EMOJI = "\N{GRINNING FACE}"
BLOCKS = [
    thinking("I think."),
    redacted(),
    text(f"Hello {EMOJI}"),
    call("add", {"a": 1, "b": "ü"}),
    thinking("", "EqABempty=="),
    call("now", {}, 2, caller={"type": "direct"}),
]


def decode(
    data: bytes, size: int = 4096, target: Target = TARGET
) -> tuple[list, AssistantMessage]:
    """Events and message of a stream, cut into pieces of a size."""
    decoder, splitter, events = StreamDecoder(target), EventStreamSplitter(), []
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    for chunk in [*chunks, None]:
        found = splitter.finish() if chunk is None else splitter.feed(chunk)
        for each in found:
            events += decoder.feed(each)
            if decoder.message is not None:
                return events, decoder.message
    raise decoder.ended_early()


def failure(data: bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        decode(data)
    assert caught.value.http_status is None
    return caught.value


def whole(reply: Any, target: Target = TARGET) -> AssistantMessage:
    return decode_body(json.dumps(reply, ensure_ascii=False).encode(), target)


def kept(message: AssistantMessage) -> list[dict]:
    assert message.native is not None
    assert message.native_intact()
    return json.loads(message.native.items)


def test_all_public_fields_are_filled():
    """Text, reasoning, calls, usage and stop reason come from their blocks."""
    events, got = decode(sse(reply(*BLOCKS, stop="tool_use")))
    assert got.content == f"Hello {EMOJI}"
    assert got.reasoning == "I think."
    assert got.tool_calls == (
        ToolCall("toolu_1", "add", '{"a": 1, "b": "ü"}'),
        ToolCall("toolu_2", "now", "{}"),
    )
    assert got.usage == Usage(32, 10, 8, 4, 6)
    assert got.stop_reason == "tool_use"
    assert kept(got) == BLOCKS
    native = got.native
    assert (native.provider, native.endpoint, native.api, native.model) == (
        "claude",
        "http://host",
        "messages",
        "claude-test",
    )
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == got.content
    shown = [e for e in events if isinstance(e, ToolCallDelta)]
    for called in got.tool_calls:
        mine = [e for e in shown if e.call_id == called.call_id]
        assert {e.tool_name for e in mine} == {called.tool_name}
        assert "".join(e.arguments for e in mine) == called.arguments


def test_whole_reply_equals_streamed_reply():
    """KF-020: invoke and stream agree, the order of all blocks included."""
    _, streamed = decode(sse(reply(*BLOCKS, stop="tool_use")))
    got = whole(body(*BLOCKS, stop="tool_use"))
    assert kept(got) == kept(streamed)
    for name in ("content", "reasoning", "tool_calls", "usage", "stop_reason"):
        assert getattr(got, name) == getattr(streamed, name)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_line_ends_and_cuts_change_nothing(line_end, size):
    """KF-002, KF-004: LF, CRLF and CR give the same, cut anywhere."""
    expected = decode(sse(reply(*BLOCKS)))
    assert decode(sse(reply(*BLOCKS), line_end=line_end), size) == expected


def test_separator_characters_in_text_end_no_line():
    """KF-001: U+2028, U+2029 and U+0085 arrive unchanged."""
    words = "a\u2028b\u2029c\u0085d"
    assert decode(sse(reply(text(words))))[1].content == words


def test_event_over_several_data_lines_is_joined():
    """KF-005: pretty-printed JSON, with id and retry between."""
    data = sse(reply(*BLOCKS), indent=2).replace(b"event:", b"id: 1\nretry: 3\nevent:")
    _, got = decode(data)
    assert kept(got) == BLOCKS


def test_noise_between_events_changes_nothing():
    """KF-009, KF-011, KF-013: pings, comments, unknown types, bare values."""
    noise: list[Any] = [
        {"type": "ping"},
        b"event: ping\n\n",
        b"event: ping\ndata:\n\n",
        b": keep-alive\n\n",
        {"type": "brand_new", "x": 1},
        b"data: 7\n\n",
        b"data: null\n\n",
        b'data: {"type": 5}\n\n',
        b"data: [DONE]\n\n",
    ]
    events = [each for event in reply(*BLOCKS)[:-1] for each in (*noise, event)]
    got = decode(sse([*events, *noise, {"type": "message_stop"}]))
    assert got == decode(sse(reply(*BLOCKS)))
    decoder = StreamDecoder(TARGET)
    for data in (b'{"type":"ping"}', b'{"type":"new"}', b"7"):
        decoder.feed(data)
    assert decoder.ignored == 2


def test_unknown_blocks_deltas_and_keys_are_kept_or_ignored():
    """KF-011: new kinds of blocks are sent back as they came, in their place."""
    strange = {"type": "hologram", "z": [1, {"y": None}]}
    events = [
        started(),
        begin(0, strange),
        delta(0, "hologram_delta", x=1),
        stop(0),
        begin(1, {"type": "text", "text": "", "mark": "m"}),
        delta(1, "text_delta", text="Hi"),
        delta(1, "sparkle_delta", x=1),
        stop(1),
        *end(),
    ]
    _, got = decode(sse(events))
    assert kept(got) == [strange, {"type": "text", "text": "Hi", "mark": "m"}]
    assert got.content == "Hi"


def test_interleaved_calls_keep_their_own_arguments():
    """KF-016, KF-019: pieces are keyed by index, the order is that of the indexes."""
    events = [
        started(),
        begin(1, call("a", {}, 1)),
        begin(2, text("")),
        begin(3, call("b", {}, 2)),
        delta(1, "input_json_delta", partial_json=""),
        delta(3, "input_json_delta", partial_json='{"y"'),
        delta(1, "input_json_delta", partial_json='{"x"'),
        delta(2, "text_delta", text="between"),
        delta(3, "input_json_delta", partial_json=":2}"),
        delta(1, "input_json_delta", partial_json=":1}"),
        stop(3),
        stop(2),
        stop(1),
        *end("tool_use"),
    ]
    shown, got = decode(sse(events))
    assert [c.arguments for c in got.tool_calls] == ['{"x":1}', '{"y":2}']
    assert [block["type"] for block in kept(got)] == ["tool_use", "text", "tool_use"]
    for index, call_ in enumerate(got.tool_calls, 1):
        pieces = [
            e.arguments
            for e in shown
            if isinstance(e, ToolCallDelta) and e.call_id == f"toolu_{index}"
        ]
        assert "".join(pieces) == call_.arguments


def test_missing_indexes_are_tolerated():
    """Blocks come one after the other; an event without index is about the latest."""
    bare = [{k: v for k, v in e.items() if k != "index"} for e in reply(*BLOCKS)]
    assert decode(sse(bare)) == decode(sse(reply(*BLOCKS)))


def test_blocks_that_never_stop_are_complete_unless_they_are_calls():
    """KF-024: the input of a call ends with its block, or it may be cut off."""
    events = [e for e in reply(text("Hi")) if e["type"] != "content_block_stop"]
    assert decode(sse(events))[1].content == "Hi"
    events = [started(), *block_events(0, call("t", {"a": 1}))[:-1]]
    assert failure(sse([*events, *end("tool_use")])).code == "bad_response"
    error = failure(sse([*events, *end("max_tokens")]))
    assert error.response_status == "max_tokens"


def test_surrogate_halves_meet():
    """KF-017: an emoji cut between two deltas arrives whole; a lone half is replaced."""
    events = [
        started(),
        begin(0, thinking("", "")),
        delta(0, "thinking_delta", thinking="\ud83d"),
        delta(0, "thinking_delta", thinking="\ude00"),
        delta(0, "signature_delta", signature="sig"),
        stop(0),
        begin(1, text("")),
        delta(1, "text_delta", text="A\ud83d"),
        delta(1, "text_delta", text="\ude00B\ud83d"),
        stop(1),
        begin(2, call("t", {})),
        delta(2, "input_json_delta", partial_json='{"a":"\\ud83d'),
        delta(2, "input_json_delta", partial_json='\\ude00"}'),
        stop(2),
        *end("tool_use"),
    ]
    shown, got = decode(sse(events, ascii_only=True))
    assert got.reasoning == EMOJI
    assert got.content == f"A{EMOJI}B\ufffd"
    assert got.tool_calls[0].arguments == '{"a":"\\ud83d\\ude00"}'
    for event in shown:
        getattr(event, "text", "").encode()
    assert "".join(e.text for e in shown if isinstance(e, TextDelta)) == got.content
    assert kept(got)[0]["thinking"] == EMOJI
    assert got.native.items.encode()


@pytest.mark.parametrize(("kind", "between"), [("text", ""), ("thinking", "\n\n")])
@pytest.mark.parametrize(("next_", "clean"), [("B", "B"), ("\ude00B", "\ufffdB")])
def test_half_a_character_at_the_end_of_a_block_ends_there(kind, between, next_, clean):
    """The other half in another block belongs to another text; each is replaced."""
    blocks = [text("")] * 2 if kind == "text" else [thinking("", "")] * 2
    events = [started()]
    for number, words in enumerate(("A\ud83d", next_)):
        piece = delta(number, f"{kind}_delta", **{kind: words})
        events += [begin(number, blocks[number]), piece, stop(number)]
    shown, got = decode(sse([*events, *end()], ascii_only=True))
    whole = got.content if kind == "text" else got.reasoning
    assert whole == f"A\ufffd{between}{clean}"
    assert "".join(each.text for each in shown) == whole


def test_signatures_citations_and_summaries_are_assembled():
    """KF-068: what arrives in deltas of its own belongs to the block."""
    cited = {"type": "char_location", "cited_text": "x", "start_char_index": 0}
    events = [
        started(),
        begin(0, {"type": "compaction", "content": None}),
        delta(0, "compaction_delta", content="So far.", encrypted_content="Ep=="),
        stop(0),
        begin(1, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(1, "signature_delta", signature="EqAB=="),
        stop(1),
        begin(2, {"citations": [], "type": "text", "text": ""}),
        delta(2, "citations_delta", citation=cited),
        delta(2, "text_delta", text="x"),
        delta(2, "citations_delta", citation={**cited, "n": 1e400}),
        stop(2),
        *end(),
    ]
    _, got = decode(sse(events).replace(b"Infinity", b"1e400"))
    assert got.reasoning is None
    assert kept(got)[:2] == [
        {"type": "compaction", "content": "So far.", "encrypted_content": "Ep=="},
        {"type": "thinking", "thinking": "", "signature": "EqAB=="},
    ]
    assert "1e400" in got.native.items
    assert kept(got)[2]["citations"][0] == cited


def test_several_thoughts_are_joined_by_a_blank_line():
    """The separator is shown too; thoughts without text show nothing."""
    shown, got = decode(
        sse(reply(thinking("one"), thinking(""), text("x"), thinking("two"), text("y")))
    )
    assert got.reasoning == "one\n\ntwo"
    thoughts = [e.text for e in shown if isinstance(e, ReasoningDelta)]
    assert "".join(thoughts) == got.reasoning
    assert got.content == "xy"


def test_untouched_blocks_keep_the_bytes_of_the_service():
    """KF-069: unusual numbers, spacing, escapes and duplicate keys stay as they are."""
    raw = (
        '{ "type" : "web_search_tool_result", "n":1e400, "a":1, "a":2, "u":"\\u00fc" }'
    )
    event = f'{{"type":"content_block_start","index":0,"content_block":{raw}}}'
    events: list[Any] = [
        started(),
        f"data: {event}\n\n".encode(),
        stop(0),
        *block_events(1, text("x")),
        *end(),
    ]
    shown, got = decode(sse(events))
    assert got.native.items.startswith(f"[{raw},")
    assert shown[0] == HostedToolItem("web_search_tool_result", raw)
    body_text = f'{{"content":[{raw}],"stop_reason":"end_turn"}}'
    got = decode_body(body_text.encode(), TARGET)
    assert got.native.items == f"[{raw}]"


@pytest.mark.parametrize(
    "arguments",
    ['{"a": 1.0, "b": 1e2}', '{"a":1,"a":2}', '{ "x" : "\\u00e9" }', '{"n":1e400}'],
)
def test_arguments_are_kept_as_they_came(arguments):
    """KF-021, KF-069: checked once, and neither rewritten nor mended."""
    events = [
        started(),
        begin(0, call("t", {})),
        *[delta(0, "input_json_delta", partial_json=p) for p in arguments],
        stop(0),
        *end("tool_use"),
    ]
    _, got = decode(sse(events))
    assert got.tool_calls[0].arguments == arguments
    assert f'"input":{arguments}' in got.native.items
    raw = f'{{"type":"tool_use","id":"i","name":"t","input":{arguments}}}'
    got = decode_body(
        f'{{"content":[{raw}],"stop_reason":"tool_use"}}'.encode(), TARGET
    )
    assert got.tool_calls[0].arguments == arguments
    assert got.native.items == f"[{raw}]"


def test_call_without_input_has_an_empty_object():
    """KF-022: an empty text means no arguments; a whole input needs no pieces."""
    for first in ({}, {"input": None}):
        bare = {"type": "tool_use", "id": "i", "name": "t", **first}
        events = [started(), begin(0, bare), stop(0), *end("tool_use")]
        shown, got = decode(sse(events))
        assert got.tool_calls[0].arguments == "{}"
        assert shown == [ToolCallDelta("i", "t", "{}")]
    events = [started(), begin(0, call("t", {"a": 1})), stop(0), *end("tool_use")]
    shown, got = decode(sse(events))
    assert got.tool_calls[0].arguments == '{"a": 1}'
    assert shown == [ToolCallDelta("toolu_1", "t", '{"a": 1}')]


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        (['{"a":', " 1 ", "}"], '{"a": 1 }'),
        ([" \n", ' {"a"', ":1} ", "\n"], '{"a":1}'),
        (["", " ", "\t"], "{}"),
        (['{"a":"x', " ", 'y"}'], '{"a":"x y"}'),
        (['{"a":"\ud83d', '\ude00"}'], '{"a":"😀"}'),
        (['{"a":"\ud83d', '"}'], '{"a":"\ufffd"}'),
        (['{"a":1,"a":2}'], '{"a":1,"a":2}'),
        (['{"a":"\u00a0', '\u00a0"} '], '{"a":"\u00a0\u00a0"}'),
    ],
    ids=repr,
)
def test_fragments_joined_are_the_arguments(pieces, arguments):
    """Cut anywhere, with white space around, with broken characters."""
    bare = {"type": "tool_use", "id": "i", "name": "t", "input": {}}
    deltas = [delta(0, "input_json_delta", partial_json=piece) for piece in pieces]
    events = [started(), begin(0, bare), *deltas, stop(0), *end("tool_use")]
    shown, got = decode(sse(events, ascii_only=True))
    assert got.tool_calls[0].arguments == arguments
    assert {(e.call_id, e.tool_name) for e in shown} == {("i", "t")}
    assert "".join(e.arguments for e in shown) == arguments


def test_hosted_tools_are_shown_and_are_no_calls():
    """The service has run them already; their blocks are sent back."""
    blocks = [text("Let me see."), search("x"), found(), text("Found.")]
    shown, got = decode(sse(reply(*blocks)))
    items = [e for e in shown if isinstance(e, HostedToolItem)]
    assert [(e.name, json.loads(e.item)) for e in items] == [
        ("server_tool_use", blocks[1]),
        ("web_search_tool_result", blocks[2]),
    ]
    assert not [e for e in shown if isinstance(e, ToolCallDelta)]
    assert got.tool_calls == ()
    assert got.content == "Let me see.Found."
    assert kept(got) == blocks


def test_what_the_service_refuses_is_not_kept():
    """KF-066, KF-072: blank text and thinking without a signature."""
    blocks = [thinking("t", ""), text(""), text(" \n"), text("x")]
    _, got = decode(sse(reply(*blocks)))
    assert kept(got) == [text("x")]
    assert got.reasoning == "t"
    assert got.content == " \nx"


def test_empty_reply_is_an_empty_message():
    """KF-072: it is complete and has nothing to send back."""
    _, got = decode(sse(reply()))
    assert (got.content, got.tool_calls, kept(got)) == ("", (), [])
    assert whole(body()).content == ""


ACCEPTED = ["end_turn", "tool_use", "stop_sequence", "refusal"]
OTHERS = [
    "max_tokens",
    "pause_turn",
    "model_context_window_exceeded",
    "compaction",
    "invented",
    None,
]


@pytest.mark.parametrize("reason", ACCEPTED)
def test_accepted_stop_reasons_complete(reason):
    """KF-012: the four documented ones, kept in the message."""
    assert decode(sse(reply(text("x"), stop=reason)))[1].stop_reason == reason
    assert whole(body(text("x"), stop=reason)).stop_reason == reason


@pytest.mark.parametrize("reason", OTHERS)
def test_every_other_stop_reason_is_an_error_with_that_word(reason):
    """KF-012, KF-014, KF-015: also null, also one that nobody knows yet."""
    for blocks in ([text("x" * 200)], [call("t", {"a": 1})], []):
        error = failure(sse(reply(*blocks, stop=reason)))
        with pytest.raises(ModelError) as caught:
            whole(body(*blocks, stop=reason))
        for each in (error, caught.value):
            assert each.code == "bad_response"
            assert each.response_status == reason
    without = body(text("x"))
    del without["stop_reason"]
    with pytest.raises(ModelError, match="does not say why"):
        whole(without)


def test_sentences_say_what_to_do():
    """A limit, a pause and a full window have different remedies."""
    for reason, advice in (
        ("max_tokens", "max_output_tokens"),
        ("pause_turn", "hosted_tools"),
        ("model_context_window_exceeded", "history"),
    ):
        assert advice in failure(sse(reply(text("x"), stop=reason))).message


def test_pause_is_accepted_where_it_is_continued():
    """With hosted tools the provider goes on by itself."""
    target = Target("http://host", "m", pauses=True)
    blocks = [search("x"), found()]
    _, got = decode(sse(reply(*blocks, stop="pause_turn")), target=target)
    assert got.stop_reason == "pause_turn"
    assert kept(got) == blocks
    assert whole(body(*blocks, stop="pause_turn"), target).stop_reason == "pause_turn"


WHY = {"type": "refusal", "category": "cyber", "explanation": "Against the rules."}


@pytest.mark.parametrize("details", [WHY, None, {"explanation": None}])
def test_empty_refusal_is_visible_and_never_replayed(details):
    """KF-014: it shows its reason, and never becomes an empty turn."""
    shown, got = decode(sse(reply(stop="refusal", stop_details=details)))
    expected = "Against the rules." if details is WHY else ""
    assert (got.content, got.stop_reason) == (expected, "refusal")
    assert "".join(e.text for e in shown) == expected
    assert kept(got) == []
    assert whole(body(stop="refusal", stop_details=details)) == got


def test_refused_reply_keeps_its_text_and_loses_its_calls():
    """What a refused reply had begun is to be discarded, not executed."""
    blocks = [text("Sure, first"), call("t", {"a": 1})]
    _, got = decode(sse(reply(*blocks, stop="refusal", stop_details=WHY)))
    assert got.content == "Sure, first"
    assert got.tool_calls == ()
    assert kept(got) == []


IN_REPLY = {
    "overloaded_error": "server_error",
    "api_error": "server_error",
    "timeout_error": "server_error",
    "rate_limit_error": "rate_limit",
    "authentication_error": "auth_error",
    "permission_error": "auth_error",
    "billing_error": "auth_error",
    "invalid_request_error": "invalid_request",
    "not_found_error": "invalid_request",
    "request_too_large": "invalid_request",
    "brand_new_error": "bad_response",
}


@pytest.mark.parametrize(("kind", "code"), IN_REPLY.items())
def test_errors_inside_a_reply_map_by_their_type(kind, code):
    """KF-006, KF-123: never by the status, which is 200."""
    told = {"type": kind, "message": "It broke."}
    event = {"type": "error", "error": told, "request_id": "req_1"}
    for events in ([event], [*reply(text("x"))[:4], event]):
        error = failure(sse(events))
        assert (error.code, error.vendor_code) == (code, kind)
        assert (error.http_status, error.request_id) == (None, "req_1")
        assert error.response_status == "error"
        assert "It broke." in error.message
    with pytest.raises(ModelError) as caught:
        whole(event)
    assert (caught.value.code, caught.value.request_id) == (code, "req_1")


def test_finer_code_of_an_error_is_kept():
    """The service's own word for the cause, where it has one."""
    told = {"type": "rate_limit_error", "details": {"error_code": "tokens_per_minute"}}
    error = failure(sse([{"type": "error", "error": told}]))
    assert (error.code, error.vendor_code) == ("rate_limit", "tokens_per_minute")
    bare = failure(b'data: {"error":{"type":"api_error"}}\n\n')
    assert bare.code == "server_error"
    assert failure(sse([{"type": "error"}])).code == "bad_response"


def test_stream_without_an_end_is_an_error():
    """KF-007: complete blocks and a stop reason are no reply without message_stop."""
    error = failure(sse(reply(text("x"), call("t", {}), stop="tool_use")[:-1]))
    assert (error.code, error.response_status) == ("bad_response", "tool_use")
    assert "ended before" in error.message
    assert failure(b"").code == "bad_response"


def test_missing_blank_line_after_the_last_event_is_tolerated():
    """Some servers end without it."""
    assert decode(sse(reply(*BLOCKS)).rstrip(b"\n"))[1].tool_calls


def test_usage_replaces_instead_of_adding():
    """Numbers of a stream are totals; a null leaves the earlier one."""
    events = [
        {
            "type": "message_start",
            "message": {"usage": {"input_tokens": 5, "output_tokens": 1}},
        },
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {
                "input_tokens": None,
                "output_tokens": 9,
                "cache_read_input_tokens": 3,
            },
        },
        {"type": "message_stop"},
    ]
    assert decode(sse(events))[1].usage == Usage(8, 9, 3)


@pytest.mark.parametrize(
    "usage",
    [{}, {"input_tokens": None, "output_tokens_details": 3}, {"input_tokens": True}],
)
def test_usage_of_any_shape_is_no_reason_to_fail(usage):
    """Counters are a courtesy: what is missing or odd counts as nothing."""
    assert whole(body(usage=usage)).usage == Usage()
    assert whole(body(usage=None)).usage is None


@pytest.mark.parametrize(
    "content",
    [
        None,
        "text",
        [None],
        [5],
        [text("x") | {"text": None}],
        [text("x") | {"text": 5}],
        [thinking() | {"thinking": []}],
        [{"type": "tool_use"}],
        [call("t", {}) | {"id": ""}],
        [call("t", {}) | {"id": 5}],
        [call("", {})],
        [call("t", [])],
        [call("t", "text")],
        [call("t", None)],
    ],
    ids=repr,
)
def test_wrong_shapes_are_bad_responses(content):
    """KF-013: never an AttributeError, KeyError or TypeError from inside."""
    with pytest.raises(ModelError) as caught:
        whole(body() | {"content": content})
    assert caught.value.code == "bad_response"


@pytest.mark.parametrize(
    "events",
    [
        [begin(0, None)],
        [begin(0, [])],
        [begin(0, text("")), begin(0, text(""))],
        [delta(0, "text_delta", text="x")],
        [stop(0)],
        [begin(0, text("")), {"type": "content_block_delta", "index": 0}],
        [begin(0, text("")), delta(1, "text_delta", text="x")],
        [begin(0, text("")), delta(0, "text_delta")],
        [begin(0, text("")), delta(0, "text_delta", text=None)],
        [begin(0, call("t", {})), delta(0, "input_json_delta", partial_json={})],
        [
            begin(0, call("t", {})),
            delta(0, "input_json_delta", partial_json="[1]"),
            stop(0),
        ],
        [
            begin(0, call("t", {})),
            delta(0, "input_json_delta", partial_json='{"a'),
            stop(0),
        ],
        [
            begin(0, call("t", {})),
            delta(0, "input_json_delta", partial_json="{}}"),
            stop(0),
        ],
        [
            begin(0, call("t", {})),
            delta(0, "input_json_delta", partial_json='{"a":NaN}'),
            stop(0),
        ],
        [begin(0, call("", {})), stop(0)],
        [
            begin(0, text("x") | {"citations": 5}),
            delta(0, "citations_delta", citation={}),
            stop(0),
        ],
    ],
    ids=repr,
)
def test_wrong_events_are_bad_responses(events):
    """KF-013, KF-023: an event that lacks what it must have is refused."""
    assert failure(sse([started(), *events, *end()])).code == "bad_response"


@pytest.mark.parametrize(
    "data", [b"{", b"\xff\xfe", b'{"type": "ping"', b"[" * 100_000, b"nonsense"]
)
def test_what_is_no_json_is_a_bad_response(data):
    """KF-008: undecodable events and bodies, deep nesting included."""
    assert failure(b"data: " + data + b"\n\n").code == "bad_response"


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"<html>", b"5", b"\xff", b"{}"])
def test_bodies_that_are_no_reply_are_bad_responses(data):
    """KF-122: HTML, empty and null bodies with status 200."""
    with pytest.raises(ModelError) as caught:
        decode_body(data, TARGET)
    assert caught.value.code == "bad_response"


def test_texts_that_interleave_are_refused():
    """What was shown cannot be taken back."""
    events = [
        started(),
        begin(0, text("")),
        begin(1, text("")),
        delta(1, "text_delta", text="b"),
        delta(0, "text_delta", text="a"),
        *end(),
    ]
    assert failure(sse(events)).code == "bad_response"


SMALL = sse(
    reply(thinking("t"), text("a" + EMOJI), call("t", {"a": 1}), stop="tool_use")
)


def test_cut_at_every_byte_gives_the_whole_message_or_an_error():
    """KF-007: never half a message, wherever the stream is cut."""
    _, full = decode(SMALL)
    complete = 0
    for size in range(len(SMALL)):
        try:
            _, got = decode(SMALL[:size])
        except ModelError as err:
            assert err.code == "bad_response"  # noqa: PT017
        else:
            assert got == full
            complete += 1
    assert complete <= 3


def test_long_replies_are_not_decoded_in_quadratic_time():
    """KF-107: the pieces of a text and of arguments are joined once."""
    pieces = ["12345678"] * 8_000
    events = [
        started(),
        begin(0, text("")),
        *[delta(0, "text_delta", text=p) for p in pieces],
        stop(0),
        begin(1, call("t", {})),
        delta(1, "input_json_delta", partial_json='{"a":"'),
        *[delta(1, "input_json_delta", partial_json=p) for p in pieces],
        delta(1, "input_json_delta", partial_json='"}'),
        stop(1),
        *end("tool_use"),
    ]
    _, got = decode(sse(events), 65_536)
    assert got.content == "".join(pieces)
    assert json.loads(got.tool_calls[0].arguments) == {"a": got.content}


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.text(st.characters(), max_size=4), max_size=8))
def test_any_pieces_give_encodable_deltas_that_join_to_the_content(parts):
    """KF-017: surrogates anywhere, in any piece."""
    events = [
        started(),
        begin(0, text("")),
        *[delta(0, "text_delta", text=p) for p in parts],
        stop(0),
        *end(),
    ]
    shown, got = decode(sse(events, ascii_only=True))
    assert "".join(e.text for e in shown if isinstance(e, TextDelta)) == got.content
    for event in shown:
        event.text.encode()
    if got.content.strip():
        assert kept(got)[0]["type"] == "text"
        json.loads(got.native.items)


def test_numbers_of_the_helper_are_those_of_the_interface():
    """The small replies have all counters that the interface has."""
    assert set(USAGE) >= {"input_tokens", "output_tokens", "cache_read_input_tokens"}


@pytest.mark.parametrize("odd", [["x"], {}, 3, True])
def test_a_stop_reason_that_is_no_text_is_a_bad_response(odd):
    """KF-012: never a Python error."""
    data = json.dumps({**body(text("x")), "stop_reason": odd}).encode()
    with pytest.raises(ModelError) as caught:
        decode_body(data, TARGET)
    assert caught.value.code == "bad_response"
