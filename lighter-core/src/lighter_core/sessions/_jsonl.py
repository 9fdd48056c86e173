"""A session as lines of JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn, cast

from .._json import dump_json
from ..documents import messages_from_json
from ..errors import HistoryError, SessionError
from ..messages import Message
from ._entries import (
    Entry,
    SessionInfo,
    StoredSession,
    check_session_id,
    documents_of,
    fault_of,
)

__all__ = ["session_from_jsonl", "session_to_jsonl"]

_VERSION = 1
_MAX_CHARACTERS = 256 * 1024 * 1024
_HEAD: Mapping[str, type] = {
    "lighter_session": int,
    "id": str,
    "created": str,
    "updated": str,
    "entries": int,
}
_ENTRY: Mapping[str, type | tuple[type, ...]] = {
    "id": str,
    "parent_id": (str, type(None)),
    "created": str,
    "message": dict,
}


def session_to_jsonl(session: StoredSession) -> str:
    """Return a session as text: a line about it, then one for each entry.

    Equal sessions give equal text. `message` is a document as `messages_to_json` returns
    it, so that each line knows the version of its form.
    """
    info = session.info
    head = {
        "lighter_session": _VERSION,
        "id": info.id,
        "created": info.created,
        "updated": info.updated,
        "entries": len(session.entries),
    }
    lines = [dump_json(head)]
    for entry, document in zip(
        session.entries, documents_of(session.messages), strict=True
    ):
        front = {"id": entry.id, "parent_id": entry.parent_id, "created": entry.created}
        lines.append(f'{dump_json(front)[:-1]},"message":{document}}}')
    return "\n".join(lines) + "\n"


def session_from_jsonl(
    text: str | bytes,
    *,
    session_id: str | None = None,
    max_characters: int = _MAX_CHARACTERS,
) -> StoredSession:
    """Return the session that `session_to_jsonl` has written; to be stored by `insert`.

    Args:
        text: The lines, as text or as UTF-8.
        session_id: An id in place of the one that it had.
        max_characters: Longer texts are refused unread.

    Raises:
        SessionError: `invalid`, naming the line, for whatever is not such a text: cut
            off, with an unknown field, from a newer version.
    """
    if len(text) > max_characters:
        raise SessionError(
            f"the text has a length of {len(text):,}, more than"
            f" max_characters={max_characters:,}",
            code="invalid",
        )
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise _refusal(line, "it is not UTF-8") from None
    lines = text.split("\n")  # other separators may stand inside of strings
    if lines[-1] == "":
        del lines[-1]
    head = _fields(1, lines[0] if lines else "", _HEAD)
    if head["lighter_session"] != _VERSION:
        raise _refusal(
            1,
            f"lighter_session must be {_VERSION}: a newer version of lighter-core may"
            " have written it",
        )
    if head["entries"] != len(lines) - 1:
        raise _refusal(
            len(lines), f"{head['entries']} entries should follow the first line"
        )
    entries = tuple(_entry(number, line) for number, line in enumerate(lines[1:], 2))
    info = SessionInfo(
        id=check_session_id(head["id"] if session_id is None else session_id),
        head=entries[-1].id if entries else "",
        revision=len(entries),
        created=cast("str", head["created"]),
        updated=cast("str", head["updated"]),
    )
    session = StoredSession(info, entries)
    fault = fault_of(session)
    if fault is not None:
        raise _refusal(fault[0] + 1, fault[1])
    return session


def _entry(line: int, text: str) -> Entry:
    fields = _fields(line, text, _ENTRY)
    return Entry(
        cast("str", fields["id"]),
        cast("str | None", fields["parent_id"]),
        _message(line, fields["message"]),
        cast("str", fields["created"]),
    )


def _message(line: int, document: object) -> Message:
    try:
        messages = messages_from_json(json.dumps(document))
    except HistoryError as error:
        raise _refusal(line, f"message: {error}") from error
    if len(messages) != 1:
        raise _refusal(line, f"its document has {len(messages)} messages, not one")
    return messages[0]


def _fields(
    line: int, text: str, form: Mapping[str, type | tuple[type, ...]]
) -> dict[str, object]:
    try:
        found: object = json.loads(
            text, object_pairs_hook=_without_doubles, parse_constant=_no_constant
        )
    except RecursionError:
        raise _refusal(line, "it is nested too deeply") from None
    except ValueError as error:
        raise _refusal(line, f"it is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise _refusal(line, "it is no JSON object")
    fields = cast("dict[str, object]", found)
    if fields.keys() != form.keys():
        odd = min(fields.keys() ^ form.keys())
        kind = "is missing" if odd in form else "is not known"
        raise _refusal(line, f"the field {odd[:60]!r} {kind}")
    for name, kinds in form.items():
        if not isinstance(fields[name], kinds) or isinstance(fields[name], bool):
            raise _refusal(line, f"the field {name!r} is of the wrong type")
    return fields


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field stands twice in one object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _refusal(line: int, text: str) -> SessionError:
    return SessionError(f"line {line} of the session: {text}", code="invalid")
