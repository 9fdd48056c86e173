"""Generated conversations: whatever happened before, no service refuses what follows."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.servers import NAMES, Conversation
from support.strict import Call, Part, Say, StrictServer, Think, Turn
from support.torture import examples

from lighter_core import (
    AssistantMessage,
    Message,
    ModelError,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    messages_from_json,
    messages_to_json,
    repair_history,
)
from lighter_core.history import trim

# Texts that a service may write, and those that only an application can come by.
WRITTEN = st.sampled_from(["So.", "", " ", "é🦊", "\u2028\r\n", '{"a":', "x" * 300])
TEXTS = st.one_of(WRITTEN, st.sampled_from(["\ud83e", "a\x00\x1bb", "🦊\udd8a"]))
HOW = st.sampled_from(["", "", "fail", "cancel", "lone", "empty", "blank"])
IDS = st.sampled_from([None, None, None, "functions.work:0", "c" * 41, "c" * 65, "é|1"])
TOOLS = st.sampled_from(["work"] * 5 + ["missing", "functions.work", "a b", "w" * 70])
ARGUMENTS = st.sampled_from([None, None, None, None, "", "{", "[]", '{"n":"1"}'])
THINKING = st.builds(
    Think, WRITTEN, st.sampled_from(["plain", "plain", "omitted", "redacted"])
)


@dataclass(frozen=True)
class WorkCall:
    """A call whose number is given when the script is played."""

    name: str
    arguments: str | None
    how: str
    id: str | None


CALLS = st.builds(WorkCall, TOOLS, ARGUMENTS, HOW, IDS)


@st.composite
def turns(draw: st.DrawFn) -> tuple[Any, ...]:
    """Parts of one reply: reasoning, text, and up to four calls, in any order."""
    said = draw(st.lists(st.one_of(THINKING, st.builds(Say, WRITTEN)), max_size=3))
    calls = draw(st.lists(CALLS, max_size=4))
    parts = [*said, *calls]
    if draw(st.booleans()):
        parts = draw(st.permutations(parts))
    return tuple(parts)


@dataclass(frozen=True)
class Step:
    """One run, and what is done to the history before it."""

    name: str
    text: str | None
    turns: tuple[tuple[Any, ...], ...]
    mode: str
    leave: int | None
    broken: tuple[str, float] | None
    change: str
    place: int
    other: str


STEPS = st.builds(
    Step,
    name=st.sampled_from(NAMES),
    text=st.one_of(st.just("Go on."), TEXTS, st.none()),
    turns=st.lists(turns(), max_size=6).map(tuple),
    mode=st.sampled_from(["run", "stream"]),
    leave=st.one_of(st.none(), st.none(), st.integers(1, 25)),
    broken=st.one_of(
        st.none(),
        st.none(),
        st.tuples(
            st.sampled_from(["cut", "reset", "status"]),
            st.sampled_from([0.1, 0.6, 0.95]),
        ),
    ),
    change=st.sampled_from(
        [
            *["nothing"] * 4,
            *(
                "copy",
                "pickle",
                "json",
                "trim",
                "edit text",
                "edit calls",
                "drop native",
                "insert round",
            ),
            *("insert system", "repeat call", "cut", "say nothing", "lose result"),
        ]
    ),
    place=st.integers(0, 30),
    other=TEXTS,
)


def changed(history: list[Message], step: Step) -> list[Message]:
    """Return what an application made of the history."""
    match step.change:
        case "copy":
            return copy.deepcopy(history)
        case "pickle":
            return pickle.loads(pickle.dumps(history))
        case "json":
            return messages_from_json(messages_to_json(history))
        case "trim":
            repaired = repair_history(history).messages
            return trim(repaired, max_size=20 * step.place + 1).messages
        case "cut":
            return history[: step.place]
    place = step.place % (len(history) + 1)
    if step.change == "insert system":
        return [*history[:place], SystemMessage(step.other), *history[place:]]
    if step.change == "say nothing":
        said: list[Message] = [AssistantMessage(), UserMessage([TextPart("")])]
        return [*history[:place], *said, *history[place:]]
    if step.change == "insert round":
        call = ToolCall(step.other, step.other, step.other)
        result = ToolMessage(call_id=step.other, tool_name="x", tool_output=step.other)
        round_ = [AssistantMessage(step.other, tool_calls=[call]), result]
        return [*history[:place], *round_, *history[place:]]
    if place == len(history):
        return history
    message = history[place]
    if step.change == "lose result" and isinstance(message, ToolMessage):
        return [*history[:place], *history[place + 1 :]]
    if not isinstance(message, AssistantMessage):
        return history
    return [*history[:place], edited(message, step), *history[place + 1 :]]


def edited(message: AssistantMessage, step: Step) -> AssistantMessage:
    calls = message.tool_calls
    match step.change:
        case "edit text":
            return replace(message, content=step.other)
        case "edit calls":
            return replace(message, tool_calls=calls[1:])
        case "drop native":
            return replace(message, native=None)
        case "repeat call" if calls:
            return replace(message, tool_calls=[*calls, calls[0]])
    return message


def script(step: Step, numbers: Any) -> list[Turn]:
    """Return the turns that a service answers; each call has a number of its own."""
    found: list[Turn] = []
    for parts in step.turns:
        made: list[Part] = []
        for part in parts:
            if isinstance(part, WorkCall):
                own = json.dumps({"n": next(numbers), "how": part.how})
                arguments = own if part.arguments is None else part.arguments
                made.append(Call(part.name, arguments, part.id))
            else:
                made.append(part)
        found.append(Turn(tuple(made)))
    if step.broken is not None and found:
        end, at = step.broken
        last: dict[str, Any] = {"status": 500} if end == "status" else {"end": end}
        found[-1] = replace(found[-1], at=at, **last)
    return found


async def play(steps: list[Step], seed: int, prompt: str | None) -> None:
    numbers = count(1)
    async with StrictServer(seed or None) as server:
        talk = Conversation(server, system_prompt=prompt)
        try:
            for step in steps:
                talk.history = changed(talk.history, step)
                response = await talk.say(
                    step.name,
                    said(step, talk.history),
                    *script(step, numbers),
                    mode="stream" if step.mode == "stream" else "start",
                    leave=step.leave,
                )
                talk.check()
                talk.check_documents()
                if response is not None and response.error is not None:
                    accept(response.error)
        finally:
            await talk.aclose()


def said(step: Step, history: list[Message]) -> str | None:
    """Return what the user says: something, unless a result waits for an answer."""
    spoken = [m for m in history if not isinstance(m, SystemMessage)]
    waits = bool(spoken) and isinstance(spoken[-1], UserMessage | ToolMessage)
    return step.text if step.text is not None or waits else "Go on."


def accept(error: BaseException) -> None:
    """Runs may fail by what the script does to them, and in no other way."""
    assert isinstance(error, ModelError), error
    if error.code == "invalid_request":
        assert error.http_status is None, error  # nothing was sent
    else:
        assert error.code in {
            "aborted",  # the tool cancelled it
            "bad_response",  # two calls with one id, or half a reply
            "network_error",
            "server_error",
        }, error


@settings(
    max_examples=int(os.environ.get("LIGHTER_CONVERSATIONS", examples(150))),
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    st.lists(STEPS, min_size=1, max_size=5),
    st.sampled_from([0, 0, 1, 2]),
    st.sampled_from(["Be brief.", None, "", "\ud83e"]),
)
def test_no_service_refuses_a_generated_conversation(
    steps: list[Step], seed: int, prompt: str | None
) -> None:
    """And no call is executed twice, whatever was broken, left, edited or handed over."""
    asyncio.run(play(steps, seed, prompt))
