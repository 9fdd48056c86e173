"""The provider: options, requests, replies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    ReasoningDelta,
)
from lighter_core.adapters import (
    AnswerForms,
    Connection,
    Exchange,
    ReplayNotes,
    SDKProvider,
    Transport,
    answer_name,
    ask_by_tool,
    endpoint_of,
    need_model_id,
    secret_headers,
    writer_of_run,
)

from ._answers import AnswerForm, StructuredOutput, answer_forms
from ._client import Clients
from ._codec import MessagesCodec
from ._decode import joined
from ._encode import encode_request
from ._errors import form_refused, stopped, thinking_refused
from ._options import request_options, secrets_of, thinks
from ._target import BASE_URL, BASE_URL_VARIABLE, BLANK_LINE, NAME, Target
from ._turns import Turns

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic

    from lighter_core import ProviderStreamEvent

__all__ = ["ClaudeProvider"]

_MOST_WHOLE = 21_333  # tokens; the SDK too refuses to wait for more without a stream
_MOST_PAUSES = 5
_RECOVERED = (
    "Claude refused the thinking in the history; the request was sent again without it"
)


class ClaudeProvider(SDKProvider):
    """Talks to the Anthropic Messages API.

    Making one imports no SDK and touches neither network nor files. One provider may
    serve many runs at once, from several event loops.

    Args:
        api_key: The key; without it `ANTHROPIC_API_KEY` is read.
        model_id: The model; without it `ANTHROPIC_MODEL` is read.
        max_output_tokens: The most tokens of a reply, thinking included.
        thinking: The request's `thinking` field, e.g. `{"type": "adaptive"}`.
        effort: How much work the model puts in, e.g. `"low"` or `"high"`.
        cache: Whether the service caches the conversation so far, and for how long.
        system_messages: `"merge"` sends all system messages in the request's `system`,
            `"in_place"` leaves later ones where they are, for models that know it.
        structured_output: How an answer of a given form is asked for: by the service's
            `"native"` format, by a `"tool"` that must be called, or by an
            `"instruction"`. `"auto"` takes the first that the service does not refuse.
        hosted_tools: Tools that run at the service, as the service defines them.
        recover: Whether a request whose thinking is refused is sent once more without.
        base_url: Another endpoint; without it `ANTHROPIC_BASE_URL` is read.
        timeout: Seconds until the reply begins, retries included, and between two of
            its pieces; or an `httpx2.Timeout`, which the SDK applies to each attempt.
        max_retries: How often a failed request is repeated before its reply begins.
        client: An SDK client to use as it is; it is never closed here.
        http_client: A transport for the SDK's clients; it is never closed here.
        transport: Which of the SDK's own transports its clients get: `"httpx2"`, which
            is the default, or the faster `"aiohttp"`, which an extra installs.
        extra_headers: Headers for every request; they win over the SDK's own.
        extra_body: Further fields of the request; they win over Lighter's own, `tools`
            are joined and `output_config` is merged.

    Raises:
        ModelError: `auth_error` without a key, `invalid_request` for other values that
            cannot work.

    Example:
        ```python
        provider = ClaudeProvider(model_id="claude-opus-5-5", effort="low", cache=True)
        reply = await provider.invoke(ModelRequest([UserMessage("Hello!")]))
        ```
    """

    def __init__(  # noqa: PLR0913 - options are keywords
        self,
        api_key: str | None = None,
        model_id: str | None = None,
        *,
        max_output_tokens: int = 8192,
        thinking: Mapping[str, object] | None = None,
        effort: str | None = None,
        cache: bool | Literal["5m", "1h"] = False,
        system_messages: Literal["merge", "in_place"] = "merge",
        structured_output: StructuredOutput = "auto",
        hosted_tools: Sequence[Mapping[str, object]] = (),
        recover: bool = True,
        base_url: str | None = None,
        timeout: float | httpx2.Timeout | None = None,
        max_retries: int | None = None,
        client: AsyncAnthropic | None = None,
        http_client: httpx2.AsyncClient | None = None,
        transport: Transport | None = None,
        extra_headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, object] | None = None,
    ) -> None:
        connection = Connection(
            api_key=api_key,
            base_url=base_url,
            timeout=timeout,
            max_retries=max_retries,
            client=client,
            http_client=http_client,
            transport=transport,
            extra_headers=extra_headers,
        )
        model = need_model_id(model_id, variable="ANTHROPIC_MODEL", provider=NAME)
        url = connection.check(
            provider=NAME,
            client="anthropic.AsyncAnthropic",
            variable=BASE_URL_VARIABLE,
            default=BASE_URL,
        )
        secrets = secrets_of(api_key, client)
        self._options = request_options(
            max_output_tokens=max_output_tokens,
            thinking=thinking,
            effort=effort,
            cache=cache,
            system_messages=system_messages,
            structured_output=structured_output,
            hosted_tools=hosted_tools,
            extra_body=extra_body,
        )
        most = self._options.fields["max_tokens"]  # extra_body may say another
        self._whole = isinstance(most, int) and most <= _MOST_WHOLE
        self._target = Target(
            endpoint_of(url), model, pauses=bool(self._options.hosted_tools)
        )
        self._forms = AnswerForms(form_refused, provider=NAME)
        super().__init__(
            self._target,
            Clients(secrets[0] if secrets else "", url, connection),
            secrets=(*secrets, *secret_headers(extra_headers)),
            recover=recover,
        )

    @property
    def capabilities(self) -> frozenset[str]:
        """The fields of a request, and the parts of a message, that are understood."""
        return frozenset({"output", "tool_choice", "image", "file"})

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the complete reply; it equals the message that `stream` ends with.

        A reply that may be long is streamed all the same: connections on which nothing
        happens for many minutes are closed on the way.

        Raises:
            ModelError: For every failure; `code` says which kind it is.
        """
        if not self._whole:
            return await self._last_of_stream(request)
        held: AssistantMessage | None = None
        for _ in range(_MOST_PAUSES + 1):
            message = await super().invoke(_going_on(request, held))
            held = self._with(held, message)
            if _goes_out(held):
                return held
        raise stopped(self._target, "pause_turn", often=True)

    async def _last_of_stream(self, request: ModelRequest) -> AssistantMessage:
        async with aclosing(self.stream(request)) as events:
            async for event in events:
                if isinstance(event, MessageEvent):
                    return event.message
        raise AssertionError  # a stream ends with its message or with an error

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield deltas as they arrive, then one `MessageEvent` with the whole reply.

        The connection is released before the message is yielded, and when the generator
        is closed.

        Raises:
            ModelError: For every failure; `code` says which kind it is.
        """
        held: AssistantMessage | None = None
        for _ in range(_MOST_PAUSES + 1):
            apart = bool(held and held.reasoning)
            asked = _going_on(request, held)
            # Not inside the stream: the loop must see the generator of its client.
            exchange = await self._send(asked, stream=True)
            async with aclosing(self._events(asked, exchange)) as events:
                async for event in events:
                    if isinstance(event, MessageEvent):
                        held = self._with(held, event.message)
                        continue
                    if apart and isinstance(event, ReasoningDelta):
                        apart = False
                        yield ReasoningDelta(BLANK_LINE)
                    yield event
            if held is not None and _goes_out(held):
                yield MessageEvent(held)
                return
        raise stopped(self._target, "pause_turn", often=True)

    def _with(
        self, held: AssistantMessage | None, message: AssistantMessage
    ) -> AssistantMessage:
        return message if held is None else joined(held, message, self._target)

    def _encode(
        self, request: ModelRequest, notes: ReplayNotes, *, stream: bool
    ) -> bytes:
        asked, key = self._asked(request), (self, self._refused.version)
        with writer_of_run(key, asked.messages, notes, self._turns) as turns:
            return encode_request(
                asked,
                self._target,
                self._options,
                stream=stream,
                turns=turns,
                in_words=self._form(request) == "instruction",
                notes=notes,
            )

    def _turns(self) -> Turns:
        return Turns(self._target, self._options.system_messages, self._refused)

    def _codec(self, request: ModelRequest) -> MessagesCodec:
        by_tool = self._form(request) == "tool"
        return MessagesCodec(self._target, answer_name(request) if by_tool else None)

    def _asked(self, request: ModelRequest) -> ModelRequest:
        if self._form(request) != "tool":
            return request
        others = self._options.hosted_tools or self._options.fields.get("tools")
        return ask_by_tool(request, beside=bool(others))

    def _form(self, request: ModelRequest) -> AnswerForm | None:
        """Return how the request's answer is asked for; `None` for free text."""
        if request.output is None:
            return None
        return self._forms.current(request, self._ways(request))

    def _ways(self, request: ModelRequest) -> list[AnswerForm]:
        chosen = self._options.structured_output
        return answer_forms(request, chosen, thinks=thinks(self._options.fields))

    async def _open(self, request: ModelRequest, *, stream: bool) -> Exchange:
        if request.output is None:
            return await super()._open(request, stream=stream)
        send = partial(super()._open, request, stream=stream)
        return await self._forms.send(request, self._ways(request), send)

    def _lost(self, error: ModelError) -> str | None:
        return _RECOVERED if thinking_refused(error) else None


def _goes_out(message: AssistantMessage) -> bool:
    """Tell whether a reply is for the caller, who answers its calls, paused or not."""
    return message.stop_reason != "pause_turn" or bool(message.tool_calls)


def _going_on(request: ModelRequest, held: AssistantMessage | None) -> ModelRequest:
    """Return the request that lets a reply that paused go on; without one, the first."""
    if held is None:
        return request
    return replace(request, messages=[*request.messages, held])
