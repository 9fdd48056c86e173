"""The services that the suite plays speak as the vendors' SDKs expect it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache

import anthropic
import openai
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from lighter_conformance import ChatWire, MessagesWire, ResponsesWire, Wire
from lighter_conformance.server import EVENT_STREAM, Answer, Lane, shared_server
from lighter_conformance.wires import UNFINISHED, wire_named
from lighter_core import ToolCall, Usage
from lighter_core.testing import Turn

TURN = Turn(
    text="naïve 日本語",
    reasoning="First, then second.",
    tool_calls=[
        ToolCall("call_1", "add", '{"a": 1, "b": 2}'),
        ToolCall("call_2", "add", '{"a": 3, "b": 4}'),
    ],
    usage=Usage(20, 10, cache_read_tokens=8, reasoning_tokens=6),
    pieces=3,
)
TURNS = {
    "everything": TURN,
    "text": Turn(text="Hello!"),
    "unfinished": Turn(text="Hel", stop_reason=UNFINISHED),
    "nothing": Turn(),
}
FORMS: dict[str, tuple[Wire, object, object]] = {
    "chat": (ChatWire(), ChatCompletion, ChatCompletionChunk),
    "responses": (ResponsesWire(), Response, ResponseStreamEvent),
    "plain": (ResponsesWire(plain_reasoning=True), Response, ResponseStreamEvent),
    "messages": (MessagesWire(), Message, RawMessageStreamEvent),
}
adapter = cache(TypeAdapter)
PLAIN_USAGE = Usage(1, 1)


def data_of(events: list[bytes]) -> Iterator[object]:
    for event in events:
        lines = event.decode().splitlines()
        data = "".join(
            line.removeprefix("data: ") for line in lines if "data: " in line
        )
        if data != "[DONE]":
            yield json.loads(data)


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("form", FORMS)
def test_replies_and_events_are_of_the_vendors_types(form: str, turn: str) -> None:
    """All required fields are there, each of its type."""
    wire, whole, event = FORMS[form]
    said = TURNS[turn]
    if said.usage is None:  # the types demand it; a service may leave it out
        said = Turn(text=said.text, stop_reason=said.stop_reason, usage=PLAIN_USAGE)
    adapter(whole).validate_json(wire.whole(said))
    for each in data_of(wire.stream(said)):
        if each != {"type": "ping"}:
            adapter(event).validate_python(each)


@pytest.fixture
def lane() -> Iterator[Lane]:
    """A lane of the service."""
    lane = shared_server().lane()
    yield lane
    shared_server().leave(lane)


def played(lane: Lane, wire: Wire) -> str:
    def answer(request):
        if wire.streamed(request.json):
            return Answer(pieces=wire.stream(TURN), headers=EVENT_STREAM)
        return Answer(pieces=[wire.whole(TURN)])

    lane.answer = answer
    return lane.url + wire.base_path


CALLS = [("call_1", {"a": 1, "b": 2}), ("call_2", {"a": 3, "b": 4})]


def chat(url: str) -> list[object]:
    with openai.OpenAI(api_key="k", base_url=url, max_retries=0) as client:
        completions = client.chat.completions
        message = {"role": "user", "content": "Hi."}
        whole = completions.create(model="m", messages=[message])
        with completions.stream(model="m", messages=[message]) as stream:
            stream.until_done()
            last = stream.get_final_completion()
    return [
        (
            each.choices[0].message.content,
            [
                (call.id, json.loads(call.function.arguments))
                for call in each.choices[0].message.tool_calls
            ],
            (each.usage.prompt_tokens, each.usage.completion_tokens),
        )
        for each in (whole, last)
    ]


def responses(url: str) -> list[object]:
    with openai.OpenAI(api_key="k", base_url=url, max_retries=0) as client:
        whole = client.responses.create(model="m", input="Hi.")
        with client.responses.stream(model="m", input="Hi.") as stream:
            last = stream.get_final_response()
    return [
        (
            each.output_text,
            [
                (item.call_id, json.loads(item.arguments))
                for item in each.output
                if item.type == "function_call"
            ],
            (each.usage.input_tokens, each.usage.output_tokens),
        )
        for each in (whole, last)
    ]


def messages(url: str) -> list[object]:
    with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
        ask = {"role": "user", "content": "Hi."}
        whole = client.messages.create(model="m", max_tokens=9, messages=[ask])
        with client.messages.stream(model="m", max_tokens=9, messages=[ask]) as stream:
            last = stream.get_final_message()
    return [
        (
            "".join(block.text for block in each.content if block.type == "text"),
            [
                (block.id, block.input)
                for block in each.content
                if block.type == "tool_use"
            ],
            (
                each.usage.input_tokens + each.usage.cache_read_input_tokens,
                each.usage.output_tokens,
            ),
        )
        for each in (whole, last)
    ]


@pytest.mark.parametrize("read", [chat, responses, messages])
def test_the_sdks_own_reading_gives_the_turn(
    read: Callable[[str], list[object]], lane: Lane
) -> None:
    """Whole and streamed: so a provider on any client library can be checked."""
    url = played(lane, wire_named(read.__name__))
    assert read(url) == [(TURN.text, CALLS, (20, 10))] * 2
