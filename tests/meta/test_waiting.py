"""What tests wait with fails for itself, and is no timeout that a test expects."""

from __future__ import annotations

import asyncio

import pytest
from support import waiting
from support.waiting import timeout_once, until


async def test_a_timeout_comes_when_the_condition_holds() -> None:
    begun: list[bool] = []

    async def work() -> None:
        begun.append(True)
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        async with timeout_once(lambda: begun):
            await work()
    async with timeout_once(lambda: begun):
        pass
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_never_happens_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match=r"within 0.01 s"):
        await until(lambda: False, 0.01)

    async def impatient(condition: object) -> None:
        await until(lambda: condition is None, 0.01)

    monkeypatch.setattr(waiting, "until", impatient)
    with pytest.raises(AssertionError, match="did not happen"):
        async with timeout_once(lambda: False):
            await asyncio.sleep(60)
