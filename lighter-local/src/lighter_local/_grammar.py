"""Grammars that leave the model no way to write an invalid call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lighter_core.adapters import dump_json, load_json
from lighter_core.errors import ModelError
from lighter_core.requests import ToolSpec

from ._values import as_mapping

__all__ = ["call_grammar", "parse_call"]

# No line breaks and indentation, which cost a small model a third of its tokens; and
# keywords that the grammar engine does not know are passed over.
_GUIDANCE = {"whitespace_flexible": False, "lenient": True}


def call_grammar(specs: Sequence[ToolSpec]) -> str:
    """Return an llguidance grammar whose sentences are valid calls of the tools.

    Each tool has a `%json` block of its own, so that `$ref`s within its schema hold.
    """
    rules = [f"call_{number}" for number in range(len(specs))]
    lines = ["%llguidance {}", f"start: {' | '.join(rules)}"]
    for rule, spec in zip(rules, specs, strict=True):
        head = dump_json(f'{{"name": {dump_json(spec.name)}, "arguments": ')
        schema = dump_json(_arguments_schema(spec.parameters))
        lines.append(f'{rule}: {head} %json {schema} "}}"')
    return "\n".join(lines) + "\n"


def _arguments_schema(parameters: Mapping[str, object]) -> dict[str, object]:
    schema = dict(parameters)
    schema.setdefault("type", "object")
    # Open objects invite a small model to invent keys; closed ones stay valid.
    if "$ref" not in schema and "allOf" not in schema and "anyOf" not in schema:
        schema.setdefault("additionalProperties", False)
    schema["x-guidance"] = _GUIDANCE
    return schema


def parse_call(text: str, specs: Sequence[ToolSpec]) -> tuple[str, str]:
    """Return the tool's name and the arguments as compact JSON text.

    Raises:
        ModelError: `bad_response`; a schema that cannot become a grammar is ignored by
            the engine without a word, so the text may be anything.
    """
    try:
        value = load_json(text)
    except ValueError:
        value = None
    call = as_mapping(value)
    name, arguments = call.get("name"), call.get("arguments")
    if any(spec.name == name for spec in specs) and isinstance(arguments, dict):
        return str(name), dump_json(arguments)  # pyright: ignore[reportUnknownArgumentType]
    names = ", ".join(spec.name for spec in specs)
    raise ModelError(
        f"the local model wrote no valid call of {names}; the schema of its arguments"
        " may hold something that cannot be turned into a grammar",
        "bad_response",
        provider="local",
    )
