"""Taking out of texts what must not travel: keys, credentials and queries in URLs."""

from __future__ import annotations

import re

__all__ = ["redact"]

_QUERY = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s?#'\"<>]*)[?#][^\s'\"<>]*")
_USER = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/@]+@")


def redact(text: str, *secrets: str | None) -> str:
    """Return the text without the secrets, and URLs in it without user and query."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[redacted]")
    return _USER.sub(r"\1", _QUERY.sub(r"\1", text))
