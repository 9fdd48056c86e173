"""T3: every place where a run waits, interrupted in every way."""

from __future__ import annotations

import pytest
from support.torture import FULL, Results, sample

from .scenarios import MODES, SCENARIOS, interrupt

SLOW = 0.1  # seconds of the processor


@pytest.mark.parametrize("name", SCENARIOS)
async def test_T3_interrupting_at_every_suspension(name: str, results: Results) -> None:
    """R3: cancellation arrives, nothing leaks, what is kept is a history."""
    await interrupt(name, None, "cancel")  # caches and threads are warm now
    seen = (await interrupt(name, None, "cancel")).seen
    assert seen >= 1
    worst, cases = 0.0, 0
    modes = [m for m in MODES if m != "aclose" or "stream" in name]
    for at in sample(range(seen), 5):
        for mode in modes if FULL else [modes[at % len(modes)]]:
            try:
                broken = await interrupt(name, at, mode)
            except AssertionError as wrong:
                raise AssertionError(
                    f"{name}, {mode} at {at} of {seen}: {wrong}"
                ) from wrong
            if broken.acted:
                worst = max(worst, broken.seconds)
                cases += 1
    assert worst < SLOW
    results.add(
        "T3",
        name,
        cases,
        f"{seen} suspensions; 0 leaks, 0 swallowed; slowest end {worst * 1000:.0f} ms",
    )
