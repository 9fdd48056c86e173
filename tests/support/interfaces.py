"""The adapters, for tests of what holds for each of them."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass, replace
from typing import Any

from lighter_claude import ClaudeProvider
from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    ProviderStreamEvent,
    UserMessage,
)
from lighter_deepseek import DeepSeekProvider
from lighter_openai import OpenAIChatProvider, OpenAIProvider

from . import chat_streams, claude_streams, openai_streams
from .loopback import EVENT_STREAM, JSON_TYPE, Answer
from .torture import FULL

ASK = ModelRequest([UserMessage("hello")])


@dataclass(frozen=True)
class Interface:
    """One adapter, over one transport.

    Attributes:
        name: The provider's name.
        provider: Its class.
        sdk: The SDK's module.
        client: The name of the SDK's class for a client.
        vendors: Where recordings for it are.
        whole: A whole reply that says "Hello!".
        streamed: The same as an event stream.
        transport: Which of the SDK's own transports its clients have.
    """

    name: str
    provider: Any
    sdk: str
    client: str
    vendors: tuple[str, ...]
    whole: dict[str, Any]
    streamed: bytes
    transport: str = "httpx2"

    @property
    def id(self) -> str:
        """The name, and the transport unless it is the default."""
        return self.name if self.transport == "httpx2" else f"{self.name}-aiohttp"

    def good(self, *, streamed: bool) -> Answer:
        """The answer to a request for a whole reply or for a stream."""
        if streamed:
            return Answer(headers=EVENT_STREAM, body=self.streamed)
        return Answer(headers=JSON_TYPE, body=json.dumps(self.whole).encode())

    def make_client(self, **options: Any) -> Any:
        """Make a client of the SDK."""
        sdk = importlib.import_module(self.sdk)
        if self.transport == "aiohttp":
            options = {"http_client": sdk.DefaultAioHttpClient(), **options}
        return getattr(sdk, self.client)(**options)


_MESSAGE = openai_streams.message("Hello!")
_RESPONSES = (
    openai_streams.response([_MESSAGE]),
    openai_streams.sse(openai_streams.reply(_MESSAGE)),
)
_OPENAI = ("openai", "AsyncOpenAI")

INTERFACES = (
    Interface("openai", OpenAIProvider, *_OPENAI, ("openai-responses",), *_RESPONSES),
    Interface(
        "openai-chat",
        OpenAIChatProvider,
        *_OPENAI,
        ("openai-chat", "deepseek-chat"),
        chat_streams.body({"content": "Hello!"}),
        chat_streams.sse(chat_streams.reply({"content": "Hello!"})),
    ),
    Interface(
        "deepseek", DeepSeekProvider, *_OPENAI, ("deepseek-responses",), *_RESPONSES
    ),
    Interface(
        "claude",
        ClaudeProvider,
        "anthropic",
        "AsyncAnthropic",
        ("anthropic-messages",),
        claude_streams.body(claude_streams.text("Hello!")),
        claude_streams.sse(claude_streams.reply(claude_streams.text("Hello!"))),
    ),
)


def _over_aiohttp(interface: Interface) -> Interface:
    def provider(*arguments: Any, **options: Any) -> Any:
        if not {"client", "http_client"} & options.keys():
            options = {"transport": "aiohttp", **options}
        return interface.provider(*arguments, **options)

    return replace(interface, provider=provider, transport="aiohttp")


# For tests over sockets. The transport is the SDK's, so one interface of each tells.
AIOHTTP = tuple(
    _over_aiohttp(each)
    for each in INTERFACES
    if FULL or each.name in {"openai", "claude"}
)
BOTH = (*INTERFACES, *AIOHTTP)


async def ask(
    provider: Any, *, streamed: bool, request: ModelRequest = ASK
) -> AssistantMessage:
    """Return the reply."""
    if not streamed:
        message: AssistantMessage = await provider.invoke(request)
        return message
    events: list[ProviderStreamEvent] = [e async for e in provider.stream(request)]
    assert isinstance(events[-1], MessageEvent)
    return events[-1].message


async def failure(
    provider: Any, *, streamed: bool, request: ModelRequest = ASK
) -> ModelError:
    """Return the error of a request that fails."""
    try:
        await ask(provider, streamed=streamed, request=request)
    except ModelError as error:
        return error
    raise AssertionError("the request succeeded")
