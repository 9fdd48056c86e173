"""Asking for an answer of a given form, where a service knows no form of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from .._notes import note
from ..errors import ModelError
from ..events import MessageEvent, ProviderStreamEvent, TextDelta, ToolCallDelta
from ..messages import AssistantMessage, SystemMessage
from ..requests import ModelRequest, ToolSpec
from ._schemas import closed_schema

__all__ = [
    "AnswerForms",
    "answer_events",
    "answer_name",
    "answer_of",
    "ask_by_tool",
    "ask_in_words",
]

_ANSWER_TOOL = "Give the final answer, once everything needed for it is known."

_MOST = 1_000
_FormT = TypeVar("_FormT", bound=str)
_SentT = TypeVar("_SentT")


def ask_in_words(request: ModelRequest) -> ModelRequest:
    """Return the request with the wanted form described in its system prompt."""
    if request.output is None:
        return request
    words, messages = request.output.instruction, list(request.messages)
    if messages and isinstance(messages[0], SystemMessage):
        messages[0] = SystemMessage(f"{messages[0].content}\n\n{words}")
    else:
        messages.insert(0, SystemMessage(words))
    return replace(request, messages=messages, output=None)


def answer_name(request: ModelRequest) -> str:
    """Return a name for the tool of the answer that no tool of the request has."""
    known = {spec.name for spec in request.tool_specs}
    name = "final_answer"
    while name in known:
        name += "_"
    return name


def ask_by_tool(request: ModelRequest, *, beside: bool = False) -> ModelRequest:
    """Return the request with a tool whose arguments are the answer, and forced.

    Beside other tools, those of the request or of the service, one of them all is
    forced: each reply asks for tools or answers. A choice that the request makes itself
    is kept. The tool is not strict: who knows strict tools knows forms too.
    """
    if request.output is None:
        return request
    name = answer_name(request)
    spec = ToolSpec(name, _ANSWER_TOOL, closed_schema(request.output.schema))
    choice = request.tool_choice
    if choice in {None, "auto"}:
        choice = "required" if beside or request.tool_specs else name
    specs = (*request.tool_specs, spec)
    return replace(request, tool_specs=specs, tool_choice=choice, output=None)


def answer_of(message: AssistantMessage, name: str) -> AssistantMessage:
    """Return the message with the answer as its text, if its tool was called.

    The call would need a result before the conversation could go on, so the message is
    sent back by its public fields. When the tool was called twice, the first counts.
    """
    answers = [call for call in message.tool_calls if call.tool_name == name]
    if not answers:
        return message
    others = tuple(call for call in message.tool_calls if call.tool_name != name)
    text = answers[0].arguments
    return replace(message, content=text, tool_calls=others, native=None)


async def answer_events(
    events: AsyncGenerator[ProviderStreamEvent, None], name: str
) -> AsyncGenerator[ProviderStreamEvent, None]:
    """Show the arguments of the answer's tool as text, and other text only without."""
    shown, answering = 0, None
    async with aclosing(events):
        async for event in events:
            if isinstance(event, ToolCallDelta) and event.tool_name == name:
                answering = answering or event.call_id
                if event.call_id == answering:
                    shown += len(event.arguments)
                    yield TextDelta(event.arguments)
            elif isinstance(event, MessageEvent):
                message = answer_of(event.message, name)
                rest = message.content[shown:]
                if rest:
                    yield TextDelta(rest)
                yield MessageEvent(message)
            elif not isinstance(event, TextDelta):
                yield event


class AnswerForms:
    """Tries ways of asking for an answer, and remembers which were refused.

    Args:
        refused: Tells for an error and a way whether the service refused that way.
        provider: The provider's name, for the notes.
    """

    def __init__(
        self, refused: Callable[[ModelError, str], bool], *, provider: str
    ) -> None:
        self._is_refusal = refused
        self._provider = provider
        self._refused: dict[int, int] = {}  # how many, by the answer's form

    def current(self, request: ModelRequest, ways: Sequence[_FormT]) -> _FormT:
        """Return the first of the ways that was not refused for the request's answer."""
        return ways[self._number(request, ways)]

    async def send(
        self,
        request: ModelRequest,
        ways: Sequence[str],
        send: Callable[[], Awaitable[_SentT]],
    ) -> _SentT:
        """Send a request; once more in the next way where the current one is refused.

        Raises:
            ModelError: What sending raises, but for a refusal with a way left.
        """
        while True:
            number = self._number(request, ways)
            try:
                return await send()
            except ModelError as err:
                if number == len(ways) - 1 or not self._is_refusal(err, ways[number]):
                    raise
            known = self._refused.get(_key(request), 0)
            self._refused[_key(request)] = max(number + 1, known)
            while len(self._refused) > _MOST:
                del self._refused[next(iter(self._refused))]
            note(
                f"{self._provider!r} refused to give the answer by"
                f" structured_output={ways[number]!r}; it was asked for by"
                f" {ways[number + 1]!r}, as all later answers of this form are",
                provider=self._provider,
            )

    def _number(self, request: ModelRequest, ways: Sequence[str]) -> int:
        refused = self._refused.get(_key(request), 0) if self._refused else 0
        return min(refused, len(ways) - 1)


def _key(request: ModelRequest) -> int:
    return hash(repr(request.output))
