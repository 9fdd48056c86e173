"""The four lifecycle events in every form a hook can have."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from lighter_core import (
    AfterAgentHook,
    AfterModelHook,
    Agent,
    AgentRequest,
    AgentResponse,
    AssistantMessage,
    BeforeAgentHook,
    BeforeModelHook,
    HookError,
    Message,
    ModelError,
    ModelRequest,
    RunContext,
    SystemMessage,
    ToolCall,
    ToolSpec,
    UserMessage,
    hookimpl,
    tool,
)
from lighter_core.adapters import seal_native
from lighter_core.testing import FakeProvider, Turn

EVENTS = ("before_agent", "before_model", "after_model", "after_agent")
CLASSES: dict[str, Any] = {
    "before_agent": BeforeAgentHook,
    "before_model": BeforeModelHook,
    "after_model": AfterModelHook,
    "after_agent": AfterAgentHook,
}
VALUE_NAMES = {
    "before_agent": "request",
    "before_model": "request",
    "after_model": "message",
    "after_agent": "messages",
}


@tool(thread=False)
def ping() -> str:
    """Answer."""
    return "pong"


async def finish(agent: Agent, way: str, messages: Any = "x") -> AgentResponse:
    if way == "run":
        return await agent.run(messages)
    last = [event async for event in agent.stream(messages)][-1]
    assert isinstance(last, AgentResponse)
    return last


# The forms: each turns a function of one value into a hook of an agent's list.


def as_class(event: str, function: Callable[[Any], Any]) -> object:
    return CLASSES[event](hook_name=f"class-{event}", hook_function=function)


def as_async_class(event: str, function: Callable[[Any], Any]) -> object:
    async def slowly(value: Any) -> Any:
        await asyncio.sleep(0)
        return function(value)

    return CLASSES[event](hook_name=f"async-{event}", hook_function=slowly)


def as_class_with_run(event: str, function: Callable[[Any], Any]) -> object:
    def with_run(value: Any, run: RunContext[Any]) -> Any:
        assert run.run_id is not None
        return function(value)

    return CLASSES[event](hook_name=f"run-{event}", hook_function=with_run)


def _implementation(event: str, function: Callable[[Any], Any], source: str) -> Any:
    space: dict[str, Any] = {"function": function, "asyncio": asyncio}
    exec(source.format(event=event, value=VALUE_NAMES[event]), space)
    return space[event]


def as_plugin(event: str, function: Callable[[Any], Any]) -> object:
    source = "def {event}(self, {value}):\n    return function({value})"
    method = hookimpl(_implementation(event, function, source))
    return type("Plugin", (), {event: method})()


def as_async_plugin(event: str, function: Callable[[Any], Any]) -> object:
    source = (
        "async def {event}(self, run, {value}):\n"
        "    await asyncio.sleep(0)\n"
        "    assert run.run_id is not None\n"
        "    return function({value})"
    )
    method = hookimpl(_implementation(event, function, source))
    return type("AsyncPlugin", (), {event: method})()


def as_module(event: str, function: Callable[[Any], Any]) -> object:
    source = "def {event}({value}, run):\n    return function({value})"
    module = types.ModuleType(f"plugin_{event}")
    setattr(module, event, hookimpl(_implementation(event, function, source)))
    return module


FORMS = [
    as_class,
    as_async_class,
    as_class_with_run,
    as_plugin,
    as_async_plugin,
    as_module,
]
EACH_FORM = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
EACH_EVENT = pytest.mark.parametrize("event", EVENTS)
BOTH = pytest.mark.parametrize("way", ["run", "stream"])

INPUT_TYPES: dict[str, type] = {
    "before_agent": AgentRequest,
    "before_model": ModelRequest,
    "after_model": AssistantMessage,
    "after_agent": list,
}


@BOTH
@EACH_EVENT
@EACH_FORM
async def test_hook_gets_its_value_and_none_keeps_it(
    form: Any, event: str, way: str
) -> None:
    """The run is as without the hook."""
    seen: list[object] = []
    provider = FakeProvider(["hi"])
    agent = Agent(provider, hooks=[form(event, seen.append)])
    response = await finish(agent, way)
    [value] = seen
    assert isinstance(value, INPUT_TYPES[event])
    assert response.status == "completed"
    assert response.text == "hi"
    plain = FakeProvider(["hi"])
    assert await finish(Agent(plain), way) == response
    assert plain.requests == provider.requests


REPLACEMENTS: dict[str, Callable[[Any], Any]] = {
    "before_agent": lambda request: AgentRequest([UserMessage("other")]),
    "before_model": lambda request: replace(request, messages=[UserMessage("other")]),
    "after_model": lambda message: AssistantMessage("other"),
    "after_agent": lambda messages: [*messages, AssistantMessage("other")],
}


@BOTH
@EACH_EVENT
@EACH_FORM
async def test_hook_can_replace_its_value(form: Any, event: str, way: str) -> None:
    """Each event's replacement shows where it should, and nowhere else."""
    provider = FakeProvider(["hi"])
    agent = Agent(provider, hooks=[form(event, REPLACEMENTS[event])])
    response = await finish(agent, way)
    assert response.status == "completed"
    prompt = SystemMessage("You are a helpful assistant.")
    sent = {
        "before_agent": [prompt, UserMessage("other")],
        "before_model": [UserMessage("other")],
    }
    got = {"after_model": ["other"], "after_agent": ["hi", "other"]}
    plain = [prompt, UserMessage("x")]
    assert provider.requests[0].messages == sent.get(event, plain)
    texts = [m.content for m in response.messages]  # type: ignore[union-attr]
    assert texts == got.get(event, ["hi"])


@BOTH
@EACH_EVENT
@EACH_FORM
async def test_exception_of_a_hook_fails_the_run_as_the_same_object(
    form: Any, event: str, way: str
) -> None:
    """With a note that says which hook raised it."""
    error = LookupError("from the hook")

    def fail(_: object) -> None:
        raise error

    provider = FakeProvider(["hi"])
    response = await finish(Agent(provider, hooks=[form(event, fail)]), way)
    assert response.status == "failed"
    assert response.error is error
    assert any(event in note for note in error.__notes__)
    sent = 0 if event.startswith("before") else 1
    assert len(provider.requests) == sent
    kept = ["hi"] if event == "after_agent" else []
    assert [m.content for m in response.messages] == kept  # type: ignore[union-attr]


@BOTH
@EACH_EVENT
@EACH_FORM
@pytest.mark.parametrize("value", ["text", 0, False, {"messages": []}])
async def test_wrong_return_type_is_a_hook_error(
    form: Any, event: str, way: str, value: object
) -> None:
    """Naming the event and what it got; false values are not `None`."""
    hook = form(event, lambda _: value)
    response = await finish(Agent(FakeProvider(["hi"]), hooks=[hook]), way)
    assert response.status == "failed"
    assert isinstance(response.error, HookError)
    assert response.error.event == event
    assert event in str(response.error)
    assert type(value).__name__ in str(response.error)
    if form in (as_plugin, as_async_plugin, as_module):
        assert response.error.plugin is not None
        assert response.error.plugin in str(response.error)
    else:
        assert response.error.hook == hook.hook_name
        assert hook.hook_name in str(response.error)


@BOTH
@pytest.mark.parametrize("event", ["before_agent", "before_model", "after_agent"])
@EACH_FORM
async def test_in_place_edits_count_like_replacements(
    form: Any, event: str, way: str
) -> None:
    """The lists are the run's own, so the caller's history stays as it is."""

    def edit(value: Any) -> None:
        messages = value if event == "after_agent" else value.messages
        messages.append(UserMessage("added"))

    provider = FakeProvider(["hi"])
    history: list[Message] = [UserMessage("x")]
    response = await finish(Agent(provider, hooks=[form(event, edit)]), way, history)
    sent = [m.content for m in provider.requests[0].messages[1:]]  # type: ignore[union-attr]
    texts = [m.content for m in response.messages]  # type: ignore[union-attr]
    if event == "after_agent":
        assert (sent, texts) == (["x"], ["hi", "added"])
    else:
        assert (sent, texts) == (["x", "added"], ["hi"])
    assert history == [UserMessage("x")]


async def test_a_message_cannot_be_edited_in_place() -> None:
    """`after_model` must return a new message."""

    def edit(message: AssistantMessage) -> None:
        message.content = "other"  # type: ignore[misc]

    hook = AfterModelHook(hook_name="edit", hook_function=edit)
    response = await Agent(FakeProvider(["hi"]), hooks=[hook]).run("x")
    assert isinstance(response.error, AttributeError)


# Order.


def marking(event: str, name: str, log: list[str]) -> Callable[[Any], None]:
    def mark(_: object) -> None:
        log.append(f"{event} {name}")

    return mark


@BOTH
async def test_several_hooks_run_in_list_order_before_and_reversed_after(
    way: str,
) -> None:
    """The first hook of the list is the outermost, whatever its form."""
    log: list[str] = []
    hooks = [
        form(event, marking(event, str(number), log))
        for number, form in enumerate(FORMS)
        for event in EVENTS
    ]
    await finish(Agent(FakeProvider(["hi"]), hooks=hooks), way)
    up = [str(number) for number in range(len(FORMS))]
    down = up[::-1]
    assert log == [
        *(f"before_agent {n}" for n in up),
        *(f"before_model {n}" for n in up),
        *(f"after_model {n}" for n in down),
        *(f"after_agent {n}" for n in down),
    ]


async def test_one_plugin_may_implement_all_four_events() -> None:
    """It stands once in the list and runs at each point in its place."""
    log: list[str] = []

    class Audit:
        def __init__(self, name: str) -> None:
            self.name = name

        @hookimpl
        def before_agent(self, request: AgentRequest) -> None:
            log.append(f"{self.name} before_agent")

        @hookimpl
        async def before_model(self) -> None:
            log.append(f"{self.name} before_model")

        @hookimpl
        def after_model(self, run: RunContext[Any], message: AssistantMessage) -> None:
            log.append(f"{self.name} after_model")

        @hookimpl
        async def after_agent(self, messages: Sequence[Message]) -> None:
            log.append(f"{self.name} after_agent")

    agent = Agent(FakeProvider(["hi"]), hooks=[Audit("a"), Audit("b")])
    assert (await agent.run("x")).status == "completed"
    assert log == [
        "a before_agent",
        "b before_agent",
        "a before_model",
        "b before_model",
        "b after_model",
        "a after_model",
        "b after_agent",
        "a after_agent",
    ]


async def test_each_hook_sees_what_the_one_before_it_made() -> None:
    """Replacements are passed on along the chain."""

    def adding(text: str) -> Callable[[ModelRequest], ModelRequest]:
        return lambda request: replace(
            request, messages=[*request.messages, SystemMessage(text)]
        )

    def suffixing(text: str) -> Callable[[AssistantMessage], AssistantMessage]:
        return lambda message: AssistantMessage(message.content + text)

    provider = FakeProvider(["hi"])
    response = await Agent(
        provider,
        system_prompt=None,
        hooks=[
            as_class("before_model", adding("1")),
            as_plugin("before_model", adding("2")),
            as_class("after_model", suffixing("1")),
            as_module("after_model", suffixing("2")),
        ],
    ).run("x")
    assert [m.content for m in provider.requests[0].messages] == ["x", "1", "2"]  # type: ignore[union-attr]
    assert response.text == "hi21"


async def test_a_failing_hook_stops_the_hooks_after_it() -> None:
    """The chain ends where it fails."""
    log: list[str] = []

    def fail(_: object) -> None:
        raise ValueError("no")

    agent = Agent(
        FakeProvider(["hi"]),
        hooks=[
            as_class("before_model", fail),
            as_plugin("before_model", marking("before_model", "second", log)),
        ],
    )
    assert (await agent.run("x")).status == "failed"
    assert log == []


async def test_synchronous_hooks_run_on_the_event_loop() -> None:
    """They may use what belongs to it."""
    loops: list[object] = []
    hook = as_class("before_model", lambda _: loops.append(asyncio.get_running_loop()))
    await Agent(FakeProvider(["hi"]), hooks=[hook]).run("x")
    assert loops == [asyncio.get_running_loop()]


# Each event's own rules.


@BOTH
async def test_before_model_replacement_holds_for_that_call_only(way: str) -> None:
    """The next call starts from the run's own messages; the result has none of it."""
    extra = SystemMessage("Answer in verse.")

    def once(request: ModelRequest) -> ModelRequest | None:
        if len(request.messages) > 2:
            return None
        return replace(request, messages=[*request.messages, extra])

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "ping")]), "done"])
    hook = BeforeModelHook(hook_name="verse", hook_function=once)
    response = await finish(Agent(provider, tools=[ping], hooks=[hook]), way)
    assert extra in provider.requests[0].messages
    assert extra not in provider.requests[1].messages
    assert [m.role for m in response.messages] == ["assistant", "tool", "assistant"]


@BOTH
async def test_before_model_runs_before_every_call_with_a_fresh_list(way: str) -> None:
    """Edits of one call's list are not there in the next."""
    sizes: list[int] = []

    def grow(request: ModelRequest) -> None:
        sizes.append(len(request.messages))
        request.messages.extend([UserMessage("noise")] * 5)

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "ping")]), "done"])
    hook = BeforeModelHook(hook_name="grow", hook_function=grow)
    await finish(Agent(provider, tools=[ping], hooks=[hook]), way)
    assert sizes == [2, 4]


@BOTH
async def test_tool_specs_of_a_hook_are_shown_but_cannot_be_executed(way: str) -> None:
    """The model sees the spec; its call is answered as an unknown tool."""
    spec = ToolSpec("secret", "Not there.", {"type": "object", "properties": {}})
    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "secret")]), "done"])
    hook = BeforeModelHook(
        hook_name="add", hook_function=lambda r: replace(r, tool_specs=[spec])
    )
    response = await finish(Agent(provider, tools=[ping], hooks=[hook]), way)
    assert provider.requests[0].tool_specs == (spec,)
    assert response.messages[1].is_error  # type: ignore[union-attr]
    assert response.status == "completed"


@BOTH
async def test_a_tool_whose_spec_a_hook_removed_still_executes(way: str) -> None:
    """Specs are what the model sees; the agent's tools are what runs."""
    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "ping")]), "done"])
    hook = BeforeModelHook(
        hook_name="hide", hook_function=lambda r: replace(r, tool_specs=())
    )
    response = await finish(Agent(provider, tools=[ping], hooks=[hook]), way)
    assert provider.requests[0].tool_specs == ()
    assert response.messages[1].tool_output == '"pong"'  # type: ignore[union-attr]


@BOTH
async def test_before_agent_replaces_the_input_and_nothing_else(way: str) -> None:
    """Its messages are not new messages; the system prompt is added to them."""
    provider = FakeProvider(["hi"])
    hook = BeforeAgentHook(
        hook_name="other", hook_function=lambda _: AgentRequest([UserMessage("other")])
    )
    response = await finish(Agent(provider, hooks=[hook]), way)
    assert [m.role for m in provider.requests[0].messages] == ["system", "user"]
    assert provider.requests[0].messages[1] == UserMessage("other")
    assert [m.role for m in response.messages] == ["assistant"]


@BOTH
async def test_after_model_replacement_decides_which_tools_run(way: str) -> None:
    """It stands in context and result, and its calls are the ones executed."""
    ran: list[str] = []

    @tool(thread=False)
    def safe() -> str:
        """Do the safe thing."""
        ran.append("safe")
        return "ok"

    @tool(thread=False)
    def risky() -> str:
        """Do the risky thing."""
        ran.append("risky")
        return "ok"

    replaced = AssistantMessage("", tool_calls=[ToolCall("c", "safe")])

    def divert(message: AssistantMessage) -> AssistantMessage | None:
        return replaced if message.tool_calls else None

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "risky")]), "done"])
    hook = AfterModelHook(hook_name="divert", hook_function=divert)
    response = await finish(Agent(provider, tools=[safe, risky], hooks=[hook]), way)
    assert ran == ["safe"]
    assert response.messages[0] is replaced
    assert provider.requests[1].messages[2] is replaced


@BOTH
async def test_after_model_that_raises_keeps_the_message_out(way: str) -> None:
    """Its calls are not executed, the message is not in the result."""
    ran: list[str] = []

    @tool(thread=False)
    def act() -> None:
        """Have an effect."""
        ran.append("ran")

    def refuse(message: AssistantMessage) -> None:
        if message.tool_calls:
            raise PermissionError("not allowed")

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "act")]), "never"])
    hook = AfterModelHook(hook_name="refuse", hook_function=refuse)
    response = await finish(Agent(provider, tools=[act], hooks=[hook]), way)
    assert isinstance(response.error, PermissionError)
    assert response.messages == []
    assert ran == []


@BOTH
async def test_after_agent_gets_new_messages_and_changes_the_result_only(
    way: str,
) -> None:
    """No further model call, no delta."""
    seen: list[Sequence[Message]] = []
    notice = AssistantMessage("Prices may have changed.")

    def append(messages: Sequence[Message]) -> Sequence[Message]:
        seen.append(list(messages))
        return [*messages, notice]

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "ping")]), "done"])
    hook = AfterAgentHook(hook_name="sign", hook_function=append)
    agent = Agent(provider, tools=[ping], hooks=[hook])
    deltas = ""
    if way == "run":
        response = await agent.run("x")
    else:
        async for event in agent.stream("x"):
            if event.type == "text_delta":
                deltas += event.text
            elif event.type == "response":
                response = event
        assert deltas == "done"
    assert [m.role for m in seen[0]] == ["assistant", "tool", "assistant"]
    assert response.messages == [*seen[0], notice]
    assert len(provider.requests) == 2


@BOTH
async def test_after_agent_may_return_a_tuple_or_nothing_at_all(way: str) -> None:
    """An empty result is a replacement too."""
    for value in ((), []):
        hook = AfterAgentHook(hook_name="empty", hook_function=lambda _, v=value: v)
        response = await finish(Agent(FakeProvider(["hi"]), hooks=[hook]), way)
        assert response.status == "completed"
        assert response.messages == []


@BOTH
async def test_after_agent_that_raises_keeps_the_messages(way: str) -> None:
    """Failed, with everything that was completed."""

    def fail(messages: Sequence[Message]) -> None:
        messages.clear()  # type: ignore[attr-defined]
        raise ValueError("no")

    hook = AfterAgentHook(hook_name="fail", hook_function=fail)
    response = await finish(Agent(FakeProvider(["hi"]), hooks=[hook]), way)
    assert response.status == "failed"
    assert response.text == "hi"


@BOTH
async def test_failing_later_hook_keeps_completed_rounds(way: str) -> None:
    """A hook of the second round does not undo the first."""
    calls = 0

    def second(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise ValueError("second")

    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "ping")]), "never"])
    hook = BeforeModelHook(hook_name="second", hook_function=second)
    response = await finish(Agent(provider, tools=[ping], hooks=[hook]), way)
    assert [m.role for m in response.messages] == ["assistant", "tool"]
    assert len(provider.requests) == 1


# The classes by themselves.


@EACH_EVENT
def test_hook_class_has_name_description_and_function_to_read(event: str) -> None:
    """The description may be left out."""

    def function(value: Any) -> None:
        return None

    hook = CLASSES[event](hook_name="n", description="d", hook_function=function)
    assert (hook.hook_name, hook.description) == ("n", "d")
    assert hook.hook_function is function
    assert CLASSES[event](hook_name="n", hook_function=function).description is None
    with pytest.raises(AttributeError):
        hook.hook_name = "other"
    with pytest.raises(TypeError):
        CLASSES[event](hook_function=function)
    with pytest.raises(TypeError):
        CLASSES[event](hook_name="n")


VALUES: dict[str, Any] = {
    "before_agent": AgentRequest([UserMessage("x")]),
    "before_model": ModelRequest([UserMessage("x")]),
    "after_model": AssistantMessage("x"),
    "after_agent": [AssistantMessage("x")],
}


@EACH_EVENT
async def test_execute_runs_a_hook_by_itself(event: str) -> None:
    """It gives the value, the replacement, or raises the function's exception."""
    value = VALUES[event]
    error = LookupError("no")

    def fail(_: object) -> None:
        raise error

    make = CLASSES[event]
    kept = await make(hook_name="n", hook_function=lambda _: None).execute(value)
    assert kept is value
    other = REPLACEMENTS[event](value)
    assert (
        await make(hook_name="n", hook_function=lambda _: other).execute(value) is other
    )
    with pytest.raises(LookupError) as caught:
        await make(hook_name="n", hook_function=fail).execute(value)
    assert caught.value is error


async def test_execute_gives_a_context_also_without_a_run() -> None:
    """A function of two arguments always gets one."""
    seen: list[object] = []
    hook = BeforeModelHook(
        hook_name="n", hook_function=lambda value, run: seen.append(run.run_id)
    )
    await hook.execute(VALUES["before_model"])
    run: RunContext[None] = RunContext(run_id="r")
    await hook.execute(VALUES["before_model"], run)
    assert seen == [None, "r"]


# What would silently not run is refused at construction.


class _Unmarked:
    def before_model(self, request: ModelRequest) -> None:
        """Not marked."""


class _Misspelt:
    @hookimpl
    def before_modell(self, request: ModelRequest) -> None:
        """No such event."""


class _Defaulted:
    @hookimpl
    def before_model(self, request: ModelRequest, run: object = None) -> None:
        """The default would hide the run."""


class _UnknownArgument:
    @hookimpl
    def before_model(self, req: ModelRequest) -> None:
        """No such argument."""


class _Wrapper:
    @hookimpl(wrapper=True)
    def before_model(self, request: ModelRequest) -> Any:
        """Lighter runs no wrappers."""
        return (yield)


class _First:
    @hookimpl(tryfirst=True)
    def before_model(self, request: ModelRequest) -> None:
        """The list decides the order."""


class _Generator:
    @hookimpl
    def before_model(self, request: ModelRequest) -> Any:
        """A generator has no value."""
        yield request


@pytest.mark.parametrize(
    "hook",
    [
        object(),
        _Unmarked(),
        _Misspelt(),
        _Defaulted(),
        _UnknownArgument(),
        _Wrapper(),
        _First(),
        _Generator(),
        _Defaulted,
        lambda request: None,
    ],
    ids=lambda hook: getattr(hook, "__name__", type(hook).__name__),
)
def test_hooks_that_would_not_run_are_refused(hook: object) -> None:
    """The agent cannot be made."""
    with pytest.raises(HookError):
        Agent(FakeProvider([]), hooks=[hook])


def test_a_hook_listed_twice_is_refused() -> None:
    """It would run twice."""
    hook = BeforeModelHook(hook_name="twice", hook_function=lambda _: None)
    with pytest.raises(HookError, match="listed twice"):
        Agent(FakeProvider([]), hooks=[hook, hook])


@pytest.mark.parametrize(
    "function", [lambda: None, lambda a, b, c: None, 7, AgentRequest]
)
def test_hook_function_must_take_one_or_two_arguments(function: Any) -> None:
    """Seen when the hook is made."""
    with pytest.raises(HookError, match="'odd'"):
        BeforeModelHook(hook_name="odd", hook_function=function)


async def test_after_agent_does_not_run_when_the_model_fails() -> None:
    """Only success ends with it; clean up elsewhere."""
    ran: list[object] = []
    cleaned: list[str] = []
    hook = AfterAgentHook(hook_name="after", hook_function=ran.append)
    agent = Agent(FakeProvider([ModelError("down", "server_error")]), hooks=[hook])
    try:
        assert (await agent.run("x")).status == "failed"
    finally:
        cleaned.append("cleaned")
    assert ran == []
    assert cleaned == ["cleaned"]


@BOTH
@EACH_FORM
async def test_a_hook_that_only_looks_keeps_native_context(form: Any, way: str) -> None:
    """The very message goes on; an edited one no longer fits its native context."""
    message = seal_native(
        AssistantMessage("hi"),
        provider="fake",
        endpoint="https://example.test",
        api="a",
        model="m",
        items="[]",
    )
    seen: list[object] = []
    agent = Agent(FakeProvider([message]), hooks=[form("after_model", seen.append)])
    response = await finish(agent, way)
    assert response.messages[0] is message
    assert message.native_intact()

    edit = form("after_model", lambda m: replace(m, content="ho"))
    response = await finish(Agent(FakeProvider([message]), hooks=[edit]), way)
    [edited] = response.messages
    assert isinstance(edited, AssistantMessage)
    assert not edited.native_intact()
