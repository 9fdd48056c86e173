"""Responses events of any shape: the end is a message or a `ModelError`."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.openai_streams import call, end, message, reasoning, response
from support.torture import examples

from lighter_core import ModelError
from lighter_openai._decode import decode_body
from lighter_openai._dialect import OPENAI, Target
from lighter_openai._stream import StreamDecoder

TARGET = Target(OPENAI, "http://127.0.0.1/v1", "gpt-test")
TYPES = st.sampled_from(
    [*StreamDecoder._HANDLERS, "response.new_thing.delta", "", None]
)
KEYS = st.sampled_from(
    [
        "type",
        "item",
        "item_id",
        "id",
        "output_index",
        "content_index",
        "summary_index",
        "delta",
        "text",
        "refusal",
        "arguments",
        "call_id",
        "name",
        "content",
        "summary",
        "encrypted_content",
        "response",
        "output",
        "status",
        "error",
        "code",
        "usage",
        "input_tokens",
        "input_transformations",
    ]
)
WORDS = st.sampled_from(
    ["", "x", "\ud83e", "message", "reasoning", "function_call", "output_text", "thing"]
)
ITEMS = st.sampled_from(
    [message("Hi"), reasoning("r"), call("t", "{}"), {"type": "web_search_call"}]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | WORDS | ITEMS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5)
    ),
    max_leaves=16,
)
EVENTS = st.builds(
    lambda kind, fields: {**fields, "type": kind},
    TYPES,
    st.dictionaries(KEYS, JSON, max_size=6),
)


@settings(max_examples=examples(300), deadline=None)
@given(events=st.lists(EVENTS, max_size=5), output=JSON)
def test_no_shape_of_an_event_is_a_crash(events: list[Any], output: Any):
    """KF-011, KF-122: whatever a field holds, and in whichever order events come."""
    decoder = StreamDecoder(TARGET)
    try:
        for event in [*events, end(output)]:
            decoder.feed(json.dumps(event).encode())
            if decoder.message is not None:
                break
    except ModelError as error:
        assert "\n" not in error.message  # noqa: PT017


@settings(max_examples=examples(300), deadline=None)
@given(output=JSON, fields=st.dictionaries(KEYS, JSON, max_size=4))
def test_no_shape_of_a_body_is_a_crash(output: Any, fields: dict[str, Any]):
    """The same for a reply that came whole."""
    body = {**response(output), **fields}
    try:
        decode_body(json.dumps(body).encode(), TARGET)
    except ModelError as error:
        assert "\n" not in error.message  # noqa: PT017
