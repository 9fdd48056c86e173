"""A complete reply to an assistant message. Pure: bytes in, values out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lighter_core import AssistantMessage
from lighter_core.adapters import (
    ShapeError,
    as_list,
    as_object,
    bad_response,
    body_object,
    clean_text,
    member_elements,
    note,
    seal_native,
    short,
)

from ._dialect import Target
from ._errors import error_in_reply, failed_reply
from ._items import (
    Item,
    ReasoningKind,
    has_refusal,
    message_texts,
    native_items,
    need_item,
    reasoning_kind,
    reasoning_texts,
    tool_call,
)
from ._usage import responses_usage

__all__ = [
    "BLANK_LINE",
    "build_message",
    "decode_body",
    "items_in",
    "require_completed",
]

BLANK_LINE = "\n\n"
"""What stands between two parts of the reasoning."""


def decode_body(body: bytes, target: Target) -> AssistantMessage:
    """Return the message of a reply that came whole.

    Raises:
        ModelError: For a reply that failed, is incomplete or is no reply at all.
    """
    response = body_object(body, target)
    require_completed(response, target, "completed")
    try:
        items = items_in(body.decode("utf-8"), response)
        kinds: list[ReasoningKind] = [
            reasoning_kind(item) for item in items if item.type == "reasoning"
        ]
        return build_message(items, kinds, response, target)
    except (ShapeError, ValueError) as err:
        raise bad_response(target, str(err)) from err


def require_completed(
    response: dict[str, object], target: Target, otherwise: str
) -> None:
    """Raise the `ModelError` for a response object that did not end well.

    Args:
        response: The response object.
        target: Whom the request was for.
        otherwise: The status of an object that tells none.
    """
    status = response.get("status")
    error = as_object(response.get("error"))
    if status is None and error is not None:
        raise error_in_reply(target, error, response_status=None)
    word = status if isinstance(status, str) else otherwise
    if word != "completed":
        raise failed_reply(target, response, word)


def items_in(text: str, response: Mapping[str, object]) -> list[Item]:
    """Return the output items in a response object's JSON text.

    Args:
        text: The response object.
        response: What was read from it.

    Raises:
        ShapeError: When there is no array of them, or one of them is no object.
    """
    if as_list(response.get("output")) is None:
        raise ShapeError("it has no array of output items")
    found = member_elements(text, "output", response)
    return [need_item(value, item_text) for value, item_text in found]


def build_message(
    items: Sequence[Item],
    kinds: Sequence[ReasoningKind],
    response: dict[str, object],
    target: Target,
) -> AssistantMessage:
    """Put the message together from complete items.

    Args:
        items: The output items, in order.
        kinds: For each reasoning item, which of its two texts is the public one.
        response: The response object, for the usage.
        target: Whom the request was for.
    """
    _note_removed(response, target)
    calls = [tool_call(item) for item in items if item.type == "function_call"]
    messages = [item for item in items if item.type == "message"]
    message = AssistantMessage(
        "".join(clean_text(t) for item in messages for _, t in message_texts(item)),
        reasoning=BLANK_LINE.join(_reasoning(items, kinds)) or None,
        tool_calls=calls,
        usage=responses_usage(response.get("usage")),
        stop_reason="refusal" if any(map(has_refusal, messages)) else "completed",
    )
    native = native_items(items, target.dialect)
    if native is None:
        return message
    return seal_native(
        message,
        provider=target.dialect.name,
        endpoint=target.endpoint,
        api=target.dialect.api,
        model=target.model,
        items=native,
    )


def _note_removed(response: dict[str, object], target: Target) -> None:
    """Report the items of the history that the service left out without an error."""
    changes = [
        as_object(e) or {} for e in as_list(response.get("input_transformations")) or ()
    ]
    reasons = {short(e.get("reason")) for e in changes if e.get("action") == "removed"}
    if reasons:
        text = f"{target.name!r} left items of the history out: "
        note(text + ", ".join(sorted(reasons)), provider=target.name)


def _reasoning(items: Sequence[Item], kinds: Sequence[ReasoningKind]) -> Iterator[str]:
    thoughts = [item for item in items if item.type == "reasoning"]
    for item, kind in zip(thoughts, kinds, strict=True):
        for _, text in reasoning_texts(item, kind):
            if text:
                yield clean_text(text)
