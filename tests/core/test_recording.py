"""Recording a provider and serving what it said again."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from support.histories import replies
from support.torture import examples
from support.waiting import until

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    HostedToolItem,
    Message,
    MessageEvent,
    Model,
    ModelError,
    ModelRequest,
    ProviderStreamEvent,
    ReasoningDelta,
    RecordingError,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
    UserMessage,
    tool,
)
from lighter_core.__main__ import main
from lighter_core.recording import ReplayProvider, record
from lighter_core.testing import FakeProvider, Pause, Turn

ADD = [
    Turn(
        text="I add.",
        reasoning="Two numbers.",
        tool_calls=[ToolCall("c1", "add", '{"a":19,"b":23}')],
        usage=Usage(10, 5),
    ),
    Turn(text="42 é\u2028😀", usage=Usage(20, 3)),
]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def shown(response: AgentResponse) -> tuple[object, ...]:
    return response.status, response.messages, response.usage, response.stop_reason


def recorded(tmp_path: Path, turns: list[object] | None = None) -> Path:
    path = tmp_path / "run.jsonl"
    provider = FakeProvider(ADD if turns is None else turns, name="acme")  # type: ignore[arg-type]
    Agent(record(provider, path), tools=[add]).run_sync("19 + 23?")
    return path


def test_a_replayed_run_equals_the_recorded_one(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first = Agent(record(FakeProvider(ADD), path), tools=[add]).run_sync("19 + 23?")
    replay = ReplayProvider(path)
    assert (replay.name, replay.unused) == ("fake", 2)
    again = Agent(replay, tools=[add]).run_sync("19 + 23?")
    assert shown(again) == shown(first)
    assert again.text == "42 é\u2028😀"
    assert replay.unused == 0


def test_streams_are_replayed_event_by_event(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    reply = AssistantMessage("Found.", tool_calls=[ToolCall("c", "add", '{"a":1}')])
    events: list[ProviderStreamEvent] = [
        ReasoningDelta("hm"),
        ToolCallDelta("c", "add", '{"a"'),
        ToolCallDelta("c", "add", ":1}"),
        HostedToolItem("web_search_call", '{"type":"web_search_call"}'),
        TextDelta("Fou"),
        TextDelta("nd."),
        MessageEvent(reply),
    ]
    request = ModelRequest([UserMessage("Find it")])
    provider = record(FakeProvider([events, "x"]), path)
    assert asyncio.run(collected(provider.stream(request))) == events
    replay = ReplayProvider(path)
    assert asyncio.run(collected(replay.stream(request))) == events
    assert asyncio.run(ReplayProvider(path).invoke(request)) == reply


async def collected(
    stream: AsyncGenerator[ProviderStreamEvent, None],
) -> list[ProviderStreamEvent]:
    return [event async for event in stream]


def test_invoke_is_replayed_as_a_stream_too(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    replay = ReplayProvider(path)
    response = asyncio.run(streamed(Agent(replay, tools=[add])))
    assert response == ["Two numbers.", "I add.", "42 é\u2028😀"]


async def streamed(agent: Agent) -> list[str]:
    texts: list[str] = []
    async with agent.stream("19 + 23?") as stream:
        async for event in stream:
            match event:
                case TextDelta(text) | ReasoningDelta(text):
                    texts.append(text)
                case _:
                    pass
    return texts


@given(st.lists(replies(st.just([])), min_size=1, max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_messages_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, messages: list[AssistantMessage]
) -> None:
    path = tmp_path_factory.mktemp("r") / "run.jsonl"

    async def talk(provider: object) -> list[Message]:
        history: list[Message] = []
        for number in range(len(messages)):
            history.append(UserMessage(f"\ud800 {number}"))
            history.append(await provider.invoke(ModelRequest(history)))  # type: ignore[attr-defined]
        return history

    first = asyncio.run(talk(record(FakeProvider(messages), path)))
    assert asyncio.run(talk(ReplayProvider(path))) == first


def test_errors_are_replayed(tmp_path: Path) -> None:
    error = ModelError(
        "slow down",
        "rate_limit",
        http_status=429,
        provider="acme",
        retry_after=2.5,
        request_id="req_1",
        vendor_code="rate",
    )
    path = recorded(tmp_path, [[TextDelta("be"), error]])
    again = Agent(ReplayProvider(path), tools=[add]).run_sync("19 + 23?")
    assert again.status == "failed"
    assert isinstance(again.error, ModelError)
    assert again.error.__reduce__() == error.__reduce__()


def test_other_exceptions_are_replayed_by_their_text(tmp_path: Path) -> None:
    path = recorded(tmp_path, [RuntimeError("the adapter broke")])
    again = Agent(ReplayProvider(path), tools=[add]).run_sync("19 + 23?")
    assert str(again.error) == "RuntimeError: the adapter broke"


def test_a_call_that_its_caller_left_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    request = ModelRequest([UserMessage("hi")])

    async def leave() -> None:
        provider = record(FakeProvider([[TextDelta("a"), Pause(60)]]), path)
        stream = provider.stream(request)
        assert await anext(stream) == TextDelta("a")
        await stream.aclose()

    asyncio.run(leave())

    async def again() -> None:
        stream = ReplayProvider(path).stream(request)
        assert await anext(stream) == TextDelta("a")
        with pytest.raises(RecordingError, match="its caller had left"):
            await anext(stream)

    asyncio.run(again())


def test_cancelling_is_recorded_and_not_swallowed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    async def cancel() -> None:
        inner = FakeProvider([[Pause(60)]])
        provider = record(inner, path)
        task = asyncio.ensure_future(provider.invoke(ModelRequest([UserMessage("hi")])))
        await until(lambda: inner.requests)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert ReplayProvider(path).exchanges[0].left


# What differs.


@pytest.mark.parametrize(
    ("question", "tools", "path", "words"),
    [
        (
            "19 + 24?",
            [add],
            "messages[1].content",
            "recorded '19 + 23?', now '19 + 24?'",
        ),
        ("19 + 23?", [], "tool_specs[0]", "recorded"),
    ],
)
def test_a_difference_names_its_place(
    tmp_path: Path, question: str, tools: list[object], path: str, words: str
) -> None:
    replay = ReplayProvider(recorded(tmp_path))
    response = Agent(replay, tools=tools).run_sync(question)  # type: ignore[arg-type]
    assert isinstance(response.error, RecordingError)
    assert response.error.path == path
    assert "differs from call 1 of the recording" in str(response.error)
    assert words in str(response.error)


def test_the_first_differing_message_is_named(tmp_path: Path) -> None:
    @tool(name="add")
    def wrong(a: int, b: int) -> int:
        """Add two numbers."""
        return a * b

    response = Agent(ReplayProvider(recorded(tmp_path)), tools=[wrong]).run_sync(
        "19 + 23?"
    )
    assert isinstance(response.error, RecordingError)
    assert response.error.path == "messages[3].tool_output"
    assert "recorded '42', now '437'" in str(response.error)


def test_a_shorter_conversation_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    history = [UserMessage("a"), AssistantMessage("b"), UserMessage("c")]
    asyncio.run(record(FakeProvider(["x"]), path).invoke(ModelRequest(history)))
    with pytest.raises(RecordingError, match="has 3 messages, this one 1") as caught:
        asyncio.run(ReplayProvider(path).invoke(ModelRequest(history[:1])))
    assert caught.value.path == "messages[1]"


def test_one_call_too_many_is_told(tmp_path: Path) -> None:
    replay = ReplayProvider(recorded(tmp_path))
    agent = Agent(replay, tools=[add])
    assert agent.run_sync("19 + 23?").status == "completed"
    response = agent.run_sync("19 + 23?")
    assert "makes one more" in str(response.error)


def test_runs_at_the_same_time_find_their_own_replies(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    def answer(request: ModelRequest) -> str:
        return f"to {request.messages[-1].content}"  # type: ignore[union-attr]

    async def ask(agent: Agent, order: list[int]) -> dict[int, str]:
        found = await asyncio.gather(*(agent.run(str(each)) for each in order))
        return dict(zip(order, (each.text for each in found), strict=True))

    numbers = list(range(20))
    first = asyncio.run(ask(Agent(record(FakeProvider([answer] * 20), path)), numbers))
    again = asyncio.run(ask(Agent(ReplayProvider(path)), numbers[::-1]))
    assert again == first


# The file.

HEAD = '{"lighter_recording":1,"provider":"p","model_id":null,"capabilities":[]}\n'
EMPTY = '"messages":{"version":1,"messages":[]},"tool_specs":[]'


def with_event(event: str) -> str:
    return f'{HEAD}{{"after":null,"shared":0,{EMPTY},"events":[{event}]}}\n'


def test_a_file_holds_each_message_once(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    long = "x" * 1000

    async def talk() -> None:
        provider = record(FakeProvider(["y"] * 30), path)
        history: list[Message] = []
        for _ in range(30):
            history.append(UserMessage(long))
            history.append(await provider.invoke(ModelRequest(history)))

    asyncio.run(talk())
    assert path.stat().st_size < 30 * 2000
    assert len(ReplayProvider(path).exchanges[-1].request.messages) == 59


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    assert len(ReplayProvider(path).exchanges) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no header"),
        ("{}\n", "line 1: this is no line of a recording"),
        ("[1]\n", "line 1"),
        ("no json\n", "line 1"),
        (
            '{"lighter_recording":2,"provider":"p","model_id":null,"capabilities":[]}\n',
            "version 2",
        ),
        (HEAD + f'{{"after":7,"shared":1,{EMPTY},"events":[]}}\n', "line 2"),
        (with_event('{"type":"text_delta","text":1}'), "other things than text"),
        (with_event('{"type":"os.system","text":"x"}'), "line 2"),
        (with_event('{"type":"text_delta","text":"x","call":"y"}'), "line 2"),
    ],
)
def test_other_files_are_refused_with_the_line(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(RecordingError, match=words):
        ReplayProvider(path)


def test_a_full_disk_does_not_fail_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "d" / "run.jsonl"
    path.parent.mkdir()
    provider = record(FakeProvider(["hi"]), path)
    path.unlink()
    path.mkdir()  # nothing can be appended to a directory
    with caplog.at_level(logging.WARNING, "lighter.recording"):
        assert Agent(provider).run_sync("x").text == "hi"
    assert "is missing in" in caplog.text


# Secrets.

CANARY = "canary-5f3c9a7e1b2d4860"


def test_secrets_are_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", CANARY)
    form = "sk-" + "abcdefgh12345678"  # the form alone, no key
    given = "own-secret-1"
    path = tmp_path / "run.jsonl"
    turns = [
        [
            TextDelta(f"I see {CANARY[:9]}"),
            TextDelta(f"{CANARY[9:]} and {form} and {given}"),
            MessageEvent(AssistantMessage(f"I see {CANARY} and {form} and {given}")),
        ],
        ModelError(f"refused {CANARY}", "auth_error"),
    ]
    agent = Agent(
        record(FakeProvider(turns), path, secrets=[given]),
        system_prompt=f"the key is {CANARY}, the file {given}",
    )
    list(agent.stream_sync("go"))
    agent.run_sync(f"and {CANARY}")
    text = path.read_text("utf-8")
    for secret in (CANARY, CANARY[:9], CANARY[9:], form, given):
        assert secret not in text
    assert text.count("[redacted]") >= 6
    replay = ReplayProvider(path)
    again = Agent(replay, system_prompt=replay.system_prompt)
    assert again.run_sync("go").text == "I see [redacted] and [redacted] and [redacted]"


def test_a_request_with_a_secret_still_finds_its_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", CANARY)
    path = tmp_path / "run.jsonl"
    Agent(record(FakeProvider(["hi"]), path)).run_sync(f"my key: {CANARY}")
    assert Agent(ReplayProvider(path)).run_sync(f"my key: {CANARY}").text == "hi"


def test_secrets_is_a_list(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="list of texts"):
        record(FakeProvider([]), tmp_path / "x", secrets="abc")


# The provider by name, the command and the fixture.


def test_the_provider_by_name(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    model = Model.from_name("replay", path=path)
    assert Agent(model, tools=[add]).run_sync("19 + 23?").text == "42 é\u2028😀"


def _pytest(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTEST_ADDOPTS": "",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


class Sum(BaseModel):
    """A sum."""

    value: int


@pytest.mark.parametrize("kind", ["completed", "failed", "output"])
def test_a_recording_becomes_a_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """The test that is written passes, and fails when the recording is another one."""
    turns: dict[str, list[object]] = {
        "completed": list(ADD),
        "failed": [ADD[0], ModelError("too long", "invalid_request", http_status=400)],
        "output": [ADD[0], '{"value": 42}'],
    }
    path = tmp_path / "Support case-7.jsonl"
    agent = Agent(record(FakeProvider(turns[kind]), path), tools=[add])  # type: ignore[arg-type]
    if kind == "output":
        assert agent.run_sync("19 + 23?", output=Sum).output == Sum(value=42)
    else:
        agent.run_sync("19 + 23?")
    target = tmp_path / "tests"
    test = target / "test_case.py"
    assert main(["make-test", str(path), "--output", str(test)]) == 0
    assert "run it with: pytest" in capsys.readouterr().out
    assert main(["make-test", str(path), "--output", str(test)]) == 1
    assert "there already" in capsys.readouterr().err
    done = _pytest(cwd=target)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    copy = target / path.name
    copy.write_text(copy.read_text("utf-8").replace("19 + 23?", "1 + 1?"), "utf-8")
    assert _pytest(cwd=target).returncode == 0  # the input is the recording's own
    lines = copy.read_text("utf-8").splitlines(keepends=True)
    copy.write_text("".join(lines[:-1]), "utf-8")
    assert _pytest(cwd=target).returncode == 1


@pytest.mark.parametrize("text", [None, "{}\n"])
def test_the_command_refuses_what_is_no_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    path = tmp_path / "x.jsonl"
    if text is not None:
        path.write_text(text, "utf-8")
    assert main(["make-test", str(path)]) == 1
    assert "x.jsonl" in capsys.readouterr().err
    assert not (tmp_path / "test_x.py").exists()


TEST = """
from lighter_core import Agent
from lighter_core.testing import FakeProvider

def make():
    return FakeProvider(["hello"])

def test_hello(lighter_recording):
    assert Agent(lighter_recording(make)).run_sync(QUESTION).text == "hello"

QUESTION = "hi"
"""


def test_the_fixture_records_once_and_replays(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        'pytest_plugins = ["lighter_core.pytest_plugin"]', "utf-8"
    )
    test = tmp_path / "test_agent.py"
    test.write_text(TEST, "utf-8")
    missing = _pytest(cwd=tmp_path)
    assert missing.returncode == 1
    assert "pytest --lighter-record" in missing.stdout
    assert _pytest("--lighter-record", cwd=tmp_path).returncode == 0
    file = tmp_path / "recordings" / "test_agent" / "test_hello.jsonl"
    assert json.loads(file.read_text("utf-8").splitlines()[0])["provider"] == "fake"
    test.write_text(TEST.replace('FakeProvider(["hello"])', "None"), "utf-8")
    assert _pytest(cwd=tmp_path).returncode == 0
    test.write_text(TEST.replace('"hi"', '"bye"'), "utf-8")
    changed = _pytest(cwd=tmp_path)
    assert changed.returncode == 1
    test.write_text(TEST.replace(".run_sync(QUESTION).text", " and 'hello'"), "utf-8")
    unused = _pytest(cwd=tmp_path)
    assert unused.returncode == 1
    assert "1 calls that this test did not make" in unused.stdout
