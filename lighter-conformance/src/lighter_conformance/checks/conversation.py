"""What is sent: the whole conversation, unchanged, and in the same bytes each time."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import pairwise

from lighter_core import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    OutputSpec,
    Provider,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from lighter_core.testing import Turn

from .._bench import (
    ADD,
    HELLO,
    USAGE,
    Bench,
    ask,
    events_of,
    failing,
    need_code,
    say,
)
from .._registry import NotApplicable, check, expect

__all__: list[str] = []

_BOOK = OutputSpec(
    "book",
    {
        "type": "object",
        "properties": {"title_of_book": {"type": "string"}},
        "required": ["title_of_book"],
        "additionalProperties": False,
    },
)


@check("conversation")
async def input_is_unchanged(bench: Bench) -> None:
    """The request and its messages are the same after the call as before it."""
    request = ask("Be brief.", bench.case.prompt)
    before, known = deepcopy(request), list(request.messages)
    await say(bench.speaker(), request)
    expect(request == before, f"before {before}, after {request}")
    same = [a is b for a, b in zip(known, request.messages, strict=True)]
    expect(all(same), "the list holds other message objects")


@check("conversation", "http")
async def the_whole_conversation_is_sent(bench: Bench) -> None:
    """Every message of the request is sent, system messages included, in its order."""
    texts = ["rule-one", "question-one", "answer-one", "question-two"]
    history: list[Message] = [
        SystemMessage(texts[0]),
        UserMessage(texts[1]),
        AssistantMessage(texts[2]),
        UserMessage(texts[3]),
    ]
    await bench.provider(HELLO).invoke(ask(*history))
    sent = bench.requests[-1].body.decode()
    missing = [each for each in texts if each not in sent]
    expect(not missing, f"the request lacks {missing}")
    body = bench.requests[-1].json
    units = json.dumps(bench.wire.conversation(body))
    order = [units.find(each) for each in texts[1:]]
    expect(order == sorted(order), f"positions {order} in {units}")


@check("conversation", "http")
async def a_late_system_message_is_sent(bench: Bench) -> None:
    """A system message behind the first user message is sent too."""
    history = ask("Hi.", AssistantMessage("Yes?"), SystemMessage("late-rule"), "Now.")
    await bench.provider(HELLO).invoke(history)
    expect(b"late-rule" in bench.requests[-1].body, "it is not in the request")


@check("conversation", "http")
async def the_same_request_gives_the_same_bytes(bench: Bench) -> None:
    """The same request is written in the same bytes each time: no clock, no random ids,
    no order of a set. Caches of services depend on it.
    """
    provider = bench.provider(HELLO)
    for _ in range(2):
        await provider.invoke(ask("Hi.", tools=[ADD]))
    first, second = (each.body for each in bench.requests)
    expect(first == second, f"first  {first!r}\nsecond {second!r}")


@check("conversation", "http", "tools")
async def a_longer_conversation_adds_to_the_request(bench: Bench) -> None:
    """The request for a conversation begins with the units of the request before it, so
    that the service's cache of the prefix holds.
    """
    replies = [
        Turn(reasoning="Add.", tool_calls=[_call(1)], usage=USAGE),
        Turn(text="42.", usage=USAGE),
        Turn(text="Sure.", tool_calls=[_call(2), _call(3)], usage=USAGE),
        Turn(text="Done.", usage=USAGE),
    ]
    provider = bench.provider(*replies)
    history: list[Message] = [SystemMessage("Be brief."), UserMessage("19 + 23?")]
    for number in range(len(replies)):
        reply = await provider.invoke(ask(*history, tools=[ADD]))
        history.append(reply)
        history += [_result(call) for call in reply.tool_calls]
        if not reply.tool_calls:
            history.append(UserMessage(f"Question {number}."))
    await provider.invoke(ask(*history, tools=[ADD]))
    sent = [bench.wire.conversation(each.json) for each in bench.requests]
    for number, (shorter, longer) in enumerate(pairwise(sent), 1):
        seen = f"request {number}: {shorter}\nrequest {number + 1}: {longer}"
        expect(longer[: len(shorter)] == shorter, seen)


def _call(number: int) -> ToolCall:
    return ToolCall(f"call_{number}", "add", f'{{"a":{number},"b":1}}')


def _result(call: ToolCall) -> ToolMessage:
    return ToolMessage(call_id=call.call_id, tool_name="add", tool_output="42")


@check("conversation")
async def surrogates_in_the_history_do_no_harm(bench: Bench) -> None:
    """A lone surrogate in the conversation does not raise a Python error, and what is
    sent is UTF-8 and JSON without one.
    """
    history = ask("An odd \ud83d text.", AssistantMessage("\udc00?"), bench.case.prompt)
    await say(bench.speaker(), history)
    if bench.case.wire is None:
        return
    for request in bench.requests:
        text = json.dumps(json.loads(request.body.decode()), ensure_ascii=False)
        expect(text.encode("utf-8", "replace").decode() == text, f"sent: {text!r}")


@check("conversation", "http")
async def empty_texts_can_be_sent(bench: Bench) -> None:
    """A history with empty texts and an empty reply can be sent: it comes about when a
    run is interrupted.
    """
    history = ask("Hi.", AssistantMessage(""), UserMessage(""), "Go on.")
    await say(bench.provider(HELLO), history)
    expect(len(bench.requests) == 2, f"{len(bench.requests)} requests")  # noqa: PLR2004


@check("conversation", "http")
async def tool_choice_is_sent(bench: Bench) -> None:
    """With the capability `"tool_choice"`, a request's `tool_choice` changes what is
    sent.
    """
    provider = bench.provider(HELLO)
    _need_capability(bench, provider, "tool_choice")
    for choice in (None, "required", "none", "add"):
        await provider.invoke(ask("Hi.", tools=[ADD], tool_choice=choice))
    free, *chosen = (each.body for each in bench.requests)
    expect(free not in chosen, "it makes no difference to the request")
    expect(len(set(chosen)) == len(chosen), "two choices give one request")


@check("conversation", "http")
async def output_is_sent(bench: Bench) -> None:
    """With the capability `"output"`, the schema of a request's `output` is sent, and
    the answer is `content`, as JSON text.
    """
    answer = '{"title_of_book":"Moon"}'
    provider = bench.provider(Turn(text=answer, usage=USAGE))
    _need_capability(bench, provider, "output")
    for way, reply in await say(provider, ask("A book.", output=_BOOK)):
        expect(reply.content == answer, f"{way}: content {reply.content!r}")
    sent = bench.requests[-1].body
    expect(b"title_of_book" in sent, f"the schema is not in the request {sent!r}")


@check("conversation", "validates")
async def images_are_sent_or_refused(bench: Bench) -> None:
    """A provider with the capability `"image"` sends an image; one without refuses it by
    name, with `invalid_request`, before anything is sent.
    """
    image = ImagePart(data=b"\x89PNG-canary", media_type="image/png")
    await _sent_or_refused(bench, "image", image, b"iVBORy1jYW5hcnk")


@check("conversation", "validates")
async def files_are_sent_or_refused(bench: Bench) -> None:
    """A provider with the capability `"file"` sends a file; one without refuses it by
    name, with `invalid_request`, before anything is sent.
    """
    part = FilePart(data=b"%PDF-canary", media_type="application/pdf", name="a.pdf")
    await _sent_or_refused(bench, "file", part, b"JVBERi1jYW5hcnk")


async def _sent_or_refused(
    bench: Bench, word: str, part: ImagePart | FilePart, base64: bytes
) -> None:
    provider = bench.speaker()
    request = ask(UserMessage([TextPart("What is it?"), part]))
    if word in getattr(provider, "capabilities", ()):
        await say(provider, request)
        if bench.case.wire is not None:
            expect(base64 in bench.requests[-1].body, f"the {word} was not sent")
        return
    for way, work in (
        ("invoke", provider.invoke(request)),
        ("stream", events_of(provider, request)),
    ):
        error = await failing(way, work)
        need_code(way, error, "invalid_request")
        expect(
            word in error.message.lower(), f"{way}: {error.message!r} names no {word}"
        )
    if bench.case.wire is not None:
        expect(not bench.requests, f"{len(bench.requests)} requests were sent")


def _need_capability(bench: Bench, provider: Provider, word: str) -> None:
    if word not in getattr(provider, "capabilities", ()):
        raise NotApplicable(f"{bench.case.name}: it has no capability {word!r}")
