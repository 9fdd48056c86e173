"""Messages → the chat messages that the library renders with the model's template."""

from __future__ import annotations

from collections.abc import Sequence

from lighter_core.adapters import ReplayNotes, dump_json, load_json
from lighter_core.errors import ModelError
from lighter_core.messages import (
    AssistantMessage,
    ContentPart,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from lighter_core.requests import ToolSpec

__all__ = [
    "ChatMessage",
    "check_messages",
    "last_question",
    "last_user",
    "native_messages",
    "plain_messages",
    "result_line",
    "tool_list",
]

ChatMessage = dict[str, object]


_BARE = (
    "earlier replies were given to the local model as text and tool calls, without"
    " their reasoning or native context"
)
_AS_LINES = (
    "earlier tool calls were given to the local model by their results alone: its chat"
    " template knows no tools"
)
_RAW = (
    "arguments of tool calls that are no JSON object were given to the local model as"
    " text in `_raw`"
)


def check_messages(
    messages: Sequence[Message], notes: ReplayNotes, *, native: bool | None = None
) -> None:
    """Refuse what a text model cannot read, and say what it does not get.

    Args:
        messages: The messages of a request.
        notes: Takes what is lost, and where.
        native: Whether the template knows tools; `None` says nothing about calls.

    Raises:
        ModelError: `invalid_request`, naming the part.
    """
    if not any(not isinstance(message, SystemMessage) for message in messages):
        raise ModelError(
            "there is no message for the model to answer",
            "invalid_request",
            provider="local",
        )
    for index, message in enumerate(messages):
        notes.at(index)
        if isinstance(message, UserMessage) and not isinstance(message.content, str):
            for number, part in enumerate(message.content):
                with notes.needed(f".content[{number}]"):
                    _need_text(part, index, number)
        elif isinstance(message, AssistantMessage):
            if message.reasoning or message.native is not None:
                notes.add(_BARE, "dropped")
            for number, call in enumerate(message.tool_calls):
                if native is False:
                    notes.add(_AS_LINES, "rewritten", part=f".tool_calls[{number}]")
                elif native and _arguments(call) != (call.arguments.strip() or "{}"):
                    notes.add(_RAW, "rewritten", part=f".tool_calls[{number}]")
    notes.at(None)


def _need_text(part: ContentPart, index: int, number: int) -> None:
    if not isinstance(part, TextPart):
        raise ModelError(
            f"messages[{index}].content[{number}]: the local model reads"
            f" text only, no {type(part).__name__}",
            "invalid_request",
            provider="local",
        )


def _arguments(call: ToolCall) -> str:
    """Return JSON text of an object: blank means `{}`, but templates parse the text."""
    text = call.arguments.strip() or "{}"
    try:
        good = isinstance(load_json(text), dict)
    except ValueError:
        good = False
    return text if good else dump_json({"_raw": call.arguments})


def last_user(messages: Sequence[Message]) -> int:
    """Return where the last user message stands; the length when there is none."""
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], UserMessage):
            return index
    return len(messages)


def last_question(messages: Sequence[Message]) -> str:
    """Return the text of the last user message; empty when there is none."""
    index = last_user(messages)
    message = messages[index] if index < len(messages) else None
    return message.text if isinstance(message, UserMessage) else ""


def result_line(message: ToolMessage) -> str:
    """Return a tool's result as a line of a user message."""
    kind = "Error" if message.is_error else "Result"
    return f"{kind} of {message.tool_name}: {message.tool_output}"


def plain_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    """Return chat messages for a template without tools.

    One system message first, then user and assistant in turn, as many templates demand.
    A call is left out; its result stands as a line below the question.
    """
    system: list[str] = []
    turns: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            system.append(message.content)
        elif isinstance(message, UserMessage):
            turns.append(("user", message.text))
        elif isinstance(message, ToolMessage):
            turns.append(("user", result_line(message)))
        else:
            turns.append(("assistant", message.content))
    return _with_system(system, _merged(turns))


def _merged(turns: Sequence[tuple[str, str]]) -> list[ChatMessage]:
    """Join neighbours of one role and drop turns without text."""
    merged: list[tuple[str, str]] = []
    for role, text in turns:
        if not text:
            continue
        if merged and merged[-1][0] == role:
            merged[-1] = (role, f"{merged[-1][1]}\n{text}")
        else:
            merged.append((role, text))
    if not merged:
        merged.append(("user", ""))
    return [{"role": role, "content": text} for role, text in merged]


def _with_system(system: Sequence[str], chat: list[ChatMessage]) -> list[ChatMessage]:
    text = "\n\n".join(part for part in system if part)
    return [{"role": "system", "content": text}, *chat] if text else chat


def native_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    """Return chat messages for a template that knows tools."""
    system: list[str] = []
    chat: list[ChatMessage] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            system.append(message.content)
        elif isinstance(message, UserMessage):
            chat.append({"role": "user", "content": message.text})
        elif isinstance(message, ToolMessage):
            chat.append(
                {
                    "role": "tool",
                    "tool_call_id": message.call_id,
                    "name": message.tool_name,
                    "content": message.tool_output,
                }
            )
        elif message.content or message.tool_calls:
            chat.append(_native_assistant(message))
    return _with_system(system, chat)


def _native_assistant(message: AssistantMessage) -> ChatMessage:
    out: ChatMessage = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        out["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {
                    "name": call.tool_name,
                    "arguments": _arguments(call),
                },
            }
            for call in message.tool_calls
        ]
    return out


def tool_list(specs: Sequence[ToolSpec]) -> list[ChatMessage]:
    """Return the tools in the form that templates know."""
    return [
        {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
            },
        }
        for spec in specs
    ]
