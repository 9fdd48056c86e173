"""Tool parameters from a function's signature."""

from __future__ import annotations

import copy
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ._json import dump_json, load_json
from ._schema import (
    ArgumentsError,
    Parameters,
    object_text,
    schema_generator,
    self_contained,
    wake_pydantic,
)
from ._tool_text import validation_text
from .context import RunContext
from .errors import ToolDefinitionError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = ["from_signature", "run_parameter"]

_MAX_SAFE = 2**53  # beyond it a float does not say which integer was meant


def run_parameter(
    func: Callable[..., object], names: Mapping[str, object] | None = None
) -> str | None:
    """Return the name of the parameter annotated `RunContext`, if there is one."""
    try:
        signature = inspect.signature(func)
    except ValueError:  # a builtin that does not say
        return None
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
    try:
        signature = inspect.signature(func)
    except ValueError as error:
        raise ToolDefinitionError(
            f"tool {tool!r}: its function has no signature to read; use Tool(…) with"
            " parameters",
            tool=tool,
        ) from error
    for name, parameter in signature.parameters.items():
        _check_kind(tool, name, parameter)
        annotation = _resolve(func, name, parameter.annotation, names, tool=tool)
        if _is_run(annotation):
            if run_name is not None:
                raise _fault(tool, name, "takes a second RunContext; one is enough")
            run_name = name
            continue
        kept.append(_recorded(parameter, annotation, descriptions.get(name)))
    adapter = _adapter(tool, kept)
    schema = self_contained(
        tool,
        lambda mode: adapter.json_schema(
            mode=mode, schema_generator=schema_generator()
        ),
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
    """Evaluate one annotation; what the function returns is of no interest."""
    if annotation is inspect.Parameter.empty:
        return annotation
    plain = inspect.unwrap(func)
    while isinstance(plain, functools.partial):
        plain = inspect.unwrap(plain.func)
    if not hasattr(plain, "__globals__") and not hasattr(plain, "__func__"):
        plain = type(plain).__call__
    plain = getattr(plain, "__func__", plain)
    code, cells = getattr(plain, "__code__", None), getattr(plain, "__closure__", None)
    local = dict(names or {})
    for free, cell in zip(code.co_freevars if code else (), cells or (), strict=False):
        try:
            local[free] = cell.cell_contents
        except ValueError:  # not yet assigned
            continue
    holder = SimpleNamespace(__annotations__={name: annotation})
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
    wake_pydantic()
    try:
        return TypeAdapter[Any](
            typing.cast("Any", record),
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
        holder: Any = None
        value: Any = root
        key: Any = None
        for part in place:
            try:
                holder, key, value = value, part, value[part]
            except (KeyError, IndexError, TypeError):
                continue  # it names a branch of a union, not a key
        if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_SAFE:
            holder[key] = int(value)
            changed = True
    return dump_json(root) if changed else None
