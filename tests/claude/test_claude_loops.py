"""Recorded tool loops, run by an agent whose tools are stand-ins."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.claude_streams import body, text
from support.loopback import JSON_TYPE, Answer
from support.recordings import REASON, Exchange, conversations

from lighter_core import (
    Agent,
    ImagePart,
    TextPart,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
    hookimpl,
)

pytestmark = pytest.mark.recordings
LAST = Answer(headers=JSON_TYPE, body=json.dumps(body(text("ok"))).encode())
THOUGHTS = {"thinking", "redacted_thinking"}
# Some recorders left the first two out of what they sent back; the third is no content.
LEFT_OUT = {"caller", "citations", "cache_control"}
Turn = tuple[str, list[dict]]


def blocks_of(turn: dict) -> list[dict]:
    content = turn["content"]
    return [text(content)] if isinstance(content, str) else content


def results_of(turn: dict) -> list[dict]:
    return [block for block in blocks_of(turn) if block["type"] == "tool_result"]


def output_of(block: dict) -> str:
    """A recorded result as text: the tools of an agent give nothing else."""
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    if [part["type"] for part in content] == ["text"]:
        return content[0]["text"]
    return json.dumps(content)


def runs(exchanges: list[Exchange]) -> list[list[Exchange]]:
    """Cut a conversation where the user says something."""
    found: list[list[Exchange]] = []
    for each in exchanges:
        if results_of(each.request["json"]["messages"][-1]) and found:
            found[-1].append(each)
        else:
            found.append([each])
    return found


def loops() -> list[Any]:
    found = [
        pytest.param(exchanges, id=name)
        for name, exchanges in conversations("anthropic-messages").items()
        if any(len(run) > 1 for run in runs(exchanges))
    ]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=REASON))]


def comparable(messages: list[dict]) -> list[Turn]:
    """The turns without what is written otherwise on purpose."""
    turns = []
    for turn in messages:
        # Some recorders put what a tool showed behind its result, as the user's words.
        blocks = results_of(turn) or blocks_of(turn)
        kept = [{k: v for k, v in b.items() if k not in LEFT_OUT} for b in blocks]
        for block in kept:
            if block["type"] == "tool_result":
                block["content"] = output_of(block)
                block.setdefault("is_error", False)
        turns.append((turn["role"], kept))
    return turns


def without_extras(turn: Turn, recorded: Turn) -> Turn:
    """Our turn without the thinking that a recorder did not send back."""
    role, blocks = turn
    if any(block["type"] in THOUGHTS for block in recorded[1]):
        return turn
    return role, [block for block in blocks if block["type"] not in THOUGHTS]


def changed_questions(exchanges: list[Exchange]) -> list[tuple[int, str, list[dict]]]:
    """User turns that the recorded conversation itself says in two ways."""
    found = []
    for run in runs(exchanges):
        first = comparable(run[0].request["json"]["messages"])
        for each in run[1:]:
            later = comparable(each.request["json"]["messages"])
            pairs = enumerate(zip(first, later, strict=False))
            found += [(n, *turn) for n, (known, turn) in pairs if known != turn]
    return found


class StandIns:
    """Answers each call with the recorded result."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        self.results = {
            block["tool_use_id"]: block
            for each in exchanges
            for turn in each.request["json"]["messages"]
            for block in results_of(turn)
        }

    @hookimpl
    def before_tool(self, call: ToolCall) -> ToolMessage:
        """Take the place of the tool."""
        block = self.results.get(call.call_id, {"content": "not recorded"})
        return ToolMessage(
            call_id=call.call_id,
            tool_name=call.tool_name,
            tool_output=output_of(block),
            is_error=block.get("is_error", False),
        )


def tools_of(exchanges: list[Exchange]) -> list[Tool]:
    known = {
        tool["name"]: tool
        for each in exchanges
        for tool in each.request["json"].get("tools", [])
    }
    return [
        Tool(
            name=name,
            description=tool.get("description", "A tool of the service."),
            parameters=tool.get("input_schema", {"type": "object"}),
            func=lambda _: None,
            validate=False,
        )
        for name, tool in known.items()
    ]


def said(turn: dict) -> UserMessage:
    parts: list[Any] = []
    for block in blocks_of(turn):
        if block["type"] == "image":
            source = block["source"]
            url = f"data:{source['media_type']};base64,{source['data']}"
            parts.append(ImagePart(url=url))
        else:
            parts.append(TextPart(block["text"]))
    return UserMessage(parts)


@pytest.mark.parametrize("exchanges", loops())
async def test_an_agent_sends_the_recorded_requests(server, make, exchanges):
    """KF-063, KF-069, KF-071: turn for turn, from the first question to the last."""
    provider = make(model_id=exchanges[0].request["json"]["model"])
    agent = Agent(
        provider,
        tools=tools_of(exchanges),
        system_prompt=None,
        hooks=[StandIns(exchanges)],
    )
    changed = changed_questions(exchanges)
    history: list[Any] = []
    for run in runs(exchanges):
        asked = run[0].request["json"]["messages"]
        history = [] if len(asked) == 1 else history
        history.append(said(asked[-1]))
        server.requests.clear()
        server.script(*(each.answer() for each in run), LAST)
        if run[0].streamed:
            async with agent.stream(history) as stream:
                response = [event async for event in stream][-1]
        else:
            response = await agent.run(history)
        history += response.raise_if_failed().messages
        assert not response.notes
        assert len(server.requests) >= len(run)
        for sent, each in zip(server.requests, run, strict=False):
            recorded = comparable(each.request["json"]["messages"])
            mine = comparable(sent.json["messages"])
            assert len(mine) == len(recorded)
            for number, (own, theirs) in enumerate(zip(mine, recorded, strict=True)):
                if (number, *theirs) not in changed:
                    assert without_extras(own, theirs) == theirs
