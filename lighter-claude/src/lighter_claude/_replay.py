"""Whether a reply can be sent back as it came, and what to note where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lighter_core import (
    AssistantMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)
from lighter_core.adapters import normal_tool_name

from ._blocks import hosted_ids
from ._target import API, Target

__all__ = [
    "REPEATED",
    "UNFINISHED",
    "SystemMode",
    "foreign",
    "has_hosted",
    "unfinished",
]

SystemMode = Literal["merge", "in_place"]

NO_NATIVE = "it carries no native context"
REPEATED = "an earlier call has the id of one of its calls"
UNFINISHED = "tools of the service in it never gave their results"


def foreign(message: AssistantMessage, target: Target) -> str | None:
    """Return why a reply cannot go to the target as it came, if it cannot."""
    native = message.native
    if native is None:
        return NO_NATIVE
    calls = message.tool_calls
    checks = (
        (
            (native.provider, native.api) == (target.name, API),
            "another service wrote it",
        ),
        (native.v == 1, "another version of Lighter kept it"),
        (native.endpoint == target.endpoint, "it came from another endpoint"),
        (message.native_intact(), "it was edited since"),
        (
            all(normal_tool_name(c.tool_name) == c.tool_name for c in calls),
            "it calls a tool by a name that Claude refuses",
        ),
    )
    return next((why for good, why in checks if not good), None)


def unfinished(
    messages: Sequence[Message], target: Target, mode: SystemMode
) -> set[int]:
    """Return the numbers of replies that hosted tools left open for ever.

    A hosted tool that is called beside functions runs when their results are sent, and
    gives its own with a later reply. Anything else that is said in between ends the
    turn: then the service refuses the call without a result.
    """
    broken: set[int] = set()
    waiting: set[str] = set()
    chain: list[int] = []
    for number, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            known = message.native is not None and foreign(message, target) is None
            items = message.native.items if message.native and known else ""
            calls, results = hosted_ids(items)
            if known and results <= waiting | calls:
                waiting = (waiting | calls) - results
                chain = [*chain, number] if waiting else []
                continue
            broken.update({number} if known else ())
        elif isinstance(message, ToolMessage) or not _speaks(message, mode):
            continue
        broken.update(chain)
        waiting, chain = set(), []
    return broken


def has_hosted(message: Message) -> bool:
    """Tell whether a reply holds calls of hosted tools, or their results."""
    if not isinstance(message, AssistantMessage) or message.native is None:
        return False
    return any(hosted_ids(message.native.items))


def _speaks(message: SystemMessage | UserMessage, mode: SystemMode) -> bool:
    """Tell whether a message becomes a block behind what stands before it."""
    if isinstance(message, SystemMessage):
        return mode == "in_place" and bool(message.content.strip())
    if isinstance(message.content, str):
        return bool(message.content.strip())
    return any(not isinstance(p, TextPart) or p.text.strip() for p in message.content)
