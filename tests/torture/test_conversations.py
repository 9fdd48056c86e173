"""T6: long conversations, over several services that refuse what breaks their rules.

The shorter ones are played with `tests/servers`, where it is also shown that the
services refuse and that a second execution is noticed.
"""

from __future__ import annotations

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from servers.test_strict_generated import STEPS, Step, play
from support.torture import Results, size

COUNTED = [0, 0]


@settings(
    max_examples=size(3, 300),
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(STEPS, min_size=5, max_size=20), st.sampled_from([0, 1, 2]))
def conversations(steps: list[Step], seed: int) -> None:
    COUNTED[0] += 1
    COUNTED[1] += len(steps)
    asyncio.run(play(steps, seed, "Be brief."))


def test_T6_no_service_refuses_a_long_conversation(results: Results) -> None:
    """R4, R5: whatever was broken, left, edited, stored or handed over before."""
    conversations()
    assert 0 < COUNTED[0] < COUNTED[1]
    results.add(
        "T6",
        "steps of generated conversations",
        COUNTED[1],
        f"in {COUNTED[0]} conversations: 0 refusals, 0 executed twice, 0 lost by JSON",
    )
