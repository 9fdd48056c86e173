"""A complete reply to an assistant message. Pure: bytes in, values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lighter_core import AssistantMessage, ModelError, Usage
from lighter_core.adapters import (
    ShapeError,
    as_list,
    as_object,
    bad_response,
    body_object,
    clean_text,
    integer_in,
    member_elements,
    seal_native,
)

from ._answers import answered
from ._blocks import (
    Block,
    native_blocks,
    need_block,
    sent_and_container,
    shown_text,
    tool_calls,
    with_container,
)
from ._errors import error_in_reply, stopped
from ._target import API, BLANK_LINE, Target

__all__ = ["build_message", "decode_body", "joined", "sealed"]

_ACCEPTED = frozenset({"end_turn", "tool_use", "stop_sequence", "refusal"})


def decode_body(
    body: bytes, target: Target, answer: str | None = None
) -> AssistantMessage:
    """Return the message of a reply that came whole.

    Args:
        body: The reply.
        target: Whom the request was for.
        answer: The tool whose input is the answer, if there is one.

    Raises:
        ModelError: For a reply that failed, is incomplete or is no reply at all.
    """
    reply = body_object(body, target)
    error = as_object(reply.get("error"))
    if error is not None:
        raise error_in_reply(
            target, error, response_status=None, request_id=reply.get("request_id")
        )
    try:
        blocks = _blocks(reply, body.decode("utf-8"))
        return build_message(blocks, reply, reply.get("usage"), target, answer)
    except (ShapeError, ValueError) as err:
        raise _unusable(target, err, reply.get("stop_reason")) from err


def _blocks(reply: Mapping[str, object], text: str) -> list[Block]:
    if as_list(reply.get("content")) is None:
        raise ShapeError("it has no array of content blocks")
    found = member_elements(text, "content", reply)
    return [need_block(value, block_text) for value, block_text in found]


def _unusable(target: Target, error: Exception, reason: object) -> ModelError:
    status = reason if isinstance(reason, str) else None
    return bad_response(target, str(error), response_status=status)


def build_message(
    blocks: Sequence[Block],
    ending: Mapping[str, object],
    usage: object,
    target: Target,
    answer: str | None = None,
) -> AssistantMessage:
    """Put the message together from complete blocks.

    Args:
        blocks: The content blocks, in order.
        ending: What tells why the reply ended, `stop_reason` and `stop_details`, and
            the `container` that it used.
        usage: The service's usage object.
        target: Whom the request was for.
        answer: The tool whose input is the answer, if there is one.

    Raises:
        ModelError: `bad_response` for a reply that stopped before it was complete.
        ShapeError: For blocks that are not shaped as documented.
    """
    reason = ending.get("stop_reason")
    paused = reason == "pause_turn" and target.pauses
    accepted = isinstance(reason, str) and reason in _ACCEPTED
    if not accepted and not paused:
        raise stopped(target, reason)
    blocks, said = answered(blocks, answer)
    texts = (shown_text(block, "text") for block in blocks if block.type == "text")
    content = said or "".join(texts)
    thoughts = (shown_text(b, "thinking") for b in blocks if b.type == "thinking")
    refused = reason == "refusal"
    if refused and not content.strip():
        content += _explanation(ending)
    message = AssistantMessage(
        content,
        reasoning=BLANK_LINE.join(filter(None, thoughts)) or None,
        # A refused reply is to be discarded: what it had begun must not be executed.
        tool_calls=[] if refused else tool_calls(blocks),
        usage=_usage(usage),
        stop_reason=str(reason),
    )
    items = "[]" if refused else native_blocks(blocks, ending.get("container"))
    return sealed(message, items, target)


def sealed(message: AssistantMessage, items: str, target: Target) -> AssistantMessage:
    """Return the message with its native context and where that came from."""
    return seal_native(
        message,
        provider=target.name,
        endpoint=target.endpoint,
        api=API,
        model=target.model,
        items=items,
    )


def joined(
    first: AssistantMessage, second: AssistantMessage, target: Target
) -> AssistantMessage:
    """Return one message for a reply that paused and its continuation.

    The usage is the sum: each part was a request of its own.
    """
    natives = [m.native for m in (first, second) if m.native is not None]
    parts = [sent_and_container(native.items) for native in natives]
    containers = [id_ for _, id_ in parts if id_ is not None]
    usages = [m.usage for m in (first, second) if m.usage is not None]
    thoughts = [m.reasoning for m in (first, second) if m.reasoning]
    refused = second.stop_reason == "refusal"
    message = AssistantMessage(
        first.content + second.content,
        reasoning=BLANK_LINE.join(thoughts) or None,
        tool_calls=() if refused else (*first.tool_calls, *second.tool_calls),
        usage=sum(usages[1:], usages[0]) if usages else None,
        stop_reason=second.stop_reason,
    )
    newest = containers[-1] if containers else None
    items = with_container([text for text, _ in parts], newest)
    return sealed(message, "[]" if refused else items, target)


def _explanation(ending: Mapping[str, object]) -> str:
    """Return the service's words for a refusal that has no text of its own."""
    details = as_object(ending.get("stop_details")) or {}
    words = details.get("explanation")
    return clean_text(words) if isinstance(words, str) else ""


def _usage(value: object) -> Usage | None:
    usage = as_object(value)
    if usage is None:
        return None

    read = integer_in(usage, "cache_read_input_tokens")
    written = integer_in(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=integer_in(usage, "input_tokens") + read + written,
        output_tokens=integer_in(usage, "output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=integer_in(
            usage.get("output_tokens_details"), "thinking_tokens"
        ),
    )
