"""Streamed replies whose deltas are large, as each interface sends them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import chat_streams, claude_streams, openai_streams

__all__ = ["argument_events", "text_events"]

Event = dict[str, Any]

_PLACE = "what stands for the text"


def text_events(interface: str, pieces: Sequence[str]) -> list[bytes]:
    """The data of each event of a text in these pieces, all of one size."""
    if interface == "openai-chat":
        return _chat({"content": "".join(pieces)}, "stop", len(pieces[0]))
    if interface == "claude":
        return _claude(
            claude_streams.text(""),
            [claude_streams.delta(0, "text_delta", text=each) for each in pieces],
            "end_turn",
        )
    item = openai_streams.message(_PLACE)
    return _responses(item, "response.output_text.delta", pieces)


def argument_events(interface: str, name: str, pieces: Sequence[str]) -> list[bytes]:
    """The data of each event of a tool call whose arguments come in these pieces."""
    if interface == "openai-chat":
        call = chat_streams.call(name, "".join(pieces))
        return _chat({"tool_calls": [call]}, "tool_calls", len(pieces[0]))
    if interface == "claude":
        return _claude(
            claude_streams.call(name, {}),
            [
                claude_streams.delta(0, "input_json_delta", partial_json=each)
                for each in pieces
            ],
            "tool_use",
        )
    call = openai_streams.call(name, _PLACE)
    return _responses(call, "response.function_call_arguments.delta", pieces)


def _chat(message: Event, finish: str, size: int) -> list[bytes]:
    return [_data(each) for each in chat_streams.reply(message, finish, size)]


def _claude(block: Event, deltas: list[Event], stop: str) -> list[bytes]:
    events = [
        claude_streams.started(),
        claude_streams.begin(0, block),
        *deltas,
        claude_streams.stop(0),
        *claude_streams.end(stop),
    ]
    return [_data(each) for each in events]


def _responses(item: Event, kind: str, pieces: Sequence[str]) -> list[bytes]:
    """Put these deltas in the place of the small ones, and their text where it is whole."""
    events = openai_streams.reply(item)
    places = [at for at, event in enumerate(events) if event["type"] == kind]
    first, last = places[0], places[-1]
    deltas = [_data({**events[first], "delta": each}) for each in pieces]
    place, whole = _PLACE.encode(), json.dumps("".join(pieces))[1:-1].encode()
    ends = [_data(each).replace(place, whole) for each in events[last + 1 :]]
    return [*map(_data, events[:first]), *deltas, *ends]


def _data(event: Event) -> bytes:
    return json.dumps(event).encode()
