"""What stands in `extra_body` wins, whichever adapter sends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.loopback import JSON_TYPE, Answer, Loopback

from lighter_claude import ClaudeProvider
from lighter_core import ModelError, ModelRequest, OutputSpec, ToolSpec, UserMessage
from lighter_deepseek import DeepSeekProvider
from lighter_openai import OpenAIChatProvider, OpenAIProvider

SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {}})
REQUEST = ModelRequest(
    [UserMessage("hi")],
    tool_specs=[ADD],
    output=OutputSpec("answer", SCHEMA),
    tool_choice="required",
)
RESERVED = {"model", "messages", "input", "stream"}  # refused at construction
JOINED = {"tools", "include"}
MERGED = {"text": "format", "output_config": "format"}
MAKERS = [ClaudeProvider, OpenAIProvider, OpenAIChatProvider, DeepSeekProvider]


async def sent(make: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """The body that arrives for the request."""
    async with Loopback() as server:
        server.script(Answer(400, JSON_TYPE, b"{}"))
        async with make(
            "key", "m", base_url=server.url, max_retries=0, **options
        ) as provider:
            with pytest.raises(ModelError):
                async for _ in provider.stream(REQUEST):
                    pass
        return server.requests[0].json


@pytest.mark.parametrize("make", MAKERS)
async def test_every_field_can_be_set(make):
    """One after the other, with a value that no adapter would write."""
    plain = await sent(make)
    assert {"tools", "tool_choice"} <= plain.keys()
    for key in plain.keys() - RESERVED - JOINED:
        marked = {MERGED[key]: {"x": 1}} if key in MERGED else {"x": 1}
        got = await sent(make, extra_body={key: marked})
        assert got == {**plain, key: marked}, key


@pytest.mark.parametrize("make", MAKERS)
async def test_lists_are_joined_and_settings_merged(make):
    """Documented with the option: what is given adds to the others."""
    plain = await sent(make)
    for key in plain.keys() & JOINED:
        got = await sent(make, extra_body={key: [{"type": "x"}]})
        assert got[key] == [*plain[key], {"type": "x"}]
    for key, inner in MERGED.items():
        if key in plain:
            got = await sent(make, extra_body={key: {"other": 1}})
            assert got[key] == {inner: plain[key][inner], "other": 1}
