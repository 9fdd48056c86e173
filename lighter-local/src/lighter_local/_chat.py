"""The two ways of one model call: the template's own tools, or a grammar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lighter_core.adapters import load_json
from lighter_core.errors import ModelError
from lighter_core.messages import AssistantMessage, ToolMessage, Usage
from lighter_core.requests import ModelRequest, ToolSpec

from ._decide import call_likelihood, candidates, threshold_factor
from ._decode import Reply, usage_of
from ._engine import Engine
from ._examples import answer_prompt, call_prompt
from ._grammar import call_grammar, parse_call
from ._prompt import ChatMessage, native_messages, plain_messages, tool_list

__all__ = ["Plan", "Sampling", "check_json", "plan_guided", "plan_native"]


# Without it, a tiny model's poem goes round in circles up to the limit of tokens.
_REPEAT_PENALTY = 1.1


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


@dataclass(frozen=True, slots=True)
class Plan:
    """What a model call comes down to: a finished message, or a request to stream.

    Attributes:
        message: The finished message.
        body: The request whose reply is the message.
        spent: Tokens that were spent on the way to that request.
    """

    message: AssistantMessage | None = None
    body: Mapping[str, object] = field(default_factory=dict[str, object])
    spent: Usage | None = None


async def plan_native(
    engine: Engine, request: ModelRequest, sampling: Sampling
) -> Plan:
    """Plan a reply with the tool parsing of the library."""
    specs, forced = _offered(request)
    body = sampling.body(native_messages(request.messages))
    if not specs:
        return Plan(body=_shaped(body, request))
    offer = {
        **body,
        "tools": tool_list(specs),
        "tool_choice": "required" if forced else "auto",
    }
    if request.output is None:
        return Plan(body=offer)
    # The library keeps to a schema or parses calls, not both: so calls come first.
    reply = await _collect(engine, offer)
    if reply.calls or forced:
        return Plan(reply.message(request.messages))
    return Plan(body=_shaped(body, request), spent=reply.usage)


async def plan_guided(
    engine: Engine, request: ModelRequest, sampling: Sampling
) -> Plan:
    """Plan a reply: a probe decides whether to call, a grammar makes the call."""
    messages = request.messages
    specs, forced = _offered(request)
    answering = isinstance(messages[-1], ToolMessage)
    fitting: list[ToolSpec] = []
    if forced:
        fitting = candidates(messages, specs) or specs
    elif not answering:  # one step for each question: after a result, an answer
        fitting = candidates(messages, specs)
    spent = Usage()
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
            return Plan(reply.message(messages, [call]))
    if answering:
        body = sampling.body(answer_prompt(messages))
    else:
        body = sampling.body(plain_messages(messages))
        if request.output is None:
            body["repeat_penalty"] = _REPEAT_PENALTY
    return Plan(body=_shaped(body, request), spent=spent)


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
    async with engine.chat(body) as chunks:
        async for chunk in chunks:
            likelihood += call_likelihood(chunk) or 0.0
            spent += usage_of(chunk) or Usage()
    return likelihood, spent


async def _collect(
    engine: Engine, body: Mapping[str, object], spent: Usage | None = None
) -> Reply:
    reply = Reply(spent)
    async with engine.chat(body) as chunks:
        async for chunk in chunks:
            for _ in reply.feed(chunk):
                pass
    reply.check_complete()
    return reply


def check_json(text: str) -> None:
    """Refuse text that is not JSON.

    Raises:
        ModelError: `bad_response`.
    """
    try:
        load_json(text)
    except ValueError as error:
        raise ModelError(
            "the local model's reply is not JSON, though a shape was asked for",
            "bad_response",
            provider="local",
        ) from error
