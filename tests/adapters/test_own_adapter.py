"""An adapter with the least that one brings, and what is said when it is at fault."""

from __future__ import annotations

import json
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest
from support.interfaces import ask, failure
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer

from lighter_core import (
    AssistantMessage,
    ModelError,
    ModelRequest,
    ReplayFinding,
    TextDelta,
    UserMessage,
    explain_replay,
)
from lighter_core.adapters import (
    Connection,
    RefusedContext,
    SDKProvider,
    Sender,
    bad_response,
    seal_native,
    status_error,
    transport_error,
)

both = pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])


@dataclass(frozen=True)
class Acme:
    """The service: its replies are JSON texts, and `[DONE]` ends a stream of them."""

    endpoint: str
    name: str = "acme"
    label: str = "Acme"
    interface: str = "Acme API"
    model: str = "acme-1"
    key_variable: str = ""
    model_variable: str = ""


class AcmeSender(Sender):
    sdk = "openai"
    path = "/say"

    def __init__(self, url: str) -> None:
        super().__init__(Connection(max_retries=0))
        self.url = url

    def make(self):
        import openai

        return openai.AsyncOpenAI(
            api_key="none", base_url=self.url, http_client=self.transport()
        )


class AcmeDecoder:
    def __init__(self, codec: AcmeCodec) -> None:
        self.message: AssistantMessage | None = None
        self.ignored = 0
        self.codec, self.text = codec, ""

    def feed(self, data: bytes) -> list[TextDelta]:
        if data.strip() == b"[DONE]":
            self.message = AssistantMessage(self.text)
            return []
        word = self.codec.word(data)
        self.text += word
        return [TextDelta(word)]

    def ended_early(self) -> ModelError:
        return bad_response(self.codec.service, "it ended early")


class AcmeCodec:
    def __init__(self, service: Acme, broken: str) -> None:
        self.service, self.broken = service, broken

    def word(self, data: bytes) -> str:
        word = json.loads(data)
        if word == self.broken:
            raise KeyError(word)
        if not isinstance(word, str):
            raise bad_response(self.service, "it is no text")
        return word

    def error_of(self, error: Exception) -> ModelError:
        if self.broken == "error_of":
            raise KeyError("error_of")
        status = getattr(error, "status_code", None)
        if status is None:
            return transport_error(error, self.service)
        return status_error(self.service, status, {}, words="", vendor_code=None)

    def error_in_reply(self, error: object) -> ModelError:
        if self.broken == "error_in_reply":
            raise KeyError("error_in_reply")
        return bad_response(self.service, str(error))

    def decode_body(self, body: bytes) -> AssistantMessage:
        return AssistantMessage(self.word(body))

    def decoder(self) -> AcmeDecoder:
        return AcmeDecoder(self)


class AcmeProvider(SDKProvider):
    """What it sends is the native context that was not refused."""

    def __init__(self, url: str, broken: str) -> None:
        super().__init__(Acme(url), AcmeSender(url))
        self.broken = broken

    def _encode(self, request, notes, *, stream):
        replies = [m for m in request.messages if isinstance(m, AssistantMessage)]
        known = [m.native.items for m in replies if m.native and m not in self._refused]
        return json.dumps(known).encode()

    def _codec(self, request):
        return AcmeCodec(self._service, self.broken)


@pytest.fixture
async def acme(server) -> AsyncIterator[Callable[..., AcmeProvider]]:
    """Makes providers that talk to the server; they are closed after the test."""
    made: list[AcmeProvider] = []

    def make(broken: str = "nothing") -> AcmeProvider:
        made.append(AcmeProvider(server.url, broken))
        return made[-1]

    yield make
    for provider in made:
        await provider.aclose()


def stream(*words: object, end: bytes = b"\n\n") -> Answer:
    events = [*(json.dumps(each).encode() for each in words), b"[DONE]"]
    body = b"\n\n".join(b"data: " + each for each in events) + end
    return Answer(headers=EVENT_STREAM, body=body)


@pytest.mark.parametrize("end", [b"\n\n", b"\n", b""], ids=repr)
async def test_the_mark_at_the_end_needs_no_blank_line(server, acme, end):
    """It is whole although it is no JSON: the stream ended, and so did the reply."""
    server.script(stream("Hel", "lo!", end=end))
    assert (await ask(acme(), streamed=True)).content == "Hello!"


async def test_what_an_adapter_leaves_out_has_a_meaning(server, acme):
    """No capabilities; no error asks to do without the native context."""
    provider = acme()
    assert provider.capabilities == frozenset()
    reply = seal_native(
        AssistantMessage("a"),
        provider="acme",
        endpoint=server.url,
        api="say",
        model="acme-1",
        items="[1]",
    )
    request = ModelRequest([UserMessage("a"), reply, UserMessage("b")])
    server.script(Answer(400, JSON_TYPE, b"{}"))
    for streamed in (True, False):
        error = await failure(provider, streamed=streamed, request=request)
        assert (error.code, error.http_status) == ("invalid_request", 400)
    assert [each.json for each in server.requests] == [["[1]"]] * 2


def test_a_history_without_messages_is_explained(acme):
    """Before the adapter is asked, as before a request."""
    text = "there is nothing to send to Acme: the request has no messages"
    assert explain_replay([], acme()) == [ReplayFinding("messages", "refused", text)]


def check_fault(error: ModelError, name: str) -> None:
    """It is the adapter's, it says what to do, and what was raised stays.

    The frames of the codec are told too, without the bytes of the reply.
    """
    assert error.code == "bad_response"
    assert f"(KeyError: {name!r})" in error.message
    assert "a fault of the adapter: please report it" in error.message
    cause = error.__cause__
    assert isinstance(cause, KeyError)
    *_, (frame, _) = traceback.walk_tb(cause.__traceback__)
    assert frame.f_code.co_filename == __file__
    assert frame.f_locals == {}


@both
async def test_an_adapter_that_cannot_read_a_reply_is_at_fault(server, acme, streamed):
    """No reply ends in another error than a `ModelError`."""
    answer = stream("odd") if streamed else Answer(headers=JSON_TYPE, body=b'"odd"')
    server.script(answer)
    check_fault(await failure(acme("odd"), streamed=streamed), "odd")


async def test_what_came_before_a_fault_of_the_adapter_is_handed_on(server, acme):
    """In one piece with it, or not."""
    server.script(stream("Hel", "odd"))
    events = acme("odd").stream(ModelRequest([UserMessage("a")]))
    assert await anext(events) == TextDelta("Hel")
    with pytest.raises(ModelError) as caught:
        await anext(events)
    check_fault(caught.value, "odd")


@both
async def test_an_adapter_that_cannot_read_a_reported_error_is_at_fault(
    server, acme, streamed
):
    server.script(Answer(headers=JSON_TYPE, body=b'{"error":"no memory"}'))
    check_fault(
        await failure(acme("error_in_reply"), streamed=streamed), "error_in_reply"
    )
    assert "no memory" in (await failure(acme(), streamed=streamed)).message


@both
@pytest.mark.parametrize(
    ("answer", "code", "status", "kind"),
    [
        (Answer(429, JSON_TYPE, b"{}"), "rate_limit", 429, "RateLimitError"),
        (
            Answer(end="cut", before_headers=True),
            "unknown",
            None,
            "APIConnectionError",
        ),
    ],
    ids=["status", "cut"],
)
async def test_a_fault_of_the_adapter_hides_none_of_the_service(
    server, acme, answer, code, status, kind, streamed
):
    """The status alone tells the most."""
    server.script(answer)
    error = await failure(acme("error_of"), streamed=streamed)
    assert (error.code, error.http_status, error.provider) == (code, status, "acme")
    assert f"failed ({kind}, then KeyError in the adapter)" in error.message


def test_the_newest_ten_thousand_refusals_are_remembered():
    """So a provider that lives for ever does not grow for ever."""
    replies = [
        seal_native(
            AssistantMessage("a"),
            provider="acme",
            endpoint="e",
            api="say",
            model="acme-1",
            items=f"[{number}]",
        )
        for number in range(10_002)
    ]
    refused = RefusedContext()
    refused.add(replies[:10_000])
    assert replies[0] in refused
    refused.add(replies[10_000:])
    assert [each in refused for each in replies[:3]] == [False, False, True]
    assert replies[-1] in refused
