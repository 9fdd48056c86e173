"""Generated messages and histories: what Hypothesis draws for tests of several kinds."""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import strategies as st

from lighter_core import (
    AssistantMessage,
    ContentPart,
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
from lighter_core.messages import seal_native

Draw = Callable[[st.SearchStrategy[object]], object]

_LETTERS = st.characters(exclude_categories=()) | st.sampled_from(
    '\u2028\x00\x85é😀"\\'
)


def _joined(text: str) -> str:
    """Return the text with halves of a surrogate pair side by side joined.

    JSON cannot tell the two apart.
    """
    joined: str = json.loads(json.dumps(text))
    return joined


TEXTS = st.text(_LETTERS, max_size=20).map(_joined)
NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True)
COUNTS = st.integers(0, 2**40)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
    ),
    max_leaves=6,
)

ARGUMENTS = st.one_of(
    st.dictionaries(NAMES, JSON_VALUES, max_size=3).map(json.dumps),
    st.sampled_from(["", "  ", "null", "[1]", "{broken", '{"a": 1, "a": 2}']),
    TEXTS,
)

USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)


def _media(kind: type[ImagePart | FilePart]) -> st.SearchStrategy[ContentPart]:
    return st.one_of(
        st.builds(
            kind,
            data=st.binary(max_size=20),
            media_type=st.sampled_from(["image/png", "application/pdf"]),
        ),
        st.builds(kind, url=st.just("https://example.org/a b?c=é#d")),
    )


PARTS: st.SearchStrategy[ContentPart] = st.one_of(
    st.builds(TextPart, TEXTS), _media(ImagePart), _media(FilePart)
)

USER_MESSAGES = st.builds(UserMessage, TEXTS | st.lists(PARTS, max_size=3))

CALLS = st.builds(ToolCall, TEXTS, TEXTS, ARGUMENTS)


@st.composite
def replies(
    draw: st.DrawFn, calls: st.SearchStrategy[list[ToolCall]]
) -> AssistantMessage:
    """Draw an assistant message, sealed or not, edited after sealing or not."""
    message = AssistantMessage(
        draw(TEXTS),
        reasoning=draw(st.none() | TEXTS),
        tool_calls=draw(calls),
        usage=draw(st.none() | USAGES),
        stop_reason=draw(st.none() | TEXTS),
    )
    if draw(st.booleans()):
        items = json.dumps(draw(st.lists(JSON_VALUES, max_size=3)))
        message = seal_native(
            message,
            provider=draw(st.sampled_from(["openai", "claude", "acme"])),
            endpoint="https://api.example/v1",
            api=draw(NAMES),
            model=draw(TEXTS),
            items=items,
        )
    return message


@st.composite
def _tool_messages(draw: st.DrawFn) -> ToolMessage:
    return ToolMessage(
        call_id=draw(TEXTS),
        tool_name=draw(TEXTS),
        tool_output=draw(TEXTS),
        is_error=draw(st.booleans()),
    )


MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(SystemMessage, TEXTS),
    USER_MESSAGES,
    replies(st.lists(CALLS, max_size=3)),
    _tool_messages(),
)

ANY_HISTORIES: st.SearchStrategy[list[Message]] = st.lists(MESSAGES, max_size=8)
"""Messages in any order, the pairs of calls and results broken in every way."""


@st.composite
def valid_histories(draw: st.DrawFn) -> list[Message]:
    """Draw a history in which each call is answered once and in place."""
    history: list[Message] = []
    for _ in range(draw(st.integers(0, 4))):
        history.append(draw(USER_MESSAGES))
        ids = draw(st.lists(NAMES, max_size=3, unique=True))
        calls = [ToolCall(each, draw(NAMES), draw(ARGUMENTS)) for each in ids]
        history.append(draw(replies(st.just(calls))))
        history.extend(
            ToolMessage(
                call_id=call.call_id,
                tool_name=call.tool_name,
                tool_output=draw(TEXTS),
                is_error=draw(st.booleans()),
            )
            for call in calls
        )
    return history
