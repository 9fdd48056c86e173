"""Wheels of the core, the conformance suite and the example distributions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.fresh import ROOT, FreshEnvironment, build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Build the wheel of a folder of the repository, once a session."""
    out = tmp_path_factory.mktemp("wheels")
    built: dict[str, Path] = {}

    def build(folder: str) -> Path:
        if folder not in built:
            built[folder] = build_wheel(ROOT / folder, out)
        return built[folder]

    return build


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory, wheel) -> FreshEnvironment:
    """An environment with what an author of plugins installs, and the examples."""
    return FreshEnvironment(
        tmp_path_factory.mktemp("kit") / "venv",
        wheel("lighter-core"),
        wheel("lighter-conformance"),
        wheel("docs/examples/lighter-echo"),
        wheel("docs/examples/lighter-acme-tools"),
    )
