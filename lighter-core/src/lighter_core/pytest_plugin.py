"""A pytest fixture that records providers once and replays them ever after.

In `conftest.py`: `pytest_plugins = ["lighter_core.pytest_plugin"]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .provider import Provider
from .recording._recorder import RecordingProvider, record
from .recording._replay import ReplayProvider

__all__ = ["Recorded", "lighter_recording", "pytest_addoption"]


class Recorded:
    """Gives a test its provider: the real one while recording, else the recording.

    Args:
        path: The test's file.
        recording: Whether to record.
    """

    def __init__(self, path: Path, *, recording: bool) -> None:
        self._path = path
        self._recording = recording
        self._replays: list[ReplayProvider] = []
        self._count = 0

    def __call__(
        self, make: Callable[[], Provider]
    ) -> RecordingProvider | ReplayProvider:
        """Return the provider to test with; a second call has a file of its own.

        Args:
            make: Makes the real provider; called while recording only, so a replay
                needs no key.
        """
        self._count += 1
        number = "" if self._count == 1 else f"-{self._count}"
        path = self._path.with_name(f"{self._path.stem}{number}.jsonl")
        if self._recording:
            path.parent.mkdir(parents=True, exist_ok=True)
            return record(make(), path)
        if not path.exists():
            pytest.fail(
                f"{path} is not there: record it with pytest --lighter-record",
                pytrace=False,
            )
        replay = ReplayProvider(path)
        self._replays.append(replay)
        return replay

    def finish(self) -> None:
        """Fail when something that was recorded has not been asked for."""
        for replay in self._replays:
            if replay.unused:
                pytest.fail(
                    f"{replay!r} holds {replay.unused} calls that this test did not"
                    " make; record it again with pytest --lighter-record",
                    pytrace=False,
                )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--lighter-record`."""
    parser.addoption(
        "--lighter-record",
        action="store_true",
        help="call the real providers and record them, instead of replaying",
    )


@pytest.fixture
def lighter_recording(request: pytest.FixtureRequest) -> Iterator[Recorded]:
    """A `Recorded` for `recordings/<test file>/<test>.jsonl` beside the test."""
    name = re.sub(r"[^\w.-]", "_", request.node.name)
    path = request.path.parent / "recordings" / request.path.stem / f"{name}.jsonl"
    recorded = Recorded(
        path, recording=bool(request.config.getoption("--lighter-record"))
    )
    yield recorded
    recorded.finish()
