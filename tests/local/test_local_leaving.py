"""However a stream is left, the process ends as if it had been read to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("leaving.py")


@pytest.mark.parametrize(
    "way",
    [
        *("break", "aclose", "cancel", "cancel-in-prompt", "sigint"),
        *("open", "exit", "daemon", "load"),
    ],
)
@pytest.mark.usefixtures("model_path")
def test_leaving_ends_the_process_cleanly(way):
    if way == "sigint" and os.name == "nt":
        pytest.skip("Windows has no SIGINT for one process")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM), way],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if way == "exit" else "left\n")
