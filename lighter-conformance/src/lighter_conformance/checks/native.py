"""Native context: a provider's own form of a reply, kept to be sent back."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import replace

from lighter_core import (
    AssistantMessage,
    Message,
    NativeContext,
    ToolCall,
    ToolMessage,
    UserMessage,
    messages_from_json,
    messages_to_json,
)
from lighter_core.adapters import seal_native
from lighter_core.testing import Turn

from .._bench import ADD, HELLO, USAGE, Bench, ask, say
from .._registry import NotApplicable, Seen, check, expect
from ..case import KEY

__all__: list[str] = []

_CANARY = "canary-of-another-service"
_REPLY = Turn(
    text="Let me add.",
    reasoning="Two numbers.",
    tool_calls=[ToolCall("call_1", "add", '{"a": 19, "b": 23}')],
    usage=USAGE,
)


async def _reply(bench: Bench) -> AssistantMessage:
    turn = _REPLY
    if bench.case.why_not("tools"):
        turn = replace(turn, tool_calls=())
    if bench.case.why_not("reasoning"):
        turn = replace(turn, reasoning=None)
    (_, whole), (_, last) = await say(bench.same_provider(turn), ask("?", tools=[ADD]))
    expect((whole.native is None) == (last.native is None), "only one way keeps it")
    if last.native is None:
        raise NotApplicable(f"{bench.case.name} keeps no native context")
    return last


async def _sent(bench: Bench, reply: AssistantMessage) -> bytes:
    """Return the request for a conversation that goes on behind the reply."""
    history: list[Message] = [UserMessage("?"), reply]
    history += [
        ToolMessage(call_id=c.call_id, tool_name=c.tool_name, tool_output="42")
        for c in reply.tool_calls
    ]
    if not reply.tool_calls:
        history.append(UserMessage("Go on."))
    await bench.same_provider(HELLO).invoke(ask(*history, tools=[ADD]))
    return bench.requests[-1].body


@check("native", "http", "native")
async def native_says_where_it_is_from(bench: Bench) -> None:
    """`native` names the provider, the endpoint without key and query, the interface and
    the model; `items` is the text of a JSON array; the seal fits the message.
    """
    reply = await _reply(bench)
    native = reply.native
    if native is None:
        raise Seen("no native context")
    seen = f"{native}"
    expect(native.provider == bench.same_provider(HELLO).name, seen)
    expect(native.endpoint.startswith(bench.lane.url), seen)
    expect(native.api and native.model, seen)
    expect(isinstance(json.loads(native.items), list), seen)
    expect(reply.native_intact(), "the seal does not fit the message")
    expect(KEY not in seen, "the key is in it")


@check("native", "http", "native")
async def native_survives_copies(bench: Bench) -> None:
    """After `copy`, `deepcopy` and `pickle` of a reply, the next request has the same
    bytes.
    """
    reply = await _reply(bench)
    wanted = await _sent(bench, reply)
    for how, other in (
        ("copy", copy.copy(reply)),
        ("deepcopy", copy.deepcopy(reply)),
        ("pickle", pickle.loads(pickle.dumps(reply))),  # noqa: S301 - our own
    ):
        found = await _sent(bench, other)
        expect(found == wanted, f"after {how}\n{found!r}\nbefore\n{wanted!r}")


@check("native", "http", "native")
async def native_survives_json(bench: Bench) -> None:
    """After a way through `messages_to_json` and `messages_from_json` the next request
    has the same bytes.
    """
    reply = await _reply(bench)
    wanted = await _sent(bench, reply)
    (other,) = messages_from_json(messages_to_json([reply]))
    if not isinstance(other, AssistantMessage):
        raise TypeError(f"it came back as {other!r}")
    found = await _sent(bench, other)
    expect(found == wanted, f"after\n{found!r}\nbefore\n{wanted!r}")


@check("native", "http", "native")
async def native_is_sent_back(bench: Bench) -> None:
    """The native context of an unedited reply is sent: the request differs from one that
    is rebuilt from the public fields.
    """
    reply = await _reply(bench)
    wanted = await _sent(bench, reply)
    rebuilt = await _sent(bench, replace(reply, native=None))
    expect(wanted != rebuilt, f"with and without it, this is sent: {wanted!r}")


@check("native", "http", "native")
async def edited_reply_is_sent_as_edited(bench: Bench) -> None:
    """When a public field of a reply was changed, what is sent is the change and not the
    native context of before.
    """
    reply = await _reply(bench)
    found = await _sent(bench, replace(reply, content="edited-by-a-hook"))
    expect(b"edited-by-a-hook" in found, f"the request {found!r}")
    expect(b"Let me add." not in found, f"the request {found!r}")


@check("native", "http")
async def foreign_native_is_never_sent(bench: Bench) -> None:
    """Native context of another provider is never sent; the public fields are."""
    foreign = seal_native(
        AssistantMessage("public-words", reasoning="Thought."),
        provider="another",
        endpoint="https://another.example/v1",
        api=bench.wire.name,
        model="test-model",
        items=json.dumps([{"type": "reasoning", "text": _CANARY}]),
    )
    found = await _sent(bench, foreign)
    expect(_CANARY.encode() not in found, f"the request {found!r}")
    expect(b"public-words" in found, f"the request {found!r}")


@check("native", "http", "native")
async def native_of_another_endpoint_is_not_sent(bench: Bench) -> None:
    """Native context from another endpoint of the same interface is not sent: reasoning
    and ids are bound to the service that wrote them, and may be secret there.
    """
    await _from_elsewhere(
        bench, lambda native: replace(native, endpoint="https://other.example/v1")
    )


@check("native", "http", "native")
async def native_of_another_interface_is_not_sent(bench: Bench) -> None:
    """Native context from another interface of the same provider is not sent: it has
    another form.
    """
    await _from_elsewhere(bench, lambda native: replace(native, api="another"))


async def _from_elsewhere(
    bench: Bench, change: Callable[[NativeContext], NativeContext]
) -> None:
    reply = await _reply(bench)
    rebuilt = await _sent(bench, replace(reply, native=None))
    native = reply.native
    if native is None:
        raise Seen("no native context")
    found = await _sent(bench, replace(reply, native=change(native)))
    expect(found == rebuilt, f"sent\n{found!r}\nnot\n{rebuilt!r}")


@check("native", "http")
async def a_foreign_history_can_be_sent(bench: Bench) -> None:
    """A conversation that another provider has led, with reasoning and calls, can be
    continued.
    """
    call = ToolCall("toolu_vrtx_01|fc:7", "add", '{"a":19,"b":23}')
    if bench.case.why_not("tools"):
        reply = AssistantMessage("Let me add.", reasoning="Two numbers.")
    else:
        reply = AssistantMessage("", reasoning="Two numbers.", tool_calls=[call])
    found = await _sent(bench, reply)
    expect(found, "nothing was sent")
