"""The bytes of the mock service's replies, with the fields that the services send."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from .work import ANSWER, TOOL, pieces

Protocol = Literal["responses", "chat", "messages", "told"]
Event = dict[str, Any]

HEADERS = "".join(
    f"{name}: {value}\r\n"
    for name, value in {
        "date": "Mon, 01 Jun 2026 10:00:00 GMT",
        "server": "mock",
        "openai-version": "2020-10-01",
        "openai-organization": "mock",
        "openai-processing-ms": "310",
        "x-request-id": "req_0123456789abcdef",
        "request-id": "req_0123456789abcdef",
        "x-ratelimit-limit-requests": "10000",
        "x-ratelimit-remaining-requests": "9999",
        "x-ratelimit-reset-requests": "6ms",
        "strict-transport-security": "max-age=31536000",
        "x-content-type-options": "nosniff",
        "cf-cache-status": "DYNAMIC",
    }.items()
)


def answer(body: bytes, status: str = "200 OK") -> bytes:
    """Return a whole HTTP reply."""
    head = (
        f"HTTP/1.1 {status}\r\n{HEADERS}content-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


STREAM_HEAD = (
    f"HTTP/1.1 200 OK\r\n{HEADERS}content-type: text/event-stream; charset=utf-8\r\n"
    "transfer-encoding: chunked\r\n\r\n"
).encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@cache
def whole(protocol: Protocol, kind: str, number: int, turn: int) -> bytes:
    """Return the reply to a request that is not streamed."""
    text, call = _reply(kind, number, turn)
    body = {
        "responses": _response,
        "chat": _completion,
        "messages": _message,
        "told": _told,
    }[protocol]
    return answer(json.dumps(body("".join(text), call)).encode())


@cache
def streamed(
    protocol: Protocol, kind: str, number: int, turn: int
) -> tuple[bytes, ...]:
    """Return the parts of a streamed reply: a head, one for each event, an end."""
    written = written_events(protocol, *_reply(kind, number, turn))
    return (STREAM_HEAD, *map(_chunk, written), b"0\r\n\r\n")


def written_events(
    protocol: Protocol, text: Sequence[str], call: Call | None
) -> Iterator[bytes]:
    """Yield the events of a streamed reply, one delta for each piece."""
    make = {
        "responses": _response_events,
        "chat": _chunks,
        "messages": _message_events,
    }[protocol]
    for event in make(text, call):
        name = "" if protocol == "chat" else f"event: {event['type']}\n"
        yield f"{name}data: {json.dumps(event)}\n\n".encode()
    if protocol == "chat":
        yield b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Call:
    """A tool call: its number among those of the run, its arguments in pieces."""

    number: int
    pieces: Sequence[str]
    name: str = TOOL

    @property
    def arguments(self) -> str:
        """The arguments, whole."""
        return "".join(self.pieces)


def _reply(kind: str, number: int, turn: int) -> tuple[list[str], Call | None]:
    """Return the pieces of the text, and the call."""
    if kind in {"stream", "paced"}:
        return pieces(number), None
    if kind == "tools" and turn < number:
        return [], Call(turn, [json.dumps({"a": turn, "b": turn})])
    return [ANSWER[at : at + 8] for at in range(0, len(ANSWER), 8)], None


def _number(call: Call | None) -> int:
    """Return what tells the ids of a run's replies apart; some peers merge by id."""
    return 999 if call is None else call.number


# Responses


def _items(text: str, call: Call | None) -> list[Event]:
    if call is not None:
        return [
            {
                "id": f"fc_{call.number:032}",
                "type": "function_call",
                "status": "completed",
                "call_id": f"call_{call.number:024}",
                "name": call.name,
                "arguments": call.arguments,
            }
        ]
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    return [
        {
            "id": f"msg_{_number(call):032}",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }
    ]


def _response(text: str, call: Call | None, status: str = "completed") -> Event:
    done = status == "completed"
    return {
        "id": f"resp_{_number(call):040}",
        "object": "response",
        "created_at": 1780000000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": "mock",
        "output": _items(text, call) if done else [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 30,
        }
        if done
        else None,
        "user": None,
        "metadata": {},
    }


def _response_events(text: Sequence[str], call: Call | None) -> list[Event]:
    item = _items("".join(text), call)[0]
    where = {"item_id": item["id"], "output_index": 0}
    begun = {**item, "status": "in_progress"}
    start = _response("", call, "in_progress")
    events: list[Event] = [
        {"type": "response.created", "response": start},
        {"type": "response.in_progress", "response": start},
    ]
    if call is not None:
        begun["arguments"] = ""
        name = "response.function_call_arguments"
        inner: list[Event] = [
            *(
                {"type": f"{name}.delta", **where, "delta": piece}
                for piece in call.pieces
            ),
            {"type": f"{name}.done", **where, "arguments": call.arguments},
        ]
    else:
        begun["content"] = []
        spot = {**where, "content_index": 0}
        part = item["content"][0]
        inner = [
            {
                "type": "response.content_part.added",
                **spot,
                "part": {**part, "text": ""},
            },
            *(
                {
                    "type": "response.output_text.delta",
                    **spot,
                    "delta": piece,
                    "logprobs": [],
                    "obfuscation": "aB3dE5gH7jK9mN"[: 16 - len(piece) % 8],
                }
                for piece in text
            ),
            {
                "type": "response.output_text.done",
                **spot,
                "text": part["text"],
                "logprobs": [],
            },
            {"type": "response.content_part.done", **spot, "part": part},
        ]
    added = {"type": "response.output_item.added", "output_index": 0, "item": begun}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    last = {"type": "response.completed", "response": _response("".join(text), call)}
    return [
        {**event, "sequence_number": number}
        for number, event in enumerate([*events, added, *inner, done, last])
    ]


# Chat Completions

_CHAT_USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 10,
    "total_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
}


def _chat_call(call: Call) -> Event:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": f"call_{call.number:024}", "type": "function", "function": function}


def _chat(
    kind: str, call: Call | None, choices: list[Event], usage: Event | None
) -> Event:
    return {
        "id": f"chatcmpl-{_number(call):029}",
        "object": kind,
        "created": 1780000000,
        "model": "mock",
        "choices": choices,
        "usage": usage,
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
    }


def _completion(text: str, call: Call | None) -> Event:
    message: Event = {"role": "assistant", "content": text, "refusal": None}
    if call is not None:
        message |= {"content": None, "tool_calls": [_chat_call(call)]}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "stop" if call is None else "tool_calls",
    }
    return _chat("chat.completion", call, [choice], _CHAT_USAGE)


def _told(text: str, call: Call | None) -> Event:
    """Return a completion that ends a run by a call of `final_answer`."""
    if call is not None:
        return _completion(text, call)
    reply = _completion("", Call(999, [""]))
    function = {"name": "final_answer", "arguments": json.dumps({"answer": text})}
    reply["choices"][0]["message"]["tool_calls"][0]["function"] = function
    return reply


def _chunks(text: Sequence[str], call: Call | None) -> list[Event]:
    deltas: list[Event] = [{"role": "assistant", "content": "", "refusal": None}]
    if call is not None:
        begun = {"index": 0, **_chat_call(replace(call, pieces=call.pieces[:1]))}
        deltas.append({"tool_calls": [begun]})
        deltas += [
            {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
            for piece in call.pieces[1:]
        ]
    deltas += [{"content": piece} for piece in text]
    end = "stop" if call is None else "tool_calls"
    choices: list[Event] = [
        {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        for delta in deltas
    ]
    choices.append({"index": 0, "delta": {}, "logprobs": None, "finish_reason": end})
    kind = "chat.completion.chunk"
    return [
        *(_chat(kind, call, [choice], None) for choice in choices),
        _chat(kind, call, [], _CHAT_USAGE),
    ]


# Messages


def _claude_usage(output: int) -> Event:
    return {
        "input_tokens": 20,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 8,
        "cache_creation": {
            "ephemeral_5m_input_tokens": 0,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output,
        "service_tier": "standard",
    }


def _block(text: str, call: Call | None) -> Event:
    if call is None:
        return {"type": "text", "text": text}
    made = {"type": "tool_use", "id": f"toolu_{call.number:024}", "name": call.name}
    return {**made, "input": json.loads(call.arguments)}


def _message(text: str, call: Call | None) -> Event:
    return {
        "id": f"msg_{_number(call):024}",
        "type": "message",
        "role": "assistant",
        "model": "mock",
        "content": [_block(text, call)],
        "stop_reason": "end_turn" if call is None else "tool_use",
        "stop_sequence": None,
        "usage": _claude_usage(10),
    }


def _message_events(text: Sequence[str], call: Call | None) -> list[Event]:
    start = {
        **_message("", call),
        "content": [],
        "stop_reason": None,
        "usage": _claude_usage(1),
    }
    first = _block("", call)
    if call is None:
        deltas = [{"type": "text_delta", "text": piece} for piece in text]
    else:
        first["input"] = {}
        deltas = [
            {"type": "input_json_delta", "partial_json": piece} for piece in call.pieces
        ]
    end = {
        "stop_reason": "end_turn" if call is None else "tool_use",
        "stop_sequence": None,
    }
    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": first},
        {"type": "ping"},
        *(
            {"type": "content_block_delta", "index": 0, "delta": delta}
            for delta in deltas
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
