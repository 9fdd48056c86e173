"""Recording what a provider said into a file, and serving it again without the provider.

A production failure becomes a test: record the run, then
`python -m lighter_core make-test run.jsonl`.
"""

from __future__ import annotations

from ._recorder import RecordingProvider, record
from ._replay import ReplayProvider

__all__ = ["RecordingProvider", "ReplayProvider", "record"]
