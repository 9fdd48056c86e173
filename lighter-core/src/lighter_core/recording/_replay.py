"""Serving a recorded run without the service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import RecordingError
from ..events import MessageEvent, ProviderStreamEvent, ReasoningDelta, TextDelta
from ..messages import AssistantMessage, Message, SystemMessage
from ..provider import ReplayFinding
from ..requests import JSONObject, ModelRequest
from ._differences import difference
from ._file import Exchange, read_recording
from ._secrets import cleaner

if TYPE_CHECKING:
    from ..tools import Tool

__all__ = ["ReplayProvider"]


class ReplayProvider:
    """Serves a recorded run: the same requests get the same replies, and no others.

    A request gets the first reply not given yet whose request is equal to it, so runs
    at the same time may come in any order. `invoke` and `stream` serve each other's
    recordings.

    Args:
        path: The file that `record` wrote.

    Raises:
        RecordingError: When the file is no recording.
        OSError: When it cannot be read.

    Attributes:
        exchanges: The recorded calls, in order.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._header, self.exchanges = read_recording(self._path)
        self._open = list(range(len(self.exchanges)))
        self._clean = cleaner(())

    @property
    def name(self) -> str:
        """The name of the provider that was recorded."""
        return self._header.provider

    @property
    def model_id(self) -> str | None:
        """The model that was recorded, where the provider had told it."""
        return self._header.model_id

    @property
    def capabilities(self) -> frozenset[str]:
        """Those of the provider that was recorded."""
        return self._header.capabilities

    @property
    def input(self) -> list[Message]:
        """The messages that the first recorded call began with, without system ones."""
        return [each for each in self._first if not isinstance(each, SystemMessage)]

    @property
    def system_prompt(self) -> str | None:
        """The system message at the head of the first recorded call."""
        head = self._first[0] if self._first else None
        return head.content if isinstance(head, SystemMessage) else None

    @property
    def output(self) -> JSONObject | None:
        """The JSON Schema of the answer that was asked for, if there was one."""
        spec = self.exchanges[0].request.output if self.exchanges else None
        return None if spec is None else spec.schema

    @property
    def _first(self) -> Sequence[Message]:
        return self.exchanges[0].request.messages if self.exchanges else ()

    def tools(self) -> list[Tool]:
        """Return a stand-in for each tool that the recorded agent had."""
        from ._stand_ins import stand_ins

        return stand_ins(self.exchanges)

    def answers(self) -> object:
        """Return a hooks plugin that answers each tool call as it was answered then.

        No tool runs: neither stand-ins nor real ones.
        """
        from ._stand_ins import Answers

        return Answers(self.exchanges)

    @property
    def unused(self) -> int:
        """How many recorded calls have not been asked for."""
        return len(self._open)

    def replay_report(self, messages: Sequence[Message]) -> list[ReplayFinding]:  # noqa: ARG002
        """Return nothing: no service is asked, so nothing is written for one."""
        return []

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the recorded reply, or raise the recorded error.

        Raises:
            ModelError: The recorded one.
            RecordingError: When nothing like the request was recorded.
        """
        exchange = self._take(request)
        if exchange.message is None:
            raise exchange.error or self._over()
        return exchange.message

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield the recorded events; errors as in `invoke`."""
        exchange = self._take(request)
        events = exchange.events
        if len(events) == 1 and isinstance(events[0], MessageEvent):
            message = events[0].message  # of `invoke`
            if message.reasoning:
                yield ReasoningDelta(message.reasoning)
            if message.content:
                yield TextDelta(message.content)
        for event in events:
            yield event
        if exchange.message is None:
            raise exchange.error or self._over()

    def _over(self) -> RecordingError:
        return RecordingError(
            f"{self._path.name}: the recording of this call ends here: its caller had"
            " left, or the process had ended"
        )

    def _take(self, request: ModelRequest) -> Exchange:
        for number in self._open:
            exchange = self.exchanges[number]
            if difference(exchange.request, request, self._clean) is None:
                self._open.remove(number)
                return exchange
        if not self._open:
            raise RecordingError(
                f"{self._path.name} holds {len(self.exchanges)} calls, and all have been"
                " asked for: this run makes one more"
            )
        number = self._open[0]
        path, text = difference(
            self.exchanges[number].request, request, self._clean
        ) or ("", "")
        raise RecordingError(
            f"{self._path.name}: this run differs from call {number + 1} of the"
            f" recording at {path}: {text}",
            path=path,
        )

    def __repr__(self) -> str:
        return f"ReplayProvider({str(self._path)!r})"
