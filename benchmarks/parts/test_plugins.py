"""The scan for plugins: 200 distributions, one of them with a plugin."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import importlib_metadata  # noqa: F401 - the scan imports it, once per process
import pytest

from benchmarks.plugin_scan import write
from lighter_core.plugins._metadata import scan_installed

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.benchmark(group="scan 201 distributions for plugins")
def test_scan(
    benchmark: BenchmarkFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at the first use of a plugin."""
    write(tmp_path, 200)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert len(benchmark(scan_installed).plugins) == 1
