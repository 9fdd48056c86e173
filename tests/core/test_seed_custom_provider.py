"""Connecting another service: the protocol, written by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    MessageEvent,
    Model,
    ModelError,
    ModelRequest,
    Provider,
    ProviderContractError,
    ProviderStreamEvent,
    Registry,
    TextDelta,
    ToolCall,
    ToolCallStarted,
    ToolMessage,
    UserMessage,
    hookimpl,
    tool,
)
from lighter_core.adapters import need_key, need_model_id, seal_native


class Parrot:
    """Repeats the latest user message; knows no tools."""

    name = "parrot"

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        if request.tool_specs:
            raise ModelError(
                "a parrot has no tools", "invalid_request", provider="parrot"
            )
        users = [m for m in request.messages if isinstance(m, UserMessage)]
        return AssistantMessage(f"You said: {users[-1].text}")

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        message = await self.invoke(request)
        yield TextDelta(message.content)
        yield MessageEvent(message)


class Counting:
    """Asks for each tool once, two calls in one reply, then reads the results."""

    @property
    def name(self) -> str:
        return "counting"

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        results = [m for m in request.messages if isinstance(m, ToolMessage)]
        if results:
            said = ", ".join(f"{m.call_id}={m.tool_output}" for m in results)
            return AssistantMessage(said)
        calls = [
            ToolCall(f"id_{n}", spec.name, f'{{"n":{n}}}')
            for n in (1, 2)
            for spec in request.tool_specs
        ]
        return AssistantMessage(tool_calls=calls)

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        yield MessageEvent(await self.invoke(request))


@tool
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


async def finish(agent: Agent, way: str) -> AgentResponse:
    if way == "run":
        return await agent.run("Is anybody there?")
    last = [e async for e in agent.stream("Is anybody there?")][-1]
    assert isinstance(last, AgentResponse)
    return last


BOTH = pytest.mark.parametrize("way", ["run", "stream"])


@BOTH
async def test_a_class_with_three_members_is_a_provider(way: str) -> None:
    """It inherits nothing and sends nothing."""
    provider = Parrot()
    assert isinstance(provider, Provider)
    response = await finish(Agent(Model(provider)), way)
    assert response.text == "You said: Is anybody there?"


@BOTH
async def test_a_provider_can_refuse_what_it_does_not_support(way: str) -> None:
    """Its error becomes the run's."""
    response = await finish(Agent(Parrot(), tools=[double]), way)
    assert isinstance(response.error, ModelError)
    assert response.error.code == "invalid_request"


@BOTH
async def test_ids_and_arguments_of_several_calls_arrive_complete(way: str) -> None:
    """The agent executes; the provider gets results with matching ids."""
    response = await finish(Agent(Counting(), tools=[double]), way)
    assert response.text == "id_1=2, id_2=4"
    assert [m.role for m in response.messages] == [
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]


async def test_errors_of_tools_reach_the_provider() -> None:
    """`is_error` is there to be converted."""
    seen: list[bool] = []

    class Watching(Counting):
        async def invoke(self, request: ModelRequest) -> AssistantMessage:
            seen.extend(m.is_error for m in request.messages if m.role == "tool")
            return await super().invoke(request)

    @tool
    def fail(n: int) -> int:
        """Fail for 2."""
        if n == 2:
            raise ValueError("two")
        return n

    await Agent(Watching(), tools=[fail]).run("x")
    assert seen == [False, True]


async def test_one_provider_serves_concurrent_runs() -> None:
    """It keeps nothing of a conversation, so runs do not mix."""
    agent = Agent(Parrot())
    responses = await asyncio.gather(*(agent.run(str(n)) for n in range(10)))
    assert [r.text for r in responses] == [f"You said: {n}" for n in range(10)]


@BOTH
async def test_switching_providers_keeps_messages_and_tools(way: str) -> None:
    """History and tools made with one provider are used with another."""
    first = await finish(Agent(Counting(), tools=[double]), way)
    history = [UserMessage("x"), *first.messages, UserMessage("And now?")]
    second = await Agent(Parrot()).run(history)
    assert second.text == "You said: And now?"
    assert second.notes == []


async def test_a_stream_without_a_message_is_a_bad_response() -> None:
    """Deltas are no substitute for the complete message."""

    class Dropping(Parrot):
        async def stream(
            self, request: ModelRequest
        ) -> AsyncGenerator[ProviderStreamEvent, None]:
            yield TextDelta("You")

    response = await finish(Agent(Dropping()), "stream")
    assert isinstance(response.error, ProviderContractError)
    assert isinstance(response.error, ModelError)
    assert response.error.code == "bad_response"
    assert response.error.provider == "parrot"
    assert response.messages == []
    events = [e async for e in Model(Dropping()).stream(ModelRequest([]))]
    assert events == [TextDelta("You")]


async def test_an_answer_that_is_no_message_is_a_bad_response() -> None:
    """`invoke` must return an `AssistantMessage`."""

    class Wrong(Parrot):
        async def invoke(self, request: ModelRequest) -> Any:
            return "text"

    response = await finish(Agent(Wrong()), "run")
    assert isinstance(response.error, ProviderContractError)
    assert "str instead of an AssistantMessage" in str(response.error)


async def test_the_providers_generator_is_always_closed() -> None:
    """After success, failure, a breach of the grammar and an early stop."""
    closed: list[str] = []

    class Watched:
        """Iterates over a script and notes that it was closed, by the loop alone."""

        def __init__(self, script: list[Any]) -> None:
            self.script = script

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> Any:
            if not self.script:
                raise StopAsyncIteration
            step = self.script.pop(0)
            if isinstance(step, Exception):
                raise step
            return step

        async def aclose(self) -> None:
            closed.append("closed")

    class Provided(Parrot):
        def __init__(self, *script: Any) -> None:
            self.script = list(script)

        def stream(self, request: ModelRequest) -> Any:
            return Watched(self.script)

    done = MessageEvent(AssistantMessage("a"))
    await finish(Agent(Provided(TextDelta("a"), done)), "stream")
    assert closed == ["closed"]
    error = ModelError("cut", "network_error")
    await finish(Agent(Provided(TextDelta("a"), error)), "stream")
    assert closed == ["closed"] * 2
    await finish(Agent(Provided(done, done)), "stream")
    assert closed == ["closed"] * 3
    never: list[Any] = [TextDelta("a")] * 200
    async with Agent(Provided(*never)).stream("x") as stream:
        await anext(stream)
    assert closed == ["closed"] * 4


async def test_stream_may_return_any_asynchronous_iterator() -> None:
    """One without `aclose` works too."""

    class Iterator:
        def __init__(self, events: list[ProviderStreamEvent]) -> None:
            self.events = events

        def __aiter__(self) -> AsyncIterator[ProviderStreamEvent]:
            return self

        async def __anext__(self) -> ProviderStreamEvent:
            if not self.events:
                raise StopAsyncIteration
            return self.events.pop(0)

    class Plain(Parrot):
        def stream(self, request: ModelRequest) -> Any:
            return Iterator([TextDelta("a"), MessageEvent(AssistantMessage("a"))])

    assert (await finish(Agent(Plain()), "stream")).text == "a"


async def test_a_provider_can_wrap_another() -> None:
    """Retry, fallback and the like are providers themselves."""

    class Flaky(Parrot):
        failures = 2

        async def invoke(self, request: ModelRequest) -> AssistantMessage:
            if self.failures:
                self.failures -= 1
                raise ModelError("busy", "server_error")
            return await super().invoke(request)

    class Retrying:
        def __init__(self, inner: Provider) -> None:
            self.inner = inner

        @property
        def name(self) -> str:
            return self.inner.name

        async def invoke(self, request: ModelRequest) -> AssistantMessage:
            for _ in range(3):
                try:
                    return await self.inner.invoke(request)
                except ModelError as error:
                    last = error
            raise last

        def stream(
            self, request: ModelRequest
        ) -> AsyncGenerator[ProviderStreamEvent, None]:
            return self.inner.stream(request)

    response = await finish(Agent(Retrying(Flaky())), "run")
    assert response.status == "completed"


async def test_tool_event_comes_after_the_provider_has_finished() -> None:
    """A call is executed only from a complete message."""
    order: list[str] = []

    class Late(Counting):
        async def stream(
            self, request: ModelRequest
        ) -> AsyncGenerator[ProviderStreamEvent, None]:
            yield MessageEvent(await self.invoke(request))
            order.append("provider finished")

    async for event in Agent(Late(), tools=[double]).stream("x"):
        if isinstance(event, ToolCallStarted):
            order.append(event.call.call_id)
    assert order == ["provider finished", "id_1", "id_2", "provider finished"]


def test_key_and_model_come_from_the_argument_or_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kit for providers reads the variable when the argument is left out."""
    monkeypatch.setenv("PARROT_API_KEY", "from-environment")
    monkeypatch.setenv("PARROT_MODEL", "model-environment")
    key = {"variable": "PARROT_API_KEY", "provider": "parrot"}
    model = {"variable": "PARROT_MODEL", "provider": "parrot"}
    assert need_key(None, **key) == "from-environment"
    assert need_key("given", **key) == "given"
    assert need_model_id(None, **model) == "model-environment"
    assert need_model_id("given", **model) == "given"


def test_missing_key_or_model_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `ModelError` at construction names variable and parameter."""
    monkeypatch.delenv("PARROT_API_KEY", raising=False)
    monkeypatch.setenv("PARROT_MODEL", "  ")
    with pytest.raises(
        ModelError, match=r"set PARROT_API_KEY or pass api_key"
    ) as caught:
        need_key(None, variable="PARROT_API_KEY", provider="parrot")
    assert caught.value.code == "auth_error"
    with pytest.raises(
        ModelError, match=r"set PARROT_MODEL or pass model_id"
    ) as caught:
        need_model_id(None, variable="PARROT_MODEL", provider="parrot")
    assert caught.value.code == "invalid_request"


def test_a_provider_is_chosen_by_name() -> None:
    """A registered plugin makes it; its options reach it, and nothing is sent."""
    made: list[dict[str, Any]] = []

    class Plugin:
        @hookimpl
        def create_provider(self, name: str, options: dict[str, Any]) -> Provider:
            made.append({"name": name, **options})
            return Parrot()

    registry = Registry(scan=False)
    registry.register(Plugin(), name="parrot")
    provider = registry.create_provider("parrot", {"model_id": "m"})
    assert isinstance(provider, Parrot)
    assert made == [{"name": "parrot", "model_id": "m"}]


async def test_native_context_of_another_provider_does_no_harm() -> None:
    """It says where it came from, and public fields are there for everyone."""
    message = seal_native(
        AssistantMessage("You said: hm"),
        provider="other",
        endpoint="https://example.test",
        api="responses",
        model="m",
        items="[]",
    )
    history = [UserMessage("hm"), message, UserMessage("And now?")]
    response = await Agent(Parrot()).run(history)
    assert response.text == "You said: And now?"
    assert message.native is not None
    origin = (message.native.provider, message.native.api, message.native.model)
    assert origin == ("other", "responses", "m")
