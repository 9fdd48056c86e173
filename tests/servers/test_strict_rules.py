"""The strict services can refuse: for each rule there is a request that breaks it."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from support.strict import Call, Say, StrictServer, Think, Turn

Body = dict[str, Any]
Mutation = Callable[[Body], object]

ROUND = Turn((Think("Add."), Say("I add."), Call("add", '{"a":1}'), Call("add")))


@pytest.fixture
async def server() -> AsyncIterator[StrictServer]:
    async with StrictServer() as server:
        yield server


async def post(server: StrictServer, name: str, body: Body | bytes, **headers: str):
    """Send a body with a plain HTTP client."""
    async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
        return await client.post(
            server.url + server.services[name].path,
            content=body if isinstance(body, bytes) else json.dumps(body).encode(),
            headers={
                "content-type": "application/json",
                "authorization": "Bearer key",
                "anthropic-version": "2026-10-21",
                **headers,
            },
        )


# OpenAI.

FUNCTION = {
    "type": "function",
    "name": "add",
    "parameters": {"type": "object"},
    "strict": False,
}


def responses_body(**fields: Any) -> Body:
    return {
        "model": "m",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [dict(FUNCTION)],
        "input": [{"role": "user", "content": "1 + 2?"}],
        **fields,
    }


def without(item: Body, *names: str) -> Body:
    return {k: v for k, v in item.items() if k not in names and v is not None}


async def second_responses_body(server: StrictServer, name: str) -> Body:
    """Return a request that continues an issued round as it should be."""
    server.services[name].script(ROUND)
    first = responses_body()
    answer = await post(server, name, first)
    assert answer.status_code == 200, answer.text
    for item in answer.json()["output"]:
        thought = item["type"] == "reasoning" and name == "openai"
        first["input"].append(without(item, "status" if thought else ""))
    for item in first["input"][-2:]:
        first["input"].append(
            {"type": "function_call_output", "call_id": item["call_id"], "output": "3"}
        )
    return first


def items(body: Body, kind: str) -> list[Body]:
    return [item for item in body["input"] if item.get("type") == kind]


def drop(kind: str, number: int = 0) -> Mutation:
    return lambda body: body["input"].remove(items(body, kind)[number])


def change(kind: str, **fields: Any) -> Mutation:
    return lambda body: items(body, kind)[0].update(fields)


def fields(**values: Any) -> Mutation:
    return lambda body: body.update(values)


def add(*new: Body, at: int | None = None) -> Mutation:
    def mutate(body: Body) -> None:
        place = len(body["input"]) if at is None else at
        body["input"][place:place] = copy.deepcopy(new)

    return mutate


def swap(first: int, second: int) -> Mutation:
    def mutate(body: Body) -> None:
        found = body["input"]
        found[first], found[second] = found[second], found[first]

    return mutate


def unnamed(*kinds: str) -> Mutation:
    """Take the ids of items away."""

    def mutate(body: Body) -> None:
        for item in body["input"]:
            if item.get("type") in kinds:
                item.pop("id", None)

    return mutate


def both(*mutations: Mutation) -> Mutation:
    return lambda body: [mutate(body) for mutate in mutations]


def repeat(kind: str) -> Mutation:
    def mutate(body: Body) -> None:
        first = items(body, kind)[0]
        body["input"].insert(body["input"].index(first), copy.deepcopy(first))

    return mutate


USER = {"role": "user", "content": "And?"}
FOREIGN = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAforeign"}
OWN_CALL = {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"}
OWN_OUTPUT = {"type": "function_call_output", "call_id": "c", "output": ""}

COMMON_RULES: dict[str, tuple[Mutation, str]] = {
    "no model": (fields(model=""), "model"),
    "unknown field": (fields(messages=[]), "unknown parameter"),
    "stream no boolean": (fields(stream="yes"), "stream"),
    "no input": (fields(input=[]), "input"),
    "odd tool name": (fields(tools=[{**FUNCTION, "name": "a b"}]), "tools[0].name"),
    "long tool name": (fields(tools=[{**FUNCTION, "name": "a" * 65}]), "tools[0].name"),
    "tool twice": (fields(tools=[FUNCTION, FUNCTION]), "twice"),
    "schema no object": (fields(tools=[{**FUNCTION, "parameters": {}}]), "schema"),
    "strict not said": (fields(tools=[without(FUNCTION, "strict")]), "strict"),
    "call without output": (drop("function_call_output"), "No tool output"),
    "output without call": (drop("function_call"), "No tool call"),
    "output twice": (repeat("function_call_output"), "No tool call"),
    "output before call": (swap(4, 6), "No tool call"),
    "user between": (add(USER, at=5), "No tool output"),
    "call id twice": (
        both(add(OWN_CALL, OWN_OUTPUT), add(OWN_CALL, OWN_OUTPUT)),
        "Duplicate function_call",
    ),
    "empty call id": (add({**OWN_CALL, "call_id": ""}), "call_id"),
    "long call id": (add({**OWN_CALL, "call_id": "c" * 65}), "call_id"),
    "odd call id": (add({**OWN_CALL, "call_id": "a:b"}), "call_id"),
    "odd name of call": (add({**OWN_CALL, "name": "a.b"}), "name"),
    "arguments no text": (change("function_call", arguments={}), "arguments"),
    "own arguments no text": (add({**OWN_CALL, "arguments": {}}), "arguments"),
    "output no text": (change("function_call_output", output=3), "output"),
    "unknown member": (change("function_call_output", is_error=True), "unknown param"),
    "parsed helper": (change("function_call", parsed_arguments={}), "unknown param"),
    "item id twice": (repeat("message"), "Duplicate item"),
    "unknown item id": (add({**OWN_CALL, "id": "fc_x"}), "not found"),
    "id of another kind": (change("function_call", id="call_1"), "begin with fc_"),
    "long item id": (change("function_call", id="fc_" + "1" * 62), "64"),
    "changed item": (change("function_call", arguments='{"a":2}'), "as it was issued"),
    "changed text": (change("message", content="I won't."), "as it was issued"),
    "unknown role": (add({"role": "tool", "content": "x"}), "unknown role"),
    "empty content": (add({"role": "user", "content": []}), "empty"),
    "empty assistant text": (add({"role": "assistant", "content": ""}), "empty"),
    "part of the other role": (
        add({"role": "user", "content": [{"type": "output_text", "text": "x"}]}),
        "part of the type",
    ),
    "unknown phase": (add({"role": "assistant", "content": "x", "phase": 1}), "phase"),
    "phase of the user": (add({**USER, "phase": "commentary"}), "unknown parameter"),
    "unknown type": (add({"type": "thought"}), "unknown type"),
    "id without its reasoning": (drop("reasoning"), "without its required 'reasoning'"),
}

OPENAI_RULES = {
    "store": (fields(store=True), "store"),
    "no include": (fields(include=[]), "include"),
    "reasoning alone": (
        both(drop("message"), unnamed("function_call")),
        "required following item",
    ),
    "reasoning last": (add(FOREIGN), "could not be verified"),
    "reasoning elsewhere": (swap(1, 2), "'reasoning' item"),
    "reasoning without blob": (
        lambda body: items(body, "reasoning")[0].pop("encrypted_content"),
        "not found",
    ),
    "status on reasoning": (change("reasoning", status="completed"), "status"),
    "null on reasoning": (change("reasoning", content=None), "null"),
    "plain reasoning": (
        change("reasoning", content=[{"type": "reasoning_text", "text": "x"}]),
        "at most 0",
    ),
    "no summary": (lambda body: items(body, "reasoning")[0].pop("summary"), "summary"),
    "changed summary": (change("reasoning", summary=[]), "as it was issued"),
    "foreign reasoning": (add(FOREIGN, at=1), "could not be verified"),
    "reasoning twice": (
        both(unnamed("reasoning", "message", "function_call"), repeat("reasoning")),
        "following item",
    ),
}

PLAIN = [{"type": "reasoning_text", "text": "Hm."}]
DEEPSEEK_RULES = {
    "reasoning left out": (
        both(drop("reasoning"), unnamed("message", "function_call")),
        "must be passed back",
    ),
    "summary only": (
        both(
            drop("reasoning"),
            unnamed("message", "function_call"),
            add({"type": "reasoning", "summary": [], "content": []}, at=1),
        ),
        "content",
    ),
    "encrypted reasoning": (add({**FOREIGN, "content": PLAIN}, at=1), "unknown param"),
    "developer": (add({"role": "developer", "content": "x"}, at=0), "unknown role"),
    "calls not adjacent": (swap(4, 5), "behind the result"),
    "output apart": (add({"role": "assistant", "content": "x"}, at=5), "apart"),
}


def cases(*rules: dict[str, tuple[Mutation, str]]) -> list[Any]:
    merged = {name: rule for each in rules for name, rule in each.items()}
    return [pytest.param(*rule, id=name) for name, rule in merged.items()]


async def refused(server: StrictServer, name: str, body: Body, reason: str) -> None:
    answer = await post(server, name, body)
    assert answer.status_code == 400, answer.text
    assert reason in answer.json()["error"]["message"]
    service = server.services[name]
    assert len(service.refusals) + len(service.recovered) == 1


async def test_openai_takes_a_good_round(server: StrictServer) -> None:
    """With all ids, and without any; the mutations below start from it."""
    body = await second_responses_body(server, "openai")
    assert (await post(server, "openai", body)).status_code == 200
    unnamed("reasoning", "message", "function_call")(body)
    assert (await post(server, "openai", body)).status_code == 200
    assert server.refusals == []


@pytest.mark.parametrize(("mutate", "reason"), cases(COMMON_RULES, OPENAI_RULES))
async def test_openai_refuses(
    server: StrictServer, mutate: Mutation, reason: str
) -> None:
    body = await second_responses_body(server, "openai")
    mutate(body)
    await refused(server, "openai", body, reason)


async def test_openai_holds_reasoning_against_a_message_without_text(
    server: StrictServer,
) -> None:
    """The item behind reasoning is the required one, whatever it says."""
    server.openai.script(Turn((Think(), Say(""), Think(), Call("add"))))
    body = responses_body()
    output = (await post(server, "openai", body)).json()["output"]
    items_ = [without(i, "status" * (i["type"] == "reasoning")) for i in output]
    answer = {**OWN_OUTPUT, "call_id": items_[-1]["call_id"]}
    whole = {**body, "input": [*body["input"], *items_, answer]}
    assert (await post(server, "openai", whole)).status_code == 200
    part = {**body, "input": [i for i in whole["input"] if i is not items_[1]]}
    await refused(server, "openai", part, "required following item")


async def test_openai_can_demand_reasoning_of_calls_without_ids(
    server: StrictServer,
) -> None:
    server.openai.require_replay = True
    body = await second_responses_body(server, "openai")
    both(drop("reasoning"), unnamed("message", "function_call"))(body)
    await refused(server, "openai", body, "'reasoning' item")


async def test_deepseek_takes_a_good_round(server: StrictServer) -> None:
    """With its own reasoning or any other text in its place; without when it is off."""
    body = await second_responses_body(server, "deepseek")
    assert (await post(server, "deepseek", body)).status_code == 200
    unnamed("message", "function_call")(body)
    body["input"][1] = {"type": "reasoning", "summary": [], "content": PLAIN}
    assert (await post(server, "deepseek", body)).status_code == 200
    drop("reasoning")(body)
    body["reasoning"] = {"effort": "none"}
    assert (await post(server, "deepseek", body)).status_code == 200
    assert server.refusals == []


@pytest.mark.parametrize(("mutate", "reason"), cases(COMMON_RULES, DEEPSEEK_RULES))
async def test_deepseek_refuses(
    server: StrictServer, mutate: Mutation, reason: str
) -> None:
    body = await second_responses_body(server, "deepseek")
    mutate(body)
    await refused(server, "deepseek", body, reason)


async def test_deepseek_refuses_headers_of_openai(server: StrictServer) -> None:
    body = responses_body()
    headers = {"openai-project": "p"}
    assert (await post(server, "deepseek", body, **headers)).status_code == 400


# Anthropic.

TOOL = {"name": "add", "input_schema": {"type": "object"}}
TEXT = {"type": "text", "text": "x"}


async def second_messages_body(server: StrictServer) -> Body:
    server.claude.script(ROUND)
    body: Body = {
        "model": "m",
        "max_tokens": 100,
        "system": "Be brief.",
        "tools": [dict(TOOL)],
        "messages": [{"role": "user", "content": "1 + 2?"}],
    }
    answer = await post(server, "claude", body)
    assert answer.status_code == 200, answer.text
    content = answer.json()["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "3"}
        for block in content
        if block["type"] == "tool_use"
    ]
    body["messages"].append({"role": "assistant", "content": content})
    body["messages"].append({"role": "user", "content": results})
    return body


def blocks(place: int, edit: Callable[[list[Body]], object]) -> Mutation:
    """Edit the blocks of a message."""
    return lambda body: edit(body["messages"][place]["content"])


def block(place: int, number: int, **values: Any) -> Mutation:
    return lambda body: body["messages"][place]["content"][number].update(values)


def say(role: str, content: Any, at: int | None = None) -> Mutation:
    message = {"role": role, "content": content}

    def mutate(body: Body) -> None:
        place = len(body["messages"]) if at is None else at
        body["messages"].insert(place, message)

    return mutate


def split_results(body: Body) -> None:
    first, second = body["messages"].pop()["content"]
    body["messages"].append({"role": "user", "content": [first]})
    body["messages"].append({"role": "user", "content": [second]})


def same_ids(body: Body) -> None:
    body["messages"] += copy.deepcopy(body["messages"][1:])
    for message in body["messages"][3:4]:
        del message["content"][0]  # the thinking


CLAUDE_RULES: dict[str, tuple[Mutation, str]] = {
    "no model": (fields(model=""), "model"),
    "temperature": (fields(temperature=0), "unknown parameter"),
    "no max_tokens": (lambda body: body.pop("max_tokens"), "max_tokens"),
    "max_tokens no integer": (fields(max_tokens=True), "max_tokens"),
    "no messages": (fields(messages=[]), "empty"),
    "empty system block": (fields(system=[{"type": "text", "text": ""}]), "non-empty"),
    "odd tool name": (fields(tools=[{**TOOL, "name": "a.b"}]), "tools[0].name"),
    "schema no object": (fields(tools=[{"name": "add"}]), "schema"),
    "prefill": (say("assistant", "It is"), "prefill"),
    "unknown role": (say("tool", "x"), "role"),
    "system not supported": (say("system", "x"), "not supported"),
    "empty text": (say("user", ""), "non-empty"),
    "blank text": (say("user", " \n"), "non-empty"),
    "empty block": (say("user", [{"type": "text", "text": ""}]), "non-empty"),
    "blank block": (say("user", [{"type": "text", "text": "\t"}]), "non-empty"),
    "empty content": (say("user", []), "empty"),
    "unknown block": (say("user", [{"type": "input_text", "text": "x"}]), "type"),
    "thinking of the user": (
        say("user", [{"type": "thinking", "thinking": "", "signature": ""}]),
        "type",
    ),
    "unknown member of block": (block(1, 1, phase="commentary"), "unknown param"),
    "thinking changed": (block(1, 0, thinking="No."), "modified"),
    "thinking unsigned": (block(1, 0, signature=""), "signature"),
    "thinking foreign": (block(1, 0, signature="EqQBx"), "signature"),
    "thinking not first": (blocks(1, lambda b: b.insert(0, b.pop(1))), "first block"),
    "thinking last": (blocks(1, lambda b: b.append(b.pop(0))), "first block"),
    "thinking twice": (blocks(1, lambda b: b.insert(0, b[0])), "modified"),
    "reply shortened": (blocks(1, lambda b: b.pop(1)), "modified"),
    "input no object": (block(1, 2, input="{}"), "input"),
    "odd call id": (block(1, 2, id="a:b"), "tool_use.id"),
    "odd name of call": (block(1, 2, name="a.b"), "tool_use.name"),
    "call ids twice": (same_ids, "unique"),
    "result missing": (blocks(2, lambda b: b.pop()), "no tool_result"),
    "results missing": (lambda body: body["messages"].pop(), "prefill"),
    "results replaced": (
        lambda body: body["messages"].__setitem__(2, {"role": "user", "content": "x"}),
        "no tool_result",
    ),
    "result twice": (blocks(2, lambda b: b.append(b[0])), "unexpected tool_use_id"),
    "result without call": (block(2, 0, tool_use_id="toolu_x"), "unexpected"),
    "text before results": (blocks(2, lambda b: b.insert(0, TEXT)), "come first"),
    "results apart": (split_results, "in one message"),
    "user between": (say("user", "wait", 2), "come first"),
}


async def test_claude_takes_a_good_round(server: StrictServer) -> None:
    """With thinking, without all of it, and with text behind the results."""
    server.claude.bind_thinking = True
    body = await second_messages_body(server)
    assert (await post(server, "claude", body)).status_code == 200
    body["messages"][2]["content"].append(TEXT)
    assert (await post(server, "claude", body)).status_code == 200
    del body["messages"][1]["content"][0]
    assert (await post(server, "claude", body)).status_code == 200
    assert server.refusals == []


@pytest.mark.parametrize(("mutate", "reason"), cases(CLAUDE_RULES))
async def test_claude_refuses(
    server: StrictServer, mutate: Mutation, reason: str
) -> None:
    body = await second_messages_body(server)
    mutate(body)
    await refused(server, "claude", body, reason)


@pytest.mark.parametrize(
    "mutate",
    [
        fields(system="Be long."),
        fields(tools=[{**TOOL, "description": "Adds."}]),
        lambda body: body["messages"][0].update(content="1 + 3?"),
        say("user", "before", 0),
    ],
)
async def test_claude_binds_thinking_to_what_was_before(
    server: StrictServer, mutate: Mutation
) -> None:
    server.claude.bind_thinking = True
    body = await second_messages_body(server)
    mutate(body)
    await refused(server, "claude", body, "bound to a different conversation")
    assert server.refusals == []
    assert len(server.claude.recovered) == 1


async def test_claude_can_demand_that_the_user_begins(server: StrictServer) -> None:
    server.claude.user_begins = True
    body = await second_messages_body(server)
    say("assistant", "Hello.", 0)(body)
    await refused(server, "claude", body, "first message")


async def test_claude_can_demand_the_thinking_of_a_round(server: StrictServer) -> None:
    server.claude.require_replay = True
    body = await second_messages_body(server)
    del body["messages"][1]["content"][0]
    await refused(server, "claude", body, "begin with its thinking")


async def test_claude_takes_system_messages_in_their_place_only(
    server: StrictServer,
) -> None:
    server.claude.system_in_messages = True
    body = await second_messages_body(server)
    say("system", "Be brief.")(body)
    assert (await post(server, "claude", body)).status_code == 200
    say("user", "x")(body)
    await refused(server, "claude", body, "before an assistant")


async def test_claude_wants_its_version_header(server: StrictServer) -> None:
    body = await second_messages_body(server)
    headers = {"anthropic-version": ""}
    assert (await post(server, "claude", body, **headers)).status_code == 400


# Chat Completions.


async def second_chat_body(server: StrictServer, name: str) -> Body:
    server.services[name].script(ROUND)
    function = {k: v for k, v in FUNCTION.items() if k not in {"type", "strict"}}
    body: Body = {
        "model": "m",
        "tools": [{"type": "function", "function": function}],
        "messages": [{"role": "user", "content": "1 + 2?"}],
    }
    answer = await post(server, name, body)
    assert answer.status_code == 200, answer.text
    message = answer.json()["choices"][0]["message"]
    body["messages"].append(message)
    body["messages"] += [
        {"role": "tool", "tool_call_id": call["id"], "content": "3"}
        for call in message["tool_calls"]
    ]
    return body


def message(place: int, **values: Any) -> Mutation:
    return lambda body: body["messages"][place].update(values)


def own_round(**values: Any) -> Mutation:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    call.update(values)

    def mutate(body: Body) -> None:
        body["messages"] += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": ""},
        ]

    return mutate


CHAT_RULES: dict[str, tuple[Mutation, str]] = {
    "no model": (fields(model=None), "model"),
    "unknown field": (fields(input=[]), "unknown parameter"),
    "stream options alone": (fields(stream_options={}), "stream_options"),
    "no messages": (fields(messages=[]), "empty"),
    "no tools": (fields(tools=[]), "tools"),
    "odd tool name": (
        fields(tools=[{"function": {"name": "a b", "parameters": {"type": "object"}}}]),
        "tools[0].name",
    ),
    "unknown role": (say("function", "x"), "unknown role"),
    "unknown member": (message(2, is_error=True), "unknown parameter"),
    "content missing": (say("user", None), "no text"),
    "content empty": (say("user", []), "empty"),
    "nothing said": (say("assistant", None), "neither content nor calls"),
    "calls empty": (message(1, tool_calls=[]), "tool_calls is empty"),
    "answer missing": (lambda body: body["messages"].pop(), "no answer"),
    "answer twice": (
        lambda body: body["messages"].append(body["messages"][-1]),
        "must answer",
    ),
    "answer without call": (message(2, tool_call_id="x"), "must answer"),
    "user between": (say("user", "wait", 2), "no answer"),
    "id empty": (own_round(id=""), "call id"),
    "id long": (own_round(id="c" * 41), "40"),
    "id odd": (own_round(id="a:b"), "call id"),
    "id twice": (both(own_round(), own_round()), "twice"),
    "name odd": (own_round(function={"name": "a.b", "arguments": ""}), "name"),
    "arguments no text": (own_round(function={"name": "a", "arguments": {}}), "text"),
    "call no function": (own_round(type="custom"), "function's"),
}


@pytest.mark.parametrize("name", ["openai-chat", "deepseek-chat"])
async def test_chat_takes_a_good_round(server: StrictServer, name: str) -> None:
    body = await second_chat_body(server, name)
    assert (await post(server, name, body)).status_code == 200
    assert server.refusals == []


@pytest.mark.parametrize(("mutate", "reason"), cases(CHAT_RULES))
async def test_chat_refuses(
    server: StrictServer, mutate: Mutation, reason: str
) -> None:
    body = await second_chat_body(server, "openai-chat")
    mutate(body)
    await refused(server, "openai-chat", body, reason)


async def test_openai_chat_refuses_reasoning(server: StrictServer) -> None:
    body = await second_chat_body(server, "openai-chat")
    body["messages"][1]["reasoning_content"] = "Hm."
    await refused(server, "openai-chat", body, "unknown parameter")


@pytest.mark.parametrize("text", [None, "Other."])
async def test_deepseek_chat_demands_reasoning(
    server: StrictServer, text: str | None
) -> None:
    server.deepseek_chat.require_replay = True
    body = await second_chat_body(server, "deepseek-chat")
    body["messages"][1]["reasoning_content"] = text
    await refused(server, "deepseek-chat", body, "reasoning_content")


# Every service.

BAD_BODIES = {
    "not UTF-8": b'{"model": "\xff"}',
    "no JSON": b'{"model": ',
    "NaN": b'{"model": NaN}',
    "a member twice": b'{"model": "a", "model": "b"}',
    "no object": b"[]",
    "a lone surrogate": b'{"model": "\\ud83e"}',
}
NAMES = ["openai", "claude", "deepseek", "openai-chat", "deepseek-chat"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
async def test_broken_bodies_are_refused(
    server: StrictServer, name: str, body: bytes
) -> None:
    assert (await post(server, name, body)).status_code == 400
    assert len(server.refusals) == 1


@pytest.mark.parametrize("name", NAMES)
async def test_requests_without_a_key_or_a_type_are_refused(
    server: StrictServer, name: str
) -> None:
    no_key, no_type = {"authorization": ""}, {"content-type": "text/plain"}
    assert (await post(server, name, {}, **no_key)).status_code == 400
    assert (await post(server, name, {}, **no_type)).status_code == 400
    async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
        assert (await client.post(f"{server.url}/v1/else")).status_code == 404
