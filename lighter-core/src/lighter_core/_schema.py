"""From a function's signature, a pydantic model or a JSON Schema to tool parameters.

Each form becomes `Parameters`: the schema that the model sees, and a `parse` that turns
the model's argument text into what the function is called with.
"""

from __future__ import annotations

import copy
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._json import dump_json, load_json
from ._tool_text import validation_text
from .context import RunContext
from .errors import ToolDefinitionError
from .requests import JSONObject

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter

__all__ = [
    "ArgumentsError",
    "Parameters",
    "from_json_schema",
    "from_model",
    "from_signature",
    "run_parameter",
]

_MAX_SAFE = 2**53  # beyond it a float does not say which integer was meant


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


# From a JSON Schema ------------------------------------------------------------------


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
    if own.setdefault("type", "object") != "object":
        raise ToolDefinitionError(
            f"the parameters of tool {tool!r} must be an object schema, got type"
            f" {own['type']!r}",
            tool=tool,
        )
    own.setdefault("properties", {})
    check = _schema_check(tool, own) if validate else None

    def parse(text: str) -> tuple[tuple[object, ...], dict[str, Any]]:
        value = load_object(text)
        if check is not None:
            check(value)
        return (value,), {}

    return Parameters(own, parse)


def _schema_check(tool: str, schema: dict[str, Any]) -> Callable[[object], None]:
    try:
        import jsonschema
    except ImportError as error:
        raise ToolDefinitionError(
            f"tool {tool!r} has validate=True, which needs an optional package:"
            " pip install 'lighter-core[jsonschema]'",
            tool=tool,
        ) from error
    validator_class = jsonschema.validators.validator_for(schema)
    try:
        validator_class.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ToolDefinitionError(
            f"the parameters of tool {tool!r} are not a valid JSON Schema:"
            f" {error.message}",
            tool=tool,
        ) from error
    validator = validator_class(schema)

    def check(value: object) -> None:
        faults: list[str] = []
        for fault in validator.iter_errors(value):
            place = ".".join(str(part) for part in fault.absolute_path)
            faults.append(
                f"{place or 'arguments'}: breaks the rule {fault.validator!r}"
            )
        if faults:
            raise ArgumentsError("; ".join(faults))

    return check


# From a pydantic model ---------------------------------------------------------------


def from_model(tool: str, model: type[BaseModel]) -> Parameters:
    """Validate into one instance; the model's own config decides, `extra` unset forbids."""
    from pydantic import ValidationError

    schema = _self_contained(
        tool,
        lambda mode: model.model_json_schema(mode=mode, schema_generator=_generator()),
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


# From a signature --------------------------------------------------------------------


def run_parameter(
    func: Callable[..., object], names: Mapping[str, object] | None = None
) -> str | None:
    """Return the name of the parameter annotated `RunContext`, if there is one."""
    signature = inspect.signature(func)
    found = [
        name
        for name, parameter in signature.parameters.items()
        if _is_run(_resolve(func, name, parameter.annotation, names, tool=None))
    ]
    return found[0] if found else None


def from_signature(
    tool: str,
    func: Callable[..., object],
    *,
    descriptions: Mapping[str, str],
    names: Mapping[str, object],
) -> tuple[Parameters, str | None]:
    """Build parameters from annotations.

    Args:
        tool: The tool's name, for error messages.
        func: The function.
        descriptions: Text for parameters, from the docstring.
        names: Names of the caller that annotations may use.

    Returns:
        The parameters, and the name of the one that takes the `RunContext`.
    """
    run_name: str | None = None
    kept: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(func).parameters.items():
        _check_kind(tool, name, parameter)
        annotation = _resolve(func, name, parameter.annotation, names, tool=tool)
        if _is_run(annotation):
            if run_name is not None:
                raise _fault(tool, name, "takes a second RunContext; one is enough")
            run_name = name
            continue
        kept.append(_recorded(parameter, annotation, descriptions.get(name)))
    adapter = _adapter(tool, kept)
    schema = _self_contained(
        tool, lambda mode: adapter.json_schema(mode=mode, schema_generator=_generator())
    )
    schema.setdefault("properties", {})
    defaults = {
        p.name: p.default
        for p in kept
        if p.default is not inspect.Parameter.empty and _is_mutable(p.default)
    }

    def parse(text: str) -> tuple[tuple[object, ...], dict[str, Any]]:
        values = _validate(adapter, object_text(text))
        for name, default in defaults.items():
            if values.get(name) is default:
                values[name] = copy.deepcopy(default)
        return (), values

    return Parameters(schema, parse), run_name


def _is_mutable(value: object) -> bool:
    return isinstance(value, list | dict | set | bytearray)


def _fault(tool: str, parameter: str, text: str) -> ToolDefinitionError:
    return ToolDefinitionError(
        f"tool {tool!r}: parameter {parameter!r} {text}", tool=tool, parameter=parameter
    )


def _check_kind(tool: str, name: str, parameter: inspect.Parameter) -> None:
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise _fault(tool, name, "is positional-only; models name their arguments")
    if parameter.kind is parameter.VAR_POSITIONAL:
        raise _fault(tool, name, "is *args; take a list instead")
    if parameter.annotation is parameter.empty:
        hint = "has no annotation; models need its type"
        if name in ("self", "cls"):
            hint += ". To make a tool of a method, pass the bound one: tool(obj.method)"
        raise _fault(tool, name, hint)


def _resolve(
    func: Callable[..., object],
    name: str,
    annotation: object,
    names: Mapping[str, object] | None,
    *,
    tool: str | None,
) -> object:
    """Evaluate one annotation; the return annotation is nobody's business here."""
    if annotation is inspect.Parameter.empty:
        return annotation
    plain = inspect.unwrap(func)
    while hasattr(plain, "func") and not hasattr(plain, "__code__"):
        plain = inspect.unwrap(plain.func)
    if not hasattr(plain, "__globals__") and not hasattr(plain, "__func__"):
        plain = getattr(type(plain), "__call__", plain)
    plain = getattr(plain, "__func__", plain)
    code, cells = getattr(plain, "__code__", None), getattr(plain, "__closure__", None)
    local = dict(names or {})
    for free, cell in zip(code.co_freevars if code else (), cells or (), strict=False):
        try:
            local[free] = cell.cell_contents
        except ValueError:  # not yet assigned
            continue
    holder = type("_Holder", (), {})()
    holder.__annotations__ = {name: annotation}
    try:
        hints = typing.get_type_hints(
            holder, getattr(plain, "__globals__", {}), local, include_extras=True
        )
    except Exception as error:
        if tool is None:
            return annotation
        raise _fault(
            tool,
            name,
            f"has an annotation that cannot be resolved: {type(error).__name__}: {error}."
            " Import its names outside `if TYPE_CHECKING:`",
        ) from error
    return hints[name]


def _is_run(annotation: object) -> bool:
    return annotation is RunContext or typing.get_origin(annotation) is RunContext


def _recorded(
    parameter: inspect.Parameter, annotation: object, description: str | None
) -> inspect.Parameter:
    if description and not _described(annotation):
        from pydantic import Field

        annotation = typing.Annotated[annotation, Field(description=description)]
    kind = parameter.kind
    if kind is not inspect.Parameter.VAR_KEYWORD:
        kind = inspect.Parameter.KEYWORD_ONLY
    return parameter.replace(kind=kind, annotation=annotation)


def _described(annotation: object) -> bool:
    if typing.get_origin(annotation) is not typing.Annotated:
        return False
    marks = typing.get_args(annotation)[1:]
    return any(getattr(mark, "description", None) for mark in marks)


def _adapter(tool: str, parameters: list[inspect.Parameter]) -> TypeAdapter[Any]:
    """Return a validator whose result is the keyword arguments themselves."""
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    def record(**values: object) -> dict[str, object]:
        return values

    record.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    record.__annotations__ = {p.name: p.annotation for p in parameters}
    try:
        return TypeAdapter(
            record,
            config={"strict": True, "allow_inf_nan": False, "extra": "forbid"},
        )
    except (PydanticUserError, NameError, TypeError) as error:
        first = str(error).splitlines()[0]
        raise ToolDefinitionError(
            f"tool {tool!r}: its parameters have no schema: {first}", tool=tool
        ) from error


def _validate(adapter: TypeAdapter[Any], text: str) -> dict[str, Any]:
    from pydantic import ValidationError

    try:
        return typing.cast("dict[str, Any]", adapter.validate_json(text))
    except ValidationError as error:
        mended = _integral_floats(text, error)
        if mended is not None:
            try:
                return typing.cast("dict[str, Any]", adapter.validate_json(mended))
            except ValidationError as second:
                error = second
        raise ArgumentsError(validation_text(error)) from error


def _integral_floats(text: str, error: ValidationError) -> str | None:
    """Return the text with `3.0` as `3` where an integer was wanted, if that applies.

    JSON Schema calls 3.0 an integer, pydantic's strict mode does not.
    """
    places = [
        fault["loc"]
        for fault in error.errors(include_input=False, include_url=False)
        if fault["type"] in ("int_type", "int_from_float")
    ]
    if not places:
        return None
    try:
        root = load_json(text)
    except ValueError:
        return None
    changed = False
    for place in places:
        holder: Any = root
        try:
            for part in place[:-1]:
                holder = holder[part]
            value = holder[place[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # the place names a branch of a union, not a key
        if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_SAFE:
            holder[place[-1]] = int(value)
            changed = True
    return dump_json(root) if changed else None


# Schemas -----------------------------------------------------------------------------


@functools.cache
def _generator() -> Any:
    """Return a schema generator without made-up titles that refuses what it would drop."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
            return False

        def emit_warning(self, kind: Any, detail: str) -> None:
            if kind == "non-serializable-default":
                raise TypeError(detail)

    return Generator


def _self_contained(
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
