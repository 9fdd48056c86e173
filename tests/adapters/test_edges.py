"""What histories, options, replies and transports of other makes may look like."""

from __future__ import annotations

import importlib
import json
import logging
import traceback
from collections import UserList

import httpx2
import pytest
from support.interfaces import AIOHTTP, INTERFACES, Interface, ask, failure
from support.loopback import JSON_TYPE
from support.wire import Wire, wired

from lighter_core import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ModelError,
    ModelRequest,
    NativeContext,
    OutputSpec,
    TextPart,
    UserMessage,
    explain_replay,
)
from lighter_core.adapters import _transport

both = pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
each_one = pytest.mark.parametrize("interface", INTERFACES, ids=lambda i: i.id)


def offline(interface: Interface):
    return interface.provider(api_key="sk-test-0123", model_id="test")


@each_one
@pytest.mark.parametrize("items", ["no JSON", "{}", "[1", "[" * 100_000], ids=len)
def test_nothing_is_said_of_a_context_that_cannot_be_read(interface, items):
    """Somebody edited it: the message goes as its public fields say, or says so."""
    native = NativeContext(
        provider="acme",
        endpoint="http://h",
        api="say",
        model="acme-1",
        items=items,
        seal="none",
    )
    history = [UserMessage("a"), AssistantMessage("b", native=native), UserMessage("c")]
    assert explain_replay(history, offline(interface)) == []
    history[1] = AssistantMessage("b", reasoning="r", native=native)
    for finding in explain_replay(history, offline(interface)):
        assert (finding.path, finding.kind) == ("messages[1]", "dropped")
        assert "without its reasoning:" in finding.text


ODD = {
    "openai": ImagePart(b"x", None, "image/tiff"),
    "openai-chat": FilePart(url="https://example.org/a.pdf"),
}


@each_one
def test_each_part_that_cannot_be_sent_is_named_once(interface):
    """The empty message that is left without them is no finding of its own."""
    odd = ODD.get(interface.name, FilePart(b"x", None, "audio/wav"))
    found = explain_replay([UserMessage([odd])], offline(interface))
    refused = [each.path for each in found if each.kind == "refused"]
    assert refused == ["messages[0].content[0]"]
    found = explain_replay(
        [UserMessage([TextPart("a"), odd]), UserMessage([odd, TextPart("b")])],
        offline(interface),
    )
    refused = [each.path for each in found if each.kind == "refused"]
    assert refused == ["messages[0].content[1]", "messages[1].content[0]"]


@each_one
async def test_sequences_that_are_no_lists_are_sent_as_lists(interface):
    """Options hold what an application has; bytes are no sequence of numbers."""
    value = {"a": UserList(["b", range(2)]), "c": ("d",)}
    async with wired(interface, extra_body={"odd": value}) as (provider, wire):
        wire.script(Wire(json.dumps(interface.whole).encode(), headers=JSON_TYPE))
        await ask(provider, streamed=False)
    assert json.loads(wire.requests[0])["odd"] == {"a": ["b", [0, 1]], "c": ["d"]}
    with pytest.raises(ModelError, match="extra_body must hold JSON values only"):
        interface.provider(api_key="sk", model_id="m", extra_body={"odd": b"x"})


@each_one
async def test_true_and_false_are_schemas(interface):
    """They stand where a schema stands, and nothing stands inside them."""
    inner = {"a": True, "b": {"anyOf": [False, {"type": "string"}]}}
    schema = {"type": "object", "properties": inner, "required": ["a", "b"]}
    request = ModelRequest([UserMessage("x")], output=OutputSpec("answer", schema))
    async with wired(interface) as (provider, wire):
        wire.script(Wire(json.dumps(interface.whole).encode(), headers=JSON_TYPE))
        await ask(provider, streamed=False, request=request)
    (sent,) = wire.requests
    found = [each for each in _objects(json.loads(sent)) if "properties" in each]
    assert [each["properties"] for each in found] == [inner]


def _objects(value):
    """Each object inside a JSON value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _objects(each)


@each_one
async def test_a_body_that_is_no_stream_is_quoted_from_all_its_pieces(interface):
    """They are cut anywhere."""
    pieces = [b"up", b"stream", b" is away"]
    async with wired(interface) as (provider, wire):
        wire.script(Wire(pieces, headers={"content-type": "text/plain"}))
        error = await failure(provider, streamed=True)
    assert error.code == "bad_response"
    assert "begins with 'upstream is away'" in error.message


class Mute(OSError):
    """It cannot say what it is."""

    def __str__(self) -> str:
        raise AttributeError("host")


@each_one
async def test_what_cannot_say_what_it_is_has_a_kind(interface):
    """Some exceptions make their text from what they hold, and hold it no longer."""
    async with wired(interface) as (provider, wire):
        wire.script(Wire(interface.streamed[:40], error=Mute()))
        error = await failure(provider, streamed=True)
    assert error.code == "network_error"
    assert "(Mute) before the reply was complete" in error.message


@each_one
@both
async def test_a_process_without_aiohttp_has_no_errors_of_it(
    interface, streamed, monkeypatch
):
    """Whether it is loaded is asked at each failure, and it is never loaded for that."""
    monkeypatch.delitem(_transport.sys.modules, "aiohttp", raising=False)
    async with wired(interface) as (provider, wire):
        wire.script(Wire(refused=httpx2.ConnectError("refused")))
        error = await failure(provider, streamed=streamed)
    assert error.code == "network_error"
    assert "cannot reach" in error.message
    assert "aiohttp" not in _transport.sys.modules


@pytest.mark.parametrize("interface", [*INTERFACES, *AIOHTTP], ids=lambda i: i.id)
async def test_only_a_missing_library_is_told_as_one(interface, make, monkeypatch):
    """Whatever else goes wrong when the default transport is made keeps its words."""

    def broken(**_: object) -> None:
        raise RuntimeError("can't start new thread")

    sdk = importlib.import_module(interface.sdk)
    monkeypatch.setattr(sdk, "DefaultAsyncHttpxClient", broken)
    monkeypatch.setattr(sdk, "DefaultAioHttpClient", broken)
    error = await failure(make(), streamed=False)
    old = interface.transport == "aiohttp"
    assert ("pip install" in error.message) is old
    assert ("can't start new thread" in error.message) is not old


@each_one
@both
async def test_secrets_in_a_group_of_exceptions_do_not_show(
    interface, streamed, caplog
):
    """Transports that try several addresses at once raise one error with all inside."""
    key = "sk-canary-0123456789"
    caplog.set_level(logging.DEBUG, logger="lighter")
    inner = ExceptionGroup("the second kind", [OSError(f"two {key}")])
    group = ExceptionGroup("all attempts failed", [OSError(f"one {key}"), inner])
    refused = httpx2.ConnectError("refused")
    refused.__cause__ = group
    async with wired(interface, api_key=key) as (provider, wire):
        wire.script(Wire(refused=refused))
        error = await failure(provider, streamed=streamed)
    assert error.code == "network_error"
    told = "".join(traceback.format_exception(error)) + caplog.text
    assert told.count("one [redacted]") == told.count("two [redacted]") == 2
    assert key not in told
