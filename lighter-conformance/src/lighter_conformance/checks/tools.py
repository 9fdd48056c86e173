"""Tool calls and their results, both ways."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    Message,
    ModelRequest,
    ToolCall,
    ToolMessage,
    UserMessage,
    tool,
)
from lighter_core.testing import Turn

from .._bench import ADD, HELLO, USAGE, Bench, ask, failing, need_code, say
from .._bench import events_of as _events_of
from .._registry import NotApplicable, check, expect

__all__: list[str] = []

_ONE = [ToolCall("call_1", "add", '{"a":19,"b":23}')]
_THREE = [ToolCall(f"call_{n}", "add", f'{{"a":{n},"b":1}}') for n in (1, 2, 3)]
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ODD = ["fc|1:2.3/4", "x" * 200, "x" * 199 + "y", "naïve id 日本", "a b", "a.b"]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def _turn(calls: Sequence[ToolCall]) -> Turn:
    return Turn(tool_calls=calls, usage=USAGE, pieces=3)


def _round(*calls: ToolCall, output: str = "42", error: bool = False) -> list[Message]:
    """Return a finished round of a conversation: question, calls, results."""
    results = [
        ToolMessage(
            call_id=call.call_id,
            tool_name=call.tool_name,
            tool_output=output,
            is_error=error,
        )
        for call in calls
    ]
    return [UserMessage("Add."), AssistantMessage(tool_calls=calls), *results]


@check("tools", "script", "tools")
async def tool_call_is_read(bench: Bench) -> None:
    """A call has the service's id, the tool's name and the arguments as JSON text."""
    for way, reply in await say(bench.provider(_turn(_ONE)), ask("?", tools=[ADD])):
        calls = [
            (c.call_id, c.tool_name, json.loads(c.arguments)) for c in reply.tool_calls
        ]
        expect(calls == [("call_1", "add", {"a": 19, "b": 23})], f"{way}: {calls}")


@check("tools", "script", "tools")
async def several_calls_keep_their_order(bench: Bench) -> None:
    """All calls of one reply are there, in the service's order, each with its own
    arguments.
    """
    for way, reply in await say(bench.provider(_turn(_THREE)), ask("?", tools=[ADD])):
        found = [(c.call_id, json.loads(c.arguments)["a"]) for c in reply.tool_calls]
        expect(found == [(f"call_{n}", n) for n in (1, 2, 3)], f"{way}: {found}")


@check("tools", "script", "tools")
async def text_beside_calls_is_kept(bench: Bench) -> None:
    """A reply may have both text and calls; neither is dropped."""
    turn = Turn(text="I will add.", tool_calls=_ONE, usage=USAGE)
    for way, reply in await say(bench.provider(turn), ask("?", tools=[ADD])):
        seen = f"{way}: content {reply.content!r}, {len(reply.tool_calls)} calls"
        expect(reply.content == "I will add." and len(reply.tool_calls) == 1, seen)


@check("tools", "script", "tools")
async def empty_arguments_are_an_object(bench: Bench) -> None:
    """A call without arguments has the text `{}`, or a blank one."""
    turn = _turn([ToolCall("call_1", "now", "{}")])
    for way, reply in await say(bench.provider(turn), ask("?", tools=[ADD])):
        texts = [call.arguments.strip() for call in reply.tool_calls]
        expect(texts in (["{}"], [""]), f"{way}: arguments {texts}")


@check("tools", "script", "tools")
async def unicode_arguments_arrive_whole(bench: Bench) -> None:
    """Arguments of any script arrive as they were said."""
    wanted = {"text": '日本語 🧑‍🚀 "quoted" \\ \n'}
    turn = _turn([ToolCall("call_1", "note", json.dumps(wanted, ensure_ascii=False))])
    for way, reply in await say(bench.provider(turn), ask("?", tools=[ADD])):
        found = [json.loads(call.arguments) for call in reply.tool_calls]
        expect(found == [wanted], f"{way}: {found}")


@check("tools", "script", "tools")
async def call_deltas_equal_the_arguments(bench: Bench) -> None:
    """`ToolCallDelta`s, where a provider yields them, join to the arguments of the call
    that they name.
    """
    from lighter_core import MessageEvent, ToolCallDelta

    provider = bench.provider(_turn(_THREE))
    events = await _events_of(provider, ask("?", tools=[ADD]))
    joined: dict[str, str] = {}
    for event in events:
        if isinstance(event, ToolCallDelta):
            known = joined.get(event.call_id, "")
            joined[event.call_id] = known + event.arguments
    if not joined:
        raise NotApplicable(f"{bench.case.name} yields no ToolCallDelta")
    for message in (e.message for e in events if isinstance(e, MessageEvent)):
        calls = {call.call_id: call.arguments for call in message.tool_calls}
        expect(joined == calls, f"deltas {joined}, calls {calls}")


@check("tools", "script", "tools")
async def tool_round_trip(bench: Bench) -> None:
    """An agent runs a tool and gets the final answer: call and result go back under one
    id, by `run` and by `stream`.
    """
    for way in ("run", "stream"):
        agent = Agent(bench.provider(_turn(_ONE), HELLO), tools=[add])
        if way == "run":
            last: object = await agent.run("19 + 23?")
        else:
            last = [event async for event in agent.stream("19 + 23?")][-1]
        if not isinstance(last, AgentResponse):
            raise TypeError(f"{way} ended with {last!r}")
        expect(last.error is None, f"{way}: {last.error!r}")
        roles = [message.role for message in last.messages]
        expect(roles == ["assistant", "tool", "assistant"], f"{way}: roles {roles}")
        expect(last.text == HELLO.text, f"{way}: {last.text!r}")
        if bench.case.wire is not None:
            _need_pair(bench)


def _need_pair(bench: Bench) -> None:
    body = bench.requests[-1].json
    calls, results = bench.wire.calls(body), bench.wire.results(body)
    seen = f"sent were the calls {calls} and the results {results}"
    expect([c.call_id for c in calls] == [i for i, _ in results] != [], seen)
    expect([text for _, text in results] == ["42"], seen)
    expect(json.loads(calls[0].arguments) == {"a": 19, "b": 23}, seen)


async def _sent(bench: Bench, request: ModelRequest) -> dict[str, object]:
    await bench.provider(HELLO).invoke(request)
    return bench.requests[-1].json


@check("tools", "http", "tools")
async def tools_are_offered(bench: Bench) -> None:
    """The tools of a request are sent with name, description and schema."""
    body = await _sent(bench, ask("?", tools=[ADD]))
    names = bench.wire.tools(body)
    expect(names == ["add"], f"the tools {names}")
    text = json.dumps(body)
    expect(ADD.description in text and '"integer"' in text, f"the request {text}")


@check("tools", "http", "tools")
async def results_are_sent_with_their_calls(bench: Bench) -> None:
    """All results of a round are sent, each under the id of its call, in call order."""
    body = await _sent(bench, ask(*_round(*_THREE), tools=[ADD]))
    calls = [call.call_id for call in bench.wire.calls(body)]
    results = [call_id for call_id, _ in bench.wire.results(body)]
    expect(calls == results and len(calls) == 3, f"calls {calls}, results {results}")  # noqa: PLR2004


@check("tools", "http", "tools")
async def error_results_are_sent(bench: Bench) -> None:
    """The text of a result with `is_error=True` reaches the model."""
    history = _round(*_ONE, output="the disk is full", error=True)
    body = await _sent(bench, ask(*history, tools=[ADD]))
    texts = [text for _, text in bench.wire.results(body)]
    expect(any("the disk is full" in t for t in texts), f"the results {texts}")


@check("tools", "http", "tools")
async def empty_results_are_sent(bench: Bench) -> None:
    """A result whose text is empty is sent all the same: a call without one makes the
    service refuse the conversation.
    """
    body = await _sent(bench, ask(*_round(*_ONE, output=""), tools=[ADD]))
    results = bench.wire.results(body)
    expect(len(results) == 1, f"the results {results}")


@check("tools", "http", "tools")
async def foreign_ids_are_normalised(bench: Bench) -> None:
    """Call ids of other providers, of any characters and of 200 of them, are sent in a
    form that every service takes (`[A-Za-z0-9_-]`, 64 at most): the same for a call and
    its result, and different for different calls.
    """
    calls = [ToolCall(each, "add", '{"a":1,"b":2}') for each in _ODD]
    body = await _sent(bench, ask(*_round(*calls), tools=[ADD]))
    ids = [call.call_id for call in bench.wire.calls(body)]
    results = [call_id for call_id, _ in bench.wire.results(body)]
    bad = [each for each in ids if not _ID.fullmatch(each)]
    expect(not bad, f"ids that services refuse: {bad}")
    expect(ids == results, f"calls {ids}, results {results}")
    expect(len(set(ids)) == len(_ODD), f"{len(_ODD)} calls got the ids {ids}")


@check("tools", "http", "tools")
async def broken_arguments_can_be_sent(bench: Bench) -> None:
    """A history with a call whose arguments are no JSON can be sent: models write such
    calls, and the conversation must go on.
    """
    calls = [
        ToolCall(f"call_{number}", "add", text)
        for number, text in enumerate(['{"a": 19, "b"', "null", "[1]", "", "ja"])
    ]
    body = await _sent(bench, ask(*_round(*calls), tools=[ADD]))
    expect(len(bench.wire.calls(body)) == len(calls), f"{bench.wire.calls(body)}")


@check("tools", "validates")
async def orphan_call_is_refused(bench: Bench) -> None:
    """A history with a call that has no result raises `invalid_request` naming the call
    id, before anything is sent: services refuse it for ever.
    """
    await _orphan(bench, [UserMessage("?"), AssistantMessage(tool_calls=_ONE)])


@check("tools", "validates")
async def orphan_result_is_refused(bench: Bench) -> None:
    """A history with a result that answers no call raises `invalid_request` naming the
    call id, before anything is sent.
    """
    await _orphan(bench, [UserMessage("?"), _round(*_ONE)[-1]])


async def _orphan(bench: Bench, history: list[Message]) -> None:
    provider = bench.speaker()
    for way, work in (
        ("invoke", provider.invoke(ask(*history, "Go on."))),
        ("stream", _events_of(provider, ask(*history, "Go on."))),
    ):
        error = await failing(way, work)
        need_code(way, error, "invalid_request")
        expect("call_1" in error.message, f"{way}: no id in {error.message!r}")
        if bench.case.wire is not None:
            expect(not bench.requests, f"{way}: {len(bench.requests)} requests sent")
