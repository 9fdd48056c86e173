"""A stream with `around_model` hooks, which see a call and not its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, cast

from ._chain import HookChain
from ._channel import Channel
from ._closing import close_stream
from .context import RunContext
from .errors import ProviderContractError
from .events import MessageEvent, ModelCallRestarted, ProviderStreamEvent
from .history import require_valid_history
from .messages import AssistantMessage
from .provider import Provider
from .requests import ModelRequest

__all__ = ["stream_around", "valid_request"]

_END_SECONDS = 5.0  # that hooks may take to end once nobody reads any more


def valid_request(request: ModelRequest, provider: Provider) -> ModelRequest:
    """Return a request made anew, since hooks may also have edited it in place.

    Raises:
        TypeError: For what is no message.
        ModelError: `invalid_request` for a history that no service takes.
    """
    request = replace(request, messages=request.messages)
    require_valid_history(request.messages, provider=provider.name)
    return request


async def stream_around(
    provider: Provider, request: ModelRequest, chain: HookChain, run: RunContext[Any]
) -> AsyncGenerator[ProviderStreamEvent | ModelCallRestarted, None]:
    """Yield the events of the calls that the hooks make, then the reply they return.

    A call after the first begins with a `ModelCallRestarted`.

    The hooks run in a task of their own, since they wait for whole replies while this
    generator hands on their parts.
    """
    channel, made = Channel(), 0

    async def call_model(request: ModelRequest) -> AssistantMessage:
        nonlocal made
        made += 1
        request = valid_request(request, provider)
        if made > 1 and channel.emit(ModelCallRestarted()):
            await channel.room()
        return await _forwarded(provider, request, channel)

    async def work() -> AssistantMessage:
        try:
            reply: AssistantMessage = await chain.around(
                "around_model", request, run, call_model
            )
        finally:
            channel.close()
        return reply

    task = asyncio.ensure_future(work())
    try:
        while True:
            await channel.wait()
            while (event := channel.take()) is not None:
                yield cast("ProviderStreamEvent | ModelCallRestarted", event)
            if channel.closed:
                break
        yield MessageEvent(await task)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=_END_SECONDS)


async def _forwarded(
    provider: Provider, request: ModelRequest, channel: Channel
) -> AssistantMessage:
    """Make one call, hand its parts on, return its reply."""
    message: AssistantMessage | None = None
    stream = provider.stream(request)
    try:
        async for event in stream:
            if isinstance(event, MessageEvent):
                message = event.message
            elif channel.emit(event):
                await channel.room()
    finally:
        await close_stream(stream)
    if message is not None:
        return message
    raise ProviderContractError(
        f"the stream of provider {provider.name!r} ended without a complete message",
        event_number=0,
        provider=provider.name,
    )
