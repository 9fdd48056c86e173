"""T23: every hook in every behaviour, form and place, against the documented table."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from support.torture import Results, sample

from lighter_core import (
    AfterAgentHook,
    AfterModelHook,
    Agent,
    AgentResponse,
    BeforeAgentHook,
    BeforeModelHook,
    HookError,
    ToolCall,
    UserMessage,
    check_history,
    hookimpl,
    tool,
)
from lighter_core.testing import FakeProvider, Turn

NAMES = {
    "before_agent": "request",
    "before_model": "request",
    "after_model": "message",
    "before_tool": "call",
    "after_tool": "message",
    "after_agent": "messages",
}
CLASSES: dict[str, Any] = {
    "before_agent": BeforeAgentHook,
    "before_model": BeforeModelHook,
    "after_model": AfterModelHook,
    "after_agent": AfterAgentHook,
}
BEHAVIOURS = ("none", "replace", "mutate", "falsy", "wrong type", "raise", "cancel")
LISTS = ("before_agent", "before_model", "after_agent")  # what can be edited in place
MARK = "the mark"


class Case:
    """One run with one hook."""

    def __init__(self, event: str, behaviour: str, form: str, source: str) -> None:
        self.event, self.behaviour = event, behaviour
        self.error = LookupError("no")
        self.calls = 0

        def act(value: Any) -> Any:
            self.calls += 1
            return self.act(value)

        async def act_later(value: Any) -> Any:
            await asyncio.sleep(0)
            return act(value)

        function = act if form == "sync" else act_later
        if source == "application":
            hook: Any = CLASSES[event](hook_name="case", hook_function=function)
        else:
            name = NAMES[event]
            wait = ("async ", "await ") if form == "async" else ("", "")
            space: dict[str, Any] = {"function": function}
            exec(
                f"{wait[0]}def {event}(self, {name}):\n"
                f"    return {wait[1]}function({name})",
                space,
            )
            hook = type("Case", (), {event: hookimpl(space[event])})()

        @tool
        async def say(text: str) -> str:
            """Say it."""
            return text

        call = ToolCall("1", "say", '{"text": "plain"}')
        self.provider = FakeProvider([Turn(text="a", tool_calls=[call]), "end"])
        self.agent = Agent(self.provider, tools=[say], hooks=[hook])
        self.given = [UserMessage("go")]

    def act(self, value: Any) -> Any:
        match self.behaviour:
            case "none":
                return None
            case "raise":
                raise self.error
            case "cancel":
                raise asyncio.CancelledError
            case "wrong type":
                return object()
            case "falsy":
                return [] if self.event == "after_agent" else False
            case "mutate":
                (value if isinstance(value, list) else value.messages).append(
                    UserMessage(MARK)
                )
                return None
        return self.replaced(value)

    def replaced(self, value: Any) -> Any:
        match self.event:
            case "before_agent" | "before_model":
                return replace(value, messages=[*value.messages, UserMessage(MARK)])
            case "after_model":
                return replace(value, content=MARK)
            case "before_tool":
                return replace(value, arguments=f'{{"text": "{MARK}"}}')
            case "after_tool":
                return replace(value, tool_output=f'"{MARK}"')
        return [*value, UserMessage(MARK)]

    async def run(self, way: str) -> AgentResponse | None:
        try:
            if way == "run":
                return await self.agent.run(self.given)
            async with self.agent.stream(self.given) as stream:
                return [event async for event in stream][-1]
        except asyncio.CancelledError:
            return None


def marks(messages: Any) -> int:
    """How many messages have the mark."""
    texts = [
        getattr(m, "content", "") or getattr(m, "tool_output", "") for m in messages
    ]
    return sum(MARK in str(text) for text in texts)


def check(case: Case, response: AgentResponse | None) -> None:
    """Hold an outcome to the pages about hooks."""
    event, behaviour = case.event, case.behaviour
    assert case.given == [UserMessage("go")], "the caller's list was changed"
    if behaviour == "cancel":
        assert response is None, "swallowed"
        return
    assert response is not None
    assert check_history([UserMessage("go"), *response.messages]) == []
    sent = [marks(request.messages) for request in case.provider.requests]
    if behaviour == "raise":
        assert response.error is case.error
        assert case.calls == 1, "called again behind its failure"
    elif behaviour == "wrong type" or (behaviour == "falsy" and event != "after_agent"):
        assert isinstance(response.error, HookError), response.error
        assert response.error.event == event
    elif behaviour == "none":
        assert response.status == "completed"
        assert sent == [0, 0]
        assert marks(response.messages) == 0
    elif behaviour == "falsy":
        assert response.messages == []
    else:
        assert response.status == "completed", response.error
        wanted, kept = {
            "before_agent": ([1, 1], 0),
            "before_model": ([1, 1], 0),  # one each: for its own request only
            "after_model": ([0, 1], 2),
            "before_tool": ([0, 1], 1),
            "after_tool": ([0, 1], 1),
            "after_agent": ([0, 0], 1),
        }[event]
        assert sent == wanted, (event, sent)
        assert marks(response.messages) == kept, event


CASES = [
    case
    for case in product(
        NAMES,
        BEHAVIOURS,
        ("sync", "async"),
        ("application", "plugin"),
        ("run", "stream"),
    )
    if not (case[3] == "application" and case[0] not in CLASSES)
    and not (case[1] == "mutate" and case[0] not in LISTS)
]


async def test_T23_hooks(results: Results) -> None:
    """S6 and the tables: each outcome is the documented one, by run and by stream."""
    chosen = sample(CASES, 80)
    for event, behaviour, form, source, way in chosen:
        case = Case(event, behaviour, form, source)
        try:
            check(case, await case.run(way))
        except AssertionError as wrong:
            where = f"{event}, {behaviour}, {form}, {source}, {way}"
            raise AssertionError(f"{where}: {wrong}") from wrong
    results.add(
        "T23", "hooks by behaviour, form, place, way", len(chosen), "as documented"
    )


@pytest.mark.parametrize("behaviour", ["replace", "raise", "wrong type", "mutate"])
async def test_T23_finds_it(behaviour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain that drops what hooks return, and what they raise."""
    from lighter_core._chain import HookChain

    async def deaf(self: Any, event: str, value: Any, context: Any) -> Any:
        return value

    monkeypatch.setattr(HookChain, "run", deaf)
    case = Case("before_model", behaviour, "sync", "plugin")
    with pytest.raises(AssertionError):
        check(case, await case.run("run"))
