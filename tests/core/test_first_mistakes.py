"""Mistakes that newcomers make, and what they are told."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import warnings

import pytest
from pydantic import BaseModel
from support.waiting import until

from lighter_core import (
    Agent,
    AssistantMessage,
    BeforeModelHook,
    FilePart,
    HookError,
    ImagePart,
    Model,
    ModelError,
    ModelRequest,
    PluginNotFoundError,
    Registry,
    SystemMessage,
    TextPart,
    Tool,
    ToolCall,
    ToolDefinitionError,
    ToolMessage,
    UserMessage,
    check_history,
    repair_history,
    tool,
)
from lighter_core.testing import FakeProvider, Pause, Turn


class Sum(BaseModel):
    a: int
    b: int


@tool
def add(a: int, b: int) -> int:
    """Calculate a sum."""
    return a + b


CALL = ToolCall("c1", "add", '{"a":1,"b":2}')


@pytest.mark.parametrize(
    "make",
    [
        lambda: SystemMessage("x", role="user"),
        lambda: UserMessage("x", role="system"),
        lambda: UserMessage("x", role="developer"),
        lambda: AssistantMessage("x", role="user"),
        lambda: ToolMessage(call_id="c", tool_name="t", tool_output="", role="user"),
        lambda: TextPart("x", type="image"),
        lambda: ImagePart(url="u", type="text"),
        lambda: FilePart(url="u", type="text"),
    ],
)
def test_a_message_cannot_claim_another_role(make) -> None:
    """A stored document must not raise its own rank."""
    with pytest.raises(ValueError, match="is always"):
        make()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ImagePart("cat.png"), r"ImagePart\.from_path"),
        (lambda: ImagePart(data="abc", media_type="image/png"), "must be bytes"),
        (lambda: AssistantMessage("x", usage={"input_tokens": 1}), "Usage or None"),
        (lambda: AssistantMessage("x", stop_reason=5), "str or None"),
        (
            lambda: ToolMessage(call_id="c", tool_name="t", tool_output="", is_error=1),
            "must be a bool",
        ),
        (lambda: ModelRequest([], tool_specs=[add]), "get_spec"),
        (lambda: ModelRequest([], output={"type": "object"}), "OutputSpec or None"),
        (lambda: ModelRequest([], tool_choice={"name": "add"}), "str or None"),
        (lambda: check_history("abc"), "a sequence of messages"),
        (lambda: check_history([{"role": "user"}]), "holds messages, got dict"),
        (lambda: repair_history([{"role": "user"}]), "holds messages, got dict"),
        (lambda: FakeProvider("hello"), r"write \['hello'\]"),
        (lambda: Model.from_name(5), "takes a provider's name"),
        (lambda: Registry(block="lighter-openai"), "take lists"),
        (lambda: Registry(allow="lighter-openai"), "take lists"),
    ],
)
def test_values_of_the_wrong_type_are_refused_where_they_are_given(make, says) -> None:
    """The sentence names the place and what belongs there."""
    with pytest.raises(TypeError, match=says):
        make()


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda a, b: a, "must take one argument"),
        (lambda: 1, "must take one argument"),
        (lambda *, args: args, "must take one argument"),
    ],
)
def test_a_tool_function_with_the_wrong_arity_is_refused(function, says) -> None:
    """At construction, not when the model calls it."""
    with pytest.raises(ToolDefinitionError, match=says):
        Tool(name="t", description="d", parameters=Sum, func=function)


def test_parameters_without_properties_around_them_are_refused() -> None:
    """The most common slip in a hand-written schema."""
    with pytest.raises(ToolDefinitionError, match='"properties"'):
        Tool(
            name="t",
            description="d",
            parameters={"a": {"type": "integer"}},
            func=lambda args: args,
        )


def test_a_bare_function_as_a_hook_says_which_class_to_use() -> None:
    """Nobody can know at which event it should run."""
    with pytest.raises(HookError, match="BeforeModelHook"):
        Agent(FakeProvider(), hooks=[lambda request: None])
    with pytest.raises(HookError, match="hook_name"):
        BeforeModelHook(hook_name=5, hook_function=lambda request: None)


@pytest.mark.parametrize("name", ["OpenAI:m", "Openai", "openai/gpt"])
def test_near_misses_of_a_provider_name_are_recognised(name: str) -> None:
    """Case, and the slash of other libraries."""
    with pytest.raises(PluginNotFoundError, match="'openai"):
        Agent(name)


def test_a_model_id_of_the_wrong_type_is_named() -> None:
    """Not "no model", which would send the reader to the environment."""
    with pytest.raises(ModelError, match="model_id must be a str, got int"):
        Model.from_name("openai", api_key="k", model_id=5)


def test_start_without_a_loop_names_the_way_for_synchronous_code() -> None:
    """`asyncio` itself says only that there is no loop."""
    with pytest.raises(RuntimeError, match=r"agent\.run_sync"):
        Agent(FakeProvider(["x"])).start("x")


def test_a_forgotten_await_is_warned_about_by_its_public_name() -> None:
    """Nobody knows the name of the coroutine inside."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Agent(FakeProvider(["x"])).run("x")
    assert any("'Agent.run' was never awaited" in str(each.message) for each in caught)


async def test_a_hook_that_edits_a_tool_spec_in_place_changes_that_call_only() -> None:
    """Neither the agent nor its other runs."""

    def edit(request: ModelRequest) -> None:
        if not seen:
            request.tool_specs[0].parameters["properties"]["evil"] = {}
        seen.append(1)

    seen: list[int] = []
    provider = FakeProvider(["x", "y"])
    hook = BeforeModelHook(hook_name="edit", hook_function=edit)
    agent = Agent(provider, tools=[add], hooks=[hook])
    await agent.run("x")
    await agent.run("y")
    properties = [
        set(r.tool_specs[0].parameters["properties"]) for r in provider.requests
    ]
    assert properties == [{"a", "b", "evil"}, {"a", "b"}]
    add.get_spec().parameters["properties"]["evil"] = {}
    assert set(add.get_spec().parameters["properties"]) == {"a", "b"}


async def test_the_log_names_a_failing_tool_and_the_kind_of_its_error(caplog) -> None:
    """At WARNING without any content; the whole of it, and refused arguments, at DEBUG."""

    @tool
    def broken() -> None:
        """Fail."""
        raise ValueError("secret content")

    calls = [ToolCall("c1", "broken", "{}"), ToolCall("c2", "add", '{"a":1}')]
    agent = Agent(FakeProvider([Turn(tool_calls=calls), "x"]), tools=[broken, add])
    with caplog.at_level("DEBUG", logger="lighter"):
        await agent.run("x")
    loud = [r for r in caplog.records if r.levelname == "WARNING"]
    assert [r.getMessage() for r in loud] == ["tool broken failed: ValueError"]
    assert "secret content" in caplog.text
    assert "refused its arguments: b: is required" in caplog.text


async def test_an_exception_group_of_a_tool_says_what_is_in_it() -> None:
    """A TaskGroup wraps even a single error."""

    @tool
    async def grouped() -> None:
        """Fail in a task."""

        async def fail() -> None:
            raise LookupError("no such book")

        async with asyncio.TaskGroup() as group:
            group.create_task(fail())

    message = await grouped.execute({}, call_id="c")
    assert message.tool_output == "LookupError: no such book"


async def test_a_stream_says_so_when_another_loop_asks_it_for_events() -> None:
    """It would wait there for ever."""
    provider = FakeProvider([[Pause(5)]])
    stream = Agent(provider).stream("x")
    first = asyncio.ensure_future(anext(stream))
    await until(lambda: provider.requests)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first

    stream = Agent(FakeProvider(["hello"])).stream("x")
    await anext(stream)
    errors: list[BaseException] = []

    async def consume() -> None:
        async for _ in stream:
            pass

    def elsewhere() -> None:
        try:
            asyncio.run(consume())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await asyncio.to_thread(thread.join, 10)
    assert isinstance(errors[0], RuntimeError)
    assert "another event loop" in str(errors[0])
    await stream.aclose()


async def test_a_handle_says_so_when_another_loop_awaits_it() -> None:
    """As the stream does."""
    handle = Agent(FakeProvider([[Pause(5)]])).start("x")

    async def wait() -> None:
        await handle

    def elsewhere() -> str:
        with pytest.raises(RuntimeError, match="another event loop") as caught:
            asyncio.run(wait())
        return str(caught.value)

    assert "agent.start" in await asyncio.to_thread(elsewhere)
    handle.cancel()
    assert (await handle).status == "failed"


async def test_closing_a_stream_from_another_loop_ends_the_run() -> None:
    """It asks and does not wait: there is nothing to wait with."""
    provider = FakeProvider([Turn(text="hello", pieces=5), "never"])
    stream = Agent(provider).stream("x")
    await anext(stream)
    await asyncio.to_thread(lambda: asyncio.run(stream.aclose()))
    await asyncio.sleep(0.05)
    assert provider.closed_streams == 1


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_cannot_be_copied(way) -> None:
    """A copy would end the original's run when it goes."""
    with pytest.raises(TypeError, match="cannot be copied"):
        way(Agent(FakeProvider(["x"])).stream("x"))


def test_the_synchronous_stream_gives_the_same_events_in_fewer_hops() -> None:
    """And still starts nothing that was not asked for."""
    ran: list[int] = []

    @tool
    def note(n: int) -> None:
        """Note a number."""
        ran.append(n)

    calls = [ToolCall(f"c{n}", "note", f'{{"n":{n}}}') for n in range(3)]
    script = [Turn(text="abcdef", pieces=6, tool_calls=calls), "done"]
    agent = Agent(FakeProvider(script), tools=[note])
    kinds = []
    with agent.stream_sync("x") as stream:
        for event in stream:
            kinds.append(event.type)
            if event.type == "tool_call_finished" and event.call.call_id == "c0":
                break
    assert ran == [0]
    assert kinds[:6] == ["text_delta"] * 6
    assert list(stream) == []
    assert check_history(stream.messages) == []
