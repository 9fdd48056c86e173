"""Implementations of the specs, right and wrong, as type checkers see them; never run.

Every wrong one is expected to be refused by mypy and by pyright: an expectation that does
not come true is an error of its own.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_type

from lighter_core import (
    Agent,
    AgentRequest,
    AgentResponse,
    AssistantMessage,
    CallModel,
    CallTool,
    Message,
    ModelRequest,
    Provider,
    RunContext,
    Tool,
    ToolCall,
    ToolMessage,
    hookimpl,
)
from lighter_core.testing import FakeProvider


class Shop:
    def price(self, book: str) -> int:
        return len(book)


class Right:
    """Every event as a method, with different subsets of the arguments."""

    @hookimpl.before_agent
    def start(self, request: AgentRequest) -> AgentRequest | None:
        return replace(request, messages=request.messages[-10:])

    @hookimpl.before_model
    async def ask(
        self, run: RunContext[Shop], request: ModelRequest
    ) -> ModelRequest | None:
        assert_type(run.deps, Shop)
        return None

    @hookimpl.after_model
    async def reply(self, message: AssistantMessage) -> None: ...

    @hookimpl.after_agent
    def finish(self, messages: Sequence[Message]) -> Sequence[Message]:
        return messages[:1]

    @hookimpl.before_tool
    async def gate(self, call: ToolCall) -> ToolCall | ToolMessage | None:
        return None

    @hookimpl.after_tool
    def result(self, message: ToolMessage, run: RunContext[Any]) -> ToolMessage:
        return message

    @hookimpl.around_model
    async def model(
        self, request: ModelRequest, call_model: CallModel
    ) -> AssistantMessage:
        return await call_model(request)

    @hookimpl.around_tool
    async def tool(
        self, call: ToolCall, call_tool: CallTool, run: RunContext[object]
    ) -> ToolMessage:
        return await call_tool(call)

    @hookimpl.on_run_end
    async def end(self, response: AgentResponse[object]) -> None: ...

    @hookimpl.create_provider
    def make(self, options: Mapping[str, object]) -> Provider:
        return FakeProvider([])

    @hookimpl.get_tools
    def tools(self) -> list[Tool]:
        return []


@hookimpl.before_tool
def nothing() -> None: ...


@hookimpl.before_tool
def all_of_them(call: ToolCall, run: RunContext[Shop]) -> ToolMessage | None:
    return None


@hookimpl.around_model
async def from_a_cache(request: ModelRequest) -> AssistantMessage:
    return AssistantMessage("cached")


@hookimpl.create_provider
def create(name: str, options: Mapping[str, object]) -> Provider:
    return FakeProvider([], name=name)


assert_type(
    all_of_them(ToolCall("c", "t"), RunContext(deps=Shop())), ToolMessage | None
)
Agent(FakeProvider([]), hooks=[Right(), nothing, all_of_them, from_a_cache])


class Wrong:
    """Methods."""

    @hookimpl.before_tool  # type: ignore[type-var]
    def name(self, cal: ToolCall) -> None: ...

    @hookimpl.before_tool  # type: ignore[type-var]
    def argument(self, call: ToolMessage) -> None: ...

    @hookimpl.before_tool  # type: ignore[type-var]
    def answer(self, call: ToolCall) -> bool:
        return True

    @hookimpl.before_tool  # type: ignore[type-var]
    async def later(self, call: ToolCall) -> str:
        return "denied"

    @hookimpl.after_tool  # type: ignore[type-var]
    def deny(self, message: ToolMessage) -> ToolCall | None:
        return None

    @hookimpl.around_tool  # type: ignore[type-var]
    async def keeps(self, call: ToolCall, call_tool: CallTool) -> ToolMessage | None:
        return None

    @hookimpl.around_model  # type: ignore[type-var]
    async def inner(
        self, request: ModelRequest, call_model: CallTool
    ) -> AssistantMessage:
        return AssistantMessage("x")

    @hookimpl.before_model  # type: ignore[type-var]
    def event(self, request: AgentRequest) -> None: ...

    @hookimpl.on_run_end  # type: ignore[type-var]
    def says(self, response: AgentResponse[object]) -> AgentResponse[object]:
        return response

    @hookimpl.create_provider  # type: ignore[type-var]
    async def make(self, name: str) -> Provider:
        return FakeProvider([])

    @hookimpl.create_provider  # type: ignore[type-var]
    def key(self, api_key: str) -> Provider:
        return FakeProvider([])

    @hookimpl.get_tools  # type: ignore[type-var]
    def tools(self) -> Iterable[str]:
        return []


@hookimpl.before_tool  # type: ignore[type-var]
def misnamed(tool_call: ToolCall) -> None: ...


@hookimpl.before_tool  # type: ignore[type-var]
def greedy(call: ToolCall, run: RunContext[Shop], more: int) -> None: ...


@hookimpl.after_agent  # type: ignore[type-var]
def one(messages: Message) -> None: ...


@hookimpl.after_model  # type: ignore[type-var]
def text(message: AssistantMessage) -> str:
    return message.content


_ = hookimpl.before_tol  # type: ignore[attr-defined]
hookimpl(tryfirst=True)  # type: ignore[call-overload]
