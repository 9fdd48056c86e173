"""What tools and hooks learn about their run."""

from __future__ import annotations

import contextvars
from dataclasses import dataclass
from typing import Any

from lighter_core import (
    AfterModelHook,
    Agent,
    AgentRequest,
    AssistantMessage,
    BeforeAgentHook,
    BeforeModelHook,
    Message,
    Model,
    ModelRequest,
    RunContext,
    SystemMessage,
    Tool,
    ToolCall,
    Usage,
    UserMessage,
    tool,
)
from lighter_core.testing import FakeProvider, Turn


@dataclass
class Shop:
    """What an application hands to its tools."""

    stock: dict[str, int]


def two_calls() -> FakeProvider:
    return FakeProvider(
        [
            Turn(
                tool_calls=[
                    ToolCall("c1", "count", '{"book":"moby"}'),
                    ToolCall("c2", "count", '{"book":"emma"}'),
                ]
            ),
            "done",
        ]
    )


async def test_tool_gets_the_run_and_the_model_never_sees_that_parameter() -> None:
    """A parameter annotated `RunContext` is filled in and stays out of the schema."""
    seen: list[tuple[object, object, object]] = []

    @tool
    def count(book: str, run: RunContext[Shop]) -> int:
        """Count copies."""
        seen.append((run.deps, run.run_id, run.call_id))
        return run.deps.stock[book]

    provider = two_calls()
    shop = Shop({"moby": 3, "emma": 5})
    response = await Agent(provider, tools=[count]).run("count", deps=shop)
    outputs = [m.tool_output for m in response.messages if m.role == "tool"]
    assert outputs == ["3", "5"]
    assert [each[0] for each in seen] == [shop, shop]
    assert [each[2] for each in seen] == ["c1", "c2"]
    assert seen[0][1] == seen[1][1] is not None
    spec = provider.requests[0].tool_specs[0]
    assert list(spec.parameters["properties"]) == ["book"]  # type: ignore[arg-type, index]


async def test_explicit_tool_gets_the_run_as_its_second_argument() -> None:
    """`Tool(func=…)` injects the run as `@tool` does."""

    def count(args: dict[str, Any], run: RunContext[Shop]) -> int:
        return run.deps.stock[args["book"]]

    shop_tool = Tool(
        name="count",
        description="Count copies.",
        parameters={"type": "object", "properties": {"book": {"type": "string"}}},
        func=count,
    )
    agent = Agent(two_calls(), tools=[shop_tool])
    response = await agent.run("count", deps=Shop({"moby": 1, "emma": 2}))
    assert [m.tool_output for m in response.messages if m.role == "tool"] == ["1", "2"]


async def test_each_run_has_an_id_of_its_own_and_one_for_all_its_hooks() -> None:
    """All hooks of a run see one `run_id`; another run has another."""
    ids: list[str | None] = []

    def before(_: AgentRequest, run: RunContext[Any]) -> None:
        ids.append(run.run_id)

    def after(_: AssistantMessage, run: RunContext[Any]) -> None:
        ids.append(run.run_id)

    agent = Agent(
        FakeProvider(["a", "b"]),
        hooks=[
            BeforeAgentHook(hook_name="b", hook_function=before),
            AfterModelHook(hook_name="a", hook_function=after),
        ],
    )
    await agent.run("1")
    await agent.run("2")
    assert ids[0] == ids[1]
    assert ids[2] == ids[3]
    assert ids[0] != ids[2]
    assert None not in ids


async def test_hooks_of_a_direct_model_call_have_no_run_id() -> None:
    """Outside a run the context is empty."""
    contexts: list[RunContext[Any]] = []

    def look(_: ModelRequest, run: RunContext[Any]) -> None:
        contexts.append(run)

    hook = BeforeModelHook(hook_name="look", hook_function=look)
    await Model(FakeProvider(["hi"])).invoke(ModelRequest([UserMessage("x")]), [hook])
    assert contexts[0].run_id is None
    assert contexts[0].deps is None


async def test_before_agent_hook_sees_the_input_in_its_run_context() -> None:
    """`run.messages` is the input from the very first hook on."""
    history: list[Message] = [UserMessage("a"), AssistantMessage("b"), UserMessage("c")]
    seen: list[tuple[Message, ...]] = []

    def look(_: AgentRequest, run: RunContext[Any]) -> None:
        seen.append(tuple(run.messages))

    hook = BeforeAgentHook(hook_name="look", hook_function=look)
    await Agent(FakeProvider(["d"]), hooks=[hook]).run(history)
    assert seen == [tuple(history)]


async def test_run_context_shows_the_input_that_before_agent_made() -> None:
    """After the replacement every hook sees the new input."""
    seen: list[tuple[Message, ...]] = []

    def look(_: ModelRequest, run: RunContext[Any]) -> None:
        seen.append(tuple(run.messages))

    agent = Agent(
        FakeProvider(["d"]),
        hooks=[
            BeforeAgentHook(
                hook_name="other",
                hook_function=lambda _: AgentRequest([UserMessage("other")]),
            ),
            BeforeModelHook(hook_name="look", hook_function=look),
        ],
    )
    await agent.run("x")
    assert seen == [(UserMessage("other"),)]


async def test_run_context_counts_and_shows_messages_without_the_system_prompt() -> (
    None
):
    """Counters and messages follow the run."""
    seen: list[tuple[int, int, list[str]]] = []

    def look(_: ModelRequest, run: RunContext[Any]) -> None:
        assert not any(isinstance(m, SystemMessage) for m in run.messages)
        roles = [m.role for m in run.messages]
        seen.append((run.model_calls, run.tool_calls, roles))

    @tool
    def count(book: str) -> int:
        """Count copies."""
        return len(book)

    hook = BeforeModelHook(hook_name="look", hook_function=look)
    await Agent(two_calls(), tools=[count], hooks=[hook]).run("count")
    assert seen == [
        (1, 0, ["user"]),
        (2, 2, ["user", "assistant", "tool", "tool"]),
    ]


async def test_usage_counts_every_call_even_when_a_hook_replaces_the_reply() -> None:
    """Tokens were spent whatever an `after_model` hook puts in the reply's place."""
    calls: list[Usage | None] = []

    def hide(_: AssistantMessage, run: RunContext[Any]) -> AssistantMessage:
        calls.append(run.usage)
        return AssistantMessage("hidden")

    provider = FakeProvider([Turn(text="secret", usage=Usage(7, 3), stop_reason="end")])
    hook = AfterModelHook(hook_name="hide", hook_function=hide)
    response = await Agent(provider, hooks=[hook]).run("x")
    assert response.text == "hidden"
    assert response.usage == Usage(7, 3)
    assert response.stop_reason == "end"
    assert calls == [Usage(7, 3)]


async def test_usage_counts_a_reply_that_a_failing_hook_keeps_out() -> None:
    """A failed run still says what it used."""

    def fail(_: AssistantMessage) -> None:
        raise ValueError("no")

    provider = FakeProvider([Turn(text="x", usage=Usage(7, 3))])
    hook = AfterModelHook(hook_name="fail", hook_function=fail)
    response = await Agent(provider, hooks=[hook]).run("x")
    assert response.status == "failed"
    assert response.messages == []
    assert response.usage == Usage(7, 3)


async def test_tools_see_the_callers_context_variables() -> None:
    """Sync tools on worker threads and async tools both do."""
    user = contextvars.ContextVar("user", default="nobody")

    @tool
    def sync_user() -> str:
        """Who asks."""
        return user.get()

    @tool
    async def async_user() -> str:
        """Who asks."""
        return user.get()

    provider = FakeProvider(
        [
            Turn(
                tool_calls=[
                    ToolCall("c1", "sync_user"),
                    ToolCall("c2", "async_user"),
                ]
            ),
            "done",
        ]
    )
    user.set("ada")
    response = await Agent(provider, tools=[sync_user, async_user]).run("who?")
    assert [m.tool_output for m in response.messages if m.role == "tool"] == [
        '"ada"',
        '"ada"',
    ]
