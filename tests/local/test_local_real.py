"""The provider on the real default model. Only the arithmetic is asserted of its wit."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from lighter_core import (
    AssistantMessage,
    ImagePart,
    MessageEvent,
    ModelError,
    ModelRequest,
    OutputSpec,
    SystemMessage,
    TextDelta,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from lighter_local import LocalProvider

HELLO = [UserMessage("Say hello.")]
SUM = UserMessage("What is 19 + 23?")
TOTAL = OutputSpec(
    "sum",
    {
        "type": "object",
        "properties": {"total": {"type": "integer"}},
        "required": ["total"],
        "additionalProperties": False,
    },
)
TEMPLATE = Path(__file__).with_name("tools.jinja")

pytestmark = pytest.mark.usefixtures("model_path")


async def read(provider, request):
    """Return the deltas joined and the one message, which must be last."""
    events = [event async for event in provider.stream(request)]
    assert isinstance(events[-1], MessageEvent)
    assert all(isinstance(event, TextDelta) for event in events[:-1])
    message = events[-1].message
    assert "".join(event.text for event in events[:-1]) == message.content
    return events[:-1], message


def comparable(message):
    """Leave out what depends on the state of the prompt cache."""
    return replace(message, usage=replace(message.usage, cache_read_tokens=0))


async def test_a_reply_is_streamed_and_invoke_returns_the_same():
    provider = LocalProvider()
    deltas, message = await read(provider, ModelRequest(HELLO))
    assert len(deltas) > 1
    assert message.stop_reason == "stop"
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens >= len(deltas)
    invoked = await provider.invoke(ModelRequest(HELLO))
    assert comparable(invoked) == comparable(message)


async def test_the_sum_goes_through_the_tool(add):
    provider = LocalProvider()
    request = ModelRequest([SystemMessage("Be helpful."), SUM], tool_specs=[add])
    deltas, message = await read(provider, request)
    assert deltas == []
    (call,) = message.tool_calls
    assert call.tool_name == "add"
    assert json.loads(call.arguments) == {"a": 19, "b": 23}
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call.call_id)
    assert message.stop_reason == "tool_calls"
    assert comparable(await provider.invoke(request)) == comparable(message)

    result = ToolMessage(call_id=call.call_id, tool_name="add", tool_output="42")
    history = [*request.messages, message, result]
    request = ModelRequest(history, tool_specs=[add])
    deltas, answer = await read(provider, request)
    assert "42" in answer.content
    assert answer.tool_calls == ()

    again = ModelRequest(
        [*history, answer, UserMessage("What is 64 + 36?")], tool_specs=[add]
    )
    message = await provider.invoke(again)
    assert json.loads(message.tool_calls[0].arguments) == {"a": 64, "b": 36}
    assert message.tool_calls[0].call_id != call.call_id


async def test_a_greeting_calls_nothing(add):
    message = await LocalProvider().invoke(
        ModelRequest([UserMessage("Hello!")], tool_specs=[add])
    )
    assert message.tool_calls == ()
    assert message.content


async def test_tool_choice(add):
    provider = LocalProvider()
    now = ToolSpec("now", "Tell the time.", {"type": "object", "properties": {}})

    async def ask(choice):
        request = ModelRequest(
            [UserMessage("Hello!")], tool_specs=[add, now], tool_choice=choice
        )
        return await provider.invoke(request)

    assert (await ask("none")).tool_calls == ()
    assert len((await ask("required")).tool_calls) == 1
    (call,) = (await ask("now")).tool_calls
    assert (call.tool_name, call.arguments) == ("now", "{}")
    for choice, tools in (("sub", [add]), ("required", [])):
        with pytest.raises(ModelError) as caught:
            await provider.invoke(
                ModelRequest(HELLO, tool_specs=tools, tool_choice=choice)
            )
        assert caught.value.code == "invalid_request"


async def test_output_keeps_to_the_schema(add):
    provider = LocalProvider()
    message = await provider.invoke(ModelRequest([SUM], output=TOTAL))
    assert isinstance(json.loads(message.content)["total"], int)
    call = AssistantMessage("", tool_calls=[ToolCall("call_1", "add", "{}")])
    result = ToolMessage(call_id="call_1", tool_name="add", tool_output="42")
    request = ModelRequest([SUM, call, result], tool_specs=[add], output=TOTAL)
    message = await provider.invoke(request)
    assert isinstance(json.loads(message.content)["total"], int)


async def test_a_schema_that_makes_no_sense_is_an_invalid_request():
    broken = OutputSpec("x", {"type": "object", "properties": {"a": {"$ref": "#/no"}}})
    with pytest.raises(ModelError) as caught:
        await LocalProvider().invoke(ModelRequest(HELLO, output=broken))
    assert caught.value.code == "invalid_request"


async def test_histories_of_all_kinds_are_answered(add):
    calls = [ToolCall("a", "add", '{"a": 1, "b": 2}'), ToolCall("b", "add", "oops")]
    history = [
        SystemMessage("Be kind."),
        SystemMessage(""),
        UserMessage(""),
        AssistantMessage(""),
        UserMessage("What is 1 + 2?"),
        AssistantMessage("Let me see.", tool_calls=calls),
        ToolMessage(call_id="a", tool_name="add", tool_output="3"),
        ToolMessage(call_id="b", tool_name="add", tool_output="bad", is_error=True),
        AssistantMessage("It is 3."),
        SystemMessage("Be brief. \ud800"),
        UserMessage("Thanks 🎉"),
    ]
    provider = LocalProvider(max_output_tokens=4)
    for end in (3, 5, 8, 11):
        request = ModelRequest(history[:end], tool_specs=[add])
        reply = await asyncio.gather(provider.invoke(request), return_exceptions=True)
        # It may chat on past its limit; what matters is that it was asked.
        assert isinstance(reply[0], AssistantMessage) or (
            reply[0].response_status == "length"
        )


async def test_a_bad_request_is_refused_before_anything_is_loaded(monkeypatch):
    from lighter_local import _provider

    monkeypatch.setattr(_provider, "acquire", None)
    orphan = ToolMessage(call_id="x", tool_name="add", tool_output="1")
    image = UserMessage([ImagePart(b"x", None, "image/png")])
    for messages in ([*HELLO, orphan], [image], []):
        with pytest.raises(ModelError) as caught:
            await LocalProvider().invoke(ModelRequest(messages))
        assert caught.value.code == "invalid_request"


async def test_the_token_limit_is_an_error(add):
    provider = LocalProvider(max_output_tokens=5)
    for tools, messages in (([], HELLO), ([add], [SUM])):
        with pytest.raises(ModelError) as caught:
            await provider.invoke(ModelRequest(messages, tool_specs=tools))
        assert caught.value.code == "bad_response"
        assert caught.value.response_status == "length"
        assert "max_output_tokens" in caught.value.message


async def test_a_long_conversation_is_refused(add):
    messages = [UserMessage("A word. " * 3000)]
    for tools in ([], [add]):
        with pytest.raises(ModelError, match=r"4096.*context_size") as caught:
            await LocalProvider().invoke(ModelRequest(messages, tool_specs=tools))
        assert caught.value.code == "invalid_request"


@pytest.mark.parametrize("kind", ["text", "head", "cut", "empty"])
async def test_a_file_that_is_no_model_is_refused(kind, tmp_path, model_path):
    path = tmp_path / "broken.gguf"
    with model_path.open("rb") as file:
        whole = file.read(5_000_000)
    path.write_bytes(
        {"text": b"text", "head": b"GGUF" + b"x" * 99, "cut": whole, "empty": b""}[kind]
    )
    with pytest.raises(ModelError, match=r"'broken\.gguf'") as caught:
        await LocalProvider(path).invoke(ModelRequest(HELLO))
    assert caught.value.code == "invalid_request"
    assert str(tmp_path) not in caught.value.message


async def test_the_event_loop_goes_on_during_load_and_generation():
    provider = LocalProvider(context_size=2048)  # other settings: loaded anew
    gaps = []

    async def beat():
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    task = asyncio.create_task(beat())
    async with provider:
        await provider.invoke(ModelRequest(HELLO))
    task.cancel()
    assert len(gaps) > 20
    assert max(gaps) < 2  # part of loading holds the interpreter's lock


async def test_two_streams_at_once():
    provider = LocalProvider()
    results = await asyncio.gather(
        read(provider, ModelRequest(HELLO)),
        read(provider, ModelRequest([UserMessage("Name a colour.")])),
        read(LocalProvider(), ModelRequest(HELLO)),
    )
    assert all(message.content for _, message in results)


def test_two_loops_one_after_the_other_and_at_once():
    provider = LocalProvider()
    found = []

    def work():
        found.append(asyncio.run(provider.invoke(ModelRequest(HELLO))).content)

    work()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert all(found)


async def test_a_stream_that_is_left_frees_its_place():
    provider = LocalProvider()
    request = ModelRequest([UserMessage("Count from one to two thousand in words.")])
    for _ in range(4):
        async with aclosing(provider.stream(request)) as stream:
            async for _ in stream:
                break
    task = asyncio.create_task(provider.invoke(request))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await provider.invoke(ModelRequest(HELLO))


async def test_native_tools_of_a_template_that_knows_them(add):
    provider = LocalProvider(chat_template=TEMPLATE, tools="native")
    request = ModelRequest([SystemMessage("Be kind."), SUM], tool_specs=[add])
    deltas, message = await read(provider, request)
    assert deltas == []
    (call,) = message.tool_calls
    assert call.tool_name == "add"
    assert json.loads(call.arguments) == {"a": 19, "b": 23}
    assert call.call_id == "call_1"
    assert comparable(await provider.invoke(request)) == comparable(message)
    result = ToolMessage(call_id=call.call_id, tool_name="add", tool_output="42")
    history = [*request.messages, message, result]
    deltas, answer = await read(provider, ModelRequest(history, tool_specs=[add]))
    assert "42" in answer.content
    assert len(deltas) > 1


async def test_native_tool_choice_output_and_limit(add):
    provider = LocalProvider(chat_template=TEMPLATE.read_text())
    for choice in ("required", "add"):
        request = ModelRequest([SUM], tool_specs=[add], tool_choice=choice)
        message = await provider.invoke(request)
        assert [call.tool_name for call in message.tool_calls] == ["add"]
    request = ModelRequest([SUM], tool_specs=[add], tool_choice="none", output=TOTAL)
    message = await provider.invoke(request)
    assert isinstance(json.loads(message.content)["total"], int)
    request = ModelRequest([SUM], tool_specs=[add], output=TOTAL)
    assert (await provider.invoke(request)).tool_calls
    short = LocalProvider(chat_template=TEMPLATE, max_output_tokens=12)
    with pytest.raises(ModelError) as caught:
        await short.invoke(ModelRequest([SUM], tool_specs=[add]))
    assert caught.value.response_status == "length"


async def test_native_tools_need_a_template_and_templates_a_file(tmp_path, add):
    with pytest.raises(ModelError, match="knows no tools"):
        await LocalProvider(tools="native").invoke(ModelRequest(HELLO))
    with pytest.raises(ModelError, match=r"'none\.jinja' cannot be read"):
        await LocalProvider(chat_template=tmp_path / "none.jinja").invoke(
            ModelRequest(HELLO)
        )


async def test_the_log_has_figures_and_no_content(caplog):
    # A size that no other test has: a model that is held by a provider of another test
    # in this process is not loaded again, and so not logged.
    size = 1088
    caplog.set_level(logging.DEBUG, "lighter.local")
    async with LocalProvider(context_size=size) as provider:
        await provider.invoke(ModelRequest(HELLO))
        async with LocalProvider(context_size=size) as other:
            await other.invoke(ModelRequest(HELLO))
    loaded, reply, again = caplog.records
    assert again.getMessage() == reply.getMessage()
    assert (loaded.levelname, loaded.name) == ("INFO", "lighter.local")
    assert loaded.lighter_model.endswith(".gguf")
    assert reply.levelname == "DEBUG"
    assert reply.lighter_output_tokens > 0
    assert "hello" not in reply.getMessage().lower()


def test_nothing_is_printed_and_no_path_leaks(tmp_path):
    code = textwrap.dedent(
        """
        import asyncio, urllib.request, urllib.error
        from lighter_core import ModelRequest, UserMessage
        from lighter_local import LocalProvider, _registry
        request = ModelRequest([UserMessage("Say hello.")])
        asyncio.run(LocalProvider().invoke(request))
        (entry,) = _registry._entries.values()
        address = entry.future.result()._server.listening_address
        assert address.startswith("http://127.0.0.1:"), address
        for path in ("/props", "/slots"):
            try:
                urllib.request.urlopen(address + path)
            except urllib.error.HTTPError as error:
                assert error.code in (401, 501), error.code
            else:
                raise AssertionError("the port is open: " + path)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
