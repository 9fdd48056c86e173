"""Conversations that outlive the process.

```python
from lighter_core.sessions import Session, SQLiteStore

store = SQLiteStore("chats.db")
session = Session(agent, store, "chat-1")
print(session.run_sync("What is 19 + 23?").text)
```
"""

from __future__ import annotations

from ._entries import Entry, FoundEntry, SessionInfo, SessionPage, StoredSession
from ._jsonl import session_from_jsonl, session_to_jsonl
from ._session import Session
from ._sqlite import SQLiteStore
from ._store import Store

__all__ = [
    "Entry",
    "FoundEntry",
    "SQLiteStore",
    "Session",
    "SessionInfo",
    "SessionPage",
    "Store",
    "StoredSession",
    "session_from_jsonl",
    "session_to_jsonl",
]

for _each in (SQLiteStore, Session, Store):
    _each.__module__ = __name__  # tracebacks name the public place
