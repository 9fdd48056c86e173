"""What the tests of the core share: a guard against leaks, and fresh interpreters."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest


@pytest.fixture
async def no_leaks() -> AsyncIterator[None]:
    """Fail the test when it leaves a task behind or the loop reports an error."""
    loop = asyncio.get_running_loop()
    reports: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: reports.append(context))
    before = asyncio.all_tasks()
    yield
    for _ in range(20):
        if not asyncio.all_tasks() - before - {asyncio.current_task()}:
            break
        await asyncio.sleep(0.005)
    gc.collect()
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, f"tasks left behind: {left}"
    assert not reports, f"the loop reported: {reports}"


Fresh = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def fresh() -> Fresh:
    """Run code in a fresh interpreter with warnings as errors."""

    def run(
        code: str, *, env: Mapping[str, str] | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "PYTHONUTF8": "1", **(env or {})},
            check=False,
        )

    return run
