"""docs/writing-a-provider.md, followed to the letter in a fresh environment.

Its Python blocks that begin with a file's name are written there, its `sh` blocks are
typed, in their order. What `pip` installs comes from wheels of this checkout.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.fresh import ROOT, FreshEnvironment, build_wheel

PAGE = ROOT / "docs" / "writing-a-provider.md"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\S+\.py)\n")


def steps() -> list[tuple[str, str]]:
    """Return each file with its text, and each block of commands after `$`."""
    found: list[tuple[str, str]] = []
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        name = FILE.match(text)
        if kind == "sh":
            found.append(("$", text))
        elif name:
            found.append((name[1], text[name.end() :]))
    return found


@pytest.mark.timeout(400)
def test_following_the_page_gives_providers_that_pass(tmp_path: Path) -> None:
    """Each command ends well, and the contract's checks have run."""
    pytest.importorskip("mypy", reason="mypy is missing (make check)")
    pytest.importorskip("ruff", reason="ruff is missing (make check)")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for folder in ("lighter-core", "lighter-conformance"):
        build_wheel(ROOT / folder, wheels)
    env = FreshEnvironment(tmp_path / "venv")
    env.answer_pip(wheels)
    place, printed = tmp_path, ""
    for target, text in steps():
        if target != "$":
            (place / target).write_text(text, encoding="utf-8")
            continue
        output = env.shell(f"{text}\npwd\n", cwd=place)
        place = Path(output.splitlines()[-1])
        printed += output
    assert "Received: Hello!" in printed
    checked = [int(n) for n in re.findall(r"(\d+) passed, \d+ skipped", printed)]
    assert len(checked) == 3, printed
    assert checked[-1] >= 100, printed
    assert "failed" not in printed


def test_the_page_has_the_steps_that_the_test_follows() -> None:
    """A block that is no longer found would be left out in silence."""
    targets = [target for target, _ in steps()]
    assert targets.count("$") == 4
    assert "src/lighter_parrot/_provider.py" in targets
    assert "tests/test_provider.py" in targets
