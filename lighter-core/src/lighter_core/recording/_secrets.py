"""Keeping secrets out of recordings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields

from ..events import MessageEvent, ProviderStreamEvent, ReasoningDelta, TextDelta

__all__ = ["Clean", "cleaner", "without_cut_secrets"]

_SHORTEST = 8
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
_SECRET_FORM = re.compile(r"\b(?:sk|pk|rk|xox[abp]|gh[pousr])[-_][A-Za-z0-9_-]{16,}")
_REDACTED = "[redacted]"

Clean = Callable[[str], str]
"""Takes secrets out of a text."""


def cleaner(secrets: Iterable[str]) -> Clean:
    """Return what takes secrets out of a text."""
    if isinstance(secrets, str):
        raise TypeError(f"secrets is a list of texts: write [{_REDACTED!r}]")
    found = {each for each in secrets if each}
    found |= {
        value
        for name, value in os.environ.items()
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST
    }
    longest_first = sorted(found, key=len, reverse=True)

    def clean(text: str) -> str:
        for secret in longest_first:
            if secret in text:
                text = text.replace(secret, _REDACTED)
        return _SECRET_FORM.sub(_REDACTED, text)

    return clean


def without_cut_secrets(
    events: Sequence[ProviderStreamEvent], clean: Clean
) -> Sequence[ProviderStreamEvent]:
    """Return the events; as few and whole ones where a secret may be cut into pieces."""
    said = "".join(
        getattr(event, each.name)
        for event in events
        if not isinstance(event, MessageEvent)
        for each in fields(event)
        if each.name in {"text", "arguments"}
    )
    if clean(said) == said:
        return events
    text = "".join(each.text for each in events if isinstance(each, TextDelta))
    thought = "".join(each.text for each in events if isinstance(each, ReasoningDelta))
    whole: list[ProviderStreamEvent] = []
    if thought:
        whole.append(ReasoningDelta(clean(thought)))
    if text:
        whole.append(TextDelta(clean(text)))
    return [*whole, *(each for each in events if isinstance(each, MessageEvent))]
