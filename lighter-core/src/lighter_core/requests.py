"""What is asked of an agent, of a model and of a provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias, Union, cast

from ._content import need_kind
from ._dataclass import dataclass
from ._json import dump_json
from .messages import MESSAGE_CLASSES, Message, are_messages

__all__ = [
    "AgentRequest",
    "JSONObject",
    "JSONValue",
    "ModelRequest",
    "OutputSpec",
    "ProviderRequest",
    "ToolChoice",
    "ToolSpec",
]

JSONValue: TypeAlias = Union[
    bool, int, float, str, "Sequence[JSONValue]", "Mapping[str, JSONValue]", None
]
JSONObject: TypeAlias = Mapping[str, JSONValue]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it: no function, only its description.

    Attributes:
        name: The tool's name.
        description: When and why to use it.
        parameters: JSON Schema of the arguments, an object schema.
        strict: Whether the service shall hold the model to the schema.
    """

    name: str
    description: str
    parameters: JSONObject
    strict: bool = field(default=False, kw_only=True)
    type: Literal["function"] = field(default="function", kw_only=True)


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """The shape that the final answer shall have.

    Attributes:
        name: A short name for the schema.
        schema: JSON Schema of the answer.
    """

    name: str
    schema: JSONObject

    @property
    def instruction(self) -> str:
        """What to tell a model that cannot be held to the form."""
        return (
            "Give your final answer as one JSON object that fits this JSON Schema, with"
            f" no other text around it:\n{dump_json(self.schema)}"
        )


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | str
"""`"auto"`, `"none"`, `"required"`, or the name of the one tool to call."""


def _own_list(owner: object, messages: object) -> list[Message]:
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise TypeError(
            f"{type(owner).__name__}.messages must be a sequence of messages, got"
            f" {type(messages).__name__}"
        )
    own = list(cast("Sequence[Message]", messages))
    if are_messages(own):
        return own
    for each in own:
        if not isinstance(each, MESSAGE_CLASSES):
            raise TypeError(
                f"{type(owner).__name__}.messages must hold messages, got"
                f" {type(each).__name__}"
            )
    return own


def _specs(given: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    specs = tuple(given)
    for each in specs:
        if not isinstance(each, ToolSpec):
            raise TypeError(
                f"ModelRequest.tool_specs must hold ToolSpec objects, got"
                f" {type(each).__name__}; a tool gives its own with get_spec()"
            )
    return specs


@dataclass(frozen=True, slots=True, init=False)
class ModelRequest:
    """One call of a model. `ProviderRequest` is the same class.

    Attributes:
        messages: The whole context, a list of this request's own.
        tool_specs: The tools that the model may ask for.
        output: The shape of the final answer, or `None` for free text.
        tool_choice: Whether and which tool to call; `None` leaves it to the service.
    """

    messages: list[Message]
    tool_specs: tuple[ToolSpec, ...] = field(kw_only=True)
    output: OutputSpec | None = field(kw_only=True)
    tool_choice: ToolChoice | None = field(kw_only=True)

    def __init__(
        self,
        messages: Sequence[Message],
        *,
        tool_specs: Sequence[ToolSpec] = (),
        output: OutputSpec | None = None,
        tool_choice: ToolChoice | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "messages", _own_list(self, messages))
        put(self, "tool_specs", _specs(tool_specs))
        need_kind(self, "output", output, OutputSpec)
        need_kind(self, "tool_choice", tool_choice, str)
        put(self, "output", output)
        put(self, "tool_choice", tool_choice)


ProviderRequest = ModelRequest


@dataclass(frozen=True, slots=True, init=False)
class AgentRequest:
    """The input of one run, as `before_agent` hooks see it.

    Attributes:
        messages: The input messages, without the agent's system prompt.
    """

    messages: list[Message]

    def __init__(self, messages: Sequence[Message]) -> None:
        object.__setattr__(self, "messages", _own_list(self, messages))
