"""Recorded tool loops of both interfaces, run by an agent whose tools are stand-ins."""

from __future__ import annotations

import json

import pytest
from support.chat_streams import body as chat_body
from support.chat_streams import reply as chat_reply
from support.chat_streams import sse as chat_sse
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer
from support.openai_streams import message, reply, response, sse
from support.recorded_loops import Chat, Responses, expect_recorded_requests, loops

pytestmark = pytest.mark.recordings
LAST = {
    True: Answer(headers=EVENT_STREAM, body=sse(reply(message("ok")))),
    False: Answer(
        headers=JSON_TYPE, body=json.dumps(response([message("ok")])).encode()
    ),
}
LAST_CHAT = {
    True: Answer(headers=EVENT_STREAM, body=chat_sse(chat_reply({"content": "ok"}))),
    False: Answer(
        headers=JSON_TYPE, body=json.dumps(chat_body({"content": "ok"})).encode()
    ),
}


@pytest.mark.parametrize("exchanges", loops("openai-responses", Responses()))
async def test_an_agent_sends_the_recorded_requests(server, make, exchanges):
    """KF-063, KF-069: turn for turn, from the first question to the last."""
    form = Responses()
    assert await expect_recorded_requests(form, make, server, exchanges, LAST) > 1


@pytest.mark.parametrize(
    "exchanges", [*loops("openai-chat", Chat()), *loops("deepseek-chat", Chat())]
)
async def test_an_agent_sends_the_recorded_chat_requests(server, make_chat, exchanges):
    """KF-065, KF-069: the same for Chat Completions, of OpenAI and of DeepSeek."""
    form = Chat()
    done = await expect_recorded_requests(form, make_chat, server, exchanges, LAST_CHAT)
    assert done > 1
