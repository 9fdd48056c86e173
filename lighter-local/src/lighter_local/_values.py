"""Reading JSON values that other code made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["as_list", "as_mapping"]


def as_mapping(value: object) -> Mapping[str, object]:
    """Return the value when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def as_list(value: object) -> Sequence[object]:
    """Return the value when it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType]
