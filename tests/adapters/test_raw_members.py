"""Members cut out of JSON text: the quick way finds what the careful one does."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.torture import examples

from lighter_core.adapters import (
    elements,
    member_elements,
    member_text,
    members,
)

KEY = "output"
NAMES = st.sampled_from([KEY, "x", f'"{KEY}"', f'"{KEY}":', "\\u006futput", f"a{KEY}"])
LEAVES = st.none() | st.booleans() | st.integers() | NAMES | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def objects(draw: st.DrawFn) -> str:
    """Text of an object, with the key anywhere, twice, inside, or with escapes."""
    parts: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        name = json.dumps(draw(NAMES))
        if draw(st.booleans()):
            name = name.replace("o", "\\u006f").replace("t", "\\u0074", 1)
        value = json.dumps(
            draw(VALUES), indent=draw(st.sampled_from([None, 1])), ensure_ascii=False
        )
        space = draw(st.sampled_from(["", " ", "\n\t"]))
        parts.append(f"{name}{space}:{space}{value}")
    return f"{{{', '.join(parts)}}}"


@settings(max_examples=examples(400), deadline=None)
@given(objects())
@example(f'{{"a":{{"{KEY}":[1]}},"\\u006futput":[2]}}')
@example(f'{{"{KEY}":[1],"{KEY}":[2]}}')
@example(f'{{"{KEY}":[1],"\\u006futput":[2]}}')
@example(f'{{"x":"{KEY}","{KEY}":[2]}}')
@example(f'{{"x\\"{KEY}":[1],"{KEY}":[2]}}')
@example(f'{{"x\\"{KEY}":[1]}}')
def test_what_is_parsed_already_changes_nothing(text: str) -> None:
    """Duplicates, inner objects and escaped names among them."""
    parsed = json.loads(text)
    slow = member_text(text, KEY)
    assert member_text(text, KEY, parsed) == slow
    assert json.loads(slow) == parsed.get(KEY)
    last = {each.key: each for each in members(text)}
    for each in members(text, parsed):
        assert each.whole in text
        assert last[each.key].value == parsed[each.key]
    assert [(m.key, m.text, m.whole) for m in members(text, parsed)] == [
        (m.key, m.text, m.whole) for m in members(text)
    ]
    if isinstance(parsed.get(KEY), list):
        assert member_elements(text, KEY, parsed) == elements(slow)
        assert member_elements(text, KEY) == elements(slow)


def test_values_of_plain_members_come_from_what_is_parsed() -> None:
    """That is what makes it quick; those of others are read from the text."""
    given: dict[str, object] = {"a": "as parsed", "b": "as parsed"}
    found = members('{"a": 1, "b": [2], "c": 3}', given)
    assert [each.value for each in found] == ["as parsed", [2], 3]


def test_the_quick_way_does_not_read_what_stands_before() -> None:
    """It would refuse this text, which no parser has taken."""
    text = '{"x": [nonsense], "output": [{"a": 1}, 2] and more'
    parsed: dict[str, object] = {KEY: []}
    assert member_text(text, KEY, parsed) == '[{"a": 1}, 2]'
    assert member_elements(text, KEY, parsed) == [({"a": 1}, '{"a": 1}'), (2, "2")]
    for other in ({}, None):
        with pytest.raises(ValueError, match=r"."):
            member_text(text, KEY, other)


@pytest.mark.parametrize("value", ["null", "1", '"x"', "{}"])
def test_a_member_that_is_no_array_is_refused(value: str) -> None:
    text = f'{{"{KEY}": {value}}}'
    for parsed in (None, json.loads(text)):
        with pytest.raises(ValueError, match="expected"):
            member_elements(text, KEY, parsed)
