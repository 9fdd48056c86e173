"""The splitter of event streams, rule by rule (HTML standard, "Server-sent events")."""

from __future__ import annotations

import pytest

from lighter_core.adapters import EventStreamSplitter

BOM = b"\xef\xbb\xbf"

STREAMS = {
    "one event": (b"data: a\n\n", [b"a"]),
    "two events": (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    "no space": (b"data:a\n\n", [b"a"]),
    "one space of two goes": (b"data:  a\n\n", [b" a"]),
    "a tab stays": (b"data:\ta\n\n", [b"\ta"]),
    "lines of data": (b"data: a\ndata: b\ndata: c\n\n", [b"a\nb\nc"]),
    "data without a value": (b"data:\n\n", [b""]),
    "the bare field": (b"data\n\n", [b""]),
    "bare fields between": (b"data: a\ndata\ndata: b\n\n", [b"a\n\nb"]),
    "other fields": (b"event: x\nid: 1\nretry: 5\ndata: a\n\n", [b"a"]),
    "fields that begin like it": (b"dataset: x\ndat: y\ndata : z\n\n", []),
    "a space before the field": (b" data: a\n\n", []),
    "comments": (b": ping\n\ndata: a\n: data: b\n\n: end\n\n", [b"a"]),
    "blank lines": (b"\n\n\ndata: a\n\n\n\ndata: b\n\n\n", [b"a", b"b"]),
    "CR": (b"data: a\rdata: b\r\rdata: c\r\r", [b"a\nb", b"c"]),
    "CRLF": (b"data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", [b"a\nb", b"c"]),
    "mixed ends": (b"data: a\r\n\ndata: b\r\r\ndata: c\n\r", [b"a", b"b", b"c"]),
    "CR and a line behind it": (b"data: a\r\rdata: b\n\n", [b"a", b"b"]),
    "LF, then CR": (b"data: a\n\rdata: b\n\r", [b"a", b"b"]),
    "what else splits lines in Python": (
        "data: a\v\f\x1c\x85\u2028b\n\n".encode(),
        ["a\v\f\x1c\x85\u2028b".encode()],
    ),
    "a mark at the start": (BOM + b"data: a\n\n", [b"a"]),
    "one mark only": (BOM + BOM + b"data: a\n\n", []),
    "a mark later": (b"data: a\n\n" + BOM + b"data: b\n\n", [b"a"]),
    "a mark in the data": (b"data: " + BOM + b"\n\n", [BOM]),
    "a mark and no line end": (BOM + b"data: a", [b"a"]),
    "half a mark": (BOM[:2] + b"data: a\n\n", []),
    "no blank line at the end": (b"data: a\n\ndata: b\n", [b"a", b"b"]),
    "no line end at all": (b"data: a\n\ndata: b", [b"a", b"b"]),
    "an unfinished other field": (b"data: a\n\nid: 1", [b"a"]),
    "an unfinished line of data": (b"data: a\ndata: b", [b"a\nb"]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("name", STREAMS)
def test_events_are_the_same_wherever_the_bytes_are_cut(name: str) -> None:
    """Whole, byte by byte, and cut at each two places, with empty pieces between."""
    raw, wanted = STREAMS[name]
    for first in range(len(raw) + 1):
        for second in range(first, len(raw) + 1):
            splitter, got = EventStreamSplitter(), []
            for piece in (raw[:first], b"", raw[first:second], raw[second:]):
                got += splitter.feed(piece)
            assert got + splitter.finish() == wanted, (first, second)
    splitter = EventStreamSplitter()
    single = [event for byte in raw for event in splitter.feed(bytes([byte]))]
    assert single + splitter.finish() == wanted


def test_an_event_comes_with_the_byte_that_completes_it() -> None:
    """Nothing waits for the next chunk: the service may be silent for long."""
    splitter = EventStreamSplitter()
    assert splitter.feed(b"data: a\n") == []
    assert splitter.feed(b"\ndata: b") == [b"a"]
    assert splitter.feed(b"\r\r") == [b"b"]
    assert splitter.feed(b"\n") == []  # of the CRLF
    assert splitter.feed(b"data: c\r\n\r") == [b"c"]
    assert splitter.finish() == []


def test_finish_hands_on_what_is_left_once() -> None:
    """A second `finish` has nothing more, and no line is handed on twice."""
    splitter = EventStreamSplitter()
    assert splitter.feed(b"data: a\nda") == []
    assert splitter.feed(b"ta: b") == []
    assert splitter.finish() == [b"a\nb"]
    assert splitter.finish() == []
    assert splitter.feed(b"data: c\n\n") == [b"c"]
