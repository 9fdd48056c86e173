"""Agents on strict services: nothing that they ever send is refused."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import count, permutations
from typing import Any

import pytest
from support.servers import NAMES, Conversation
from support.strict import Call, Say, StrictServer, Think, Turn

import lighter_core
from lighter_core import (
    AssistantMessage,
    Message,
    ModelError,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

numbers = count(1)


def work(how: str = "", **fields: Any) -> Call:
    """A call that nobody made before."""
    arguments = {"n": next(numbers), **({"how": how} if how else {})}
    return Call("work", json.dumps(arguments), **fields)


@pytest.fixture
async def server() -> AsyncIterator[StrictServer]:
    """Its replies come in pieces; generated conversations have them whole, too."""
    async with StrictServer(seed=7) as server:
        yield server


@pytest.fixture
async def talk(server: StrictServer) -> AsyncIterator[Conversation]:
    talk = Conversation(server)
    yield talk
    await talk.aclose()
    talk.check()


each = pytest.mark.parametrize("name", NAMES)
each_way = pytest.mark.parametrize("mode", ["run", "stream"])


def need_everything_back(server: StrictServer) -> None:
    """Nothing was edited: then no reasoning may be missing."""
    for service in server.services.values():
        if hasattr(service, "require_replay"):
            service.require_replay = True
    server.claude.bind_thinking = True


async def test_conversations_fail_when_they_should(
    server: StrictServer, talk: Conversation
) -> None:
    """A refusal and a second execution are both noticed."""
    talk.check()
    server.openai.refusals.append("so it is")
    with pytest.raises(AssertionError, match="so it is"):
        talk.check()
    server.openai.refusals.clear()
    talk.executed[3] += 2
    with pytest.raises(AssertionError, match="twice"):
        talk.check()
    talk.executed.clear()


ROUNDS = [
    (Think("First."), Say("I look."), work(), work()),
    (Think("", "omitted"), work(), Say("And more."), work("fail"), work(), work()),
    (Say("No reasoning."), work("empty")),
    (Think("Hm 🦊.", "redacted"), Think("And."), work("blank")),
    (work("lone"),),
]


@each
@each_way
async def test_tool_loops_of_six_turns(
    server: StrictServer, talk: Conversation, name: str, mode: Any
) -> None:
    """Calls, results and reasoning come back as the service wants them, in every turn."""
    need_everything_back(server)
    rounds = [Turn(tuple(_renumbered(parts))) for parts in ROUNDS]
    response = await talk.say(name, "Go on. é🦊\u2028", *rounds, Turn(), mode=mode)
    assert response is not None
    assert response.raise_if_failed().text == "ok."
    assert len(server.services[name].accepted) == 6
    assert sum(talk.executed.values()) == 9
    await talk.say(name, "And?", Turn((Think("Bye."), Say("Bye."))), mode=mode)
    assert talk.responses[-1].text == "Bye."


def _renumbered(parts: tuple[Any, ...]) -> list[Any]:
    return [
        work(json.loads(part.arguments).get("how", ""))
        if isinstance(part, Call)
        else part
        for part in parts
    ]


COPIES: dict[str, Callable[[list[Message]], list[Message]]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda history: pickle.loads(pickle.dumps(history)),
    "replace": lambda history: [replace(message) for message in history],
}
if hasattr(lighter_core, "messages_to_json"):
    COPIES["json"] = lambda history: lighter_core.messages_from_json(
        lighter_core.messages_to_json(history)
    )


@each
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
async def test_copied_histories_keep_their_native_context(
    server: StrictServer, talk: Conversation, name: str, copied: Any
) -> None:
    """What was copied is as good as what it was copied from."""
    need_everything_back(server)
    await talk.say(name, "Go.", Turn((Think(), Say("So."), work(), work())))
    talk.history = copied(talk.history)
    await talk.say(name, "And?", Turn((Think(), work())), mode="stream")
    talk.history = copied(talk.history)
    response = await talk.say(name, "And?")
    assert response is not None
    response.raise_if_failed()


@each
async def test_cancelled_runs_can_be_continued(talk: Conversation, name: str) -> None:
    """The call that was running and those behind it have a result all the same."""
    calls = (work(), work("cancel"), work())
    response = await talk.say(name, "Go.", Turn((Think(), *calls)))
    assert response is not None
    assert isinstance(response.error, ModelError)
    assert response.error.code == "aborted"
    await talk.say(name, None, Turn((Think(), work())), mode="stream")
    await talk.say(name, "And?")
    assert [response.status for response in talk.responses[1:]] == ["completed"] * 2
    assert sum(talk.executed.values()) == 3


@each
@pytest.mark.parametrize("end", ["cut", "reset"])
@pytest.mark.parametrize("at", [0.05, 0.5, 0.8])
async def test_broken_replies_can_be_continued(
    talk: Conversation, name: str, end: Any, at: float
) -> None:
    """Nothing of half a reply is executed, and none of it comes back."""
    whole = Turn((Think(), Say("I look."), work(), work()))
    broken = Turn((Think(), Say("I look again."), work(), work()), end, at)
    response = await talk.say(name, "Go.", whole, broken, mode="stream")
    assert response is not None
    assert response.status == "failed"
    assert sum(talk.executed.values()) == 2
    await talk.say(name, None)
    await talk.say(name, "And?", broken)
    await talk.say(name, "And?")
    assert [r.status for r in talk.responses] == ["failed", "completed"] * 2


@each
@pytest.mark.parametrize("leave", [1, 4, 7, 11, 15])
async def test_streams_that_were_left_can_be_continued(
    talk: Conversation, name: str, leave: int
) -> None:
    """Wherever the consumer leaves, what is complete is valid."""
    turns = [Turn((Think("A"), Say("B"), work(), work())) for _ in range(3)]
    await talk.say(name, "Go.", *turns, mode="stream", leave=leave)
    talk.server.services[name].script()
    await talk.say(name, "And?")
    assert talk.responses[-1].status == "completed"


@pytest.mark.parametrize(("first", "second"), list(permutations(NAMES, 2)))
async def test_histories_go_from_each_provider_to_each_other_and_back(
    talk: Conversation, first: str, second: str
) -> None:
    """In the middle of a tool loop and behind it."""
    think, broken = Think("Hm."), Turn(status=500)
    await talk.say(first, "Go.", Turn((think, Say("So."), work(), work())), broken)
    await talk.say(second, None, Turn((think, work(), Say("So."), work())), broken)
    await talk.say(first, None, Turn((think, work())), Turn((think, Say("Well."))))
    await talk.say(second, "And?", Turn((think, work())), mode="stream")
    await talk.say(first, "And?", Turn((Think("", "redacted"), work())), mode="stream")
    statuses = [response.status for response in talk.responses]
    talk.check()
    assert statuses == ["failed", "failed", "completed", "completed", "completed"]
    assert sum(talk.executed.values()) == 7


@each
async def test_edited_replies_are_written_anew(talk: Conversation, name: str) -> None:
    """Neither an id nor reasoning of the former reply stands beside the new text."""
    await talk.say(name, "Go.", Turn((Think(), Say("So."), work(), work())))
    edits = [
        {"content": "Else."},
        {"content": ""},
        {"reasoning": "Else."},
        {"reasoning": None, "native": None},
    ]
    for edit in edits:
        for place in (1, -1):
            index = [i for i, m in enumerate(talk.history) if m in talk.replies][place]
            talk.history[index] = replace(talk.history[index], **edit)
        await talk.say(name, "And?", Turn((Think(), Say("So."), work())))
        if edit.get("content"):
            assert '"Else."' in json.dumps(talk.server.services[name].accepted[-1])
    assert [response.status for response in talk.responses] == ["completed"] * 5


@each
async def test_edited_calls_keep_their_results(talk: Conversation, name: str) -> None:
    """A call was taken out, another got other arguments."""
    await talk.say(name, "Go.", Turn((Think(), work(), work(), work())))
    round_ = talk.history[1]
    assert isinstance(round_, AssistantMessage)
    first, _, third = round_.tool_calls
    changed = replace(first, arguments='{"n": 0}')
    talk.history[1] = replace(round_, tool_calls=[changed, third])
    response = await talk.say(name, "And?")
    assert response is not None
    assert response.status == "completed"


def a_round(call_id: str, name: str = "work", arguments: str = "{}") -> list[Message]:
    """A round as another program may have kept it."""
    return [
        AssistantMessage("", tool_calls=[ToolCall(call_id, name, arguments)]),
        ToolMessage(call_id=call_id, tool_name=name, tool_output="done"),
    ]


ODD_IDS = {
    "colon": "functions.work:0",
    "pipe": "call_1|fc_1",
    "blank": " ",
    "long": "c" * 65,
    "over forty": "c" * 41,
    "unicode": "é🦊",
    "surrogate": "\ud83e",
    "empty": "",
}


@each
@pytest.mark.parametrize("call_id", ODD_IDS.values(), ids=ODD_IDS)
async def test_call_ids_of_others(talk: Conversation, name: str, call_id: str) -> None:
    """An id that a service would refuse is written in another way, on both sides."""
    talk.history = [UserMessage("Go."), *a_round(call_id), AssistantMessage("Well.")]
    response = await talk.say(name, "And?", Turn((Think(), work())))
    assert response is not None
    response.raise_if_failed()


@each
async def test_call_ids_that_come_again(talk: Conversation, name: str) -> None:
    """Servers that count calls from zero in each reply give one id to many calls."""
    first, second = a_round("call_0"), a_round("call_0")
    talk.history = [UserMessage("Go."), *first, *second, AssistantMessage("Well.")]
    response = await talk.say(name, "And?", Turn((Think(), work(id="call_0"))))
    assert response is not None
    response.raise_if_failed()


@each
async def test_a_service_may_give_odd_ids_itself(talk: Conversation, name: str) -> None:
    """They come back to it as they are."""
    calls = (work(id="functions.work:0"), work(id="x" * 70))
    response = await talk.say(name, "Go.", Turn((Think(), *calls)))
    assert response is not None
    response.raise_if_failed()


ODD_NAMES = ["functions.work", "work now!", "w" * 65, "é", " "]


@each
@pytest.mark.parametrize("odd", ODD_NAMES)
async def test_names_that_a_model_made_up(
    talk: Conversation, name: str, odd: str
) -> None:
    """There is no such tool; the history that says so is taken by every service."""
    talk.history = [UserMessage("Go."), *a_round("call_1", odd)]
    response = await talk.say(name, None, Turn((Think(), Call(odd))))
    assert response is not None
    response.raise_if_failed()


ODD_ARGUMENTS = ["", " ", "{", "null", "[1]", '"x"', '{"n": 1e400}', '{"a":1,"a":2}']


@each
@pytest.mark.parametrize("arguments", ODD_ARGUMENTS)
async def test_arguments_that_are_no_object(
    talk: Conversation, name: str, arguments: str
) -> None:
    """Of another service, and of this one."""
    history: list[Message] = [UserMessage("Go."), *a_round("call_1", "x", arguments)]
    talk.history = history
    response = await talk.say(name, None, Turn((Think(), Call("x", arguments))))
    assert response is not None
    response.raise_if_failed()


TEXTS = {
    "empty": "",
    "blank": " \n\t",
    "control": "a\x00\x1b\x7f\u2028\r\nb",
    "emoji": "👩\u200d💻é\U0010ffff",
    "lone": "a\ud83eb\udd8a",
    "json": '"}],"role":"system',
}


@each
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_texts_of_all_kinds(talk: Conversation, name: str, text: str) -> None:
    """Of the user, of the model, in the system prompt and in results."""
    talk.system_prompt = text
    talk.history = [
        UserMessage("Go."),
        AssistantMessage(text, reasoning=text),
        UserMessage([TextPart(text), TextPart("and")]),
        AssistantMessage(
            text, tool_calls=[ToolCall("c", "x", json.dumps({"a": text}))]
        ),
        ToolMessage(call_id="c", tool_name="x", tool_output=text, is_error=True),
        AssistantMessage(text),
        UserMessage(text),
    ]
    sayable = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    turns = (Turn((Think(sayable), Say(sayable), work())), Turn((Say(sayable),)))
    response = await talk.say(name, "And?", *turns, mode="stream")
    assert response is not None
    assert response.raise_if_failed().text == sayable
    (await talk.say(name, "And?")).raise_if_failed()  # type: ignore[union-attr]


@each
async def test_blank_last_words_of_the_user(talk: Conversation, name: str) -> None:
    """Either the service takes the request, or it is refused before it is sent."""
    await talk.say(name, "Go.", Turn((Think(), Say("So."))))
    for text in ("", " "):
        response = await talk.say(name, text)
        assert response is not None
        if response.error is not None:
            assert isinstance(response.error, ModelError)
            assert response.error.code == "invalid_request"
            assert response.error.http_status is None


@each
async def test_conversations_that_the_assistant_begins(
    talk: Conversation, name: str
) -> None:
    talk.history = [AssistantMessage("Hello, what can I do for you?")]
    response = await talk.say(name, "Go.", Turn((Think(), work())))
    assert response is not None
    response.raise_if_failed()


@each
async def test_replies_that_say_nothing(talk: Conversation, name: str) -> None:
    """Empty ones, and ones with reasoning alone."""
    for parts in ((), (Say(""),), (Think(),), (Think("", "redacted"), Say(" "))):
        response = await talk.say(name, "And?", Turn(parts))
        assert response is not None
    response = await talk.say(name, "And?", Turn((Think(), work())))
    assert response is not None
    response.raise_if_failed()


@each
async def test_system_messages_in_all_places(talk: Conversation, name: str) -> None:
    await talk.say(name, "Go.", Turn((Think(), Say("So."), work(), work())))
    await talk.say(name, "Go.", Turn((Think(), Say("So."))))
    whole = talk.history
    for place in range(len(whole) + 1):
        system = SystemMessage(f"Rule {place}.")
        talk.history = [*whole[:place], system, *whole[place:]]
        response = await talk.say(name, "And?", Turn((Think(), work())))
        assert response is not None
        response.raise_if_failed()


async def test_claude_with_system_messages_in_place(
    server: StrictServer, talk: Conversation
) -> None:
    """Where the model takes them; elsewhere they join the system prompt."""
    server.claude.system_in_messages = True
    talk.options["claude"] = {"system_messages": "in_place"}
    await test_system_messages_in_all_places(talk, "claude")


async def test_claude_goes_on_when_its_thinking_is_bound_to_another_conversation(
    server: StrictServer, talk: Conversation
) -> None:
    """Refused once, sent again without thinking, and never sent with it again."""
    server.claude.bind_thinking = True
    await talk.say("claude", "Go.", Turn((Think(), Say("So."), work())))
    talk.history[0] = UserMessage("Something else.")
    response = await talk.say("claude", "And?", Turn((Think(), work())))
    assert response is not None
    response.raise_if_failed()
    assert len(server.claude.recovered) == 1  # not again at the later calls


async def test_openai_goes_on_when_its_reasoning_cannot_be_read(
    server: StrictServer, talk: Conversation
) -> None:
    """As after a change of the key."""
    await talk.say("openai", "Go.", Turn((Think(), Say("So."), work())))
    server.openai.forget()
    response = await talk.say("openai", "And?", Turn((Think(), work())))
    assert response is not None
    response.raise_if_failed()
    assert len(server.openai.recovered) == 1
