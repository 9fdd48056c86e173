"""T10: services that are silent, slow, or never end; every run ends in time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from support.interfaces import BOTH, INTERFACES, Interface
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer, Loopback, bytewise
from support.torture import Results

from lighter_core import Agent, AgentResponse, RunLimits

each = pytest.mark.parametrize("interface", BOTH, ids=lambda each: each.id)
T = 0.6  # seconds: the timeout of each case
NEVER_CLOSED = 10.0  # seconds; it takes a fraction of one
GRACE = 1.0  # seconds that it may take longer
NEVER = 3_600


def answers(interface: Interface) -> dict[str, Answer]:
    """The services, by what is wrong with them."""
    whole = interface.streamed
    half = len(whole) // 2
    events = {"headers": dict(EVENT_STREAM)}
    busy = [b": ping\n\n"] * NEVER
    after = {"retry-after": str(NEVER)}
    return {
        "silent": Answer(end="stall", before_headers=True),
        "silent after the headers": Answer(body=b"", end="stall", **events),
        "silent inside an event": Answer(body=whole[:half], end="stall", **events),
        "silent between events": Answer(
            body=whole[: whole.index(b"\n\n") + 2], end="stall", **events
        ),
        "one byte at a time": Answer(body=bytewise(whole) * 50, gap=0.1, **events),
        "pings only": Answer(body=busy, gap=0.1, **events),
        "retry after an hour": Answer(429, {**JSON_TYPE, **after}, b"{}"),
        "busy, retry after an hour": Answer(503, {**JSON_TYPE, **after}, b"{}"),
        "slow error page": Answer(
            500, {"content-type": "text/html"}, bytewise(b"x" * NEVER), gap=0.1
        ),
    }


async def stall(
    interface: Interface, answer: Answer, way: str, limit: str
) -> tuple[float, AgentResponse[Any] | None]:
    """Run against it; return how long it took, and the response."""
    async with Loopback() as server:
        server.script(answer)
        options: dict[str, Any] = {"timeout": T} if limit == "provider" else {}
        provider = interface.provider(
            api_key="sk-test", model_id="m", base_url=server.url, **options
        )
        limits = RunLimits(seconds=T) if limit == "run" else RunLimits()
        agent = Agent(provider, limits=limits)
        began = time.monotonic()
        response: AgentResponse[Any] | None = None
        try:
            async with asyncio.timeout(T if limit == "caller" else T + 20):
                if way == "run":
                    response = await agent.run("go")
                else:
                    async with agent.stream("go") as stream:
                        async for event in stream:
                            if isinstance(event, AgentResponse):
                                response = event
        except TimeoutError:
            assert limit == "caller"
        seconds = time.monotonic() - began
        await provider.aclose()
        # A server that is closed between accepting a connection and serving it leaves
        # that connection to the collector, which warns.
        await asyncio.sleep(0.05)
        await server.until_open(0)
        return seconds, response


# A provider's timeout is one of silence: what sends something now and then is not
# silent. The limit of a run and the caller's timeout hold for everything.
_BUSY = ("one byte at a time", "pings only", "slow error page")


@each
async def test_T10_stalls(interface: Interface, results: Results) -> None:
    """R13: within the timeout and a second."""
    services = answers(interface)
    cases = [
        (name, limit, way)
        for name in services
        for limit in ("provider", "run", "caller")
        for way in ("stream", "run")
        if not (limit == "provider" and name in _BUSY)
        # A whole reply never comes as an event stream, so half the cases differ only.
        and not (way == "run" and limit == "caller")
    ]
    found: list[tuple[float, AgentResponse[Any] | None]] = []
    for start in range(0, len(cases), AT_ONCE):
        some = cases[start : start + AT_ONCE]
        found += await asyncio.gather(
            *(stall(interface, services[n], way, limit) for n, limit, way in some)
        )
    for case, (seconds, response) in zip(cases, found, strict=True):
        assert seconds <= T + GRACE + LOAD, f"{case}: {seconds:.2f} s"
        limit = case[1]
        if response is None:
            assert limit == "caller", case
        else:
            assert response.status == "failed", case
            assert response.error is not None
    # A reply that is complete does not wait for its connection to close.
    open_ended = Answer(
        body=interface.streamed, end="stall", headers=dict(EVENT_STREAM)
    )
    seconds, response = await stall(interface, open_ended, "stream", "none")
    assert seconds < NEVER_CLOSED
    assert response is not None
    assert response.text == "Hello!"
    worst = max(seconds for seconds, _ in found)
    results.add(
        "T10",
        f"stalls of {interface.id}, timeout {T} s",
        len(cases),
        f"slowest end after {worst:.2f} s",
    )


LOAD = 2.0  # more seconds, for a machine that is busy with others
AT_ONCE = 10


async def test_T10_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that waits in spite of its timeout, found by the caller's."""
    from lighter_core.adapters import _sender

    monkeypatch.setattr(_sender.Sender, "_options", _without_timeout)
    monkeypatch.setattr(_sender, "_MARGIN_SECONDS", 30)
    interface = INTERFACES[0]
    with pytest.raises((AssertionError, TimeoutError)):  # noqa: PT012
        async with asyncio.timeout(T + GRACE + LOAD):
            answer = answers(interface)["silent inside an event"]
            await stall(interface, answer, "stream", "provider")


def _without_timeout(self: Any, *, stream: bool) -> dict[str, Any]:
    accept = "text/event-stream" if stream else "application/json"
    return {"headers": {"Accept": accept}, "max_retries": 0}
