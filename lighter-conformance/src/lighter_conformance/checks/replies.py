"""What the service says, and what becomes of it."""

from __future__ import annotations

from dataclasses import fields, replace

from lighter_core import (
    AssistantMessage,
    HostedToolItem,
    MessageEvent,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from lighter_core.testing import Turn

from .._bench import ADD, HELLO, USAGE, Bench, ask, events_of, say
from .._registry import check, expect

__all__: list[str] = []

_EVENTS = (TextDelta, ReasoningDelta, ToolCallDelta, HostedToolItem, MessageEvent)
_UNICODE = "naïve 日本語 🧑‍🚀 עברית \u2028 e\u0301 \\n \t “quoted” </tag>"
_THOUGHT = Turn(text="42", reasoning="First 40.\nThen two more.", usage=USAGE, pieces=3)


@check("replies")
async def reply_is_a_message(bench: Bench) -> None:
    """`invoke` returns an `AssistantMessage`."""
    reply: object = await bench.speaker().invoke(ask(bench.case.prompt))
    expect(isinstance(reply, AssistantMessage), type(reply).__name__)


@check("replies", "script")
async def plain_reply(bench: Bench) -> None:
    """The text that the service says is `content`, exactly, without tool calls."""
    for way, reply in await say(bench.provider(HELLO), ask("Hi.")):
        expect(reply.content == HELLO.text, f"{way}: content {reply.content!r}")
        expect(not reply.tool_calls, f"{way}: tool calls {reply.tool_calls}")


@check("replies")
async def events_are_of_the_union(bench: Bench) -> None:
    """A stream yields `TextDelta`, `ReasoningDelta`, `ToolCallDelta`, `HostedToolItem`
    and `MessageEvent`, and nothing else.
    """
    events = await events_of(bench.speaker(), ask(bench.case.prompt))
    found: list[object] = list(events)
    strange = [type(e).__name__ for e in found if not isinstance(e, _EVENTS)]
    expect(not strange, f"events of the types {strange}")


@check("replies")
async def one_message_comes_last(bench: Bench) -> None:
    """A stream ends with exactly one `MessageEvent`; nothing follows it."""
    events = await events_of(bench.speaker(), ask(bench.case.prompt))
    at = [n for n, e in enumerate(events, 1) if isinstance(e, MessageEvent)]
    expect(at == [len(events)], f"{len(events)} events, messages as number {at}")


@check("replies")
async def text_deltas_equal_content(bench: Bench) -> None:
    """The text deltas joined equal the message's `content`."""
    events = await events_of(bench.speaker(), ask(bench.case.prompt))
    deltas = [e.text for e in events if isinstance(e, TextDelta)]
    for message in (e.message for e in events if isinstance(e, MessageEvent)):
        same = "".join(deltas) == message.content
        expect(same, f"deltas {deltas}, content {message.content!r}")


@check("replies", "script", "reasoning")
async def reasoning_is_read(bench: Bench) -> None:
    """What the service shows as its reasoning is `reasoning`, apart from `content`."""
    for way, reply in await say(bench.provider(_THOUGHT), ask("6 times 7?")):
        seen = f"{way}: reasoning {reply.reasoning!r}, content {reply.content!r}"
        expect((reply.reasoning, reply.content) == (_THOUGHT.reasoning, "42"), seen)


@check("replies")
async def reasoning_deltas_equal_reasoning(bench: Bench) -> None:
    """The reasoning deltas joined equal the message's `reasoning`, or nothing when that
    is `None`.
    """
    scripted = bench.case.why_not("script") or bench.case.why_not("reasoning")
    provider = bench.speaker() if scripted else bench.provider(_THOUGHT)
    events = await events_of(provider, ask(bench.case.prompt))
    deltas = [e.text for e in events if isinstance(e, ReasoningDelta)]
    for message in (e.message for e in events if isinstance(e, MessageEvent)):
        same = "".join(deltas) == (message.reasoning or "")
        expect(same, f"deltas {deltas}, reasoning {message.reasoning!r}")


@check("replies")
async def invoke_equals_stream(bench: Bench) -> None:
    """`invoke` returns the message that `stream` ends with: content, reasoning, calls,
    usage, stop reason.
    """
    turns: list[Turn | None] = []
    if bench.case.why_not("script") is None:
        turns.append(HELLO)
        if bench.case.why_not("tools") is None:
            call = ToolCall("call_1", "add", '{"a":19,"b":23}')
            turns.append(Turn(text="Sum.", tool_calls=[call], usage=USAGE))
        if bench.case.why_not("reasoning") is None:
            turns.append(_THOUGHT)
    for turn in turns or [None]:
        provider = bench.speaker() if turn is None else bench.provider(turn)
        tools = [ADD] if turn and turn.tool_calls else []
        pair = await say(provider, ask(bench.case.prompt, tools=tools))
        (_, whole), (_, last) = pair
        _compare(whole, last, usage=turn is not None)


def _compare(whole: AssistantMessage, last: AssistantMessage, *, usage: bool) -> None:
    skipped = {"native"}  # JSON text of two different forms of one reply
    if not usage:  # a second real request may cost less than the first
        skipped.add("usage")
    for each in fields(whole):
        if each.name not in skipped:
            one, other = getattr(whole, each.name), getattr(last, each.name)
            expect(one == other, f"{each.name}: invoke {one!r}, stream {other!r}")


@check("replies", "script", "tools")
async def empty_content_is_empty(bench: Bench) -> None:
    """A reply without text, only with calls, has `content` `""`: no placeholder, no
    `None`.
    """
    turn = Turn(tool_calls=[ToolCall("call_1", "add", '{"a":1,"b":2}')])
    for way, reply in await say(bench.provider(turn), ask("1 + 2?", tools=[ADD])):
        expect(reply.content == "", f"{way}: content {reply.content!r}")


@check("replies", "script")
async def unicode_arrives_whole(bench: Bench) -> None:
    """Text of any script, combined characters, separators and markup arrive as they were
    said.
    """
    turn = replace(HELLO, text=_UNICODE, pieces=7)
    for way, reply in await say(bench.provider(turn), ask("Say it.")):
        expect(reply.content == _UNICODE, f"{way}: {reply.content!r}")


@check("replies", "http")
async def lone_surrogates_are_replaced(bench: Bench) -> None:
    """A lone surrogate that a service says as a JSON escape does not reach the message:
    text that cannot be encoded breaks the application later. It is replaced, and the text
    around it stays.
    """
    turn = replace(HELLO, text="before \ud83d after", pieces=1)
    for way, reply in await say(bench.provider(turn), ask("Say it.")):
        text = reply.content
        good = text.startswith("before ") and text.endswith(" after")
        good = good and not any("\ud800" <= each <= "\udfff" for each in text)
        expect(good, f"{way}: {text!r}")


@check("replies", "script", "usage")
async def usage_is_counted(bench: Bench) -> None:
    """`usage` has the tokens that the service reports: `input_tokens` is all input, the
    cached part included, `output_tokens` is all output, reasoning included.
    """
    for way, reply in await say(bench.provider(HELLO), ask("Hi.")):
        found = reply.usage or Usage()
        wanted = (USAGE.input_tokens, USAGE.output_tokens)
        seen = f"{way}: {reply.usage}, reported were {wanted}"
        expect((found.input_tokens, found.output_tokens) == wanted, seen)
        expect(found.cache_read_tokens in (0, USAGE.cache_read_tokens), seen)


@check("replies")
async def usage_is_sane(bench: Bench) -> None:
    """`usage`, where there is one, holds integers that are not negative; the cached part
    is no more than the input, the reasoning no more than the output.
    """
    for way, reply in await say(bench.speaker(), ask(bench.case.prompt)):
        usage = reply.usage
        if usage is None:
            continue
        values: list[object] = [getattr(usage, each.name) for each in fields(usage)]
        good = all(isinstance(v, int) and not isinstance(v, bool) for v in values)
        good = good and all(isinstance(v, int) and v >= 0 for v in values)
        cached = usage.cache_read_tokens + usage.cache_write_tokens
        good = good and cached <= usage.input_tokens
        good = good and usage.reasoning_tokens <= usage.output_tokens
        expect(good, f"{way}: {usage}")


@check("replies", "http")
async def usage_may_be_missing(bench: Bench) -> None:
    """A service that reports no usage breaks nothing: the reply is complete, `usage` is
    `None` or zero.
    """
    for way, reply in await say(bench.provider(replace(HELLO, usage=None)), ask("Hi.")):
        expect(reply.content == HELLO.text, f"{way}: content {reply.content!r}")
        expect((reply.usage or Usage()) == Usage(), f"{way}: {reply.usage}")


@check("replies", "http")
async def stop_reason_is_a_text(bench: Bench) -> None:
    """`stop_reason` is the service's own word for why it stopped, or `None`."""
    for way, reply in await say(bench.provider(HELLO), ask("Hi.")):
        word: object = reply.stop_reason
        good = word is None or (isinstance(word, str) and word.strip())
        expect(good, f"{way}: {word!r}")
