"""A complete Chat Completions reply to an assistant message. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lighter_core import AssistantMessage, ModelError
from lighter_core.adapters import (
    Member,
    ShapeError,
    as_list,
    as_object,
    bad_response,
    body_object,
    elements,
    member_elements,
    member_text,
    members,
)

from ._chat_calls import Call, Ids, Turn, legacy_call, whole_calls
from ._chat_message import (
    REASONING_KEYS,
    complete_message,
    content_pieces,
    reasoning_piece,
    says_something,
)
from ._dialect import Target
from ._errors import error_in_reply

__all__ = ["decode_chat_body", "error_in", "require_finish", "usage_in"]

_COMPLETE = frozenset(
    {"stop", "tool_calls", "function_call"}
    | {"eos", "eos_token", "stop_sequence", "end_turn"}  # words of other services
)
_ADVICE = {
    "length": "; raise max_output_tokens or ask for less",
    "model_length": "; the model's context is full",
    "content_filter": "; the service's filter withheld the rest",
    "insufficient_system_resource": "; the service is short of capacity, try again",
}
_OVERLOADED = "insufficient_system_resource"


def error_in(value: Mapping[str, object], target: Target) -> ModelError | None:
    """Return the error that a reply, or an event of one, reports; `None` without one."""
    reported: object = value.get("error")
    if reported is None and "error" in (value.get("object"), value.get("type")):
        reported = value
    if isinstance(reported, str) and reported:
        reported = {"message": reported}
    error = as_object(reported)
    if not error:
        return None
    return error_in_reply(target, error, response_status="error")


def usage_in(value: Mapping[str, object]) -> object:
    """Return the usage object of a reply or an event, `None` without one."""
    usage = as_object(value.get("usage"))
    return usage or (as_object(value.get("x_groq")) or {}).get("usage")


def require_finish(finish: object, choice: Mapping[str, object], target: Target) -> str:
    """Return why a choice ended, when it ended well.

    Raises:
        ModelError: For every other end; a reply that is cut is no message.
    """
    if isinstance(finish, str) and finish in _COMPLETE:
        return finish
    error = error_in(choice, target)
    if error is not None:
        raise error
    if not isinstance(finish, str) or not finish:
        raise bad_response(target, "it does not say how it ended")
    if finish not in _ADVICE:
        raise bad_response(
            target, f"its finish reason is {finish!r}", response_status=finish
        )
    raise ModelError(
        f"{target.label} at {target.endpoint} stopped before the reply was"
        f" complete ({finish}){_ADVICE[finish]}",
        "server_error" if finish == _OVERLOADED else "bad_response",
        response_status=finish,
        provider=target.name,
    )


def decode_chat_body(body: bytes, target: Target, turn: Turn) -> AssistantMessage:
    """Return the message of a reply that came whole; the first choice counts.

    Raises:
        ModelError: For a reply that failed, is incomplete or is no reply at all.
    """
    reply = body_object(body, target)
    error = error_in(reply, target)
    if error is not None:
        raise error
    choices = as_list(reply.get("choices")) or [None]
    choice = as_object(choices[0])
    if choice is None:
        raise bad_response(target, "it has no choice")
    finish = require_finish(choice.get("finish_reason"), choice, target)
    try:
        text = _first_message(body.decode("utf-8"), reply, choice)
        message = as_object(choice.get("message"))
        fields = {member.key: member for member in members(text, message)}
        return complete_message(
            _texts(fields),
            _calls(fields, Ids(turn)),
            {key: m.text for key, m in fields.items() if says_something(key, m.value)},
            usage_in(reply),
            finish,
            target,
        )
    except (ShapeError, ValueError) as err:
        raise bad_response(target, str(err)) from err


def _first_message(
    text: str, reply: Mapping[str, object], choice: Mapping[str, object]
) -> str:
    """Return the JSON text of the first choice's message."""
    choices = member_elements(text, "choices", reply)
    message = member_text(choices[0][1], "message", choice)
    if not message.startswith("{"):
        raise ShapeError("its choice has no message")
    return message


def _texts(fields: Mapping[str, Member]) -> tuple[str, str]:
    """Return the public texts: what is said, a refusal included, and the reasoning."""
    values = {key: member.value for key, member in fields.items()}
    pieces = list(content_pieces(values.get("content")))
    said = "".join(text for thought, text in pieces if not thought)
    refusal = values.get("refusal")
    if isinstance(refusal, str):
        said += refusal
    for key in REASONING_KEYS:
        thought = reasoning_piece(values.get(key))
        if thought:
            return said, thought
    return said, "".join(text for thought, text in pieces if thought)


def _calls(fields: Mapping[str, Member], ids: Ids) -> list[Call]:
    member = fields.get("tool_calls")
    if member is not None and member.value:
        if as_list(member.value) is None:
            raise ShapeError(f"tool_calls is {type(member.value).__name__}, no array")
        return whole_calls(elements(member.text), ids)
    member = fields.get("function_call")
    if member is not None and member.value:
        return [legacy_call(member.value, member.text, ids)]
    return []
