"""The public API as a type checker sees it. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_type

from pydantic import BaseModel

from lighter_core import (
    Agent,
    AgentResponse,
    AgentStream,
    AgentStreamEvent,
    AssistantMessage,
    BeforeModelHook,
    JSONValue,
    Message,
    Model,
    ModelError,
    ModelErrorCode,
    ModelRequest,
    Provider,
    RunContext,
    RunHandle,
    SyncAgentStream,
    SystemMessage,
    TextDelta,
    Tool,
    ToolMessage,
    UserMessage,
    hookimpl,
    tool,
)
from lighter_core.testing import FakeProvider, Turn


@tool
def add(a: int, b: int) -> int:
    """Calculate a sum."""
    return a + b


assert_type(add(1, 2), int)
add("1", 2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@tool(name="stock", thread=False)
async def get_stock(book: str, run: RunContext[dict[str, int]]) -> int:
    """Count the copies of a book."""
    assert_type(run.deps, dict[str, int])
    return run.deps[book]


class Sum(BaseModel):
    a: int
    b: int


def multiply(args: Sum) -> int:
    return args.a * args.b


explicit = Tool(name="mul", description="Multiply.", parameters=Sum, func=multiply)
by_lambda = Tool(
    name="mul2",
    description="Multiply.",
    parameters=Sum,
    func=lambda args: args.a * args.b,
)
by_schema = Tool(
    name="raw",
    description="Take anything.",
    parameters={"type": "object"},
    func=lambda args: args["x"],
    validate=False,
)


def in_english(request: ModelRequest) -> ModelRequest:
    return replace(request, messages=[*request.messages, SystemMessage("English!")])


async def later(request: ModelRequest, run: RunContext[object]) -> None:
    assert_type(run.run_id, str | None)


hooks = [
    BeforeModelHook(hook_name="english", hook_function=in_english),
    BeforeModelHook(hook_name="later", hook_function=later),
]


class Plugin:
    @hookimpl
    def after_model(self, message: AssistantMessage) -> None:
        assert_type(message.content, str)


provider: Provider = FakeProvider([Turn(text="hi"), "ho"])
agent = Agent(provider, tools=[add, get_stock, explicit], hooks=[*hooks, Plugin()])


def show(event: AgentStreamEvent) -> None:
    """Takes an event of any stream, whatever the output."""
    if isinstance(event, AgentResponse):
        assert_type(event.output, object | None)


def show_sum(event: AgentStreamEvent[Sum]) -> None:
    if isinstance(event, AgentResponse):
        assert_type(event.output, Sum | None)


async def use() -> None:
    response = await agent.run("Hello!", deps={"moon": 3})
    assert_type(response, AgentResponse)
    assert_type(response.messages, list[Message])
    assert_type(response.raise_if_failed().text, str)
    assert_type(agent.run_sync([UserMessage("Hello!")]), AgentResponse)
    async with agent.stream(UserMessage("Hello!")) as stream:
        assert_type(stream, AgentStream)
        async for event in stream:
            match event:
                case TextDelta(text=text):
                    assert_type(text, str)
                case AgentResponse(status="failed", error=error):
                    assert_type(error, BaseException | None)
                case _:
                    pass
    async with agent.stream("Hello!", output=Sum) as typed:
        assert_type(typed, AgentStream[Sum])
        async for typed_event in typed:
            match typed_event:
                case AgentResponse(output=value):
                    assert_type(value, Sum | None)
                case _:
                    pass
            show(typed_event)
            show_sum(typed_event)
    assert_type(agent.stream("x", output={"type": "object"}), AgentStream[JSONValue])
    with agent.stream_sync("Hello!", output=list[int]) as listed:
        assert_type(listed, SyncAgentStream[list[int]])
        for listed_event in listed:
            show_sum(listed_event)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            if isinstance(listed_event, AgentResponse):
                assert_type(listed_event.output, list[int] | None)
    assert_type(agent.stream_sync("Hello!"), SyncAgentStream)
    structured = await agent.run("Hello!", output=Sum)
    assert_type(structured, AgentResponse[Sum])
    assert_type(structured.raise_if_failed().output, Sum | None)
    assert_type(agent.run_sync("Hello!", output=list[int]).output, list[int] | None)
    handle = agent.start("Hello!")
    assert_type(handle, RunHandle)
    assert_type(agent.start("Hello!", output=Sum), RunHandle[Sum])
    assert_type(await handle, AgentResponse)
    model = Model.from_name("openai", model_id="m", api_key="k")
    assert_type(await model.invoke(ModelRequest([UserMessage("x")])), AssistantMessage)
    try:
        pass
    except ModelError as error:
        assert_type(error.code, ModelErrorCode)


def by_role(message: Message) -> str:
    match message:
        case ToolMessage(tool_output=output):
            return output
        case UserMessage(content=str(content)):
            return content
        case _:
            return ""


callback: Callable[[int, int], int] = add
