"""A model by itself: one call, no loop."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from lighter_core import (
    AfterAgentHook,
    AfterModelHook,
    AssistantMessage,
    BeforeAgentHook,
    BeforeModelHook,
    HookError,
    MessageEvent,
    Model,
    ModelError,
    ModelRequest,
    ProviderRequest,
    ReasoningDelta,
    SystemMessage,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
    hookimpl,
    tool,
)
from lighter_core.testing import FakeProvider, Pause, Turn

REQUEST = ModelRequest([UserMessage("x")])
CALL = ToolCall("c1", "add", '{"a":19,"b":23}')


@tool
def add(a: int, b: int) -> int:
    """Calculate the sum of two numbers."""
    raise AssertionError("a model executes no tools")


async def call(model: Model, way: str, *arguments: Any) -> AssistantMessage:
    """Make one call and return the complete message."""
    if way == "invoke":
        return await model.invoke(*arguments)
    events = [event async for event in model.stream(*arguments)]
    assert isinstance(events[-1], MessageEvent)
    return events[-1].message


BOTH = pytest.mark.parametrize("way", ["invoke", "stream"])


def test_provider_request_is_the_model_request() -> None:
    """Two names for one class."""
    assert ProviderRequest is ModelRequest


def test_request_has_messages_and_optional_tool_specs() -> None:
    """Tool specs default to none; both are copies of what was given."""
    messages, specs = [UserMessage("x")], [add.get_spec()]
    request = ModelRequest(messages, tool_specs=specs)
    messages.clear()
    specs.clear()
    assert request.messages == [UserMessage("x")]
    assert request.tool_specs == (add.get_spec(),)
    assert REQUEST.tool_specs == ()
    assert REQUEST.output is None
    assert REQUEST.tool_choice is None


@BOTH
async def test_a_call_gives_one_complete_message(way: str) -> None:
    """The provider's very message."""
    reply = AssistantMessage("hi", reasoning="hm")
    assert await call(Model(FakeProvider([reply])), way, REQUEST) is reply


@BOTH
async def test_model_adds_no_system_prompt(way: str) -> None:
    """The request is sent as it is."""
    provider = FakeProvider(["x", "y"])
    await call(Model(provider), way, REQUEST)
    own = ModelRequest([SystemMessage("Be brief."), UserMessage("x")])
    await call(Model(provider), way, own)
    assert provider.requests == [REQUEST, own]


@BOTH
async def test_model_executes_no_tools_and_starts_no_second_round(way: str) -> None:
    """Calls are in the message; what follows is the application's."""
    provider = FakeProvider([Turn(tool_calls=[CALL]), "never"])
    request = ModelRequest([UserMessage("x")], tool_specs=[add.get_spec()])
    message = await call(Model(provider), way, request)
    assert message.tool_calls == (CALL,)
    assert len(provider.requests) == 1
    assert provider.requests[0].tool_specs == (add.get_spec(),)


async def test_an_application_can_run_the_loop_itself() -> None:
    """Spec, call, execution and the next request by hand."""

    @tool
    def plus(a: int, b: int) -> int:
        """Add."""
        return a + b

    asked = ToolCall("c1", "plus", '{"a":19,"b":23}')
    provider = FakeProvider([Turn(tool_calls=[asked]), "42"])
    model = Model(provider)
    messages: list[Any] = [UserMessage("19 + 23?")]
    first = await model.invoke(ModelRequest(messages, tool_specs=[plus.get_spec()]))
    messages.append(first)
    for each in first.tool_calls:
        messages.append(await plus.execute(each.arguments, call_id=each.call_id))
    assert messages[-1] == ToolMessage(call_id="c1", tool_name="plus", tool_output="42")
    assert (await model.invoke(ModelRequest(messages))).content == "42"


async def test_model_stream_yields_deltas_and_the_message_and_no_response() -> None:
    """Reasoning, text, message."""
    reply = AssistantMessage("hi", reasoning="hm")
    provider = FakeProvider([reply])
    events = [event async for event in Model(provider).stream(REQUEST)]
    assert events == [
        ReasoningDelta("h"),
        ReasoningDelta("m"),
        TextDelta("h"),
        TextDelta("i"),
        MessageEvent(reply),
    ]


@pytest.mark.parametrize(
    "script",
    [
        [TextDelta("a")],
        [MessageEvent(AssistantMessage("a")), MessageEvent(AssistantMessage("b"))],
        [MessageEvent(AssistantMessage("a")), TextDelta("b")],
        [TextDelta("")],
    ],
)
async def test_model_stream_forwards_without_checking(script: list[Any]) -> None:
    """A missing message, a second one, deltas behind it: all pass unchanged."""
    model = Model(FakeProvider([script]))
    assert [event async for event in model.stream(REQUEST)] == script


@BOTH
async def test_errors_propagate(way: str) -> None:
    """The very exception of the provider."""
    error = ModelError("down", "server_error")
    with pytest.raises(ModelError) as caught:
        await call(Model(FakeProvider([error])), way, REQUEST)
    assert caught.value is error


@BOTH
async def test_model_hooks_run_around_the_call(way: str) -> None:
    """`before_model` changes the request, `after_model` the message."""
    before = BeforeModelHook(
        hook_name="b",
        hook_function=lambda r: ModelRequest([*r.messages, SystemMessage("English.")]),
    )
    after = AfterModelHook(
        hook_name="a", hook_function=lambda m: AssistantMessage(m.content.upper())
    )
    provider = FakeProvider(["hi"])
    message = await call(Model(provider), way, REQUEST, [before, after])
    assert message.content == "HI"
    assert provider.requests[0].messages == [
        UserMessage("x"),
        SystemMessage("English."),
    ]
    assert REQUEST.messages == [UserMessage("x")]


@BOTH
async def test_plugin_objects_are_model_hooks_too(way: str) -> None:
    """As in an agent's list."""

    class Plugin:
        @hookimpl
        async def after_model(self, message: AssistantMessage) -> AssistantMessage:
            return AssistantMessage(message.content + "!")

    message = await call(Model(FakeProvider(["hi"])), way, REQUEST, [Plugin()])
    assert message.content == "hi!"


@BOTH
async def test_agent_hooks_do_not_run_in_a_direct_call(way: str) -> None:
    """There is no run that they could belong to."""
    ran: list[object] = []
    hooks = [
        BeforeAgentHook(hook_name="b", hook_function=ran.append),
        AfterAgentHook(hook_name="a", hook_function=ran.append),
    ]
    await call(Model(FakeProvider(["hi"])), way, REQUEST, hooks)
    assert ran == []


@BOTH
async def test_hook_exceptions_propagate_from_a_direct_call(way: str) -> None:
    """The very exception, before and after the call."""
    error = ValueError("no")

    def fail(_: object) -> None:
        raise error

    for hook, sent in (
        (BeforeModelHook(hook_name="h", hook_function=fail), 0),
        (AfterModelHook(hook_name="h", hook_function=fail), 1),
    ):
        provider = FakeProvider(["hi"])
        with pytest.raises(ValueError, match="no") as caught:
            await call(Model(provider), way, REQUEST, [hook])
        assert caught.value is error
        assert len(provider.requests) == sent


@BOTH
async def test_wrong_return_of_a_hook_is_a_hook_error(way: str) -> None:
    """Naming hook and event."""
    hook = BeforeModelHook(hook_name="odd", hook_function=lambda _: "text")  # type: ignore[arg-type, return-value]
    with pytest.raises(HookError, match="'odd'") as caught:
        await call(Model(FakeProvider(["hi"])), way, REQUEST, [hook])
    assert caught.value.event == "before_model"


async def test_stream_hook_sees_the_complete_message_only() -> None:
    """Deltas do not pass through `after_model`."""
    seen: list[AssistantMessage] = []
    hook = AfterModelHook(hook_name="h", hook_function=seen.append)
    provider = FakeProvider([Turn(text="abcd", reasoning="r", pieces=4)])
    events = [event async for event in Model(provider).stream(REQUEST, [hook])]
    assert len(events) == 6
    assert [m.content for m in seen] == ["abcd"]


async def test_in_place_edits_of_a_hook_do_not_reach_the_callers_request() -> None:
    """The hook works on a request of its own."""

    def edit(request: ModelRequest) -> None:
        request.messages.append(SystemMessage("more"))

    provider = FakeProvider(["x"])
    request = ModelRequest([UserMessage("x")])
    hook = BeforeModelHook(hook_name="h", hook_function=edit)
    await Model(provider).invoke(request, [hook])
    assert request.messages == [UserMessage("x")]
    assert len(provider.requests[0].messages) == 2


async def test_calling_the_provider_directly_bypasses_hooks() -> None:
    """Hooks belong to the model."""
    provider = FakeProvider(["raw", "raw"])
    hook = AfterModelHook(
        hook_name="h", hook_function=lambda _: AssistantMessage("hooked")
    )
    assert (await Model(provider).invoke(REQUEST, [hook])).content == "hooked"
    assert (await provider.invoke(REQUEST)).content == "raw"


async def test_leaving_a_model_stream_early_closes_the_providers() -> None:
    """`aclosing` ends the request."""
    provider = FakeProvider([[TextDelta("a"), Pause(60)]])
    async with aclosing(Model(provider).stream(REQUEST)) as stream:
        async for event in stream:
            assert event == TextDelta("a")
            break
    assert provider.closed_streams == 1


@pytest.mark.parametrize("provider", [object(), "openai", FakeProvider, None])
def test_model_needs_a_provider_object(provider: Any) -> None:
    """A name or a class is an error that says what is needed."""
    with pytest.raises(TypeError, match="needs a Provider object"):
        Model(provider)
