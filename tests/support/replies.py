"""Streams of each interface for each feature of a reply, written for the tests."""

from __future__ import annotations

from dataclasses import dataclass

from . import chat_streams as chat
from . import claude_streams as claude
from . import openai_streams as openai
from .interfaces import INTERFACES, Interface

__all__ = ["FINAL", "STREAMS", "Stream"]

_WORDS = 'Grüße 🦊\u2028日本 \\"quoted\\" \r\n end ✓'
_ARGS = '{"text": "a ✓ 🦊 \\n b", "n": 12}'


@dataclass(frozen=True)
class Stream:
    """One streamed reply; its tool is `note(text, n)`."""

    name: str
    interface: Interface
    body: bytes
    calls: int


_BY_NAME = {each.name: each for each in INTERFACES}
_VALUE = {"text": "a ✓ 🦊 \n b", "n": 12}


def _interleaved_claude() -> bytes:
    one, two = (claude.call("note", _VALUE, n) for n in (1, 2))
    first, second = claude.block_events(0, one), claude.block_events(1, two)
    mixed = [first[0], second[0]]
    for a, b in zip(first[1:], second[1:], strict=True):
        mixed += [a, b]
    return claude.sse([claude.started(), *mixed, *claude.end("tool_use")])


def _interleaved_openai() -> bytes:
    items = [openai.call("note", _ARGS, n) for n in (1, 2)]
    first, second = (openai.item_events(i, each) for i, each in enumerate(items))
    mixed = [e for pair in zip(first, second, strict=True) for e in pair]
    return openai.sse([openai.created(), *mixed, openai.end(items)])


def _interleaved_chat() -> bytes:
    calls = [chat.call_chunks(chat.call("note", _ARGS, n + 1), n) for n in (0, 1)]
    mixed = [e for pair in zip(*calls, strict=True) for e in pair]
    return chat.sse(
        [
            chat.chunk({"role": "assistant"}),
            *mixed,
            chat.chunk(finish="tool_calls"),
            chat.usage_chunk(),
        ]
    )


def _responses(name: str) -> list[Stream]:
    to = _BY_NAME[name]
    think = (
        openai.thought("First this. ", "Then é.")
        if name == "deepseek"
        else openai.reasoning("First this. ", "Then é.")
    )
    return [
        Stream("text", to, openai.sse(openai.reply(openai.message(_WORDS))), 0),
        Stream(
            "reasoning, text and a call",
            to,
            openai.sse(
                openai.reply(think, openai.message(_WORDS), openai.call("note", _ARGS))
            ),
            1,
        ),
        Stream("two calls interleaved", to, _interleaved_openai(), 2),
        Stream(
            "reasoning and three calls, escaped, CRLF",
            to,
            openai.sse(
                openai.reply(
                    think, *(openai.call("note", _ARGS, n) for n in (1, 2, 3))
                ),
                ascii_only=True,
                line_end=b"\r\n",
            ),
            3,
        ),
    ]


def _claude() -> list[Stream]:
    to = _BY_NAME["claude"]
    return [
        Stream("text", to, claude.sse(claude.reply(claude.text(_WORDS))), 0),
        Stream(
            "thinking, redacted, text and a call",
            to,
            claude.sse(
                claude.reply(
                    claude.thinking("First é."),
                    claude.redacted(),
                    claude.text(_WORDS),
                    claude.call("note", _VALUE),
                    stop="tool_use",
                )
            ),
            1,
        ),
        Stream("two calls interleaved", to, _interleaved_claude(), 2),
        Stream(
            "thinking and three calls, escaped, CRLF",
            to,
            claude.sse(
                claude.reply(
                    claude.thinking("So."),
                    *(claude.call("note", _VALUE, n) for n in (1, 2, 3)),
                    stop="tool_use",
                ),
                ascii_only=True,
                line_end=b"\r\n",
            ),
            3,
        ),
    ]


def _chat() -> list[Stream]:
    to = _BY_NAME["openai-chat"]
    call = chat.call("note", _ARGS)
    return [
        Stream("text", to, chat.sse(chat.reply({"content": _WORDS})), 0),
        Stream(
            "reasoning, text and a call",
            to,
            chat.sse(
                chat.reply(
                    {
                        "reasoning_content": "First é.",
                        "content": _WORDS,
                        "tool_calls": [call],
                    },
                    "tool_calls",
                )
            ),
            1,
        ),
        Stream("two calls interleaved", to, _interleaved_chat(), 2),
    ]


STREAMS: tuple[Stream, ...] = (
    *_responses("openai"),
    *_claude(),
    *_chat(),
    *_responses("deepseek")[1:2],
)

FINAL = {each.name: each.streamed for each in INTERFACES}
"""What ends a conversation with each interface: a stream that says "Hello!"."""
