"""Names of test cases that are the same in every process."""

from __future__ import annotations

import re

__all__ = ["stable"]


def stable(value: object) -> str:
    """Return the value as text without addresses: workers must agree on names."""
    text = value if isinstance(value, str) else repr(value)
    return re.sub(r" at 0x[0-9a-f]+", "", text)
