"""Lighter's sessions in PostgreSQL and other databases, over SQLAlchemy.

```python
from lighter_core.sessions import Session
from lighter_sqlalchemy import SQLAlchemyStore

store = SQLAlchemyStore("postgresql+psycopg://user@localhost/chats")
session = Session(agent, store, "chat-1")
```
"""

from __future__ import annotations

from ._store import SQLAlchemyStore

__all__ = ["SQLAlchemyStore"]

SQLAlchemyStore.__module__ = __name__


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("lighter-sqlalchemy")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
