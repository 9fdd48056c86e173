"""Providers around providers: trying again, and turning to others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from support.waiting import until

from lighter_core import (
    Agent,
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelErrorCode,
    ModelRequest,
    Provider,
    TextDelta,
    ToolCall,
    UserMessage,
    tool,
)
from lighter_core.fallback import FallbackProvider
from lighter_core.retry import RetryProvider
from lighter_core.testing import FakeProvider, Pause, Turn

ASK = ModelRequest([UserMessage("hi")])
Ask = Callable[[Provider], Any]


def busy(code: ModelErrorCode = "rate_limit", **fields: Any) -> ModelError:
    return ModelError("busy", code, provider="fake", **fields)


async def by_invoke(provider: Provider) -> str:
    return (await provider.invoke(ASK)).content


async def by_stream(provider: Provider) -> str:
    events = [event async for event in provider.stream(ASK)]
    assert isinstance(events[-1], MessageEvent)
    assert [type(each) for each in events].count(MessageEvent) == 1
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == (
        events[-1].message.content
    )
    return events[-1].message.content


BOTH = pytest.mark.parametrize("ask", [by_invoke, by_stream])


# Trying again.


@BOTH
@pytest.mark.parametrize("code", ["rate_limit", "network_error", "server_error"])
async def test_a_failure_that_may_pass_is_tried_again(
    ask: Ask, code: ModelErrorCode
) -> None:
    inner = FakeProvider([busy(code), busy(code), "hello"])
    assert await ask(RetryProvider(inner, wait=0.001)) == "hello"
    assert len(inner.requests) == 3


@BOTH
@pytest.mark.parametrize(
    "code", ["auth_error", "invalid_request", "bad_response", "aborted", "unknown"]
)
async def test_other_failures_are_raised_at_once(
    ask: Ask, code: ModelErrorCode
) -> None:
    error = busy(code)
    inner = FakeProvider([error, "never"])
    with pytest.raises(ModelError) as caught:
        await ask(RetryProvider(inner, wait=0.001))
    assert caught.value is error
    assert len(inner.requests) == 1


@BOTH
async def test_the_last_error_is_raised(ask: Ask) -> None:
    errors = [busy(http_status=429 + n) for n in range(3)]
    with pytest.raises(ModelError) as caught:
        await ask(RetryProvider(FakeProvider(errors), tries=3, wait=0))
    assert caught.value is errors[2]


async def test_nothing_is_repeated_once_something_was_handed_on() -> None:
    inner = FakeProvider([[TextDelta("hel"), busy()], "hello"])
    stream = RetryProvider(inner, wait=0).stream(ASK)
    assert await anext(stream) == TextDelta("hel")
    with pytest.raises(ModelError):
        await anext(stream)
    assert len(inner.requests) == 1


@BOTH
async def test_a_service_that_asks_for_too_long_is_not_asked_again(ask: Ask) -> None:
    inner = FakeProvider([busy(retry_after=61.0), "never"])
    with pytest.raises(ModelError):
        await ask(RetryProvider(inner, wait=0, longest_wait=60))
    assert len(inner.requests) == 1


async def waits(
    monkeypatch: pytest.MonkeyPatch, provider: RetryProvider
) -> list[float]:
    """Return the pauses that a provider makes until it gives up."""
    seconds: list[float] = []
    sleep = asyncio.sleep

    async def note(delay: float) -> None:
        if delay:
            seconds.append(delay)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    with pytest.raises(ModelError):
        await provider.invoke(ASK)
    return seconds


async def test_waits_double_with_jitter_up_to_the_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = FakeProvider([busy()] * 8)
    provider = RetryProvider(inner, tries=8, wait=1, longest_wait=10)
    seconds = await waits(monkeypatch, provider)
    for each, doubled in zip(seconds, [1, 2, 4, 8, 16, 32, 64], strict=True):
        assert min(doubled / 2, 10) <= each <= min(doubled, 10)


async def test_retry_after_goes_before_a_shorter_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = FakeProvider([busy(retry_after=7.0), busy(retry_after=0.01), busy()])
    seconds = await waits(monkeypatch, RetryProvider(inner, wait=1))
    assert seconds[0] == 7.0
    assert 1 <= seconds[1] <= 2


@pytest.mark.parametrize("where", ["pause", "call"])
async def test_cancelling_ends_it_at_once(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    steps: list[Any] = [[Pause(60)]] if where == "call" else [busy()]
    inner = FakeProvider([*steps, "never"])
    task = asyncio.ensure_future(
        RetryProvider(inner, wait=60, longest_wait=60).invoke(ASK)
    )
    # What it does before the pause is to say so.
    await until(lambda: inner.requests if where == "call" else caplog.records)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(inner.requests) == 1


async def test_each_repetition_is_a_note_of_the_run() -> None:
    inner = FakeProvider([busy(http_status=429), "hello"])
    response = await Agent(RetryProvider(inner, wait=0)).run("hi")
    assert response.notes == [
        "try 1 of 3 failed with rate_limit (HTTP 429); trying again"
    ]


def test_retries_inside_are_told(caplog: pytest.LogCaptureFixture) -> None:
    class Vendor(FakeProvider):
        max_retries = 2

    with caplog.at_level(logging.WARNING, "lighter.retry"):
        RetryProvider(Vendor([], name="acme"), tries=4)
    assert "one call may be sent 12 times" in caplog.text
    caplog.clear()
    RetryProvider(Vendor([], name="acme"), tries=1)
    assert caplog.text == ""


@pytest.mark.parametrize("name", ["claude", "openai", "openai-chat", "deepseek"])
def test_vendor_adapters_tell_their_retries(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With the SDK's default, with none, and with what a client of its own has."""
    model = pytest.importorskip("lighter_core").Model
    options = {"api_key": "none-at-all", "model_id": "m"}
    with caplog.at_level(logging.WARNING, "lighter.retry"):
        RetryProvider(model.from_name(name, **options).provider)
        assert "up to 2 times" in caplog.text
        caplog.clear()
        RetryProvider(model.from_name(name, max_retries=0, **options).provider)
        assert caplog.text == ""


@pytest.mark.parametrize(
    "options",
    [
        {"tries": 0},
        {"tries": True},
        {"wait": -1},
        {"wait": float("nan")},
        {"longest_wait": -1},
    ],
)
def test_senseless_numbers_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        RetryProvider(FakeProvider([]), **options)


# Turning to others.


@BOTH
async def test_the_next_provider_answers(ask: Ask) -> None:
    first, second = FakeProvider([busy()], name="a"), FakeProvider(["from b"], name="b")
    assert await ask(FallbackProvider([first, second])) == "from b"
    assert (len(first.requests), len(second.requests)) == (1, 1)


@BOTH
async def test_other_failures_go_no_further(ask: Ask) -> None:
    second = FakeProvider(["never"])
    with pytest.raises(ModelError):
        await ask(FallbackProvider([FakeProvider([busy("invalid_request")]), second]))
    assert second.requests == []


@BOTH
async def test_when_all_fail_the_last_error_tells_of_the_others(ask: Ask) -> None:
    errors = [busy(), busy("server_error"), busy("network_error")]
    with pytest.raises(ModelError) as caught:
        await ask(FallbackProvider([FakeProvider([each]) for each in errors]))
    assert caught.value is errors[2]
    assert caught.value.__notes__ == ["before: fake: busy", "before: fake: busy"]


async def test_nothing_is_handed_over_once_something_was_handed_on() -> None:
    second = FakeProvider(["never"])
    provider = FallbackProvider([FakeProvider([[TextDelta("x"), busy()]]), second])
    stream = provider.stream(ASK)
    assert await anext(stream) == TextDelta("x")
    with pytest.raises(ModelError):
        await anext(stream)
    assert second.requests == []


async def test_who_failed_rests_and_is_asked_last() -> None:
    first = FakeProvider([busy(), "back"], name="a")
    second = FakeProvider(["b1", "b2", busy()], name="b")
    provider = FallbackProvider([first, second], rest=60)
    replies = [(await provider.invoke(ASK)).content for _ in range(3)]
    assert replies == ["b1", "b2", "back"]


async def test_rest_ends() -> None:
    first = FakeProvider([busy(), "back"], name="a")
    provider = FallbackProvider([first, FakeProvider(["b1"], name="b")], rest=0)
    replies = [(await provider.invoke(ASK)).content for _ in range(2)]
    assert replies == ["b1", "back"]


async def test_a_run_goes_on_with_another_provider_between_rounds() -> None:
    ran: list[int] = []

    @tool
    def work(n: int) -> str:
        """Work."""
        ran.append(n)
        return "done"

    first = FakeProvider([Turn(tool_calls=[ToolCall("c", "work", '{"n":1}')]), busy()])
    second = FakeProvider([AssistantMessage("all done")], name="b")
    agent = Agent(FallbackProvider([first, second]), tools=[work])
    response = await agent.run("go")
    assert response.text == "all done"
    assert ran == [1]
    assert response.notes == ["provider 'fake' failed with rate_limit"]


async def test_capabilities_are_those_that_all_have() -> None:
    class Able(FakeProvider):
        def __init__(self, *words: str) -> None:
            super().__init__([], name="+".join(words) or "none")
            self.capabilities = frozenset(words)  # type: ignore[misc]

    provider = FallbackProvider([Able("image", "output"), Able("output", "file")])
    assert provider.capabilities == {"output"}
    assert provider.name == "image+output|output+file"
    assert RetryProvider(Able("image")).capabilities == {"image"}


async def test_closing_closes_all() -> None:
    closed: list[str] = []

    class Closing(FakeProvider):
        async def aclose(self) -> None:
            closed.append(self.name)
            if self.name == "a":
                raise OSError("a")

    inside: Sequence[Provider] = [
        Closing([], name="a"),
        RetryProvider(Closing([], name="b")),
    ]
    with pytest.raises(OSError, match="a"):
        await FallbackProvider(inside).aclose()
    assert closed == ["a", "b"]


def test_a_fallback_needs_a_provider() -> None:
    with pytest.raises(ValueError, match="at least one"):
        FallbackProvider([])
