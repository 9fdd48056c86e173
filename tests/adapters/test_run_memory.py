"""A run writes its history once; every request still is what a fresh one would be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.interfaces import Interface, ask
from support.loopback import Answer, Loopback

from lighter_core import (
    AfterModelHook,
    Agent,
    AssistantMessage,
    BeforeModelHook,
    ModelError,
    ModelRequest,
    RunContext,
    ToolCall,
    UserMessage,
    explain_replay,
    tool,
)
from lighter_core._notes import run_memory
from lighter_core.adapters import ReplayNotes

ROUNDS = 4
FOREIGN = AssistantMessage("Ho", reasoning="Hm.")


class Asked:
    """An agent whose replies ask for a tool a few times, and its requests."""

    def __init__(
        self, provider: Any, *tools: Any, before: Any = None, **options: Any
    ) -> None:
        self.requests: list[ModelRequest] = []
        hooks = [
            BeforeModelHook(hook_name="note", hook_function=self._note),
            AfterModelHook(hook_name="ask", hook_function=self._ask),
        ]
        if before is not None:
            hooks.insert(0, BeforeModelHook(hook_name="before", hook_function=before))
        self.agent = Agent(provider, tools=tools, hooks=hooks, **options)
        self._names = [each.name for each in tools]

    def _note(self, request: ModelRequest, run: RunContext[Any]) -> None:
        messages = list(request.messages)
        self.requests.append(ModelRequest(messages, tool_specs=request.tool_specs))

    def _ask(self, message: AssistantMessage, run: RunContext[Any]) -> AssistantMessage:
        if run.model_calls > ROUNDS:
            return message
        calls = [
            ToolCall(f"call {run.model_calls} {name}", name, "{}")
            for name in self._names
        ]
        return replace(message, tool_calls=calls)


def bodies(server: Loopback) -> list[bytes]:
    return [each.body for each in server.requests]


@pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])
async def test_each_request_of_a_run_equals_a_fresh_one(
    interface: Interface, make: Callable[..., Any], server: Loopback, streamed: bool
):
    provider = make()
    server.script(interface.good(streamed=streamed))
    own = await ask(provider, streamed=streamed)
    server.requests.clear()

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    asked = Asked(provider, look)
    history = [UserMessage("a"), own, UserMessage("b"), FOREIGN, UserMessage("c")]
    if streamed:
        async with asked.agent.stream(history) as stream:
            events = [event async for event in stream]
        response = events[-1]
    else:
        response = await asked.agent.run(history)
    response.raise_if_failed()
    fresh = [
        provider._encode(each, ReplayNotes(), stream=streamed)
        for each in asked.requests
    ]
    assert bodies(server) == fresh
    assert len(fresh) == ROUNDS + 1
    lost = [text for text in response.notes if "without its reasoning" in text]
    assert len(lost) == 1


async def test_tools_that_ask_the_same_provider_disturb_nothing(
    interface: Interface, make: Callable[..., Any], server: Loopback
):
    """Three at once, of which two on threads with a loop of their own."""
    provider = make()
    server.script(interface.good(streamed=False))

    async def other(text: str) -> str:
        request = ModelRequest([UserMessage(text), FOREIGN, UserMessage("And?")])
        return (await provider.invoke(request)).content

    @tool
    async def here() -> str:
        """Ask here."""
        return await other("here")

    @tool
    def there() -> str:
        """Ask on a thread."""
        return asyncio.run(other("there"))

    @tool
    def elsewhere() -> str:
        """Ask on another thread."""
        return asyncio.run(other("elsewhere"))

    asked = Asked(provider, here, there, elsewhere, parallel_tools=True)
    (await asked.agent.run("Go.")).raise_if_failed()
    fresh = [
        provider._encode(each, ReplayNotes(), stream=False) for each in asked.requests
    ]
    sent = bodies(server)
    assert [body for body in sent if b"And?" not in body] == fresh
    for word in ("here", "there", "elsewhere"):
        request = ModelRequest([UserMessage(word), FOREIGN, UserMessage("And?")])
        one = provider._encode(request, ReplayNotes(), stream=False)
        assert sent.count(one) == ROUNDS


async def test_a_hook_that_changes_the_history_is_obeyed(
    interface: Interface, make: Callable[..., Any], server: Loopback
):
    provider = make()
    server.script(interface.good(streamed=False))

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    def number(request: ModelRequest, run: RunContext[Any]) -> ModelRequest:
        first = UserMessage(f"Turn {run.model_calls // 2}.")
        return replace(request, messages=[first, *request.messages[1:]])

    asked = Asked(provider, look, before=number)
    (await asked.agent.run("Go.")).raise_if_failed()
    fresh = [
        provider._encode(each, ReplayNotes(), stream=False) for each in asked.requests
    ]
    assert bodies(server) == fresh
    assert b"Turn 0." in fresh[0]
    assert b"Turn 2." in fresh[-1]


async def test_a_report_inside_a_run_is_whole(
    interface: Interface, make: Callable[..., Any], server: Loopback
):
    """What the run has said already is in the report all the same."""
    provider = make()
    server.script(interface.good(streamed=False))
    history = [UserMessage("a"), FOREIGN, UserMessage("b")]
    outside = explain_replay(history, provider)
    inside: list[Any] = []

    @tool
    def look() -> str:
        """Look."""
        inside.append(explain_replay(history, provider))
        return "seen"

    (await Asked(provider, look).agent.run(history)).raise_if_failed()
    assert inside == [outside] * ROUNDS
    assert outside


async def test_a_bad_history_behind_a_good_one_is_refused(
    interface: Interface, make: Callable[..., Any], server: Loopback
):
    """What stands behind the checked part is checked, with its place in the whole."""
    provider = make()
    server.script(interface.good(streamed=False))
    refused: list[ModelError] = []

    @tool
    async def look(run: RunContext[Any]) -> str:
        """Look."""
        stray = AssistantMessage("", tool_calls=[ToolCall("open", "t", "{}")])
        for start in ([], list(run.messages[:1])):
            messages = [*start, UserMessage("x"), stray, UserMessage("y")]
            with pytest.raises(ModelError) as found:
                await provider.invoke(ModelRequest(messages))
            refused.append(found.value)
        return "seen"

    (await Asked(provider, look).agent.run("Go.")).raise_if_failed()
    assert {each.code for each in refused} == {"invalid_request"}
    places = [each.message.partition("(")[2].partition(")")[0] for each in refused[:2]]
    assert places == ["messages[1].tool_calls[0]", "messages[2].tool_calls[0]"]


async def test_nothing_is_kept_behind_a_run(
    interface: Interface, make: Callable[..., Any], server: Loopback
):
    provider = make()
    server.script(interface.good(streamed=False))
    memories: list[dict[Any, Any]] = []
    filled: list[bool] = []

    @tool
    async def look() -> str:
        """Look."""
        memories.append(run_memory())
        filled.append(bool(memories[-1]))
        return "seen"

    (await Asked(provider, look).agent.run("Go.")).raise_if_failed()
    assert filled == [True] * ROUNDS
    assert all(each is memories[0] and not each for each in memories)
    assert run_memory() == {}
    assert run_memory() is not run_memory()


async def test_what_a_service_has_refused_is_not_taken_from_memory(
    make: Callable[..., Any], server: Loopback, interface: Interface
):
    """The request that is sent again, and those behind it, are written anew."""
    if interface.name != "openai":
        pytest.skip("it writes all anew for other reasons: its own tests show it")
    provider = make()
    server.script(interface.good(streamed=False))
    own = await ask(provider, streamed=False)
    server.requests.clear()

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    error = {"code": "invalid_encrypted_content", "message": "It is not readable."}
    good = interface.good(streamed=False)
    refusal = Answer(status=400, body=json.dumps({"error": error}).encode())
    server.script(good, good, refusal, good)
    asked = Asked(provider, look)
    (await asked.agent.run([UserMessage("a"), own, UserMessage("b")])).raise_if_failed()
    held = [own.native.items.strip("[]").encode() in body for body in bodies(server)]
    assert held == [True, True, True, False, False, False]
