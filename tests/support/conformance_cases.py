"""Providers without a service, as cases of the conformance suite."""

from __future__ import annotations

from collections.abc import Sequence

from lighter_conformance import Case
from lighter_core import AssistantMessage, MessageEvent, TextDelta, UserMessage
from lighter_core.testing import FakeProvider, Turn


class FakeCase(Case):
    """The scripted provider of lighter-core, or a subclass of it."""

    def __init__(self, kind: type[FakeProvider] = FakeProvider, **fields) -> None:
        super().__init__("fake", **fields)
        self._kind = kind

    def make(self, **options: object) -> FakeProvider:
        return self._kind(["Hello!"] * 50)

    def scripted(self, turns: Sequence[object]) -> FakeProvider:
        def answer(turn):
            if isinstance(turn, Turn):
                return turn
            return lambda request: turn(request.messages[-1].text)

        replies = [answer(turn) for turn in turns]
        return self._kind([*replies, *[replies[-1]] * 100])


class EchoProvider:
    """Repeats the latest user message."""

    name = "echo"

    async def invoke(self, request) -> AssistantMessage:
        users = [m for m in request.messages if isinstance(m, UserMessage)]
        return AssistantMessage(f"You said: {users[-1].text}")

    async def stream(self, request):
        message = await self.invoke(request)
        yield TextDelta(message.content)
        yield MessageEvent(message)
