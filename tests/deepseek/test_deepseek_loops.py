"""Recorded tool loops of DeepSeek, run by an agent whose tools are stand-ins."""

from __future__ import annotations

import json

import pytest
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer
from support.openai_streams import message, reply, response, sse
from support.recorded_loops import Responses, expect_recorded_requests, loops

pytestmark = pytest.mark.recordings
LAST = {
    True: Answer(headers=EVENT_STREAM, body=sse(reply(message("ok")))),
    False: Answer(
        headers=JSON_TYPE, body=json.dumps(response([message("ok")])).encode()
    ),
}


@pytest.mark.parametrize("exchanges", loops("deepseek-responses", Responses()))
async def test_an_agent_sends_the_recorded_requests(server, make, exchanges):
    """KF-065, KF-069: reasoning before its calls, turn for turn."""
    form = Responses()
    assert await expect_recorded_requests(form, make, server, exchanges, LAST) > 1
