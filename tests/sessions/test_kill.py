"""Agents that are killed with SIGKILL, at random moments and at each that matters.

`make torture-sessions` does it a hundred times for each store.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.killed_agent import CHAT, done_items
from support.postgres import Server

from lighter_conformance.stores._registry import make_store
from lighter_core import (
    AssistantMessage,
    Message,
    SessionNotFoundError,
    ToolMessage,
    check_history,
    repair_history,
)
from lighter_core.history import INTERRUPTED

KILLS = int(os.environ.get("LIGHTER_KILLS", "8"))
MOMENTS = 24  # of a turn: before and after six appends, six effects
SQLITE = "lighter_core.sessions:SQLiteStore"
SQLALCHEMY = "lighter_sqlalchemy:SQLAlchemyStore"


class Lives:
    """The lives of one agent, and what must hold between them."""

    def __init__(self, process: subprocess.Popen[str], place: Path) -> None:
        self._process = process
        self.ledger = place / "ledger"
        self.ledger.touch()
        self.factory, self.argument = SQLITE, str(place / "chats.db")
        self.late = False
        self._known: list[Message] = []
        self.killed = 0

    def live(
        self, turns: int, *, last: int | None = None, seconds: float | None = None
    ) -> None:
        """Let it live for some turns, up to a moment, or for a time."""
        life = {
            "factory": self.factory,
            "argument": self.argument,
            "ledger": str(self.ledger),
            "turns": turns,
            "last": last,
            "late": self.late,
        }
        self._process.stdin.write(json.dumps(life) + "\n")
        self._process.stdin.flush()
        pid = int(self._process.stdout.readline())
        if seconds is not None:
            time.sleep(seconds)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        status = int(self._process.stdout.readline())
        error = Path(f"{self.ledger}.error")
        assert status in {0, -signal.SIGKILL}, error.read_text()
        self.killed += status != 0

    def check(self) -> None:
        """Compare the conversation with what was done."""
        stored = asyncio.run(self._stored())
        assert stored[: len(self._known)] == self._known, "what was stored has changed"
        self._known = stored
        assert check_history(repair_history(stored).messages) == []
        asked = {
            call.call_id
            for message in stored
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls
        }
        lines = [line.split() for line in self.ledger.read_text().splitlines()]
        executed = Counter(call_id for _, call_id in lines)
        assert set(executed) <= asked, "a call was executed that is not stored"
        assert set(executed.values()) <= {1}, "a call was executed twice"
        for message in stored:
            if isinstance(message, ToolMessage):
                closed = message.tool_output == INTERRUPTED
                assert closed or executed[message.call_id] == 1, "a result of nothing"
        items = [int(item) for item, _ in lines]
        done = done_items(repair_history(stored).messages)
        assert done <= set(items)
        # An item is done again only when its result was not stored: once for each kill.
        assert len(items) - len(set(items)) <= self.killed
        self._repeats(lines, stored)

    def _repeats(self, lines: list[list[str]], stored: list[Message]) -> None:
        finished = {
            m.call_id: i
            for i, m in enumerate(stored)
            if isinstance(m, ToolMessage) and not m.is_error
        }
        by_item: dict[str, list[str]] = {}
        for item, call_id in lines:
            by_item.setdefault(item, []).append(call_id)
        for calls in by_item.values():
            assert not any(c in finished for c in calls[:-1]), (
                "an item was repeated whose result was stored"
            )

    async def _stored(self) -> list[Message]:
        store = make_store(self.factory, self.argument)
        try:
            return (await store.load(CHAT)).messages
        except SessionNotFoundError:
            return []
        finally:
            await store.aclose()


@pytest.fixture(scope="module")
def mother() -> Iterator[subprocess.Popen[str]]:
    """What all lives are forked from: the imports take two seconds."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.killed_agent"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with process:
        yield process
        process.stdin.close()
        process.wait(30)


@pytest.fixture
def lives(mother: subprocess.Popen[str], tmp_path: Path) -> Lives:
    return Lives(mother, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def lives_on_each_store(lives: Lives, request: pytest.FixtureRequest) -> Lives:
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("postgres")
        lives.factory, lives.argument = SQLALCHEMY, server.new_place()
    return lives


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork, no SIGKILL")


@pytest.mark.timeout(60 + 6 * KILLS)
def test_an_agent_killed_at_random_goes_on(
    lives_on_each_store: Lives, record_property: Callable[[str, object], None]
) -> None:
    lives = lives_on_each_store
    seed = random.randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")  # shown when the test fails
    chance = random.Random(seed)
    lives.live(1)  # how long a life takes depends on the machine
    started = time.perf_counter()
    lives.live(2)
    usual = time.perf_counter() - started
    lives.check()
    tries = 0
    while lives.killed < KILLS and tries < 5 * KILLS:
        tries += 1
        lives.live(200, seconds=chance.random() * usual * 2)
        lives.check()
    assert lives.killed == KILLS
    before = len(lives._known)
    lives.live(2)
    lives.check()
    assert len(lives._known) >= before + 14  # both turns: 7 messages each
    record_property("messages", len(lives._known))
    record_property("lives", tries)


@pytest.mark.timeout(300)
def test_an_agent_killed_at_each_moment_goes_on(lives: Lives) -> None:
    """Before and after each write, and before and after each effect."""
    reached = 0
    for moment in range(MOMENTS):
        killed = lives.killed
        lives.live(1, last=moment)
        lives.check()
        reached += lives.killed > killed
    assert reached >= 18  # six appends and three effects, two moments each
    lives.live(1)
    lives.check()


def test_the_harness_finds_a_session_that_stores_too_late(lives: Lives) -> None:
    lives.late = True
    lives.live(1, last=1)  # the first effect, then the end
    assert lives.killed == 1
    with pytest.raises(AssertionError, match="executed that is not stored"):
        lives.check()


def test_the_harness_finds_a_repeated_item(lives: Lives) -> None:
    lives.live(1)
    lives.check()
    first = lives.ledger.read_text().splitlines()[0]
    with lives.ledger.open("a") as file:
        file.write(first + "\n")
    with pytest.raises(AssertionError, match="twice"):
        lives.check()
