"""Whether a reply can be sent back as it came, and what is lost where it cannot."""

from __future__ import annotations

from lighter_core import AssistantMessage, ToolCall
from lighter_core.adapters import (
    ReplayNotes,
    dump_json,
    endpoint_of,
    is_object,
    normal_call_id,
    normal_tool_name,
)

from ._dialect import Target

__all__ = [
    "CallIds",
    "obstacle",
    "public_call",
    "same_service",
]

_OTHER_MODEL = "another model wrote it"


def obstacle(message: AssistantMessage, target: Target) -> str | None:
    """Return why the message cannot be sent back as it came; `None` when it can."""
    native, dialect = message.native, target.dialect
    if native is None:
        return "it carries no native context"
    known = (native.provider, native.api) == (dialect.name, dialect.api)
    checks = (
        (known, "another service wrote it"),
        (native.v == 1, "another version of Lighter kept it"),
        (native.endpoint == target.endpoint, "it came from another endpoint"),
        (message.native_intact(), "it was edited since"),
        (native.model == target.model, _OTHER_MODEL),
    )
    why = next((why for good, why in checks if not good), None)
    return why or _odd_call(message, target)


def same_service(message: AssistantMessage, target: Target) -> bool:
    """Tell whether the message came from the target's service, and nobody edited it."""
    return obstacle(message, target) in {None, _OTHER_MODEL}


def _odd_call(message: AssistantMessage, target: Target) -> str | None:
    if any(normal_tool_name(c.tool_name) != c.tool_name for c in message.tool_calls):
        return "it calls a tool by a name that services refuse"
    if any(_breaks(call, target) for call in message.tool_calls):
        return "it calls a tool with arguments that are no JSON object"
    return None


def _breaks(call: ToolCall, target: Target) -> bool:
    """Tell whether a server other than the vendor's would fail on the arguments.

    They put the arguments into a prompt as JSON, and a text that is none fails each later
    request. The vendors' own services take any text.
    """
    if is_object(call):
        return False
    dialect = target.dialect
    vendors = target.endpoint == endpoint_of(dialect.base_url)
    return not (vendors and dialect.api == "responses")


def public_call(
    call: ToolCall, target: Target, notes: ReplayNotes, number: int
) -> tuple[str, str]:
    """Return name and arguments of a rebuilt call, as every server takes them."""
    name, arguments = normal_tool_name(call.tool_name), call.arguments
    part = f".tool_calls[{number}]"
    if name != call.tool_name:
        text = f"calls of tools by names that {target.name!r} refuses got other names"
        notes.add(text, "rewritten", part=part)
    if not arguments.strip():
        arguments = "{}"  # servers parse it: no text would not do
    elif _breaks(call, target):
        arguments = dump_json({"_raw": arguments})
        text = (
            "arguments of tool calls that are no JSON object were sent to"
            f" {target.name!r} as text in `_raw`"
        )
        notes.add(text, "rewritten", part=part)
    return name, arguments


class CallIds:
    """The call ids of one request: those of rebuilt calls are accepted and unique.

    Ids in native context stay as they are; servers that count from zero in each reply
    give the same one to many calls. An id depends only on what stands before it: a
    longer history begins with the ids of the shorter one.

    Args:
        longest: How long an id may be.
    """

    def __init__(self, longest: int = 64) -> None:
        self._longest = longest
        self._round: dict[str, str] = {}  # ids of the latest reply, as they are sent
        self._used: set[str] = set()
        self._rebuilt: set[str] = set()

    def obstacle(self, message: AssistantMessage) -> str | None:
        """Return why the calls of a reply cannot be sent as they came, if they cannot."""
        if any(call.call_id in self._rebuilt for call in message.tool_calls):
            return "an earlier call has the id of one of its calls"
        return None

    def begin(self, message: AssistantMessage, *, rebuilt: bool) -> None:
        """A reply begins; its results follow."""
        self._round = {}
        if not rebuilt:
            self._used.update(call.call_id for call in message.tool_calls)

    def rebuilt(self, call_id: str) -> str:
        """Return the id for a rebuilt call of the reply."""
        found, number = normal_call_id(call_id), 1
        if len(found) > self._longest:
            found = normal_call_id(f"{call_id}#")
        while found in self._used:
            number += 1
            found = normal_call_id(f"{call_id}#{number}")
        self._used.add(found)
        self._rebuilt.add(found)
        self._round[call_id] = found
        return found

    def of_result(self, call_id: str) -> str:
        """Return the id for the result of a call of the reply."""
        return self._round.get(call_id, call_id)
