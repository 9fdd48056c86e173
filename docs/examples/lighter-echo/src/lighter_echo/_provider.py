"""The provider. It serves many runs at once and keeps nothing of a conversation."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    ProviderStreamEvent,
    TextDelta,
    UserMessage,
)
from lighter_core.adapters import require_valid_history


class EchoProvider:
    """Repeats the latest user message.

    Args:
        model_id: The model; there is none here, so any text will do.
        prefix: Put before what is repeated.
    """

    name = "echo"

    def __init__(
        self, model_id: str | None = None, *, prefix: str = "Received: "
    ) -> None:
        self.model_id = model_id
        self._prefix = prefix

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the complete reply; the same as `stream` ends with.

        Raises:
            ModelError: `invalid_request` for tools, and for what is no text.
        """
        return self._reply(request)

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield the text word by word, then the message.

        Raises:
            ModelError: As in `invoke`.
        """
        message = self._reply(request)
        for word in re.findall(r"\s*\S+|\s+", message.content):
            yield TextDelta(word)
        yield MessageEvent(message)

    def _reply(self, request: ModelRequest) -> AssistantMessage:
        require_valid_history(request.messages, provider=self.name)
        if request.tool_specs:
            raise self._refusal("tools are not supported; use an agent without any")
        said = [each for each in request.messages if isinstance(each, UserMessage)]
        if not said:
            raise self._refusal("there is no user message to repeat")
        if not isinstance(said[-1].content, str):
            raise self._refusal("only text is supported, no images and files")
        return AssistantMessage(self._prefix + said[-1].content)

    def _refusal(self, why: str) -> ModelError:
        text = f"{self.name}: {why}"
        return ModelError(text, "invalid_request", provider=self.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model_id={self.model_id!r})"
