"""The tables of stores on SQL databases, and all statements."""

from __future__ import annotations

__all__ = [
    "ADD_ENTRY",
    "ADD_SESSION",
    "CHAIN",
    "CHAIN_IDS",
    "DELETE_ENTRIES",
    "DELETE_SESSION",
    "FIND",
    "IN_TREE",
    "LIST",
    "MIGRATIONS",
    "MOVE_HEAD",
    "SESSION",
    "TREE",
]

# Sessions that are forks of each other share a tree. Within a tree an entry's id is its
# key, so that the same session can be imported twice. `touched` orders sessions by their
# last change, without a clock. Positions grow along a chain, and the statements insist on
# it: a damaged file must not lead them in a circle.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE lighter_entries (
            tree TEXT NOT NULL,
            id TEXT NOT NULL,
            parent_id TEXT,
            position INTEGER NOT NULL,
            created TEXT NOT NULL,
            message TEXT NOT NULL,
            search TEXT NOT NULL,
            PRIMARY KEY (tree, id),
            FOREIGN KEY (tree, parent_id) REFERENCES lighter_entries (tree, id)
        )""",
        "CREATE INDEX lighter_entries_parent ON lighter_entries (tree, parent_id)",
        """CREATE TABLE lighter_sessions (
            id TEXT NOT NULL PRIMARY KEY,
            tree TEXT NOT NULL,
            head TEXT NOT NULL,
            revision INTEGER NOT NULL,
            touched BIGINT NOT NULL,
            created TEXT NOT NULL,
            updated TEXT NOT NULL,
            FOREIGN KEY (tree, head) REFERENCES lighter_entries (tree, id)
        )""",
        "CREATE INDEX lighter_sessions_touched ON lighter_sessions (touched, id)",
        "CREATE INDEX lighter_sessions_head ON lighter_sessions (tree, head)",
    ),
)
"""The statements that lead from each version of the tables to the next."""

_NEXT = "(SELECT COALESCE(MAX(touched), 0) + 1 FROM lighter_sessions)"

SESSION = """SELECT id, head, revision, created, updated, tree, EXISTS (
    SELECT 1 FROM lighter_sessions o WHERE o.tree = s.tree AND o.id <> s.id
)
FROM lighter_sessions s WHERE id = :id"""

# All that a session has, when it is the only one of its tree; twice as fast as the chain.
TREE = """SELECT id, parent_id, created, message, position
FROM lighter_entries WHERE tree = :tree AND position <= :revision"""

CHAIN = """WITH RECURSIVE chain (tree, id, parent_id, created, message, position) AS (
    SELECT tree, id, parent_id, created, message, position
    FROM lighter_entries WHERE tree = :tree AND id = :head
    UNION ALL
    SELECT e.tree, e.id, e.parent_id, e.created, e.message, e.position
    FROM chain JOIN lighter_entries e ON e.tree = chain.tree AND e.id = chain.parent_id
    WHERE e.position < chain.position
)
SELECT id, parent_id, created, message, position FROM chain"""

CHAIN_IDS = """WITH RECURSIVE chain (tree, id, parent_id, position) AS (
    SELECT tree, id, parent_id, position
    FROM lighter_entries WHERE tree = :tree AND id = :head
    UNION ALL
    SELECT e.tree, e.id, e.parent_id, e.position
    FROM chain JOIN lighter_entries e ON e.tree = chain.tree AND e.id = chain.parent_id
    WHERE e.position < chain.position
)
SELECT id, position FROM chain"""

ADD_ENTRY = """INSERT INTO lighter_entries
    (tree, id, parent_id, position, created, message, search)
VALUES (:tree, :id, :parent_id, :position, :created, :message, :search)"""

ADD_SESSION = f"""INSERT INTO lighter_sessions
    (id, tree, head, revision, touched, created, updated)
VALUES (:id, :tree, :head, :revision, {_NEXT}, :created, :updated)
ON CONFLICT (id) DO NOTHING"""  # noqa: S608 - no values in it

MOVE_HEAD = f"""UPDATE lighter_sessions
SET head = :head, revision = :revision, updated = :updated, touched = {_NEXT}
WHERE id = :id"""  # noqa: S608

LIST = """SELECT id, head, revision, created, updated, touched
FROM lighter_sessions
WHERE substr(id, 1, :length) = :prefix
    AND (touched < :touched OR (touched = :touched AND id < :last))
ORDER BY touched DESC, id DESC LIMIT :limit"""

# An entry is in a session when it is the only one of its tree, else when the head leads
# to it.
FIND = """SELECT s.id, e.id, e.parent_id, e.created, e.message
FROM lighter_entries e JOIN lighter_sessions s ON s.tree = e.tree
WHERE substr(s.id, 1, :length) = :prefix
    AND e.search LIKE :pattern ESCAPE '!'
    AND e.position <= s.revision
    AND (
        NOT EXISTS (SELECT 1 FROM lighter_sessions o WHERE o.tree = s.tree AND o.id <> s.id)
        OR e.id IN (
            WITH RECURSIVE chain (id, parent_id, position) AS (
                SELECT id, parent_id, position
                FROM lighter_entries WHERE tree = s.tree AND id = s.head
                UNION ALL
                SELECT p.id, p.parent_id, p.position
                FROM chain JOIN lighter_entries p
                ON p.tree = s.tree AND p.id = chain.parent_id
                WHERE p.position < chain.position
            )
            SELECT id FROM chain
        )
    )
ORDER BY s.touched DESC, s.id DESC, e.position DESC LIMIT :limit"""

IN_TREE = "SELECT id FROM lighter_sessions WHERE tree = :tree ORDER BY id"

DELETE_SESSION = "DELETE FROM lighter_sessions WHERE id = :id"

# Those that no remaining session of the tree leads to.
DELETE_ENTRIES = """DELETE FROM lighter_entries
WHERE tree = :tree AND id NOT IN (
    WITH RECURSIVE kept (id, parent_id) AS (
        SELECT e.id, e.parent_id
        FROM lighter_sessions s JOIN lighter_entries e ON e.tree = s.tree AND e.id = s.head
        WHERE s.tree = :tree
        UNION
        SELECT e.id, e.parent_id
        FROM kept JOIN lighter_entries e ON e.tree = :tree AND e.id = kept.parent_id
    )
    SELECT id FROM kept
)"""
