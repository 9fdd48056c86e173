"""What an import loads, counted, since the time that it takes depends on the machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

REPORT = """
import json, sys
before = set(sys.modules)
import {module}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.mark.parametrize(
    ("module", "most"),
    [
        ("lighter_core", 45),
        ("lighter_core.testing", 46),
        ("lighter_openai", 98),
        ("lighter_claude", 88),
        ("lighter_deepseek", 101),
    ],
)
def test_an_import_loads_few_modules_and_none_of_others(module: str, most: int) -> None:
    """Own modules, the core's among them, and of others only the standard library's."""
    written = subprocess.run(
        [sys.executable, "-c", REPORT.format(module=module)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    loaded = {name: name.partition(".")[0] for name in json.loads(written)}
    own = [name for name, root in loaded.items() if root.startswith("lighter_")]
    assert module in own
    assert len(own) <= most, own
    assert set(loaded.values()) - set(sys.stdlib_module_names) == {
        name.partition(".")[0] for name in own
    }
