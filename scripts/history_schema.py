"""Write docs/history-v1.schema.json, the JSON Schema of documents of messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from lighter_core._document_schema import document_schema

PLACE = Path(__file__).parents[1] / "docs" / "history-v1.schema.json"


class _Schema(GenerateJsonSchema):
    """Says what pydantic cannot know: base64, and that unknown members are refused."""

    def bytes_schema(self, schema: core_schema.BytesSchema) -> dict[str, object]:
        del schema
        return {"type": "string", "contentEncoding": "base64"}

    def dataclass_schema(
        self, schema: core_schema.DataclassSchema
    ) -> dict[str, object]:
        found = cast("dict[str, object]", super().dataclass_schema(schema))
        return {**found, "additionalProperties": False}

    def tagged_union_schema(
        self, schema: core_schema.TaggedUnionSchema
    ) -> dict[str, object]:
        found = cast("dict[str, object]", super().tagged_union_schema(schema))
        return {"oneOf": found["oneOf"]}  # without OpenAPI's own word

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False


def rendered() -> str:
    """Return the text of the file."""
    schema = {
        "$schema": _Schema.schema_dialect,
        "title": "A history of messages, version 1",
        **_Schema().generate(document_schema(1)),
    }
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    PLACE.write_text(rendered(), encoding="utf-8")
