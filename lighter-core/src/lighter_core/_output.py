"""Answers of a given shape: what to ask for, and how to read what comes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ._json import clean_text, dump_json, load_json
from ._schema import ArgumentsError, schema_check, schema_generator, wake_pydantic
from ._tool_text import shorten, validation_text
from .requests import OutputSpec

__all__ = ["OutputPlan", "plan_output"]

_FENCED = re.compile(r"\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_WRAPPED = "result"  # the key that holds an answer which is no object by itself


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """How the final answer of a run is asked for and read.

    Attributes:
        spec: The shape, for providers that can hold a model to it.
        read: From the answer's text to the value; raises `ArgumentsError` with what
            does not fit, in words that the model may read.
    """

    spec: OutputSpec
    read: Callable[[str], object]

    @property
    def instruction(self) -> str:
        """What to tell a model that cannot be held to the shape."""
        return self.spec.instruction

    def repair(self, faults: str) -> str:
        """Return what to tell the model about an answer that does not fit."""
        return (
            f"Your answer does not fit the required form: {shorten(faults)}. Answer"
            " again, with only a JSON object that fits this JSON Schema:\n"
            f"{dump_json(self.spec.schema)}"
        )


def plan_output(output: object) -> OutputPlan:
    """Plan for a JSON Schema, a pydantic model or any type that pydantic can validate.

    Raises:
        TypeError: When it is neither.
        ValueError: When a schema is not valid, or jsonschema is not installed.
    """
    if isinstance(output, Mapping):
        return _from_schema(cast("Mapping[str, object]", output))
    return _from_type(output)


def _from_schema(schema: Mapping[str, object]) -> OutputPlan:
    own = cast("dict[str, Any]", load_json(dump_json(schema)))
    try:
        check = schema_check(own)
    except ValueError as error:
        raise ValueError(f"output=… cannot be checked: {error}") from error

    def read(text: str) -> object:
        value = _load(text)
        check(value)
        return value

    return OutputPlan(OutputSpec(_name(own.get("title")), own), read)


def _from_type(output: object) -> OutputPlan:
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError

    wake_pydantic()
    try:
        adapter = TypeAdapter[Any](cast("Any", output))
        schema = adapter.json_schema(schema_generator=schema_generator())
    except (PydanticUserError, TypeError, NameError) as error:
        first = str(error).splitlines()[0]
        raise TypeError(
            f"output must be a pydantic model, another type that pydantic can validate,"
            f" or a JSON Schema dict, got {output!r}: {first}"
        ) from error
    name = _name(getattr(output, "__name__", None))
    if "$ref" in schema:  # a model that refers to itself
        target = schema["$defs"][schema.pop("$ref").rsplit("/", 1)[-1]]
        schema = {**target, **schema}
    whole = schema.get("type") == "object"
    if not whole:
        schema = _wrapped(schema)

    def read(text: str) -> object:
        text = _unfenced(text)
        try:
            if whole:
                return adapter.validate_json(text)
            value = _load(text)
            if not isinstance(value, dict) or _WRAPPED not in value:
                raise ArgumentsError(f"the object needs the key {_WRAPPED!r}")
            inner = cast("dict[str, object]", value)[_WRAPPED]
            return adapter.validate_json(dump_json(inner))
        except ValidationError as error:
            raise ArgumentsError(validation_text(error)) from error

    return OutputPlan(OutputSpec(name, schema), read)


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an object schema around another: services take objects only."""
    definitions = schema.pop("$defs", None)
    outer: dict[str, Any] = {
        "type": "object",
        "properties": {_WRAPPED: schema},
        "required": [_WRAPPED],
        "additionalProperties": False,
    }
    if definitions is not None:
        outer["$defs"] = definitions
    return outer


def _name(given: object) -> str:
    name = given if isinstance(given, str) else ""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "output"


def _unfenced(text: str) -> str:
    """Return the text without a code fence around the whole of it."""
    match = _FENCED.fullmatch(text)
    return clean_text(match.group(1) if match else text)


def _load(text: str) -> object:
    try:
        return load_json(_unfenced(text))
    except ValueError as error:
        raise ArgumentsError(f"it is not valid JSON: {error}") from error
