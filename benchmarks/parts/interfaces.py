"""The encoder and the decoder of each interface, reached as the providers reach them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from benchmarks.compare.replies import Protocol, streamed, whole
from benchmarks.compare.work import QUESTION, TOOL, add_up
from lighter_claude import ClaudeProvider
from lighter_core import (
    AssistantMessage,
    Message,
    ModelRequest,
    ToolMessage,
    UserMessage,
)
from lighter_core.adapters import Codec, ReplayNotes, SDKProvider
from lighter_deepseek import DeepSeekProvider
from lighter_openai import OpenAIChatProvider, OpenAIProvider

_MAKE: dict[str, Callable[..., SDKProvider]] = {
    "responses": OpenAIProvider,
    "chat": OpenAIChatProvider,
    "messages": ClaudeProvider,
    "deepseek": DeepSeekProvider,
}
INTERFACES = tuple(_MAKE)


def protocol_of(interface: str) -> Protocol:
    """Return what the service of an interface speaks."""
    protocols: dict[str, Protocol] = {
        "responses": "responses",
        "chat": "chat",
        "messages": "messages",
        "deepseek": "responses",
    }
    return protocols[interface]


def make_provider(interface: str, **options: object) -> SDKProvider:
    """Return a provider whose address is nobody's."""
    return _MAKE[interface]("key", "model", base_url="http://127.0.0.1:9", **options)


@cache
def _provider(interface: str) -> SDKProvider:
    return make_provider(interface)


def codec(interface: str) -> Codec:
    """Return what reads replies."""
    request = ModelRequest([UserMessage(QUESTION)])
    return _provider(interface)._codec(request)  # noqa: SLF001 - the part itself


def encode(interface: str, messages: list[Message]) -> bytes:
    """Return the body of a request."""
    request = ModelRequest(messages)
    return _provider(interface)._encode(  # noqa: SLF001 - the part itself
        request, ReplayNotes(), stream=False
    )


def body(interface: str, kind: str, number: int = 0, turn: int = 0) -> bytes:
    """Return the body of a reply that comes whole."""
    reply = whole(protocol_of(interface), kind, number, turn)
    return reply[reply.index(b"\r\n\r\n") + 4 :]


@cache
def events(interface: str, deltas: int) -> list[bytes]:
    """Return the data of each event of a reply that is streamed."""
    found: list[bytes] = []
    for part in streamed(protocol_of(interface), "stream", deltas, 0)[1:-1]:
        found.append(part[part.index(b"data: ") + 6 :].split(b"\n", 1)[0])
    return found


def conversation(interface: str, turns: int, first: int = 0) -> list[Message]:
    """Return a conversation with replies that carry their native context.

    Every message is an object of its own, made now, so nothing kept for one helps.
    """
    # Each reply has an id of its own: one that stands there twice would not be sent as
    # the service wrote it.
    read, text = codec(interface).decode_body, body(interface, "text")
    out: list[Message] = []
    for number in range(first, first + turns):
        call = read(body(interface, "tools", number + 1, number))
        (asked,) = call.tool_calls
        values: dict[str, Any] = json.loads(asked.arguments)
        result = json.dumps(add_up(**values))
        out += [
            UserMessage(f"{number}: {QUESTION}"),
            call,
            ToolMessage(call_id=asked.call_id, tool_name=TOOL, tool_output=result),
            read(text.replace(b"0999", b"1%03d" % number)),
        ]
    return out


def reply(interface: str) -> AssistantMessage:
    """Return a reply with a tool call and its native context."""
    return codec(interface).decode_body(body(interface, "tools", 1))
