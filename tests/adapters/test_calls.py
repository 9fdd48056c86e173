"""Arguments of calls as every service takes them, read once for each call."""

from __future__ import annotations

import pytest

from lighter_core import ToolCall
from lighter_core.adapters import arguments_text, is_object


@pytest.mark.parametrize(
    ("arguments", "good", "text"),
    [
        ("", True, "{}"),
        (" \n", True, "{}"),
        (' {"a": 1} ', True, '{"a": 1}'),
        ('{"a": "\\ud83d"}', True, '{"a":"\ud83d"}'),
        ('{"a": 1e400}', True, None),  # a number that Python cannot write again
        ("[1]", False, None),
        ('{"a"', False, None),
    ],
)
def test_arguments_are_read_alike_each_time(arguments, good, text):
    call = ToolCall("c", "t", arguments)
    for _ in range(2):
        assert is_object(call) is good
        assert arguments_text(call) == text
    assert call == ToolCall("c", "t", arguments)
