"""The program of `make demo`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "docs" / "examples" / "demo.py"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    keep = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")}
    return subprocess.run(
        [sys.executable, "-W", "error", str(DEMO), *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**keep, **environment},
    )


def test_the_demo_calls_the_tool_and_shows_its_own_code() -> None:
    """On the small model, where it has been fetched."""
    from lighter_local import LocalProvider  # noqa: F401 - the plugin must be there

    where = subprocess.run(
        [sys.executable, "-m", "lighter_local", "where"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if where.returncode != 0:
        pytest.skip("the small model is not there; get it with: make model")
    done = run()
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert 'call    add({"a":19,"b":23})' in done.stdout
    assert "result  42" in done.stdout
    assert "42" in done.stdout.split("result  42")[1].split("This is the whole")[0]
    source = DEMO.read_text()
    shown = done.stdout.split("demo.py):\n\n")[1].strip()
    assert shown in source


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({}, "OPENAI_"),
        ({"OPENAI_API_KEY": "sk-nothing"}, "OPENAI_MODEL"),
        (
            {
                "OPENAI_API_KEY": "sk-nothing",
                "OPENAI_MODEL": "m",
                "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
            },
            "cannot reach OpenAI",
        ),
    ],
)
def test_the_demo_says_in_one_sentence_what_is_missing(environment, says) -> None:
    """No traceback, never the key, and a failing exit status."""
    done = run("openai", **environment)
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stderr.strip().count("\n") == 0
    assert "Traceback" not in done.stderr
    assert "sk-nothing" not in done.stderr + done.stdout


def test_the_demo_knows_no_other_provider() -> None:
    """It says what is installed."""
    done = run("nope")
    assert done.returncode == 1
    assert "no provider 'nope' is installed; installed:" in done.stderr
