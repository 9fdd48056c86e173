"""The kit's ways of asking for an answer: which is next, and what it becomes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    OutputSpec,
    ProviderStreamEvent,
    ReasoningDelta,
    SystemMessage,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
    UserMessage,
)
from lighter_core.adapters import (
    AnswerForms,
    answer_events,
    answer_of,
    ask_by_tool,
    ask_in_words,
)

WAYS = ["native", "tool", "words"]
SPEC = OutputSpec("n", {"type": "object", "properties": {"n": {"type": "integer"}}})
ASK = ModelRequest([UserMessage("?")], output=SPEC)
ADD = ToolSpec("add", "Add.", {"type": "object"})


def refused(error: ModelError, way: str) -> bool:
    return error.message == f"no {way}"


def forms() -> AnswerForms:
    return AnswerForms(refused, provider="p")


class Service:
    """Refuses some ways, one request after another or all at once."""

    def __init__(self, known: AnswerForms, *bad: str) -> None:
        self.known, self.bad, self.asked = known, bad, []

    async def send(self) -> str:
        way = self.known.current(ASK, WAYS)
        self.asked.append(way)
        await asyncio.sleep(0)
        if way in self.bad:
            raise ModelError(f"no {way}", "invalid_request")
        return way


async def test_requests_at_once_skip_no_way():
    """Each was refused the first way; that counts once."""
    known = forms()
    service = Service(known, "native")
    sends = [known.send(ASK, WAYS, service.send) for _ in range(5)]
    assert await asyncio.gather(*sends) == ["tool"] * 5
    assert await known.send(ASK, WAYS, service.send) == "tool"
    assert service.asked.count("native") == 5


async def test_another_answer_begins_with_the_first_way():
    """A service may refuse one schema and take the next."""
    known = forms()
    await known.send(ASK, WAYS, Service(known, "native").send)
    other = ModelRequest([], output=OutputSpec("m", {"type": "object"}))
    assert known.current(ASK, WAYS) == "tool"
    assert known.current(other, WAYS) == "native"


async def test_the_last_refusal_is_raised_and_others_at_once():
    """Nothing is tried without an end."""
    known = forms()
    service = Service(known, *WAYS)
    with pytest.raises(ModelError, match="no words"):
        await known.send(ASK, WAYS, service.send)
    assert service.asked == WAYS

    async def broken() -> None:
        raise ModelError("busy", "rate_limit")

    with pytest.raises(ModelError, match="busy"):
        await forms().send(ASK, WAYS, broken)


async def test_only_the_newest_refusals_are_remembered():
    """A provider lives long, and its forms may be made as it goes."""
    known = forms()
    for number in range(1_001):
        spec = OutputSpec(f"n{number}", {"type": "object"})
        request = ModelRequest([], output=spec)
        calls = iter([ModelError("no native", "invalid_request"), None])

        async def send(calls=calls) -> None:
            error = next(calls)
            if error is not None:
                raise error

        await known.send(request, WAYS, send)
    assert len(known._refused) == 1_000
    assert known.current(request, WAYS) == "tool"


def test_words_stand_in_the_system_prompt():
    """Behind what is there, as the core says it for providers without forms."""
    prompt = SystemMessage("Be brief.")
    told = ask_in_words(ModelRequest([prompt, UserMessage("?")], output=SPEC))
    assert told.output is None
    assert told.messages[0].content == f"Be brief.\n\n{SPEC.instruction}"
    assert ask_in_words(ASK).messages == [
        SystemMessage(SPEC.instruction),
        UserMessage("?"),
    ]
    free = ModelRequest([UserMessage("?")])
    assert ask_in_words(free) == ask_by_tool(free) == free


def test_the_tool_is_forced_alone_or_among_others():
    """And its schema is closed, as a service with strict tools would want it."""
    alone = ask_by_tool(ASK)
    assert (alone.tool_choice, alone.output) == ("final_answer", None)
    assert alone.tool_specs[0].parameters["additionalProperties"] is False
    assert ask_by_tool(ASK, beside=True).tool_choice == "required"
    beside = ModelRequest([], tool_specs=[ADD], output=SPEC, tool_choice="auto")
    assert ask_by_tool(beside).tool_choice == "required"
    assert [spec.name for spec in ask_by_tool(beside).tool_specs] == [
        "add",
        "final_answer",
    ]


def test_the_call_of_the_answer_becomes_text():
    """Other calls stay; without it nothing changes."""
    calls = [
        ToolCall("a", "add", "{}"),
        ToolCall("b", "x", '{"n":1}'),
        ToolCall("c", "x", '{"n":2}'),
    ]
    got = answer_of(AssistantMessage("Here:", tool_calls=calls), "x")
    assert (got.content, got.tool_calls) == ('{"n":1}', (calls[0],))
    plain = AssistantMessage("Here:", tool_calls=calls[:1])
    assert answer_of(plain, "x") is plain


async def test_events_show_the_answer_and_are_closed():
    """Pieces of the answer are text; a consumer that leaves closes the source."""
    closed: list[bool] = []

    async def source() -> AsyncGenerator[ProviderStreamEvent, None]:
        try:
            yield TextDelta("Here:")
            yield ReasoningDelta("hm")
            yield ToolCallDelta("b", "x", '{"n"')
            yield ToolCallDelta("c", "x", '{"n":2}')
            yield ToolCallDelta("b", "x", ":1}")
            calls = [ToolCall("b", "x", '{"n":1}'), ToolCall("c", "x", '{"n":2}')]
            yield MessageEvent(AssistantMessage("Here:", tool_calls=calls))
        finally:
            closed.append(True)

    events = [event async for event in answer_events(source(), "x")]
    assert events == [
        ReasoningDelta("hm"),
        TextDelta('{"n"'),
        TextDelta(":1}"),
        MessageEvent(AssistantMessage('{"n":1}')),
    ]
    left = answer_events(source(), "x")
    await anext(left)
    await left.aclose()
    assert closed == [True, True]
