"""Answers of a given form: how one is asked for, and how it is found in the reply.

The service holds a model to a form by `output_config.format`; models before 4.5 and
other servers may not know it. A tool that must be called comes next: its input is the
answer. Models that think refuse to be forced; they are told in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from lighter_core import ModelRequest
from lighter_core.adapters import closed_schema, dump_json, map_schema

from ._blocks import Block, quoted, tool_call

__all__ = [
    "AnswerForm",
    "StructuredOutput",
    "answer_forms",
    "answer_schema",
    "answered",
]

AnswerForm: TypeAlias = Literal["native", "tool", "instruction"]
StructuredOutput: TypeAlias = Literal["auto", "native", "tool", "instruction"]

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


def answer_forms(
    request: ModelRequest, chosen: StructuredOutput, *, thinks: bool
) -> list[AnswerForm]:
    """Return how to ask for the request's answer: the next one where one is refused.

    Args:
        request: The request.
        chosen: The provider's option.
        thinks: Whether thinking is switched on: then no tool can be forced.
    """
    if chosen != "auto":
        unforced = chosen == "tool" and request.tool_choice == "none"
        return ["instruction" if unforced else chosen]
    if thinks or request.tool_choice == "none":
        return ["native", "instruction"]
    return ["native", "tool", "instruction"]


def answered(blocks: Sequence[Block], name: str | None) -> tuple[list[Block], str]:
    """Return the blocks with the answer as text in place of its call, and that text.

    A call would need a result before the conversation could go on. The text is empty
    when the answer's tool was not called; when it was called twice, the first counts.
    """
    kept: list[Block] = []
    said = ""
    for block in blocks:
        if block.type != "tool_use" or block.value.get("name") != name:
            kept.append(block)
        elif not said:
            said = tool_call(block).arguments
            text = f'{{"type":"text","text":{quoted(said)}}}'
            kept.append(Block({"type": "text", "text": said}, text))
    return kept, said
