"""Whom requests are for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["API", "BASE_URL", "BASE_URL_VARIABLE", "BLANK_LINE", "NAME", "Target"]

NAME = "claude"
API = "messages"
BASE_URL = "https://api.anthropic.com"
BASE_URL_VARIABLE = "ANTHROPIC_BASE_URL"
BLANK_LINE = "\n\n"
"""What stands between two system messages, and between two thoughts."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a request is for; encoding, decoding and errors all need it.

    Attributes:
        endpoint: Scheme, host and path of the base URL.
        model: The model id that is asked for.
        pauses: Whether a reply that pauses is continued.
        name: The provider's name, part of a message's provenance.
        label: The service's name in error messages.
        interface: The vendor's interface in error messages.
        key_variable: The environment variable that holds the key.
        model_variable: The environment variable that holds the model id.
    """

    endpoint: str
    model: str
    pauses: bool = False
    name: str = NAME
    label: str = "Claude"
    interface: str = "Messages API"
    key_variable: str = "ANTHROPIC_API_KEY"
    model_variable: str = "ANTHROPIC_MODEL"
