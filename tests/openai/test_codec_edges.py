"""Branches of the codecs that odd histories and replies reach, through the public door."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest
from support import chat_streams as chat
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer
from support.openai_streams import (
    added,
    created,
    done,
    end,
    message,
    reasoning,
    reply,
    response,
    sse,
)

from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelRequest,
    ReasoningDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from lighter_openai import OpenAIChatProvider

ASK = [UserMessage("hello")]


def answered(*calls: ToolCall) -> list[ToolMessage]:
    return [
        ToolMessage(call_id=c.call_id, tool_name=c.tool_name, tool_output="3")
        for c in calls
    ]


def whole(*items: Any) -> Answer:
    return Answer(headers=JSON_TYPE, body=json.dumps(response(list(items))).encode())


async def sent(server: Any, provider: Any, *history: Any) -> list[dict[str, Any]]:
    """Return the items of the input that a history becomes."""
    before = len(server.requests)
    await provider.invoke(ModelRequest(list(history)))
    return json.loads(server.requests[before].body)["input"]


async def test_native_context_without_items_is_sent_back_as_nothing(
    server, make
) -> None:
    """No reply of a service has such; a document of another program may."""
    server.script(whole(message("Hi")), whole(message("Hi")))
    provider = make()
    said = await provider.invoke(ModelRequest(ASK))
    empty = replace(said, native=replace(said.native, items="[]"))
    assert empty.native_intact()
    items = await sent(server, provider, *ASK, empty, UserMessage("again"))
    assert [each.get("role") for each in items] == ["user", "user"]


@pytest.mark.parametrize("arguments", ["", " \n", "[1]", "{"])
async def test_rebuilt_arguments_are_json_of_an_object(
    server, make_chat, arguments: str
) -> None:
    """Servers parse them: blank ones are none, others are kept in `_raw`."""
    body = json.dumps(chat.body({"content": "Hi"})).encode()
    server.script(Answer(headers=JSON_TYPE, body=body))
    asked = ToolCall("c1", "add", arguments)
    history = [*ASK, AssistantMessage(tool_calls=[asked]), *answered(asked)]
    await make_chat().invoke(ModelRequest(history))
    (given,) = json.loads(server.requests[0].body)["messages"][1]["tool_calls"]
    wanted = {"_raw": arguments} if arguments.strip() else {}
    assert json.loads(given["function"]["arguments"]) == wanted


async def test_a_rebuilt_id_that_is_too_long_or_taken_gets_another(
    server, make_chat
) -> None:
    """Chat services take 40 characters; results follow their calls."""
    body = json.dumps(chat.body({"content": "Hi"})).encode()
    server.script(Answer(headers=JSON_TYPE, body=body))
    calls = [ToolCall(id_, "add", "{}") for id_ in ("c" * 50, "c" * 41, "é", "d" * 64)]
    history: list[Any] = [*ASK]
    for each in (*calls, calls[0]):
        history += [AssistantMessage(tool_calls=[each]), *answered(each)]
    await make_chat().invoke(ModelRequest(history))
    messages = json.loads(server.requests[0].body)["messages"]
    asked = [m["tool_calls"][0]["id"] for m in messages if "tool_calls" in m]
    results = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert asked == results
    assert len(set(asked)) == 5
    assert all(0 < len(each) <= 64 for each in asked)


async def test_an_item_shows_one_of_its_two_reasoning_texts(server, make) -> None:
    """A summary and the content of one item say the same: the first to come is shown."""
    item = reasoning("In short.", content=[{"type": "reasoning_text", "text": "Long."}])
    where = {"item_id": "rs_1", "output_index": 0}
    summary = {"type": "response.reasoning_summary_text.delta", **where}
    content = {"type": "response.reasoning_text.delta", **where}
    said = message("Hi", id_="msg_2")
    events = [
        created(),
        added(0, {**item, "summary": [], "content": []}),
        {**summary, "summary_index": 0, "delta": "In short."},
        {**content, "content_index": 0, "delta": "Long."},
        done(0, item),
        *reply(said)[1:-1],
        end([item, said]),
    ]
    for number, event in enumerate(events):
        if number > 4 and "output_index" in event:
            event["output_index"] = 1
    server.script(Answer(headers=EVENT_STREAM, body=sse(events)))
    found = [each async for each in make().stream(ModelRequest(ASK))]
    shown = "".join(each.text for each in found if isinstance(each, ReasoningDelta))
    assert shown == "In short."
    assert isinstance(found[-1], MessageEvent)
    assert found[-1].message.reasoning == "In short."


async def test_a_chat_reply_of_reasoning_alone_is_not_sent_back(
    server, make_chat
) -> None:
    """Services refuse a message that has neither content nor calls."""
    thought = {"content": None, "reasoning_content": "Hm."}
    bodies = [
        json.dumps(chat.body(each)).encode() for each in (thought, {"content": "Hi"})
    ]
    server.script(*[Answer(headers=JSON_TYPE, body=each) for each in bodies])
    provider = make_chat()
    reply = await provider.invoke(ModelRequest(ASK))
    assert (reply.reasoning, reply.native) == ("Hm.", None)
    await provider.invoke(ModelRequest([*ASK, reply, UserMessage("again")]))
    roles = [each["role"] for each in json.loads(server.requests[1].body)["messages"]]
    assert roles == ["user", "user"]


def test_a_client_that_is_not_the_sdks_needs_no_sdk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where `openai` is not imported, a client cannot be one of its Azure clients."""

    class Own:
        base_url = "http://127.0.0.1:9/v1"
        api_key = "x"

        async def post(self, *args: Any, **options: Any) -> None: ...

    monkeypatch.delitem(sys.modules, "openai", raising=False)
    assert OpenAIChatProvider(client=Own(), model_id="m").name == "openai-chat"
    assert "openai" not in sys.modules
