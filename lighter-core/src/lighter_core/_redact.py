"""Taking out of texts what must not travel: keys, credentials and queries in URLs."""

from __future__ import annotations

import re

__all__ = ["redact"]

_SHORTEST = 6
_BETWEEN = re.compile(r"([\s'\"<>]+)")


def redact(text: str, *secrets: str | None) -> str:
    """Return the text without the secrets, and URLs in it without user and query.

    A secret of less than six characters is none: its letters would be taken out of
    ordinary words. The cost is linear in the length of the text.
    """
    for secret in secrets:
        if secret and len(secret) >= _SHORTEST:
            text = text.replace(secret, "[redacted]")
    if "://" not in text:
        return text
    return "".join(
        _without_extras(word) if "://" in word else word
        for word in _BETWEEN.split(text)
    )


def _without_extras(word: str) -> str:
    """Return a word, URLs in it cut to scheme, host and path."""
    scheme, *rests = word.split("://")
    kept = [scheme]
    for rest in rests:
        # A password may hold what it should not: whatever stands before the last `@`
        # of the authority goes, even where a strict reading would call it a query.
        authority, slash, path = rest.partition("/")
        rest = authority.rpartition("@")[2] + slash + path  # noqa: PLW2901
        end = min((at for at in map(rest.find, "?#") if at >= 0), default=-1)
        kept.append(rest if end < 0 else rest[:end])
        if end >= 0:
            break
    return "://".join(kept)
