"""A history that one provider began goes on at every other, and nothing is hidden."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from functools import cache
from itertools import product
from typing import Any

import pytest
from support import hand_over
from support.servers import NAMES, Conversation, make_model
from support.strict import Call, Say, StrictServer, Think, Turn

from lighter_core import (
    Agent,
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    Model,
    ModelError,
    SystemMessage,
    TextPart,
    UserMessage,
    check_history,
    explain_replay,
    messages_from_json,
    messages_to_json,
)

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


@pytest.fixture
async def talk() -> AsyncIterator[Conversation]:
    async with StrictServer(seed=3) as server:
        talk = Conversation(server)
        yield talk
        await talk.aclose()
        talk.check()


def work(number: int, how: str = "", **fields: Any) -> Call:
    return Call("work", json.dumps({"n": number, "how": how}), **fields)


TURNS = (
    Turn(
        (
            Think("Hm 🦊."),
            Say("I look. é\u2028"),
            work(1),
            work(2, "fail"),
            work(3, "lone", id="functions.work:0"),
            Call("work.now", "{}"),
            Call("work", "{broken"),
        )
    ),
    Turn((Think("", "redacted"), Say("More."), work(4, "blank", id="x" * 70))),
    Turn((Think("", "omitted"), work(5, "empty"))),
    Turn((Think("So."), Say("Well. 👩\u200d💻"))),
)


async def begun(talk: Conversation, source: str) -> None:
    """Let a service say all that it can say; leave a call open in the end."""
    picture = UserMessage(
        [TextPart("What is this? 🦊"), ImagePart(PNG, None, "image/png")]
    )
    talk.history = [SystemMessage("Rule."), picture]
    turns = TURNS
    if source == "claude":  # which parses arguments itself
        parts = tuple(p for p in TURNS[0].parts if p != Call("work", "{broken"))
        turns = (Turn(parts), *TURNS[1:])
    response = await talk.say(source, None, *turns)
    assert response is not None
    response.raise_if_failed()
    response = await talk.say(
        source, "And?", Turn((Think(), work(6))), Turn(status=500)
    )
    assert response is not None
    assert response.status == "failed"
    assert sum(talk.executed.values()) == 6
    talk.history += [UserMessage("Go on.")]


def explained(history: list[Message], model: Model) -> list[str]:
    """Return the sentences that a run should note, in order."""
    before = copy.deepcopy(history)
    found = explain_replay(history, model)
    assert explain_replay(history, model) == found
    assert history == before
    assert all(_leads_somewhere(each.path, history) for each in found)
    assert [each for each in found if each.kind == "refused"] == []
    return list(dict.fromkeys(each.text for each in found))


def _leads_somewhere(path: str, history: list[Message]) -> bool:
    return path == "messages" or eval(path, {"messages": history}) is not None


@pytest.mark.parametrize(("source", "target"), list(product(NAMES, NAMES)))
async def test_a_history_goes_on_at_every_provider(
    talk: Conversation, source: str, target: str
) -> None:
    """The request is taken, no call runs again, and the run notes what was foretold."""
    await begun(talk, source)
    talk.history = messages_from_json(messages_to_json(talk.history))
    assert check_history(talk.history) == []
    expected = explained(talk.history, make_model(target, talk.server.base_url(target)))
    runs = dict(talk.executed)
    response = await talk.say(target, None)
    assert response is not None
    assert response.raise_if_failed().text == "ok."
    assert response.notes == expected
    assert talk.executed == runs
    if source == target:
        assert all("name" in text or "_raw" in text for text in expected), expected
    response = await talk.say(target, "And?", Turn((Think(), work(7))), mode="stream")
    assert response is not None
    response.raise_if_failed()
    talk.check()


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", hand_over.SOURCES)
@pytest.mark.parametrize("row", hand_over.ROWS)
async def test_replies_from_elsewhere_are_taken(
    talk: Conversation, source: str, target: str, row: str
) -> None:
    """Also what hosted tools did, and replies of the same service at another address."""
    message = hand_over.reply(source, row)
    if message is None:
        return  # the service has no such thing
    talk.history = hand_over.history_of(message)
    expected = explained(talk.history, make_model(target, talk.server.base_url(target)))
    response = await talk.say(target, None, Turn((Think(), work(1))))
    assert response is not None
    response.raise_if_failed()
    assert response.notes[: len(expected)] == expected


REFUSED = {
    "openai": FilePart(b"x", None, "application/pdf"),  # which it takes
    "claude": FilePart(b"x", None, "audio/wav"),
    "deepseek": FilePart(b"x", None, "application/pdf"),
    "openai-chat": FilePart(url="https://example.org/a.pdf"),
    "deepseek-chat": FilePart(url="https://example.org/a.pdf"),
}


@pytest.mark.parametrize("target", NAMES)
async def test_all_that_a_service_cannot_take_is_named_with_its_place(
    talk: Conversation, target: str
) -> None:
    """The error of a request names the first; the explanation names each."""
    part = REFUSED[target]
    odd = ImagePart(PNG, None, "image/tiff" if target != "deepseek-chat" else "x/y")
    talk.history = [
        UserMessage("a"),
        UserMessage([TextPart("b"), part]),
        UserMessage([part, TextPart("c"), odd]),
    ]
    model = make_model(target, talk.server.base_url(target))
    found = explain_replay(talk.history, model)
    response = await talk.say(target, None)
    assert response is not None
    refused = [each for each in found if each.kind == "refused"]
    if not refused:
        response.raise_if_failed()
        return
    error = response.error
    assert isinstance(error, ModelError)
    assert (error.code, error.http_status) == ("invalid_request", None)
    assert str(error) == refused[0].text
    if target != "openai":
        paths = [
            each.path for each in refused if f"no {type(part).__name__}" in each.text
        ]
        assert paths == ["messages[1].content[1]", "messages[2].content[0]"]


@pytest.mark.parametrize("target", NAMES)
async def test_requests_that_say_nothing_are_explained_too(target: str) -> None:
    """What a service refuses as a whole has a place, and only what it refuses."""
    model = make_model(target, "http://127.0.0.1:9")
    (finding,) = explain_replay([], model)
    assert (finding.path, finding.kind) == ("messages", "refused")
    reply = AssistantMessage("Hi.")
    for history in ([UserMessage(" ")], [UserMessage("a"), reply, UserMessage("")]):
        found = explain_replay(history, model)
        if target != "claude":
            assert found == []
            continue
        (finding,) = found
        assert finding.kind == "refused"
        assert "nothing to send" in finding.text
        assert _leads_somewhere(finding.path, history)
    await model.aclose()


@cache
def _local() -> Model:
    local = pytest.importorskip("lighter_local")
    models = pytest.importorskip("lighter_local._models")
    pytest.importorskip("xllamacpp")
    try:
        models.find_model(models.SMOLLM2.alias)
    except ModelError as err:
        pytest.skip(f"no local model: run `python -m lighter_local fetch` ({err})")
    return Model(
        local.LocalProvider(
            model_id=models.SMOLLM2.alias, context_size=2048, max_output_tokens=12
        )
    )


@pytest.mark.parametrize("source", ["claude", "openai-chat"])
async def test_a_history_goes_on_at_a_local_model(
    talk: Conversation, source: str
) -> None:
    """A reply too long for the tiny model may come, but no refusal."""
    await begun(talk, source)
    model = _local()
    refused = [f for f in explain_replay(talk.history, model) if f.kind == "refused"]
    assert [each.path for each in refused] == ["messages[1].content[1]"]
    history = [UserMessage("What is this?"), *talk.history[2:]]
    async with asyncio.timeout(120):
        response = await Agent(model).run(history)
    assert response.notes == explained(history, model)  # loaded: it knows its template
    assert response.notes
    if response.error is not None:
        assert isinstance(response.error, ModelError)
        assert response.error.code == "bad_response"


async def test_a_local_models_history_goes_on_at_every_provider(
    talk: Conversation,
) -> None:
    """Its replies have public fields only."""
    async with asyncio.timeout(120):
        response = await Agent(_local()).run("Say yes.")
    begun = [UserMessage("Say yes."), *response.messages]
    call = hand_over.reply("openai-chat", hand_over.CALL)
    assert call is not None
    begun += hand_over.history_of(call)[1:]
    for name in NAMES:
        talk.history = [*begun]
        answer = await talk.say(name, None)
        assert answer is not None
        answer.raise_if_failed()
