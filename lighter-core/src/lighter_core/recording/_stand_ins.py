"""An agent's other half, out of a recording: tools that answer as they did then."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from ..errors import RecordingError
from ..messages import ToolCall, ToolMessage
from ..plugins.marks import hookimpl
from ..tools import Tool
from ._file import Exchange

__all__ = ["Answers", "stand_ins"]


def stand_ins(exchanges: Sequence[Exchange]) -> list[Tool]:
    """Return a tool for each recorded spec; they answer with `Answers` only."""

    def unanswered(arguments: dict[str, object]) -> object:
        raise RecordingError(
            f"no result of a call with {sorted(arguments)} was recorded: give the agent"
            " the real tool instead of the stand-in"
        )

    specs = {spec.name: spec for each in exchanges for spec in each.request.tool_specs}
    return [
        Tool(
            name=spec.name,
            description=spec.description,
            parameters=spec.parameters,
            func=unanswered,
        )
        for spec in specs.values()
    ]


class Answers:
    """A hooks plugin: each call gets the result that it had when it was recorded."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._results: dict[str, deque[ToolMessage]] = {}
        known: set[int] = set()
        for each in exchanges:
            for message in each.request.messages:
                if isinstance(message, ToolMessage) and id(message) not in known:
                    known.add(id(message))  # later requests hold the same objects
                    self._results.setdefault(message.call_id, deque()).append(message)

    @hookimpl
    def before_tool(self, call: ToolCall) -> ToolMessage | None:
        """Answer a call; `None` for one that never had a result."""
        results = self._results.get(call.call_id)
        if not results:
            return None
        result = results.popleft() if len(results) > 1 else results[0]
        return replace(result, call_id=call.call_id, tool_name=call.tool_name)
