"""Providers with one fault each, to prove that the checks can fail.

`Wrapper` is a good provider on Chat Completions; `broken(…)` makes a case of one with
parts of it replaced.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from lighter_conformance import ChatWire, ClassCase
from lighter_core import (
    AssistantMessage,
    MessageEvent,
    ModelError,
    ModelRequest,
    TextDelta,
    ToolMessage,
    UserMessage,
)
from lighter_core.adapters import ReplayNotes
from lighter_openai import OpenAIChatProvider


class Wrapper:
    """Forwards everything; the faults replace one part of it."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.inner = OpenAIChatProvider(**options)

    name = "openai-chat"

    @property
    def model_id(self) -> str:
        return self.inner.model_id

    @property
    def capabilities(self) -> frozenset[str]:
        return self.inner.capabilities

    def __repr__(self) -> str:
        return f"Wrapper({self.inner!r})"

    def asked(self, request: ModelRequest) -> ModelRequest:
        return request

    def said(self, message: AssistantMessage) -> AssistantMessage:
        return message

    def shown(self, event: Any) -> list[Any]:
        return [event]

    def failed(self, error: ModelError) -> Exception:
        return error

    async def invoke(self, request: ModelRequest) -> Any:
        try:
            return self.said(await self.inner.invoke(self.asked(request)))
        except ModelError as error:
            raise self.failed(error) from error.__cause__

    async def stream(self, request: ModelRequest) -> Any:
        try:
            async with aclosing(self.inner.stream(self.asked(request))) as events:
                async for event in events:
                    last = isinstance(event, MessageEvent)
                    seen = MessageEvent(self.said(event.message)) if last else event
                    for each in self.shown(seen):
                        yield each
        except ModelError as error:
            raise self.failed(error) from error.__cause__

    async def aclose(self) -> None:
        await self.inner.aclose()


def case_of(kind: type, **fields: Any) -> ClassCase:
    """A case of a provider's class on Chat Completions."""
    options = {"max_retries": 0} if issubclass(kind, Wrapper) else {}
    return ClassCase(kind, options, name="broken", wire=ChatWire(), **fields)


def broken(**parts: Any) -> ClassCase:
    """A case of a wrapper with some parts replaced."""
    return case_of(type("Broken", (Wrapper,), parts))


# Faults in what is said: functions of the message.


def saying(change) -> ClassCase:
    return broken(said=lambda self, message: change(message))


def with_(message: AssistantMessage, **changes: Any) -> AssistantMessage:
    return replace(message, **changes)


def with_calls(message: AssistantMessage, change) -> AssistantMessage:
    return replace(message, tool_calls=[change(call) for call in message.tool_calls])


# Faults in what is asked: functions of the list of messages, or of the request.


def asking(change) -> ClassCase:
    """Send other messages."""

    def asked(self, request):
        return replace(request, messages=change(self, list(request.messages)))

    return broken(asked=asked)


def requesting(**changes: Any) -> ClassCase:
    """Send another request."""
    return broken(asked=lambda self, request: replace(request, **changes))


def without_rounds(messages, drop) -> list:
    """Leave out calls and results whose result is to be dropped."""
    gone = {m.call_id for m in messages if isinstance(m, ToolMessage) and drop(m)}
    kept = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.call_id in gone:
            continue
        if isinstance(message, AssistantMessage):
            calls = [c for c in message.tool_calls if c.call_id not in gone]
            kept.append(replace(message, tool_calls=calls))
        else:
            kept.append(message)
    return kept


def results(change):
    """Return a change of the results among messages."""

    def changed(self, messages):
        return [change(m) if isinstance(m, ToolMessage) else m for m in messages]

    return changed


def rewriting(change) -> ClassCase:
    """Change the bytes of requests."""

    def __init__(self, **options):
        Wrapper.__init__(self, **options)
        encode = self.inner._encode
        self.inner._encode = lambda *given, **more: change(encode(*given, **more))

    return broken(__init__=__init__)


# Faults in errors: functions of the error.


def failing(change) -> ClassCase:
    return broken(failed=lambda self, error: change(error))


def as_code(code: str):
    """Give errors another code."""

    def change(error: ModelError) -> ModelError:
        error.code = code
        return error

    return change


class Stubborn(ModelError):
    """An error that cannot be pickled."""

    def __reduce__(self):
        raise TypeError("no")


class Forgiving(Wrapper):
    """Takes what came before an error for the reply."""

    async def stream(self, request):
        text = ""
        try:
            async for event in super().stream(request):
                if isinstance(event, TextDelta):
                    text += event.text
                yield event
        except ModelError:
            yield MessageEvent(AssistantMessage(text))

    async def invoke(self, request):
        try:
            return await super().invoke(request)
        except ModelError:
            return AssistantMessage("")


class Sulking(Wrapper):
    """Never works again after an error."""

    error: ModelError | None = None

    def failed(self, error):
        self.error = error
        return error

    def asked(self, request):
        if self.error:
            raise self.error
        return request


class Hoarding(Wrapper):
    """Keeps all deltas back until the reply is complete."""

    async def stream(self, request):
        async with aclosing(super().stream(request)) as stream:
            events = [event async for event in stream]
        for event in events:
            yield event


class Naive(Wrapper):
    """Reads a stream as if each piece that arrives were whole events."""

    async def stream(self, request):
        import json

        import httpx2

        body = self.inner._encode(request, ReplayNotes(), stream=True)
        url = f"{self.options['base_url']}/chat/completions"
        text, message = "", None
        async with (
            httpx2.AsyncClient() as client,
            client.stream("POST", url, content=body) as reply,
        ):
            async for piece in reply.aiter_raw():
                for block in piece.split(b"\n\n")[:-1]:
                    data = block.removeprefix(b"data: ")
                    if data == b"[DONE]":
                        message = AssistantMessage(text)
                        continue
                    chunk = json.loads(data)
                    if chunk["object"] != "chat.completion.chunk":
                        raise ModelError("an unknown event", "bad_response")
                    for choice in chunk["choices"]:
                        added = choice["delta"].get("content", "")
                        text += added
                        yield TextDelta(added)
        if message:
            yield MessageEvent(message)


class Mixing(Wrapper):
    """Keeps the request in the object."""

    def asked(self, request):
        self.request = request
        return request

    async def invoke(self, request):
        self.asked(request)
        await asyncio.sleep(0.01)
        return await self.inner.invoke(self.request)

    async def stream(self, request):
        yield MessageEvent(await self.invoke(request))


class Bound(Wrapper):
    """Works on the loop of its first request only."""

    loop = None

    def asked(self, request):
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("attached to a different loop")
        return request


class Once(Wrapper):
    """Works once."""

    used = False

    def asked(self, request):
        if self.used:
            raise RuntimeError("used up")
        self.used = True
        return request


class Eager(Wrapper):
    """Sends the request when `stream` is called."""

    def stream(self, request):
        self.task = asyncio.ensure_future(self.inner.invoke(request))

        async def events():
            yield MessageEvent(await self.task)

        return events()


class Leaving(Wrapper):
    """Leaves streams and requests open."""

    def __init__(self, **options):
        super().__init__(**options)
        self.tasks = []

    async def invoke(self, request):
        self.tasks.append(asyncio.ensure_future(self.inner.invoke(request)))
        return await asyncio.shield(self.tasks[-1])

    async def stream(self, request):
        queue: asyncio.Queue = asyncio.Queue()

        async def read():
            async for event in self.inner.stream(request):
                queue.put_nowait(event)

        self.tasks.append(asyncio.ensure_future(read()))
        while True:
            event = await queue.get()
            yield event
            if isinstance(event, MessageEvent):
                return


class Swallowing(Wrapper):
    """Takes a cancellation for an ordinary error."""

    async def invoke(self, request):
        try:
            return await self.inner.invoke(request)
        except BaseException as error:
            raise ModelError(str(error), "unknown") from error


class ClosedOnce(Wrapper):
    """Cannot be closed twice."""

    closed = 0

    async def aclose(self):
        self.closed += 1
        if self.closed == 2:
            raise RuntimeError("closed already")


class Open(Wrapper):
    """Closes nothing."""

    async def aclose(self):
        pass


class Forgetful(Wrapper):
    """Knows the replies of this process by their identity."""

    def __init__(self, **options):
        super().__init__(**options)
        self.known = []

    def said(self, message):
        self.known.append(message)
        return message

    def asked(self, request):
        messages = [
            m
            if not isinstance(m, AssistantMessage) or any(m is k for k in self.known)
            else replace(m, native=None)
            for m in request.messages
        ]
        return replace(request, messages=messages)


class Remembering(Wrapper):
    """Sends what the model said, whatever became of it."""

    def __init__(self, **options):
        super().__init__(**options)
        self.known = {}

    def said(self, message):
        if message.native:
            self.known[message.native.items] = message
        return message

    def asked(self, request):
        messages = [
            self.known.get(m.native.items, m)
            if isinstance(m, AssistantMessage) and m.native
            else m
            for m in request.messages
        ]
        return replace(request, messages=messages)


def claiming(**fields: str) -> ClassCase:
    """Take native context of others for its own."""

    def change(self, messages):
        changed = []
        for message in messages:
            native = getattr(message, "native", None)
            if native is None:
                changed.append(message)
                continue
            own = {**fields}
            if "endpoint" in own:
                own["endpoint"] = self.inner._target.endpoint
            changed.append(replace(message, native=replace(native, **own)))
        return changed

    return asking(change)


class Leaky(Wrapper):
    """Says the key wherever it can."""

    def __repr__(self):
        return f"Leaky({self.options['api_key']})"

    def failed(self, error):
        return ModelError(f"{error} with {self.options['api_key']}", error.code)

    def asked(self, request):
        import logging

        logging.getLogger("leaky").debug("asking with %s", self.options["api_key"])
        return request

    def __reduce__(self):
        return str, (self.options["api_key"],)


def text_only(message: UserMessage) -> UserMessage:
    return UserMessage(message.text)
