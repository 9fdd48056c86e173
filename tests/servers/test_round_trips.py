"""What recorded replies leave in a history survives JSON, down to the next request."""

from __future__ import annotations

import asyncio
import json
import os
import random

import pytest
from hypothesis import HealthCheck, given, settings
from support.histories import valid_histories
from support.loopback import Loopback
from support.recordings import REASON, Exchange, exchanges
from support.servers import body_of, make_model
from support.torture import examples

from lighter_core import (
    AssistantMessage,
    Message,
    MessageEvent,
    Model,
    ModelError,
    ModelRequest,
    ToolMessage,
    UserMessage,
    check_history,
    messages_from_json,
    messages_to_json,
)

VENDORS = {
    "anthropic-messages": "claude",
    "openai-responses": "openai",
    "deepseek-responses": "deepseek",
    "openai-chat": "openai-chat",
    "deepseek-chat": "deepseek-chat",
}
REPLIES = {  # how many of the recordings end in a reply
    "anthropic-messages": 50,
    "openai-responses": 50,
    "deepseek-responses": 8,
    "openai-chat": 25,
    "deepseek-chat": 25,
}


@pytest.fixture
def models() -> dict[str, Model]:
    """A model of each provider; nothing is sent."""
    return {
        name: make_model(name, "https://api.example/v1") for name in VENDORS.values()
    }


async def decoded(vendor: str) -> tuple[Model, list[AssistantMessage]]:
    """Return the replies that the recordings end in, as the adapter gives them."""
    replies: list[AssistantMessage] = []
    async with Loopback() as server:
        model = make_model(VENDORS[vendor], server.url, model_id="m")
        for exchange in exchanges(vendor):
            server.script(exchange.answer())
            try:
                replies.append(await reply(model, exchange))
            except ModelError:
                continue
        await model.aclose()
    return model, replies


async def reply(model: Model, exchange: Exchange) -> AssistantMessage:
    request = ModelRequest([UserMessage("hello")])
    if not exchange.streamed:
        return await model.invoke(request)
    found: list[AssistantMessage] = []
    async for event in model.stream(request):
        if isinstance(event, MessageEvent):
            found.append(event.message)
    (message,) = found
    return message


def conversation(replies: list[AssistantMessage]) -> list[Message]:
    history: list[Message] = []
    for number, message in enumerate(replies):
        history.append(UserMessage(f"Question {number}"))
        history.append(message)
        history.extend(
            ToolMessage(
                call_id=call.call_id, tool_name=call.tool_name, tool_output='{"é":1}'
            )
            for call in message.tool_calls
        )
    history.append(UserMessage("And now?"))
    return history


@pytest.mark.recordings
@pytest.mark.parametrize("vendor", VENDORS)
def test_recorded_replies_survive_json(vendor: str) -> None:
    """Each alone and all together: equal messages, and the same body letter by letter."""
    if not exchanges(vendor):
        pytest.skip(REASON)
    model, replies = asyncio.run(decoded(vendor))
    assert len(replies) >= REPLIES[vendor]
    assert any(each.native_intact() for each in replies)
    for history in (*(conversation([each]) for each in replies), conversation(replies)):
        if check_history(history):
            continue  # a recorded reply has one call id twice: tested elsewhere
        text = messages_to_json(history)
        again = messages_from_json(text)
        assert again == history
        assert messages_to_json(again) == text
        body = body_of(model, history)
        assert isinstance(body, bytes), body
        assert body_of(model, again) == body


@pytest.mark.recordings
@pytest.mark.parametrize("vendor", VENDORS)
def test_each_prefix_gives_the_same_request_after_json(vendor: str) -> None:
    if not exchanges(vendor):
        pytest.skip(REASON)
    model, replies = asyncio.run(decoded(vendor))
    random.Random(7).shuffle(replies)
    history = [m for each in replies[:12] for m in conversation([each])]
    for end in range(1, len(history) + 1, 3):
        prefix = history[:end]
        if check_history(prefix):
            continue
        again = messages_from_json(json.dumps(json.loads(messages_to_json(prefix))))
        assert body_of(model, again) == body_of(model, prefix)


@given(valid_histories())
@settings(
    max_examples=int(os.environ.get("LIGHTER_HISTORIES", examples(100))),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_generated_histories_give_the_same_request_after_json(
    models: dict[str, Model], history: list[Message]
) -> None:
    again = messages_from_json(messages_to_json(history))
    assert again == history
    for model in models.values():
        assert body_of(model, again) == body_of(model, history)
