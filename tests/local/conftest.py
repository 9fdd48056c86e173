"""Fixtures of the tests of lighter-local."""

from __future__ import annotations

from pathlib import Path

import pytest

from lighter_core import ModelError, ToolSpec
from lighter_local._models import SMOLLM2, find_model


@pytest.fixture
def model_path() -> Path:
    """Return the default model's file, or skip the test, saying how to get it."""
    try:
        found = find_model(SMOLLM2.alias).path
    except ModelError:
        pytest.skip("no local model: run `python -m lighter_local fetch`")
    return found


@pytest.fixture
def add() -> ToolSpec:
    return ToolSpec(
        "add",
        "Add two numbers.",
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    )
