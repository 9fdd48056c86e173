"""Tool parameters from a JSON Schema or a pydantic model.

Each form becomes `Parameters`: the schema that the model sees, and a `parse` that turns
the model's argument text into what the function is called with.
"""

from __future__ import annotations

import functools
import logging
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._dataclass import dataclass
from ._json import dump_json, load_json
from ._tool_text import validation_text
from .errors import ToolDefinitionError
from .requests import JSONObject

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "ArgumentsError",
    "Parameters",
    "from_json_schema",
    "from_model",
    "object_text",
    "schema_check",
    "schema_generator",
    "self_contained",
    "wake_pydantic",
]

logger: logging.Logger = logging.getLogger("lighter.tools")


_SCHEMA_WORDS = frozenset(
    [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "$ref",
        "$defs",
        "definitions",
        "description",
        "title",
    ]
)


class ArgumentsError(ValueError):
    """The arguments of a call do not fit; its text may be shown to the model."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a tool.

    Attributes:
        schema: JSON Schema, an object schema without references out of itself.
        parse: From argument text to positional and keyword arguments.
    """

    schema: JSONObject
    parse: Callable[[str], tuple[tuple[object, ...], dict[str, Any]]]


def object_text(text: str) -> str:
    """Return argument text that may be an object; blank text is the empty object.

    Raises:
        ArgumentsError: For text that starts like anything else, `null` included.
    """
    stripped = text.strip()
    if not stripped:
        return "{}"
    if not stripped.startswith("{"):
        raise ArgumentsError("the arguments must be a JSON object")
    return stripped


def load_object(text: str) -> dict[str, Any]:
    """Parse argument text into an object.

    Raises:
        ArgumentsError: For anything that is not a JSON object.
    """
    try:
        value = load_json(object_text(text))
    except ArgumentsError:
        raise
    except ValueError as error:
        raise ArgumentsError(f"the arguments are not valid JSON: {error}") from error
    return typing.cast("dict[str, Any]", value)


def from_json_schema(
    tool: str, schema: Mapping[str, object], validate: bool
) -> Parameters:
    """Take a schema as it is: whoever owns it validates, unless `validate` is set."""
    try:
        own = load_json(dump_json(schema))  # a copy, and proof that it is JSON
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(
            f"the parameters of tool {tool!r} are not a JSON Schema: {error}", tool=tool
        ) from error
    own = typing.cast("dict[str, Any]", own)
    if own and not (_SCHEMA_WORDS & own.keys()):
        raise ToolDefinitionError(
            f"the parameters of tool {tool!r} are no JSON Schema: it has none of its"
            ' words. Write {"type": "object", "properties": {…}}',
            tool=tool,
        )
    if own.setdefault("type", "object") != "object":
        raise ToolDefinitionError(
            f"the parameters of tool {tool!r} must be an object schema, got type"
            f" {own['type']!r}",
            tool=tool,
        )
    own.setdefault("properties", {})
    try:
        check = schema_check(own) if validate else None
    except ValueError as error:
        raise ToolDefinitionError(
            f"the parameters of tool {tool!r} cannot be validated: {error}", tool=tool
        ) from error

    def parse(text: str) -> tuple[tuple[object, ...], dict[str, Any]]:
        value = load_object(text)
        if check is not None:
            check(value)
        return (value,), {}

    return Parameters(own, parse)


def schema_check(schema: dict[str, Any]) -> Callable[[object], None]:
    """Return a function that raises `ArgumentsError` for what breaks the schema's rules.

    Raises:
        ValueError: When the schema is not valid, or jsonschema is not installed.
    """
    try:
        from jsonschema import SchemaError
        from jsonschema.validators import validator_for
    except ImportError as error:
        raise ValueError(
            "checking a JSON Schema needs an optional package:"
            " pip install 'lighter-core[jsonschema]'"
        ) from error
    validator_class = validator_for(schema)
    try:
        validator_class.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"it is no valid JSON Schema: {error.message}") from error
    validator = validator_class(schema)

    def check(value: Any) -> None:
        faults: list[str] = []
        for fault in validator.iter_errors(value):
            place = ".".join(str(part) for part in fault.absolute_path)
            rule = f"breaks the rule {fault.validator!r}"
            faults.append(f"{place}: {rule}" if place else rule)
        if faults:
            raise ArgumentsError("; ".join(faults))

    return check


def from_model(tool: str, model: type[BaseModel]) -> Parameters:
    """Validate into one instance by the model's own config; `extra` unset forbids."""
    from pydantic import ValidationError

    schema = self_contained(
        tool,
        lambda mode: model.model_json_schema(
            mode=mode, schema_generator=schema_generator()
        ),
    )
    forbid = "extra" not in model.model_config
    if forbid:
        schema.setdefault("additionalProperties", False)

    def parse(text: str) -> tuple[tuple[object, ...], dict[str, Any]]:
        text = object_text(text)
        try:
            if forbid:
                value = model.model_validate_json(text, extra="forbid")
            else:
                value = model.model_validate_json(text)
        except ValidationError as error:
            raise ArgumentsError(validation_text(error)) from error
        return (value,), {}

    return Parameters(schema, parse)


@functools.cache
def wake_pydantic() -> None:
    """Let pydantic look for its own plugins, before the first type that matters.

    It does so with its first type, in the metadata of all distributions, and raises when
    one of them is corrupt; from then on it works. That one shall not cost a tool.
    """
    from pydantic import TypeAdapter

    try:
        TypeAdapter(int)
    except Exception:
        logger.warning("pydantic cannot read all installed metadata", exc_info=True)


@functools.cache
def schema_generator() -> Any:
    """Return a generator that makes up no titles and refuses what it would drop."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
            return False

        def emit_warning(self, kind: Any, detail: str) -> None:
            if kind == "non-serializable-default":
                raise TypeError(detail)

    return Generator


def self_contained(
    tool: str, build: Callable[[typing.Literal["validation"]], dict[str, Any]]
) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError

    try:
        schema = build("validation")
    except (PydanticUserError, TypeError) as error:
        first = str(error).splitlines()[0]
        raise ToolDefinitionError(
            f"tool {tool!r}: its parameters have no JSON Schema: {first}", tool=tool
        ) from error
    reference = schema.pop("$ref", None)  # a model that refers to itself
    if reference is not None:
        schema = {**schema["$defs"][reference.rsplit("/", 1)[-1]], **schema}
    if schema.get("type") != "object":
        raise ToolDefinitionError(
            f"tool {tool!r}: its parameters must be an object schema, got type"
            f" {schema.get('type')!r}",
            tool=tool,
        )
    return schema
