"""The two ways of one model call: the template's own tools, or a grammar."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from lighter_core.adapters import load_json
from lighter_core.errors import ModelError
from lighter_core.events import MessageEvent, ProviderStreamEvent
from lighter_core.messages import ToolMessage, Usage
from lighter_core.requests import ModelRequest, ToolSpec

from ._decide import call_likelihood, candidates, threshold_factor
from ._decode import Reply, usage_of
from ._engine import Engine
from ._examples import answer_prompt, call_prompt
from ._grammar import call_grammar, parse_call
from ._prompt import ChatMessage, native_messages, plain_messages, tool_list

__all__ = ["Sampling", "guided_reply", "native_reply"]

Events = AsyncGenerator[ProviderStreamEvent, None]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How replies are made."""

    max_output_tokens: int
    temperature: float
    call_threshold: float

    def body(self, messages: Sequence[ChatMessage]) -> dict[str, object]:
        """Return a request for a streamed reply."""
        return {
            "messages": messages,
            "max_tokens": self.max_output_tokens,
            "temperature": self.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # so that it can end while the prompt is read
        }


def _offered(request: ModelRequest) -> tuple[list[ToolSpec], bool]:
    """Return the tools that may be called, and whether one must be.

    Raises:
        ModelError: `invalid_request` for a choice that cannot be kept.
    """
    choice = request.tool_choice
    specs = list(request.tool_specs)
    if choice is None or choice == "auto":
        return specs, False
    if choice == "none":
        return [], False
    if choice != "required":
        specs = [spec for spec in specs if spec.name == choice]
    if not specs:
        wanted = "a tool" if choice == "required" else f"the tool {choice!r}"
        raise ModelError(
            f"tool_choice asks for {wanted}, but it is not among the tools offered",
            "invalid_request",
            provider="local",
        )
    return specs, True


async def native_reply(
    engine: Engine, request: ModelRequest, sampling: Sampling
) -> Events:
    """Stream a reply with the tool parsing of the library."""
    specs, forced = _offered(request)
    body = sampling.body(native_messages(request.messages))
    spent: Usage | None = None
    if specs:
        offer = {
            "tools": tool_list(specs),
            "tool_choice": "required" if forced else "auto",
        }
        if request.output is None:
            async for event in _reply(engine, {**body, **offer}, request):
                yield event
            return
        # The library keeps to a schema or parses calls, not both: so calls first.
        reply = await _collect(engine, {**body, **offer})
        if reply.calls or forced:
            yield MessageEvent(reply.message(request.messages))
            return
        spent = reply.usage
    async for event in _reply(engine, _shaped(body, request), request, spent):
        yield event


async def guided_reply(
    engine: Engine, request: ModelRequest, sampling: Sampling
) -> Events:
    """Stream a reply; whether to call is decided by a probe, the call by a grammar."""
    messages = request.messages
    specs, forced = _offered(request)
    answering = isinstance(messages[-1], ToolMessage)
    spent = Usage()
    fitting: list[ToolSpec] = []
    if forced:
        fitting = candidates(messages, specs) or specs
    elif specs and not answering:  # one step per question: after a result, an answer
        fitting = candidates(messages, specs)
    if fitting:
        prompt = call_prompt(messages, fitting)
        calls = forced
        if not forced:
            likelihood, spent = await _probe(engine, prompt, sampling)
            factor = threshold_factor(messages, fitting)
            calls = likelihood >= sampling.call_threshold * factor
        if calls:
            body = {**sampling.body(prompt), "grammar": call_grammar(fitting)}
            reply = await _collect(engine, body, spent)
            call = parse_call(reply.text, fitting)
            yield MessageEvent(reply.message(messages, [call]))
            return
    chat = answer_prompt(messages) if answering else plain_messages(messages)
    async for event in _reply(
        engine, _shaped(sampling.body(chat), request), request, spent
    ):
        yield event


def _shaped(body: dict[str, object], request: ModelRequest) -> dict[str, object]:
    if request.output is None:
        return body
    return {**body, "json_schema": request.output.schema}


async def _probe(
    engine: Engine, prompt: Sequence[ChatMessage], sampling: Sampling
) -> tuple[float, Usage]:
    """Ask for one token and return how likely it opens a call, and the tokens spent."""
    body = {
        **sampling.body(prompt),
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 50,
    }
    likelihood = 0.0
    spent = Usage()
    async with aclosing(engine.chat(body)) as chunks:
        async for chunk in chunks:
            likelihood += call_likelihood(chunk) or 0.0
            spent += usage_of(chunk) or Usage()
    return likelihood, spent


async def _collect(
    engine: Engine, body: Mapping[str, object], spent: Usage | None = None
) -> Reply:
    reply = Reply(spent)
    async with aclosing(engine.chat(body)) as chunks:
        async for chunk in chunks:
            for _ in reply.feed(chunk):
                pass
    reply.check_complete()
    return reply


async def _reply(
    engine: Engine,
    body: Mapping[str, object],
    request: ModelRequest,
    spent: Usage | None = None,
) -> Events:
    reply = Reply(spent)
    async with aclosing(engine.chat(body)) as chunks:
        async for chunk in chunks:
            for delta in reply.feed(chunk):
                yield delta
    message = reply.message(request.messages)
    if request.output is not None and not message.tool_calls:
        _check_json(message.content)
    yield MessageEvent(message)


def _check_json(text: str) -> None:
    try:
        load_json(text)
    except ValueError as error:
        raise ModelError(
            "the local model's reply is not JSON, though a shape was asked for",
            "bad_response",
            provider="local",
        ) from error
