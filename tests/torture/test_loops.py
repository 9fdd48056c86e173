"""T5, T7: generated scripts, and the failure of every single thing."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import HealthCheck, given, settings
from support.torture import FULL, Results, sample, size

from .loops import ERRORS, Script, check_script, fail_at, play, scripts

EXAMPLES = int(os.environ.get("LIGHTER_SCRIPTS", size(150, 50_000)))
SHARES = size(1, 10)  # that several workers can take
COUNTED = [0]


@settings(
    max_examples=EXAMPLES // SHARES,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(scripts())
def generated(script: Script) -> None:
    COUNTED[0] += 1

    async def both() -> None:
        check_script(script, await play(script, "run"), await play(script, "stream"))

    asyncio.run(both())


@pytest.mark.parametrize("share", range(SHARES))
def test_T5_generated_scripts(share: int, results: Results) -> None:
    """R4, R5, R6: pairing, once, in order, the same by run and stream."""
    COUNTED[0] = 0
    generated()
    assert COUNTED[0] > 0
    results.add(
        "T5",
        "generated scripts, by run and by stream",
        COUNTED[0],
        "0 wrong pairs, 0 executed twice, 0 differences",
        "part of 50,000" if FULL and EXAMPLES < 50_000 else "",
    )


@pytest.mark.parametrize("way", ["run", "stream"])
def test_T7_the_nth_thing_fails(way: str, results: Results) -> None:
    """R5: each failure is told as documented, and nothing happens behind it."""
    places = fail_at(-1, None, way).places
    cases = sample([(at, kind) for at in range(len(places)) for kind in ERRORS], 40)
    assert len(cases) >= len(ERRORS)
    for at, kind in cases:
        fail_at(at, ERRORS[kind](), way)
    results.add(
        "T7", f"each of {len(places)} things fails, {way}", len(cases), "as documented"
    )
