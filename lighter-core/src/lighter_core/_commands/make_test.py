"""`python -m lighter_core make-test RECORDING`: a recorded run becomes a test."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..agent import Agent
    from ..recording._replay import ReplayProvider
    from ..results import AgentResponse

__all__ = ["configure", "run"]

_TEST = '''\
"""A recorded run, made into a test by `python -m lighter_core make-test`.

The model's part comes from the recording. The stand-ins for the tools answer as the
real ones did: put your own agent's tools, hooks and prompt in their place.
"""

from __future__ import annotations

from pathlib import Path

from lighter_core import Agent
from lighter_core.recording import ReplayProvider

RECORDING = Path(__file__).with_name({file!r})


def test_{name}() -> None:
    """The run goes as it went when it was recorded."""
    replay = ReplayProvider(RECORDING)
    agent = Agent(
        replay,
        tools=replay.tools(),
        hooks=[replay.answers()],
        system_prompt=replay.system_prompt,
    )
    response = agent.run_sync(replay.input{output})
{checks}
    assert replay.unused == {unused}
'''


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("recording", type=Path, help="a file that record() wrote")
    parser.add_argument(
        "--output",
        type=Path,
        help="the test file; default: test_NAME.py beside the recording",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace a test file that is there"
    )


def run(given: argparse.Namespace) -> int:
    """Write the test; return the exit status."""
    from ..errors import RecordingError

    recording: Path = given.recording
    name = re.sub(r"\W", "_", recording.stem).strip("_").lower() or "recording"
    target: Path = given.output or recording.with_name(f"test_{name}.py")
    if target.exists() and not given.force:
        return _refuse(f"{target} is there already: pass --force, or --output FILE")
    try:
        text = _written(recording, name)
    except RecordingError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{recording} cannot be read: {error.strerror}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(recording.name)
        if not beside.exists():
            beside.write_bytes(recording.read_bytes())
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        return _refuse(f"{target} cannot be written: {error.strerror}")
    sys.stdout.write(f"wrote {target}; run it with: pytest {target}\n")
    return 0


def _refuse(text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return 1


def _written(recording: Path, name: str) -> str:
    """Return the test; its expectations are those of a replay made now."""
    from ..agent import Agent
    from ..recording._replay import ReplayProvider

    replay = ReplayProvider(recording)
    agent = Agent(
        replay,
        tools=replay.tools(),
        hooks=[replay.answers()],
        system_prompt=replay.system_prompt,
    )
    return _TEST.format(
        file=recording.name,
        name=name,
        output="" if replay.output is None else ", output=replay.output",
        checks="\n".join(f"    {line}" for line in _checks(_run(agent, replay))),
        unused=replay.unused,
    )


def _run(agent: Agent, replay: ReplayProvider) -> AgentResponse[object]:
    if replay.output is None:
        return agent.run_sync(replay.input)
    return agent.run_sync(replay.input, output=replay.output)


def _checks(response: AgentResponse[object]) -> list[str]:
    if response.error is None:
        return [
            f"assert response.status == {response.status!r}",
            f"assert response.text == {response.text!r}",
        ]
    return [
        "assert response.error is not None",
        f"assert str(response.error) == {str(response.error)!r}",
    ]
