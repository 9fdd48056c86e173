"""A warning fails the test that caused it, also where nobody could catch it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

TESTS = Path(__file__).parents[1]

CAUSES = """
    import asyncio
    import socket
    import threading
    import warnings

    def test_nothing():
        pass

    def test_warning():
        warnings.warn("old", DeprecationWarning)

    def test_open_file():
        open(__file__)

    def test_open_socket():
        socket.socket()

    def test_cycle():
        cycle = [socket.socket()]
        cycle.append(cycle)

    def test_finalizer():
        class Broken:
            def __del__(self):
                raise ValueError
        Broken()

    def test_thread():
        def fail():
            raise ValueError
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()

    async def test_coroutine():
        asyncio.sleep(0)
"""


def test_each_kind_of_warning_fails_its_own_test(tmp_path: Path) -> None:
    """What finalizers and threads raise, and what is left open, counts too."""
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_causes.py").write_text(textwrap.dedent(CAUSES), "utf-8")
    options = ["-c", TESTS.parent / "pyproject.toml", "--rootdir", tmp_path, "-rA"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, tmp_path],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    told = re.findall(r"^(FAILED|ERROR) .*::(\w+)", ended.stdout, re.MULTILINE)
    causes = set(re.findall(r"def (test_\w+)", CAUSES)) - {"test_nothing"}
    assert sorted(name for _, name in told) == sorted(causes), ended.stdout
