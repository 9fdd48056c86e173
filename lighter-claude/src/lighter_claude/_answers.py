"""The schema of an answer as the service takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lighter_core.adapters import closed_schema, dump_json, map_schema

__all__ = ["answer_schema"]

# Words that the service refuses in the schema of an answer, as its SDK knows them. The
# answer is validated here in any case: for the model they go into the description.
_REFUSED = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
)


def answer_schema(schema: Mapping[str, object]) -> dict[str, Any] | None:
    """Return the schema, objects closed and refused words said in the descriptions.

    `None` when it has an object whose keys are open: the service knows no such form.
    """
    opened: list[object] = []

    def change(each: dict[str, Any]) -> dict[str, Any]:
        whole = each.get("type") == "object" or "properties" in each
        if whole and each.get("additionalProperties") is not False:
            opened.append(each)
        said = {word: each.pop(word) for word in _REFUSED if word in each}
        if each.get("minItems", 0) not in (0, 1):
            said["minItems"] = each.pop("minItems")
        if said:
            words = ", ".join(f"{key}: {dump_json(said[key])}" for key in said)
            known = each.get("description")
            each["description"] = f"{known} ({words})" if known else words
        return each

    changed = map_schema(closed_schema(schema), change)
    return None if opened else changed
