"""Sessions as lines of JSON: nothing is lost, nothing foreign is taken."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given, settings
from support.histories import ANY_HISTORIES
from support.torture import examples

from lighter_core import Message, SessionError, UserMessage
from lighter_core.sessions import (
    Entry,
    SessionInfo,
    StoredSession,
    session_from_jsonl,
    session_to_jsonl,
)
from lighter_core.sessions._entries import documents_of, messages_of

TIME = "2026-11-30T09:15:00.123456Z"


def session_of(messages: list[Message]) -> StoredSession:
    entries = tuple(
        Entry(f"e{n}", f"e{n - 1}" if n else None, message, TIME)
        for n, message in enumerate(messages)
    )
    info = SessionInfo("chat", entries[-1].id, len(entries), TIME, TIME)
    return StoredSession(info, entries)


@given(ANY_HISTORIES.filter(bool))
@settings(max_examples=examples(200), deadline=None)
def test_a_session_gives_the_same_text_and_comes_back(history: list[Message]) -> None:
    session = session_of(history)
    text = session_to_jsonl(session)
    assert session_from_jsonl(text) == session
    assert session_from_jsonl(text.encode("utf-8")) == session
    assert session_to_jsonl(session_from_jsonl(text)) == text
    assert text.count("\n") == len(history) + 1
    for line in text.split("\n")[:-1]:
        assert isinstance(json.loads(line), dict)


@given(ANY_HISTORIES)
@settings(max_examples=examples(200), deadline=None)
def test_stored_documents_are_read_together_as_each_alone(
    history: list[Message],
) -> None:
    documents = documents_of(history)
    assert messages_of(documents) == history
    spaced = [
        f" {document}" for document in documents
    ]  # not joined, but read one by one
    assert messages_of(spaced) == history


GOOD = session_to_jsonl(session_of([UserMessage("a"), UserMessage("b")])).split("\n")
HEAD, FIRST, SECOND = GOOD[:3]


def lines(*each: str) -> str:
    return "\n".join(each) + "\n"


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("", 1, "JSON"),
        ("\n", 1, "JSON"),
        ("[]", 1, "no JSON object"),
        ("7", 1, "no JSON object"),
        ("\ufeff" + lines(HEAD, FIRST, SECOND), 1, "JSON"),
        (lines(HEAD), 1, "2 entries"),
        (lines(HEAD, FIRST), 2, "2 entries"),
        (lines(HEAD, FIRST, SECOND, SECOND), 4, "2 entries"),
        (lines(HEAD, FIRST, SECOND[:-20]), 3, "JSON"),
        (lines(HEAD, "", FIRST), 2, "JSON"),
        (lines(HEAD, FIRST, SECOND.replace("e1", "e0")), 3, "twice"),
        (lines(HEAD, SECOND, FIRST), 2, "parent"),
        (lines(HEAD, FIRST, SECOND.replace('"e0"', "null")), 3, "parent"),
        (lines(HEAD, FIRST, SECOND.replace('"e0"', '"e1"')), 3, "parent"),
        (lines(HEAD, FIRST, SECOND.replace('"e0"', "0")), 3, "wrong type"),
        (lines(HEAD, FIRST, SECOND.replace('"e1"', '"e/1"')), 3, "letters"),
        (lines(HEAD, FIRST, SECOND.replace('"e1"', '"e\\n"')), 3, "letters"),
        (lines(HEAD, FIRST, SECOND.replace('"id"', '"idd"')), 3, "id"),
        (lines(HEAD, FIRST, SECOND.replace("{", '{"x":1,', 1)), 3, "'x' is not known"),
        (lines(HEAD, FIRST, SECOND.replace("{", '{"id":"z",', 1)), 3, "twice"),
        (lines(HEAD, FIRST, SECOND.replace('"role"', '"content":"","role"')), 3, "twice"),
        (lines(HEAD, FIRST, SECOND.replace("Z", "")), 3, "UTC"),
        (lines(HEAD, FIRST, SECOND.replace("-30T", "-31T")), 3, "UTC"),
        (lines(HEAD, FIRST, SECOND.replace("user", "robot")), 3, "message"),
        (lines(HEAD, FIRST, SECOND.replace('"version":1', '"version":2')), 3, "version"),
        (lines(HEAD, FIRST, SECOND.replace("[{", '[{"role":"user","content":""},{')), 3, "2 messages"),
        (lines(HEAD, FIRST, SECOND.replace("]}}", "]}}]")), 3, "JSON"),
        (lines(HEAD, FIRST, SECOND.replace('"b"', "NaN")), 3, "NaN"),
        (lines(HEAD, FIRST, SECOND.replace('"b"', "[" * 100_000)), 3, "JSON|deeply"),
        (lines(HEAD, FIRST, SECOND.replace('"b"', "1" * 5000)), 3, "JSON"),
        (lines(HEAD.replace('session":1', 'session":2'), FIRST, SECOND), 1, "newer"),
        (lines(HEAD.replace('session":1', 'session":true'), FIRST, SECOND), 1, "type"),
        (lines(HEAD.replace('session":1', 'session":1.0'), FIRST, SECOND), 1, "type"),
        (lines(HEAD.replace('entries":2', 'entries":3'), FIRST, SECOND), 3, "3 entries"),
        (lines(HEAD.replace('entries":2', 'entries":-1'), FIRST, SECOND), 3, "-1 entries"),
        (lines(HEAD.replace('entries":2', 'entries":0')), 1, "one entry"),
        (lines(HEAD.replace(TIME, "now"), FIRST, SECOND), 1, "UTC"),
        (lines(HEAD.replace('"id":"chat",', ""), FIRST, SECOND), 1, "id.*missing"),
    ],
)  # fmt: skip
def test_a_foreign_text_is_refused_with_the_line(
    text: str, line: int, word: str
) -> None:
    with pytest.raises(SessionError, match=word) as caught:
        session_from_jsonl(text)
    assert caught.value.code == "invalid"
    assert str(caught.value).startswith(f"line {line} of the session: ")
    assert len(str(caught.value)) < 500


def test_bytes_that_are_no_text_are_refused_with_the_line() -> None:
    text = lines(HEAD, FIRST, SECOND).encode().replace(b'"b"', b'"\xff"')
    with pytest.raises(SessionError, match=r"line 3 .* UTF-8"):
        session_from_jsonl(text)


def test_long_texts_are_refused_unread() -> None:
    with pytest.raises(SessionError, match="max_characters=10"):
        session_from_jsonl(lines(HEAD, FIRST, SECOND), max_characters=10)


@pytest.mark.parametrize("bad", ["", "a\nb", "x" * 201, "\x00"])
def test_impossible_ids_are_refused(bad: str) -> None:
    head = HEAD.replace('"chat"', json.dumps(bad))
    with pytest.raises(SessionError) as caught:
        session_from_jsonl(lines(head, FIRST, SECOND))
    assert caught.value.code == "invalid"


def test_another_id_in_place_of_the_old_one() -> None:
    session = session_from_jsonl(lines(HEAD, FIRST, SECOND), session_id="copy")
    assert session.info.id == "copy"
    with pytest.raises(SessionError):
        session_from_jsonl(lines(HEAD, FIRST, SECOND), session_id="")


def test_the_last_line_may_lack_its_end_and_lines_may_end_in_crlf() -> None:
    session = session_from_jsonl(lines(HEAD, FIRST, SECOND))
    assert session_from_jsonl(lines(HEAD, FIRST, SECOND)[:-1]) == session
    assert (
        session_from_jsonl(lines(HEAD, FIRST, SECOND).replace("\n", "\r\n")) == session
    )


def test_damaged_texts_are_refused_or_sound() -> None:
    """Any damage gives a session that hangs together, or one documented error, soon."""
    chance = random.Random(7)
    whole = lines(HEAD, FIRST, SECOND)
    pieces = ['"', "{", "}", "[", "]", ",", "\n", "\\", "null", "1e999", "\ud800", ":"]
    refused = 0
    for _ in range(3000):
        text = whole
        for _ in range(chance.randint(1, 3)):
            start = chance.randrange(len(text))
            end = start + chance.choice([0, 1, 1, 5, 40])
            text = text[:start] + chance.choice(["", *pieces]) + text[end:]
        begun = time.perf_counter()
        try:
            session = session_from_jsonl(text)
        except SessionError as error:
            assert error.code == "invalid"  # noqa: PT017 - both ends are fine
            refused += 1
        else:
            again = session_to_jsonl(session)
            assert session_from_jsonl(again) == session
        assert time.perf_counter() - begun < 1
    assert refused > 2500
