"""Messages and what they are made of.

All classes are frozen: build a new message instead of changing one. Lists given
for `tool_calls` and `content` are taken as tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from json.encoder import encode_basestring_ascii as _quote
from typing import Literal, TypeAlias

from ._content import (
    ContentPart,
    FilePart,
    ImagePart,
    TextPart,
    Value,
    need_constant,
    need_kind,
    need_text,
)
from ._dataclass import dataclass

__all__ = [
    "MESSAGE_CLASSES",
    "AssistantMessage",
    "ContentPart",
    "FilePart",
    "ImagePart",
    "Message",
    "NativeContext",
    "SystemMessage",
    "TextPart",
    "ToolCall",
    "ToolMessage",
    "Usage",
    "UserMessage",
    "are_messages",
    "seal_native",
]


@dataclass(frozen=True, slots=True)
class SystemMessage(Value):
    """Instructions to the model."""

    content: str
    role: Literal["system"] = field(default="system", kw_only=True)

    def __post_init__(self) -> None:
        need_text(self, "content", self.content)
        need_constant(self, "role", self.role, "system")


@dataclass(frozen=True, slots=True, init=False)
class UserMessage(Value):
    """What the user says: a string, or a sequence of text, image and file parts."""

    content: str | tuple[ContentPart, ...]
    role: Literal["user"] = field(default="user", kw_only=True)

    def __init__(
        self, content: str | Sequence[ContentPart], *, role: Literal["user"] = "user"
    ) -> None:
        if not isinstance(content, str):
            content = _parts(content)
        need_constant(self, "role", role, "user")
        object.__setattr__(self, "content", content)
        object.__setattr__(self, "role", role)

    @property
    def text(self) -> str:
        """The text of the message; parts that are not text are left out."""
        if isinstance(self.content, str):
            return self.content
        return "".join(p.text for p in self.content if isinstance(p, TextPart))


def _parts(content: object) -> tuple[ContentPart, ...]:
    if not isinstance(content, Sequence) or isinstance(content, bytes | bytearray):
        raise TypeError(
            "UserMessage.content must be a str or a sequence of TextPart, ImagePart"
            f" and FilePart, got {type(content).__name__}"
        )
    parts: list[ContentPart] = []
    for part in content:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(part, TextPart | ImagePart | FilePart):
            kind = type(part).__name__  # pyright: ignore[reportUnknownArgumentType]
            raise TypeError(
                "a part of UserMessage.content must be a TextPart, ImagePart or"
                f" FilePart, got {kind}"
            )
        parts.append(part)
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class ToolCall(Value):
    """A call that the model asks for.

    Attributes:
        call_id: Ties the call to its `ToolMessage`.
        tool_name: The name of the tool.
        arguments: JSON text, neither parsed nor validated yet; blank means `{}`.
    """

    call_id: str
    tool_name: str
    arguments: str = ""

    def __post_init__(self) -> None:
        need_text(self, "call_id", self.call_id)
        need_text(self, "tool_name", self.tool_name)
        need_text(self, "arguments", self.arguments)


@dataclass(frozen=True, slots=True)
class Usage(Value):
    """Tokens of one model call, or of a run when summed.

    Attributes:
        input_tokens: All input, what came from or went into a cache included.
        output_tokens: All output, reasoning included.
        cache_read_tokens: The part of the input that was read from a cache.
        cache_write_tokens: The part of the input that was written to a cache.
        reasoning_tokens: The part of the output that was reasoning.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value: object = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ValueError(
                    f"Usage.{name} must be a whole number from 0, got {value!r}"
                )

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeContext(Value):
    """A provider's own form of an assistant message, kept to be sent back.

    Attributes:
        provider: The provider's name, e.g. `"openai"`.
        endpoint: Where it came from: scheme, host and path of the base URL.
        api: The vendor's interface, e.g. `"responses"`.
        model: The model id that was asked for.
        items: JSON text of the array of the vendor's items, exactly as it is sent.
        seal: Digest of the public fields; tells whether the message was edited.
        v: The version of this form.
    """

    provider: str
    endpoint: str
    api: str
    model: str
    items: str
    seal: str
    v: int = 1

    def __post_init__(self) -> None:
        for name in ("provider", "endpoint", "api", "model", "items", "seal"):
            need_text(self, name, getattr(self, name))
        version: object = self.v
        if type(version) is not int or version < 0:
            raise ValueError(
                f"NativeContext.v must be a whole number from 0, got {version!r}"
            )


@dataclass(frozen=True, slots=True, init=False)
class AssistantMessage(Value):
    """A complete reply of the model.

    Attributes:
        content: The text; may be empty beside tool calls.
        reasoning: Reasoning text or summary, where the provider gives one.
        tool_calls: The calls that the model asks for, in its order.
        usage: The tokens of the call that made the message.
        stop_reason: Why the model stopped, in the vendor's word.
        native: The provider's own form, for replay; opaque.
    """

    content: str
    reasoning: str | None = field(default=None, kw_only=True)
    tool_calls: tuple[ToolCall, ...] = field(default=(), kw_only=True)
    usage: Usage | None = field(default=None, kw_only=True)
    stop_reason: str | None = field(default=None, kw_only=True)
    native: NativeContext | None = field(default=None, kw_only=True, repr=False)
    role: Literal["assistant"] = field(default="assistant", kw_only=True)

    def __init__(
        self,
        content: str = "",
        *,
        reasoning: str | None = None,
        tool_calls: Iterable[ToolCall] = (),
        usage: Usage | None = None,
        stop_reason: str | None = None,
        native: NativeContext | None = None,
        role: Literal["assistant"] = "assistant",
    ) -> None:
        need_text(self, "content", content)
        if reasoning is not None:
            need_text(self, "reasoning", reasoning)
        calls = tuple(tool_calls)
        for call in calls:
            if not isinstance(call, ToolCall):
                raise TypeError(
                    "AssistantMessage.tool_calls must hold ToolCall objects, got"
                    f" {type(call).__name__}"
                )
        need_constant(self, "role", role, "assistant")
        need_kind(self, "usage", usage, Usage)
        need_kind(self, "stop_reason", stop_reason, str)
        need_kind(self, "native", native, NativeContext)
        put = object.__setattr__
        put(self, "content", content)
        put(self, "reasoning", reasoning)
        put(self, "tool_calls", calls)
        put(self, "usage", usage)
        put(self, "stop_reason", stop_reason)
        put(self, "native", native)
        put(self, "role", role)

    def native_intact(self) -> bool:
        """Tell whether there is native context and the public fields still fit it."""
        if self.native is None:
            return False
        known: object = getattr(self, "_memo", None)
        if not isinstance(known, bool):
            known = self.native.seal == _seal(self)
            object.__setattr__(self, "_memo", known)
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage(Value):
    """The result of a tool call.

    Attributes:
        call_id: The `call_id` of the `ToolCall` that it answers.
        tool_name: The tool's name.
        tool_output: JSON text on success, plain text on error.
        is_error: Whether the tool failed.
    """

    call_id: str
    tool_name: str
    tool_output: str
    is_error: bool = False
    role: Literal["tool"] = "tool"

    def __post_init__(self) -> None:
        need_text(self, "call_id", self.call_id)
        need_text(self, "tool_name", self.tool_name)
        need_text(self, "tool_output", self.tool_output)
        need_constant(self, "role", self.role, "tool")
        flag: object = self.is_error
        if not isinstance(flag, bool):
            raise TypeError(
                f"ToolMessage.is_error must be a bool, got {type(flag).__name__}"
            )


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage

MESSAGE_CLASSES = (SystemMessage, UserMessage, AssistantMessage, ToolMessage)
"""The members of `Message`, for `isinstance`."""

_KINDS = frozenset(MESSAGE_CLASSES)


def are_messages(values: Iterable[object]) -> bool:
    """Tell at once whether all are messages; subclasses have to be asked one by one."""
    return _KINDS.issuperset(map(type, values))


def _seal(message: AssistantMessage) -> str:
    import hashlib

    calls = ", ".join(
        f"[{_quote(c.call_id)}, {_quote(c.tool_name)}, {_quote(c.arguments)}]"
        for c in message.tool_calls
    )
    thought = "null" if message.reasoning is None else _quote(message.reasoning)
    # As `json.dumps` of lists writes it: seals in documents that are stored come from it.
    public = f"[{_quote(message.content)}, {thought}, [{calls}]]"
    return hashlib.blake2b(public.encode("ascii"), digest_size=16).hexdigest()


def seal_native(
    message: AssistantMessage,
    *,
    provider: str,
    endpoint: str,
    api: str,
    model: str,
    items: str,
) -> AssistantMessage:
    """Return the message with native context that fits its public fields.

    Args:
        message: The decoded message.
        provider: The provider's name.
        endpoint: Scheme, host and path of the base URL, without user and query.
        api: The vendor's interface, e.g. `"responses"`.
        model: The model id that was asked for.
        items: JSON text of the vendor's items, exactly as they will be sent.
    """
    native = NativeContext(
        provider=provider,
        endpoint=endpoint,
        api=api,
        model=model,
        items=items,
        seal=_seal(message),
    )
    if type(message) is not AssistantMessage:
        return replace(message, native=native)
    found = object.__new__(AssistantMessage)  # what `replace` would check is checked
    put = object.__setattr__
    for name in AssistantMessage.__dataclass_fields__:
        put(found, name, getattr(message, name))
    put(found, "native", native)
    put(found, "_memo", True)  # it is intact
    return found
