"""What differs between services and interfaces."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CHAT", "OPENAI", "PLACEHOLDER", "Dialect", "Target"]

PLACEHOLDER = "(the reasoning of this turn is not known)"
"""Stands where a service demands the reasoning of a turn that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The constants of one service.

    Attributes:
        name: The provider's name, part of a message's provenance.
        label: The service's name in error messages.
        api: The vendor's interface, part of a message's provenance.
        interface: The same in error messages.
        key_variable: The environment variable that holds the key.
        model_variable: The environment variable that holds the model id.
        base_url_variable: The environment variable that holds the base URL, if any.
        base_url: The base URL when nothing else is given.
        extra_fields: Top-level fields that every request carries.
        parts: The parts of user messages that it takes beside text.
        images: The media types of images that it takes; empty when they are not known.
        plain_reasoning: Whether reasoning is sent back in the clear. Where it is not,
            only reasoning items with encrypted content can be sent back.
        placeholder: What is sent as the reasoning of a turn with calls that has none,
            where the service asks for some.
        calls_last: Whether the calls of a turn must stand together at its end.
        isolated: Whether what the SDK reads from the environment must not reach it.
    """

    name: str
    label: str
    api: str = "responses"
    interface: str = "Responses API"
    key_variable: str
    model_variable: str
    base_url_variable: str | None
    base_url: str
    extra_fields: tuple[tuple[str, object], ...] = ()
    parts: frozenset[str] = frozenset({"image", "file"})
    images: frozenset[str] = frozenset()
    plain_reasoning: bool = False
    placeholder: str | None = None
    calls_last: bool = False
    isolated: bool = False


OPENAI = Dialect(
    name="openai",
    label="OpenAI",
    key_variable="OPENAI_API_KEY",
    model_variable="OPENAI_MODEL",
    base_url_variable="OPENAI_BASE_URL",
    base_url="https://api.openai.com/v1",
    images=frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"}),
    extra_fields=(("store", False), ("include", ["reasoning.encrypted_content"])),
)


CHAT = Dialect(
    name="openai-chat",
    label="the chat service",
    api="chat",
    interface="Chat Completions API",
    key_variable="OPENAI_API_KEY",
    model_variable="OPENAI_MODEL",
    base_url_variable="OPENAI_BASE_URL",
    base_url="https://api.openai.com/v1",
)


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a request is for; encoding, decoding and errors all need it.

    Attributes:
        dialect: The service's constants.
        endpoint: Scheme, host and path of the base URL.
        model: The model id that is asked for.
    """

    dialect: Dialect
    endpoint: str
    model: str

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.dialect.name

    @property
    def label(self) -> str:
        """The service's name in error messages."""
        return self.dialect.label

    @property
    def interface(self) -> str:
        """The name of the interface in error messages."""
        return self.dialect.interface

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key."""
        return self.dialect.key_variable

    @property
    def model_variable(self) -> str:
        """The environment variable that holds the model id."""
        return self.dialect.model_variable
