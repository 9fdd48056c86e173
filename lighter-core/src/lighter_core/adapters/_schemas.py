"""Answer schemas as services take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

__all__ = ["closed_schema", "map_schema"]

_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions")

_Schema = dict[str, Any]


def map_schema(
    schema: Mapping[str, object], change: Callable[[_Schema], _Schema]
) -> _Schema:
    """Return a copy in which `change` was applied to each schema, the inner ones first.

    Only places that hold schemas are entered: a property may have any name, and a
    default any value.
    """
    own = cast("_Schema", dict(schema))
    for key in _ONE:
        if isinstance(own.get(key), Mapping):
            own[key] = map_schema(own[key], change)
    for key in _SEVERAL:
        if isinstance(own.get(key), list | tuple):
            own[key] = [_mapped(each, change) for each in own[key]]
    for key in _NAMED:
        if isinstance(own.get(key), Mapping):
            own[key] = {
                name: _mapped(each, change)
                for name, each in cast("Mapping[str, Any]", own[key]).items()
            }
    return change(own)


def _mapped(value: Any, change: Callable[[_Schema], _Schema]) -> Any:
    if not isinstance(value, Mapping):
        return value  # `true` and `false` are schemas too
    return map_schema(cast("Mapping[str, object]", value), change)


def closed_schema(schema: Mapping[str, object]) -> _Schema:
    """Return the schema with objects closed that do not say whether they are open.

    An object that names no properties stays open: it may hold anything.
    """

    def close(each: _Schema) -> _Schema:
        if "properties" in each:
            each.setdefault("additionalProperties", False)
        return each

    return map_schema(schema, close)
