"""Hosted tools, call fragments, and what is said about losses."""

from __future__ import annotations

import json

import pytest
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer
from support.openai_streams import (
    added,
    call,
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
    Agent,
    AgentResponse,
    AssistantMessage,
    HostedToolItem,
    Model,
    ModelError,
    ModelRequest,
    ToolCallDelta,
    UserMessage,
)
from lighter_openai import OpenAIProvider

ASK = ModelRequest([UserMessage("hello")])
SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "moon"},
}
TOOLS = [
    {"type": "web_search"},
    {"type": "code_interpreter", "container": {"type": "auto"}},
]


def streams(*replies):
    return [Answer(headers=EVENT_STREAM, body=sse(reply(*items))) for items in replies]


async def events_of(provider, request=ASK) -> list:
    return [event async for event in provider.stream(request)]


async def test_hosted_tools_stand_beside_functions(server, make):
    """In the service's own form, before what extra_body adds."""
    from lighter_core import ToolSpec

    server.script(*streams([message("x")]))
    spec = ToolSpec("add", "Add.", {"type": "object", "properties": {}})
    provider = make(hosted_tools=TOOLS, extra_body={"tools": [{"type": "mcp"}]})
    await provider.stream(ModelRequest(ASK.messages, tool_specs=[spec])).__anext__()
    sent = server.requests[0].json["tools"]
    assert [t["type"] for t in sent] == [
        "function",
        "web_search",
        "code_interpreter",
        "mcp",
    ]
    assert sent[2] == TOOLS[1]


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        ("web_search", "hosted_tools"),
        ({"type": "web_search"}, "hosted_tools"),
        (["web_search"], "hosted_tools[0]"),
        ([{"type": "web_search"}, {}], "hosted_tools[1]"),
        ([{"type": "function", "name": "add"}], "the agent's `tools`"),
        ([{"type": "x", "y": object()}], "hosted_tools[0]"),
    ],
)
def test_definitions_that_are_none_are_refused(tools, named):
    """With the place, at construction."""
    with pytest.raises(ModelError) as caught:
        OpenAIProvider("k", "m", hosted_tools=tools)
    assert caught.value.code == "invalid_request"
    assert named in caught.value.message


async def test_items_of_hosted_tools_are_shown_and_sent_back(server, make):
    """KF-012: an event with the item's own text; the next request carries it."""
    server.script(*streams([SEARCH, message("Found.")], [message("x")]))
    provider = make(hosted_tools=TOOLS)
    *events, last = await events_of(provider)
    (item,) = [e for e in events if isinstance(e, HostedToolItem)]
    assert item.name == "web_search_call"
    assert json.loads(item.item) == SEARCH
    assert json.loads(last.message.native.items)[0] == SEARCH
    await events_of(
        provider, ModelRequest([*ASK.messages, last.message, *ASK.messages])
    )
    assert server.requests[1].json["input"][1] == SEARCH


async def test_items_that_only_the_last_event_has_are_shown_too(server, make):
    """Gateways that leave the events of items out."""
    raw = sse([created(), end([SEARCH, call("add", '{"a":1}'), message("x")])])
    server.script(Answer(headers=EVENT_STREAM, body=raw))
    *events, _ = await events_of(make())
    shown = [e for e in events if isinstance(e, HostedToolItem | ToolCallDelta)]
    assert [type(e) for e in shown] == [HostedToolItem, ToolCallDelta]
    assert shown[1] == ToolCallDelta("call_1", "add", '{"a":1}')


@pytest.mark.parametrize("begun", [True, False])
async def test_fragments_of_calls_are_shown_with_their_call(server, make, begun):
    """KF-016: interleaved; without the event that begins an item, at its end."""

    def piece(index, text):
        kind = "response.function_call_arguments.delta"
        ids = {"output_index": index, "item_id": f"fc_{index + 1}"}
        return {"type": kind, "delta": text, **ids}

    one, two = call("add", '{"a":1}'), call("sub", '{"b":2}', 2)
    heads = [added(i, {**c, "arguments": ""}) for i, c in enumerate((one, two))]
    events = [
        created(),
        *(heads if begun else []),
        piece(0, '{"a"'),
        piece(1, '{"b"'),
        piece(0, ":1}"),
        piece(1, ":2}"),
        done(0, one),
        done(1, two),
        end([one, two]),
    ]
    server.script(Answer(headers=EVENT_STREAM, body=sse(events)))
    *shown, last = await events_of(make())
    pieces = [(e.call_id, e.tool_name, e.arguments) for e in shown]
    if begun:
        assert pieces == [
            ("call_1", "add", '{"a"'),
            ("call_2", "sub", '{"b"'),
            ("call_1", "add", ":1}"),
            ("call_2", "sub", ":2}"),
        ]
    else:
        assert pieces == [("call_1", "add", '{"a":1}'), ("call_2", "sub", '{"b":2}')]
    assert len(last.message.tool_calls) == 2


async def test_agent_forwards_items_and_fragments(server):
    """They are part of the agent's stream."""
    server.script(*streams([SEARCH, call("none", '{"a":1}')], [message("x")]))
    model = Model.from_name(
        "openai:m", api_key="sk-test", base_url=f"{server.url}/v1", hosted_tools=TOOLS
    )
    async with Agent(model) as agent, agent.stream("Go.") as stream:
        kinds = {event.type async for event in stream}
    assert {"hosted_tool_item", "tool_call_delta"} <= kinds


# --- what is lost -----------------------------------------------------------------------


async def agent_notes(server, history, **options) -> list[str]:
    model = Model.from_name(
        "openai", api_key="sk-test", base_url=f"{server.url}/v1", **options
    )
    async with Agent(model) as agent:
        response: AgentResponse = await agent.run(history)
    return response.raise_if_failed().notes


WHOLE = Answer(headers=JSON_TYPE, body=json.dumps(response([message("x")])).encode())


async def test_losses_of_a_history_are_noted_once_without_content(server, make):
    """KF-067, KF-075: another model, another service, a tool of the service."""
    items = [reasoning("Secret."), SEARCH, message("Hi")]
    server.script(*streams(items))
    own = (await events_of(make(model_id="m-1")))[-1].message
    foreign = AssistantMessage("Hi", reasoning="Secret.")
    server.script(WHOLE)
    ask = UserMessage("a")
    same = await agent_notes(server, [ask, own, ask], model_id="m-1")
    assert same == []
    history = [ask, own, ask, own, ask, foreign, ask]
    notes = await agent_notes(server, history, model_id="m-2")
    assert len(notes) == 2
    assert "another model" in notes[0]
    assert "its reasoning and what tools of the service did" in notes[0]
    assert "no native context" in notes[1]
    assert "Secret" not in "".join(notes)


async def test_recovery_is_noted_and_can_be_switched_off(server, make):
    """The one repetition of Lighter's own: an option, and a note when it happens."""
    server.script(*streams([reasoning("r"), message("Hi")]))
    own = (await events_of(make(model_id="m")))[-1].message
    told = {"error": {"code": "invalid_encrypted_content", "message": "No."}}
    refused = Answer(400, JSON_TYPE, json.dumps(told).encode())
    history = [UserMessage("a"), own, UserMessage("b")]
    server.script(refused, WHOLE)
    (note,) = await agent_notes(server, history, model_id="m")
    assert "invalid_encrypted_content" in note
    assert "without native context" in note
    server.script(refused, WHOLE)
    before = len(server.requests)
    with pytest.raises(ModelError) as caught:
        await make(model_id="m", recover=False).invoke(ModelRequest(history))
    assert caught.value.vendor_code == "invalid_encrypted_content"
    assert len(server.requests) == before + 1


async def test_items_that_the_service_left_out_are_noted(server, make):
    """It removes what it cannot use and only says so; the run's notes say it too."""
    changes = [
        {"id": "rs_1", "action": "removed", "reason": "model_mismatch"},
        {"id": "rs_2", "action": "removed", "reason": "model_mismatch"},
        {"id": "rs_3", "action": "kept", "reason": "x"},
    ]
    told = response([message("x")], input_transformations=changes)
    server.script(Answer(headers=JSON_TYPE, body=json.dumps(told).encode()))
    (note,) = await agent_notes(server, "Go.", model_id="m")
    assert note == "'openai' left items of the history out: model_mismatch"


async def test_what_was_refused_once_is_not_sent_again(server, make):
    """Each later call of the conversation would be refused for the same reason."""
    server.script(*streams([reasoning("r"), message("Hi")]))
    provider = make(model_id="m")
    own = [event async for event in provider.stream(ModelRequest([UserMessage("q")]))][
        -1
    ].message
    told = {"error": {"code": "invalid_encrypted_content", "message": "No."}}
    refused = Answer(400, JSON_TYPE, json.dumps(told).encode())
    history = [UserMessage("a"), own, UserMessage("b")]
    server.script(refused, WHOLE, WHOLE)
    before = len(server.requests)
    await provider.invoke(ModelRequest(history))
    await provider.invoke(ModelRequest([*history, UserMessage("c")]))
    sent = [request.json["input"] for request in server.requests[before:]]
    assert len(sent) == 3
    kinds = [[item.get("type") for item in items] for items in sent]
    assert "reasoning" in kinds[0]
    assert "reasoning" not in kinds[1] + kinds[2]
    assert sent[2][: len(sent[1])] == sent[1]
