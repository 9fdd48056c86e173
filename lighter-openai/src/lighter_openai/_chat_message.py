"""The assistant message of a Chat Completions reply: its public texts, its own JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lighter_core import AssistantMessage
from lighter_core.adapters import (
    ShapeError,
    as_list,
    as_object,
    clean_text,
    dump_json,
    seal_native,
)

from ._chat_calls import Call
from ._dialect import Target
from ._usage import chat_usage

__all__ = [
    "REASONING_KEYS",
    "complete_message",
    "content_pieces",
    "native_object",
    "reasoning_piece",
    "says_something",
]

REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details")
"""Where services write their reasoning; the first one that says something is read."""

_FIRST = ("role", "content")
_CALLS = ("tool_calls", "function_call")  # fields, and finish reasons


def content_pieces(value: object) -> Iterator[tuple[bool, str]]:
    """Yield the texts of a `content`, and for each one whether it is reasoning.

    Most services write one text; some write parts, reasoning among them.

    Raises:
        ShapeError: For a content of any other shape.
    """
    if value is None:
        return
    if isinstance(value, str):
        yield False, value
        return
    parts = as_list(value)
    if parts is None:
        raise ShapeError(f"the content is {type(value).__name__}, not text")
    for each in parts:
        part = as_object(each) or {}
        text = part.get("text")
        if isinstance(text, str):
            yield False, text
        thought = part.get("thinking")
        if isinstance(thought, str):
            yield True, thought
        for inner in as_list(thought) or ():
            text = (as_object(inner) or {}).get("text")
            if isinstance(text, str):
                yield True, text


def reasoning_piece(value: object) -> str:
    """Return the text in one of the reasoning fields; empty when it shows none."""
    if isinstance(value, str):
        return value
    found: list[str] = []
    for each in as_list(value) or ():
        part = as_object(each) or {}
        for key in ("text", "summary"):
            text = part.get(key)
            if isinstance(text, str):
                found.append(text)
    return "".join(found)


def says_something(key: str, value: object) -> bool:
    """Tell whether a field is sent back: empty ones are not, but for an empty text."""
    return value not in (None, "", [], {}) or (key == "content" and value == "")


def native_object(fields: Mapping[str, str], calls: Sequence[Call]) -> str:
    """Return the JSON text of the message for sending back.

    Args:
        fields: The JSON text of each field of the reply's message that says something.
        calls: The calls; they stand last.
    """
    content = fields.get("content", "null")
    parts = ['"role":"assistant"', f'"content":{content}']
    for key, text in fields.items():
        if key not in {*_FIRST, *_CALLS}:
            parts.append(f"{dump_json(key)}:{text}")
    if calls and calls[0].legacy:
        parts.append(f'"function_call":{calls[0].text}')
    elif calls:
        parts.append(f'"tool_calls":[{",".join(call.text for call in calls)}]')
    return f"{{{','.join(parts)}}}"


def complete_message(
    texts: tuple[str, str],
    calls: Sequence[Call],
    fields: Mapping[str, str],
    usage: object,
    finish: str,
    target: Target,
) -> AssistantMessage:
    """Put the message together.

    Args:
        texts: The text, refusal included, and the reasoning.
        calls: The complete calls.
        fields: The JSON text of each field of the reply's message that says something.
        usage: The reply's usage object, if any.
        finish: Why the model stopped.
        target: Whom the request was for.

    Raises:
        ShapeError: When calls are announced and none came.
    """
    content, reasoning = texts
    if finish in _CALLS and not calls and not content:
        raise ShapeError(f"it ends with {finish!r} but holds no call")
    message = AssistantMessage(
        clean_text(content),
        reasoning=clean_text(reasoning) or None,
        tool_calls=[call.public for call in calls],
        usage=chat_usage(usage),
        stop_reason="refusal" if "refusal" in fields else finish,
    )
    if not content and not calls:
        return message  # services refuse an empty assistant message
    return seal_native(
        message,
        provider=target.name,
        endpoint=target.endpoint,
        api=target.dialect.api,
        model=target.model,
        items=f"[{clean_text(native_object(fields, calls))}]",
    )
