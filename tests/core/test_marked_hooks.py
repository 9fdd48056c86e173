"""Hooks marked with `@hookimpl.…`, and what the calls inside `around_*` hooks keep to."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from support.waiting import timeout_once

from lighter_core import (
    Agent,
    AgentRequest,
    AssistantMessage,
    BeforeModelHook,
    HookError,
    MessageEvent,
    Model,
    ModelCallRestarted,
    ModelError,
    ModelRequest,
    Registry,
    RunContext,
    SystemMessage,
    TextDelta,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
    check_history,
    hookimpl,
    tool,
)
from lighter_core.hooks import EVENTS
from lighter_core.plugins import hookspecs
from lighter_core.plugins.marks import HookMark
from lighter_core.testing import FakeProvider, Turn

CALL = ToolCall("c1", "add", '{"a":1,"b":2}')


def asking(*calls: ToolCall) -> FakeProvider:
    return FakeProvider([Turn(tool_calls=calls or (CALL,)), "done"])


class Ledger:
    """A tool that writes down each execution."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, int]] = []

        @tool(thread=False)
        def add(a: int, b: int) -> int:
            """Calculate a sum."""
            self.ran.append((a, b))
            return a + b

        self.add = add


def test_there_is_a_mark_for_every_spec() -> None:
    """A spec without one could not be checked by a type checker."""
    specs = {*EVENTS, "create_provider", "get_tools"}
    marks = {name for name in vars(HookMark) if not name.startswith("_")}
    assert marks == specs
    for name in specs:
        assert hasattr(hookspecs, name)
        marked = getattr(hookimpl, name)(lambda: None)
        assert marked.lighter_impl["specname"] == name


async def test_a_marked_function_is_a_hook_by_itself() -> None:
    """Under any name, for every event, beside hooks of the other forms."""
    log: list[str] = []

    @hookimpl.before_agent
    def first(request: AgentRequest) -> None:
        log.append("before_agent")

    @hookimpl.before_model
    async def second(run: RunContext[Any], request: ModelRequest) -> ModelRequest:
        log.append(f"before_model {run.model_calls}")
        return replace(request, messages=[*request.messages, SystemMessage("hi")])

    @hookimpl.around_model
    async def third(request, call_model):
        log.append("around_model")
        return await call_model(request)

    @hookimpl.after_model
    def fourth() -> None:
        log.append("after_model")

    @hookimpl.before_tool
    def fifth(call: ToolCall) -> ToolCall:
        log.append("before_tool")
        return replace(call, arguments='{"a":5,"b":5}')

    @hookimpl.around_tool
    async def sixth(call, call_tool):
        log.append("around_tool")
        return await call_tool(call)

    @hookimpl.after_tool
    def seventh(message: ToolMessage) -> None:
        log.append(f"after_tool {message.tool_output}")

    @hookimpl.after_agent
    def eighth(messages: list[Any]) -> None:
        log.append(f"after_agent {len(messages)}")

    @hookimpl.on_run_end
    async def ninth(response: Any) -> None:
        log.append(f"on_run_end {response.status}")

    old = BeforeModelHook(hook_name="old", hook_function=lambda _: log.append("class"))
    hooks = [first, second, old, third, fourth, fifth, sixth, seventh, eighth, ninth]
    ledger, provider = Ledger(), asking()
    response = await Agent(provider, tools=[ledger.add], hooks=hooks).run("x")
    assert response.text == "done"
    assert provider.requests[0].messages[-1] == SystemMessage("hi")
    assert log == [
        "before_agent",
        "before_model 1",
        "class",
        "around_model",
        "after_model",
        "before_tool",
        "around_tool",
        "after_tool 10",
        "before_model 2",
        "class",
        "around_model",
        "after_model",
        "after_agent 3",
        "on_run_end completed",
    ]


async def test_a_bound_method_is_a_hook_by_itself() -> None:
    """Only that one method runs."""

    class Guard:
        seen: list[str]

        def __init__(self) -> None:
            self.seen = []

        @hookimpl.before_tool
        def look(self, call: ToolCall) -> None:
            self.seen.append(call.tool_name)

        @hookimpl.after_model
        def other(self) -> None:
            self.seen.append("never")

    guard, ledger = Guard(), Ledger()
    await Agent(asking(), tools=[ledger.add], hooks=[guard.look]).run("x")
    assert guard.seen == ["add"]


async def test_errors_name_a_function_that_is_a_hook() -> None:
    """What it raises has a note, a wrong type is a HookError with its name."""

    @hookimpl.before_model
    def broken() -> None:
        raise LookupError("no")

    @hookimpl.after_model
    def wrong() -> Any:
        return "text"

    response = await Agent(FakeProvider(["hi"]), hooks=[broken]).run("x")
    assert response.error is not None
    assert "raised by the before_model hook of plugin 'broken'" in (
        response.error.__notes__
    )
    response = await Agent(FakeProvider(["hi"]), hooks=[wrong]).run("x")
    assert isinstance(response.error, HookError)
    assert response.error.plugin == "wrong"


def test_two_implementations_of_one_event_in_a_plugin_are_refused() -> None:
    """Nothing would say which goes first."""

    class Two:
        @hookimpl.before_tool
        def one(self) -> None: ...

        @hookimpl.before_tool
        def other(self) -> None: ...

    with pytest.raises(HookError, match="implements before_tool twice"):
        Agent(FakeProvider([]), hooks=[Two()])


def test_a_mark_goes_before_the_functions_name() -> None:
    """A gate called `after_tool` is a gate; a misspelt argument is found at once."""

    @hookimpl.before_tool
    def after_tool(call: ToolCall) -> None: ...

    Agent(FakeProvider([]), hooks=[after_tool])

    @hookimpl.before_tool
    def gate(message: object) -> None: ...

    with pytest.raises(
        HookError, match="takes 'message'; the arguments are: call, run"
    ):
        Agent(FakeProvider([]), hooks=[gate])


async def test_marks_for_providers_and_tools_are_found_by_the_registry() -> None:
    """Under any name."""
    ledger = Ledger()

    class Plugin:
        @hookimpl.create_provider
        def make(self, name: str) -> FakeProvider:
            return FakeProvider(["hi"], name=name)

        @hookimpl.get_tools
        def tools(self) -> list[Any]:
            return [ledger.add]

    registry = Registry(scan=False)
    registry.register(Plugin(), name="acme")
    registry.register(Plugin(), name="acme", kind="tools")
    assert registry.create_provider("acme", {}).name == "acme"
    assert registry.load_tools("acme") == [ledger.add]


async def test_a_marked_function_is_a_plugin_by_itself() -> None:
    """Of every kind, as an entry point may name it."""
    asked: list[str] = []

    @hookimpl.before_tool
    def look(call: ToolCall) -> None:
        asked.append(call.tool_name)

    @hookimpl.get_tools
    def tools() -> list[Any]:
        return [Ledger().add]

    @hookimpl.create_provider
    def make() -> FakeProvider:
        return asking()

    registry = Registry(scan=False)
    registry.register(look, name="acme", kind="hooks")
    registry.register(tools, name="acme", kind="tools")
    registry.register(make, name="acme")
    agent = Agent(
        registry.create_provider("acme", {}),
        tools=registry.load_tools("acme"),
        hooks=[registry.load_hooks("acme")],
    )
    assert (await agent.run("x")).text == "done"
    assert asked == ["add"]
    with pytest.raises(HookError, match="implements none of create_provider"):
        registry.register(look, name="other")


# The call inside an `around_*` hook.


@pytest.mark.parametrize("given", [None, "text", CALL, UserMessage("x")])
async def test_call_model_takes_a_request_only(given: object) -> None:
    """A HookError names hook and argument; nothing is sent."""

    @hookimpl.around_model
    async def odd(call_model: Any) -> AssistantMessage:
        return await call_model(given)

    provider = FakeProvider(["hi"])
    response = await Agent(provider, hooks=[odd]).run("x")
    assert isinstance(response.error, HookError)
    assert "gave call_model a" in str(response.error)
    assert "takes the ModelRequest" in str(response.error)
    assert provider.requests == []


@pytest.mark.parametrize("given", [None, '{"a":1}', AssistantMessage("x")])
async def test_call_tool_takes_a_call_only(given: object) -> None:
    """The tool does not run."""

    @hookimpl.around_tool
    async def odd(call_tool: Any) -> ToolMessage:
        return await call_tool(given)

    ledger = Ledger()
    response = await Agent(asking(), tools=[ledger.add], hooks=[odd]).run("x")
    assert isinstance(response.error, HookError)
    assert "takes the ToolCall" in str(response.error)
    assert ledger.ran == []


async def test_only_the_hook_that_raised_is_named() -> None:
    """An error of the service that passes an `around_model` hook is not the hook's."""

    class Outer:
        @hookimpl
        async def around_model(self, request, call_model):
            return await call_model(request)

    class Raising:
        @hookimpl
        async def around_model(self, request, call_model):
            await call_model(request)
            raise LookupError("mine")

    class Translating:
        @hookimpl
        async def around_model(self, request, call_model):
            try:
                return await call_model(request)
            except ModelError as error:
                raise LookupError("mine") from error

    down = FakeProvider([ModelError("down", "server_error")])
    response = await Agent(down, hooks=[Outer(), Outer()]).run("x")
    assert isinstance(response.error, ModelError)
    assert getattr(response.error, "__notes__", []) == []
    for hook, provider in (
        (Raising(), FakeProvider(["hi"])),
        (Translating(), FakeProvider([ModelError("down", "server_error")])),
    ):
        response = await Agent(provider, hooks=[Outer(), hook]).run("x")
        assert isinstance(response.error, LookupError)
        [note] = response.error.__notes__
        assert type(hook).__name__ in note


async def test_around_model_edits_in_place_are_checked_and_do_not_last() -> None:
    """Neither in the messages nor in the schemas that it is shown."""
    descriptions: list[object] = []

    @hookimpl.around_model
    async def edit(request: ModelRequest, call_model: Any) -> AssistantMessage:
        descriptions.append(request.tool_specs[0].parameters.get("title"))
        request.tool_specs[0].parameters["title"] = "edited"
        request.messages.append(UserMessage("extra"))
        return await call_model(request)

    ledger, provider = Ledger(), asking()
    agent = Agent(provider, tools=[ledger.add], hooks=[edit])
    response = await agent.run("x")
    assert descriptions == [None, None]
    assert [len(request.messages) for request in provider.requests] == [3, 5]
    assert [m.role for m in response.messages] == ["assistant", "tool", "assistant"]

    @hookimpl.around_model
    async def spoil(request: ModelRequest, call_model: Any) -> AssistantMessage:
        request.messages.append({"role": "user"})  # type: ignore[arg-type]
        return await call_model(request)

    response = await Agent(FakeProvider(["hi"]), hooks=[spoil]).run("x")
    assert isinstance(response.error, TypeError)
    assert "got dict" in str(response.error)


async def test_around_tool_cannot_change_the_call_id() -> None:
    """The tool sees the id of the call that it answers, and so do the receipts."""
    seen: list[str | None] = []

    @tool
    async def where(run: RunContext[None]) -> str:
        """Tell the call id."""
        seen.append(run.call_id)
        return "here"

    @hookimpl.around_tool
    async def other(call: ToolCall, call_tool: Any) -> ToolMessage:
        return await call_tool(replace(call, call_id="other"))

    provider = asking(ToolCall("c1", "where", "{}"))
    handle = Agent(provider, tools=[where], hooks=[other]).start("x")
    response = await handle
    assert response.text == "done"
    assert seen == ["c1"]
    assert handle.receipts == {"c1": "finished"}


@pytest.mark.parametrize("event", ["after_tool", "around_tool"])
async def test_a_tool_that_ran_has_a_receipt_even_if_a_hook_after_it_fails(
    event: str,
) -> None:
    """Its result is kept out, since the hook might have had to hide it."""

    class After:
        @hookimpl
        def after_tool(self) -> None:
            raise LookupError("no")

    class Around:
        @hookimpl
        async def around_tool(self, call, call_tool):
            await call_tool(call)
            raise LookupError("no")

    ledger = Ledger()
    hook = After() if event == "after_tool" else Around()
    handle = Agent(asking(), tools=[ledger.add], hooks=[hook]).start("x")
    response = await handle
    assert isinstance(response.error, LookupError)
    assert handle.receipts == {"c1": "finished"}
    assert check_history(response.messages) == []
    assert "interrupted" in response.messages[1].tool_output


# Cancellation.


@pytest.mark.parametrize("way", ["handle", "timeout", "task"])
async def test_a_gate_that_swallows_the_cancellation_lets_no_tool_run(way: str) -> None:
    """The run ends as it does without the gate."""
    asked = asyncio.Event()

    @hookimpl.before_tool
    async def careless() -> None:
        asked.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return

    ledger = Ledger()
    agent = Agent(asking(), tools=[ledger.add], hooks=[careless])
    if way == "handle":
        handle = agent.start("x")
        await asked.wait()
        handle.cancel()
        assert (await handle).status == "failed"
    elif way == "timeout":
        with pytest.raises(TimeoutError):
            async with timeout_once(asked.is_set):
                await agent.run("x")
    else:
        task = asyncio.create_task(agent.run("x"))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ledger.ran == []


async def test_a_cancellation_of_its_own_does_not_let_on_run_end_change_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The hook waited for something that was cancelled; the run was not."""
    ended: list[str] = []

    @hookimpl.on_run_end
    async def broken() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    @hookimpl.on_run_end
    def other() -> None:
        ended.append("other")

    agent = Agent(FakeProvider(["hi"]), hooks=[other, broken])
    with caplog.at_level("ERROR", logger="lighter"):
        response = await agent.run("x")
    assert response.status == "completed"
    assert ended == ["other"]
    assert "on_run_end hook failed" in caplog.text


async def test_a_cancellation_from_outside_ends_on_run_end() -> None:
    """It passes, as everywhere."""
    reached = asyncio.Event()

    @hookimpl.on_run_end
    async def slow() -> None:
        reached.set()
        await asyncio.sleep(30)

    task = asyncio.create_task(Agent(FakeProvider(["hi"]), hooks=[slow]).run("x"))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_on_run_end_returns_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A value is a mistake that the log shows."""

    @hookimpl.on_run_end
    def talkative() -> Any:
        return "done"

    with caplog.at_level("ERROR", logger="lighter"):
        response = await Agent(FakeProvider(["hi"]), hooks=[talkative]).run("x")
    assert response.status == "completed"
    assert "returned str; it must return nothing" in caplog.text


async def test_the_run_context_is_read_only() -> None:
    """No hook can change what the next one sees."""

    @hookimpl.before_model
    def look(run: RunContext[Any]) -> None:
        for name in ("run_id", "deps", "call_id", "model_calls", "usage", "messages"):
            with pytest.raises(AttributeError):
                setattr(run, name, None)
        assert isinstance(run.messages, tuple)

    response = await Agent(FakeProvider(["hi"]), hooks=[look]).run("x", deps=7)
    assert response.status == "completed", response.error


# Gates that change the call.


async def test_a_changed_call_goes_to_all_other_gates_again() -> None:
    """And to the one that changed it only if another changes it after that."""
    asked: list[tuple[str, str]] = []

    def gate(name: str, change: str = "") -> object:
        @hookimpl.before_tool
        def look(call: ToolCall) -> ToolCall | None:
            asked.append((name, call.arguments))
            return replace(call, arguments=change) if change else None

        return look

    ledger, last = Ledger(), '{"a":3,"b":3}'
    gates = [gate("first"), gate("second", last), gate("third")]
    await Agent(asking(), tools=[ledger.add], hooks=gates).run("x")
    assert ledger.ran == [(3, 3)]
    assert asked == [
        ("first", CALL.arguments),
        ("second", CALL.arguments),
        ("third", last),
        ("first", last),
    ]


async def test_gates_that_never_agree_fail_the_run() -> None:
    """After a bounded number of rounds."""
    asked: list[str] = []

    def insisting(arguments: str) -> object:
        @hookimpl.before_tool
        def insist(call: ToolCall) -> ToolCall:
            asked.append(arguments)
            return replace(call, arguments=arguments)

        return insist

    ledger = Ledger()
    gates = [insisting('{"a":1,"b":1}'), insisting('{"a":2,"b":2}')]
    response = await Agent(asking(), tools=[ledger.add], hooks=gates).run("x")
    assert isinstance(response.error, HookError)
    assert "leave it alone" in str(response.error)
    assert ledger.ran == []
    assert len(asked) == 8


# Direct calls of a model.


@hookimpl.around_model
async def twice(request: ModelRequest, call_model: Any) -> AssistantMessage:
    """Make the call again after a failure."""
    try:
        return await call_model(request)
    except ModelError:
        return await call_model(request)


async def test_a_repeated_call_of_a_model_is_announced_in_its_stream() -> None:
    """The consumer would show the first attempt's words twice."""
    script = [[TextDelta("ha"), ModelError("busy", "server_error")], "hello"]
    model = Model(FakeProvider(script))
    request = ModelRequest([UserMessage("x")])
    events = [event async for event in model.stream(request, [twice])]
    assert events[:2] == [TextDelta("ha"), ModelCallRestarted()]
    assert isinstance(events[-1], MessageEvent)
    assert events[-1].message.content == "hello"
    assert ModelCallRestarted() not in events[2:]


@pytest.mark.parametrize("event", ["before_model", "around_model"])
@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_edits_in_place_stay_inside_a_direct_call(event: str, way: str) -> None:
    """The caller's request keeps its messages and the schemas of its tools."""

    async def edit(request: ModelRequest, call_model: Any = None) -> Any:
        request.messages.append(UserMessage("more"))
        request.tool_specs[0].parameters["title"] = "edited"
        return None if call_model is None else await call_model(request)

    @hookimpl.before_model
    async def before(request: ModelRequest) -> None:
        await edit(request)

    @hookimpl.around_model
    async def around(request: ModelRequest, call_model: Any) -> AssistantMessage:
        return await edit(request, call_model)

    hook = before if event == "before_model" else around
    spec = ToolSpec("add", "Add.", {"type": "object", "properties": {}})
    request = ModelRequest([UserMessage("x")], tool_specs=[spec])
    provider = FakeProvider(["hi"])
    model = Model(provider)
    if way == "invoke":
        await model.invoke(request, [hook])
    else:
        assert [each async for each in model.stream(request, [hook])]
    assert provider.requests[0].messages == [UserMessage("x"), UserMessage("more")]
    assert provider.requests[0].tool_specs[0].parameters["title"] == "edited"
    assert request.messages == [UserMessage("x")]
    assert "title" not in spec.parameters


@pytest.mark.parametrize("event", ["before_model", "around_model"])
@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_what_is_no_message_is_refused_in_a_direct_call(
    event: str, way: str
) -> None:
    """Nothing is sent."""

    @hookimpl.before_model
    def before(request: ModelRequest) -> None:
        request.messages.append({"role": "user"})  # type: ignore[arg-type]

    @hookimpl.around_model
    async def around(request: ModelRequest, call_model: Any) -> AssistantMessage:
        before(request)
        return await call_model(request)

    provider = FakeProvider(["hi"])
    hooks = [before if event == "before_model" else around]
    request = ModelRequest([UserMessage("x")])
    model = Model(provider)

    async def call() -> None:
        if way == "invoke":
            await model.invoke(request, hooks)
        else:
            assert [each async for each in model.stream(request, hooks)]

    with pytest.raises(TypeError, match="got dict"):
        await call()
    assert provider.requests == []
