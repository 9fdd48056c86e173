"""Any service that speaks the Chat Completions interface."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, get_args
from urllib.parse import urlsplit

from lighter_core import ModelError
from lighter_core.adapters import (
    AnswerForms,
    ReplayNotes,
    Transport,
    answer_events,
    answer_name,
    answer_of,
    ask_by_tool,
    ask_in_words,
    need_integer,
    writer_of_run,
)

from ._azure import at_deployment
from ._base import BaseProvider, Connection, ConnectionOptions, need_text
from ._chat_calls import Turn
from ._chat_decode import decode_chat_body
from ._chat_encode import ChatMessages, Reasoning, encode_chat_request
from ._chat_stream import ChatStreamDecoder
from ._client import ChatClients, Clients
from ._codec import ServiceCodec
from ._dialect import CHAT, Dialect

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

    from lighter_core import AssistantMessage, ModelRequest, ProviderStreamEvent
    from lighter_core.adapters import Exchange

__all__ = ["OpenAIChatProvider", "OpenAIChatProviderOptions"]

ReplayReasoning = Literal["auto", "always", "never"]
StructuredOutput = Literal["auto", "json_schema", "json_object", "tool", "instruction"]
MaxTokensField = Literal["auto", "max_completion_tokens", "max_tokens"]

_OPENAI_HOST = "api.openai.com"
_DEEPSEEK_HOST = "api.deepseek.com"
_OBJECT = {"response_format": {"type": "json_object"}}
_FORM_REFUSED = re.compile(
    r"response_format|json_schema|json_object|json mode|structured output",
    re.IGNORECASE,
)


class OpenAIChatProviderOptions(ConnectionOptions, total=False):
    """The keyword options of `OpenAIChatProvider`."""

    reasoning_effort: str | None
    max_output_tokens: int | None
    max_tokens_field: MaxTokensField
    include_usage: bool
    replay_reasoning: ReplayReasoning
    structured_output: StructuredOutput


class OpenAIChatProvider(BaseProvider):
    """Talks to a service through the Chat Completions interface.

    It is for the many servers and services that speak this interface: Ollama, vLLM,
    llama.cpp, LM Studio, OpenRouter, Groq, DeepSeek and others. For OpenAI's own models
    `OpenAIProvider` is the better choice: only there reasoning can be sent back.

    Args:
        api_key: The key; not needed with `base_url`. Without both, `OPENAI_API_KEY` is
            read; it is never sent to an endpoint that `base_url` names. With a key or a
            `base_url`, no organisation, project or `OPENAI_CUSTOM_HEADERS` of the
            environment is sent.
        model_id: The model; without it `OPENAI_MODEL` is read.
        reasoning_effort: How much a model shall reason, in the service's own word.
        max_output_tokens: The most tokens of a reply; `None` leaves it to the service.
        max_tokens_field: The field that carries it; `"auto"` takes the newer name at
            OpenAI and `max_tokens`, which every server knows, elsewhere.
        include_usage: Whether a stream is asked for its tokens; a few old servers
            refuse the question.
        replay_reasoning: `"auto"` sends the reasoning of a reply back to the service
            that wrote it, in the field in which it came; `"always"` also adds it as
            `reasoning_content` to messages that are rebuilt; `"never"` leaves it out.
        structured_output: How an answer of a given form is asked for: by the interface's
            `"json_schema"`; by its `"json_object"` or an `"instruction"`, both with the
            schema in the system prompt; or by a `"tool"` that must be called. `"auto"`
            takes the first of `json_schema`, `json_object` and words that the service
            does not refuse; for DeepSeek, which refuses the first, words.
        base_url: The endpoint; without it `OPENAI_BASE_URL` is read.
        timeout: Seconds until the reply begins, retries included, and between two of
            its pieces; or an `httpx2.Timeout`, which the SDK applies to each attempt.
        max_retries: How often a failed request is repeated before its reply begins.
        client: An SDK client to use as it is; it is never closed here. With an
            `AsyncAzureOpenAI` the model is the name of the deployment.
        http_client: A transport for the SDK's clients; it is never closed here.
        transport: Which of the SDK's own transports its clients get: `"httpx2"`, which
            is the default, or the faster `"aiohttp"`, which an extra installs.
        extra_headers: Headers for every request; they win over the SDK's own.
        extra_body: Further fields of the request; they win over Lighter's own, `tools`
            are joined.

    Raises:
        ModelError: `auth_error` without a key where one is needed, `invalid_request`
            for other values that cannot work.

    Example:
        ```python
        provider = OpenAIChatProvider(
            model_id="qwen3", base_url="http://localhost:11434/v1"
        )
        reply = await provider.invoke(ModelRequest([UserMessage("Hello!")]))
        ```
    """

    _clients_type: ClassVar[type[Clients]] = ChatClients
    _reserved: ClassVar[frozenset[str]] = frozenset({"messages", "model", "stream"})

    def __init__(  # noqa: PLR0913 - options are keywords
        self,
        api_key: str | None = None,
        model_id: str | None = None,
        *,
        reasoning_effort: str | None = None,
        max_output_tokens: int | None = None,
        max_tokens_field: MaxTokensField = "auto",
        include_usage: bool = True,
        replay_reasoning: ReplayReasoning = "auto",
        structured_output: StructuredOutput = "auto",
        base_url: str | None = None,
        timeout: float | httpx2.Timeout | None = None,
        max_retries: int | None = None,
        client: AsyncOpenAI | None = None,
        http_client: httpx2.AsyncClient | None = None,
        transport: Transport | None = None,
        extra_headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, object] | None = None,
    ) -> None:
        need_integer("max_output_tokens", max_output_tokens, provider=CHAT.name)
        _need_word("max_tokens_field", max_tokens_field, MaxTokensField)
        _need_word("replay_reasoning", replay_reasoning, ReplayReasoning)
        _need_word("structured_output", structured_output, StructuredOutput)
        fields: dict[str, object] = {}
        if reasoning_effort is not None:
            need_text("reasoning_effort", reasoning_effort, CHAT.name)
            fields["reasoning_effort"] = reasoning_effort
        if include_usage:
            fields["stream_options"] = {"include_usage": True}
        dialect = CHAT
        if base_url is not None:  # then nothing of OpenAI's goes there
            dialect = replace(CHAT, isolated=True, key_variable="")
        super().__init__(
            dialect,
            model_id,
            Connection(
                api_key=api_key,
                base_url=base_url,
                timeout=timeout,
                max_retries=max_retries,
                client=at_deployment(
                    client, model_id or _variable(dialect.model_variable)
                ),
                http_client=http_client,
                transport=transport,
                extra_headers=extra_headers,
            ),
            fields=fields,
            extra_body=extra_body,
        )
        host = urlsplit(self._target.endpoint).hostname
        if max_output_tokens is not None:
            if max_tokens_field == "auto":
                newer = host == _OPENAI_HOST
                max_tokens_field = "max_completion_tokens" if newer else "max_tokens"
            self._options = {max_tokens_field: max_output_tokens, **self._options}
        if structured_output == "auto" and host == _DEEPSEEK_HOST:
            structured_output = "instruction"
        self._ways: list[StructuredOutput] = [structured_output]
        if structured_output == "auto":
            self._ways = ["json_schema", "json_object", "instruction"]
        self._forms = AnswerForms(_form_refused, provider=self.name)
        self._reasoning: Reasoning = "keep"
        if replay_reasoning == "never":
            self._reasoning = "drop"
        elif replay_reasoning == "always" or host == _DEEPSEEK_HOST:
            self._reasoning = "require"

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the complete reply; it equals the message that `stream` ends with.

        Raises:
            ModelError: For every failure; `code` says which kind it is.
        """
        message = await super().invoke(request)
        if self._way(request) == "tool":
            return answer_of(message, answer_name(request))
        return message

    def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield deltas as they arrive, then one `MessageEvent` with the whole reply.

        The connection is released before the message is yielded, and when the generator
        is closed.

        Raises:
            ModelError: For every failure; `code` says which kind it is.
        """
        events = super().stream(request)
        if self._way(request) == "tool":
            return answer_events(events, answer_name(request))
        return events

    async def _open(self, request: ModelRequest, *, stream: bool) -> Exchange:
        if request.output is None:
            return await super()._open(request, stream=stream)
        send = partial(super()._open, request, stream=stream)
        return await self._forms.send(request, self._ways, send)

    def _way(self, request: ModelRequest) -> StructuredOutput | None:
        """Return how the request's answer is asked for; `None` for free text."""
        if request.output is None:
            return None
        way = self._forms.current(request, self._ways)
        # Where no tool may be called, words are left.
        return "instruction" if way == "tool" and request.tool_choice == "none" else way

    def _asked(self, request: ModelRequest) -> ModelRequest:
        """Return the request with its answer asked for in the current way."""
        way = self._way(request)
        if way == "tool":
            return ask_by_tool(request)
        return (
            ask_in_words(request) if way in {"json_object", "instruction"} else request
        )

    @classmethod
    def _key(cls, dialect: Dialect, connection: Connection) -> str | None:
        """Return the key, if there is one; another endpoint may do without."""
        given: object = connection.api_key
        blank = given is None or (isinstance(given, str) and not given.strip())
        elsewhere = connection.base_url
        if elsewhere is None and given is None and not _variable(CHAT.key_variable):
            elsewhere = _variable(CHAT.base_url_variable)
        if connection.client is None and elsewhere and blank:
            return None
        return super()._key(dialect, connection)

    def _encode(
        self, request: ModelRequest, notes: ReplayNotes, *, stream: bool
    ) -> bytes:
        fields = self._options
        if self._way(request) == "json_object":
            fields = {**_OBJECT, **fields}
        asked = self._asked(request)
        with writer_of_run(self, asked.messages, notes, self._writer) as writer:
            return encode_chat_request(
                asked, self._target, fields, stream=stream, writer=writer, notes=notes
            )

    def _writer(self) -> ChatMessages:
        return ChatMessages(self._target, self._reasoning)

    def _codec(self, request: ModelRequest) -> ServiceCodec:
        turn = Turn.of(self._asked(request))
        whole = partial(decode_chat_body, turn=turn)
        return ServiceCodec(self._target, whole, partial(ChatStreamDecoder, turn=turn))


def _form_refused(error: ModelError, _: str) -> bool:
    """Tell whether a service refused the form of an answer, in words of its own."""
    refused = error.http_status in {400, 422}
    return refused and _FORM_REFUSED.search(error.message) is not None


def _variable(name: str | None) -> str:
    return os.environ.get(name, "").strip() if name else ""


def _need_word(name: str, value: object, words: object) -> None:
    allowed = get_args(words)
    if value not in allowed:
        raise ModelError(
            f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}",
            "invalid_request",
            provider=CHAT.name,
        )
