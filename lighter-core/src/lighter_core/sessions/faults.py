"""What errors of databases mean for a session store, for authors of such stores."""

from __future__ import annotations

from typing import TypeAlias

from ..errors import SessionErrorCode

__all__ = ["Fault", "sqlite_fault", "sqlstate_fault"]

Fault: TypeAlias = tuple[SessionErrorCode, str]
"""A code, and what to do next."""

_UNKNOWN: Fault = ("unavailable", "the database says what is wrong")
_LOCKED: Fault = ("locked", "another writer holds it: try again, or give a timeout=")
_FULL: Fault = ("full", "the disk is full: make room and try again")
_LARGE: Fault = ("invalid", "a message is larger than the database can hold")

# By the beginning of SQLite's own name for an error.
_SQLITE: dict[str, Fault] = {
    "SQLITE_BUSY": _LOCKED,
    "SQLITE_CANTOPEN": (
        "unavailable",
        "it cannot be opened: look whether its directory exists and may be written",
    ),
    "SQLITE_CORRUPT": (
        "corrupt",
        "it is damaged: put a copy in its place, or save the rest by sqlite3's `.recover`",
    ),
    "SQLITE_FULL": _FULL,
    "SQLITE_IOERR": ("unavailable", "the system cannot read or write it"),
    "SQLITE_LOCKED": _LOCKED,
    "SQLITE_NOTADB": ("corrupt", "it is no SQLite file, or its beginning is damaged"),
    "SQLITE_PERM": ("readonly", "it may not be opened: look at its permissions"),
    "SQLITE_READONLY": (
        "readonly",
        "it may not be written: look at the permissions of the file and its directory",
    ),
    "SQLITE_TOOBIG": _LARGE,
}

# By the beginning of the code that the SQL standard gives an error, PostgreSQL's
# extensions among them.
_SQLSTATE: dict[str, Fault] = {
    "08": ("unavailable", "the connection failed: look whether the server runs"),
    "25006": ("readonly", "the database takes no writes: is it a copy of another one?"),
    "28": ("unavailable", "the server refused the user: look at name and password"),
    "40": _LOCKED,
    "42501": ("readonly", "the user has not the rights: grant them on the tables"),
    "53": ("unavailable", "the server has no resources left: try again"),
    "53100": _FULL,
    "54": _LARGE,
    "55P03": _LOCKED,
    "57": ("unavailable", "the server ended the work: try again"),
    "XX": ("corrupt", "the database is damaged: restore it"),
}


def sqlite_fault(name: str | None) -> Fault:
    """Return what an error of SQLite means.

    Args:
        name: `sqlite_errorname` of the exception, e.g. `"SQLITE_BUSY_SNAPSHOT"`.
    """
    return _longest(_SQLITE, name)


def sqlstate_fault(state: str | None) -> Fault:
    """Return what an error of another database means.

    Args:
        state: Its SQLSTATE, e.g. `"53100"`; `None` when there was no connection.
    """
    return _longest(_SQLSTATE, state or "08")


def _longest(faults: dict[str, Fault], name: str | None) -> Fault:
    fitting = [each for each in faults if (name or "").startswith(each)]
    return faults[max(fitting, key=len)] if fitting else _UNKNOWN
