"""The calls of a streamed Chat Completions reply, put together from loose pieces."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.chat_streams import call_chunk, chunk
from support.torture import examples

from lighter_core.adapters import ShapeError
from lighter_openai._chat_calls import Turn
from lighter_openai._chat_pieces import CallPieces
from lighter_openai._chat_stream import ChatStreamDecoder
from lighter_openai._dialect import CHAT, Target

MANY = 20_000


def _head(number: int, index: bool, id_: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"function": {"name": f"t{number}", "arguments": "{}"}}
    if id_:
        fields["id"] = f"c{number}"
    return call_chunk(number if index else None, **fields)


def _count(index: bool, id_: bool) -> int:
    decoder = ChatStreamDecoder(Target(CHAT, "http://127.0.0.1/v1", "m"), Turn())
    shown = 0
    for number in range(MANY):
        event = _head(number, index, id_)
        shown += len(decoder.feed(json.dumps(event).encode()))
    decoder.feed(json.dumps(chunk(finish="tool_calls")).encode())
    decoder.finish()
    assert decoder.message is not None
    names = [call.tool_name for call in decoder.message.tool_calls]
    assert names == [f"t{number}" for number in range(MANY)]
    return shown


def test_work_does_not_grow_with_the_square_of_the_calls():
    """KF-107: 20,000 calls of one reply; looking through all for each would hang."""
    for index, id_ in ((True, True), (True, False), (False, True), (False, False)):
        assert _count(index, id_) == MANY


PIECES = st.lists(
    st.fixed_dictionaries(
        {"arguments": st.sampled_from(["", "1", "{", '"a"'])},
        optional={
            "index": st.sampled_from([0, 1, None, "0"]),
            "id": st.sampled_from(["a", "b", "", None]),
            "name": st.sampled_from(["f", "g"]),
        },
    ),
    max_size=12,
)


def _expected(pieces: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Put names and arguments together by looking through all calls for each piece."""
    calls: list[dict[str, Any]] = []
    for piece in pieces:
        place, id_, name = (
            piece.get("index"),
            piece.get("id") or None,
            piece.get("name"),
        )
        found = None
        for each in calls:
            if place is not None and each["place"] is not None:
                fits = place == each["place"] and (
                    id_ is None or each["id"] in {None, id_}
                )
            elif id_ is not None and each["id"] is not None:
                fits = id_ == each["id"]
            else:
                fits = place == each["place"]
            found = each if fits else found
        if found is None and id_ is None and place is None and calls:
            found = calls[-1]
        if found is None or (name and found["arguments"] and name != found["name"]):
            found = {"place": place, "id": id_, "name": "", "arguments": ""}
            calls.append(found)
        if name and name != found["name"]:
            found["name"] += name
        found["arguments"] += piece["arguments"]
    places = [each["place"] for each in calls if isinstance(each["place"], int)]
    if len(places) == len(set(places)) == len(calls):
        calls.sort(key=lambda each: each["place"])
    return [(each["name"], each["arguments"]) for each in calls]


@settings(max_examples=examples(400), deadline=None)
@given(pieces=PIECES)
def test_pieces_go_to_the_call_that_fits_and_fragments_are_its_arguments(pieces):
    """As by looking at every call; what was shown, joined, is what the call holds."""
    known = CallPieces(Turn())
    shown: list[Any] = []
    for piece in pieces:
        function = {k: piece[k] for k in ("name", "arguments") if k in piece}
        head = {k: piece[k] for k in ("index", "id") if k in piece}
        shown += known.add({**head, "function": function})
    expected = _expected(pieces)
    try:
        calls, late = known.finish()
    except ShapeError:
        assert not all(name for name, _ in expected)
        return
    got = [(call.public.tool_name, call.public.arguments) for call in calls]
    assert got == expected
    for call in calls:
        mine = [e for e in [*shown, *late] if e.call_id == call.public.call_id]
        assert "".join(e.arguments for e in mine) == call.public.arguments
