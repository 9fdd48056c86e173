"""An agent's session: what is stored, when, and what a run finds again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import BaseModel

from lighter_core import (
    Agent,
    AgentResponse,
    AssistantMessage,
    ImagePart,
    Message,
    ModelError,
    SessionConflictError,
    SessionError,
    SessionNotFoundError,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolCallStarted,
    ToolMessage,
    UserMessage,
    check_history,
    hookimpl,
    tool,
)
from lighter_core.history import INTERRUPTED
from lighter_core.sessions import Session, SQLiteStore
from lighter_core.testing import FakeProvider, Turn

ADD = ToolCall("c1", "add", '{"a": 19, "b": 23}')
ADD_TOO = ToolCall("c2", "add", '{"a": 1, "b": 2}')


@tool
def add(a: int, b: int) -> int:
    """Calculate a sum."""
    return a + b


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    async with SQLiteStore(tmp_path / "chats.db") as store:
        yield store


def roles(messages: Sequence[Message]) -> list[str]:
    return [message.role for message in messages]


async def stored(store: SQLiteStore, session_id: str = "chat") -> list[Message]:
    return (await store.load(session_id)).messages


async def test_a_run_loads_runs_and_appends(store: SQLiteStore) -> None:
    provider = FakeProvider([Turn(tool_calls=[ADD]), "42.", "Still 42."])
    session = Session(Agent(provider, tools=[add]), store, "chat")
    first = (await session.run("19 + 23?")).raise_if_failed()
    assert roles(first.messages) == ["assistant", "tool", "assistant"]
    assert await stored(store) == [UserMessage("19 + 23?"), *first.messages]
    second = (await session.run("Sure?")).raise_if_failed()
    asked = [m for m in provider.requests[-1].messages if m.role != "system"]
    assert asked == [
        UserMessage("19 + 23?"),
        *first.messages,
        UserMessage("Sure?"),
    ]
    assert second.messages == [AssistantMessage("Still 42.", stop_reason="end_turn")]
    assert await session.messages() == [*asked, *second.messages]


async def test_the_system_prompt_is_not_stored(store: SQLiteStore) -> None:
    agent = Agent(FakeProvider(["Hi."]), system_prompt="Be secret.")
    (await Session(agent, store, "chat").run("Hello")).raise_if_failed()
    assert roles(await stored(store)) == ["user", "assistant"]


async def test_system_messages_of_the_application_are_stored(
    store: SQLiteStore,
) -> None:
    agent = Agent(FakeProvider(["Hi."]), system_prompt=None)
    given = [SystemMessage("It is Monday."), UserMessage("Hello")]
    (await Session(agent, store, "chat").run(given)).raise_if_failed()
    assert (await stored(store))[:2] == given


async def test_nothing_is_executed_before_its_call_is_stored(
    store: SQLiteStore,
) -> None:
    seen: list[list[str]] = []

    @tool
    async def look() -> int:
        """Look at the store."""
        seen.append(roles(await stored(store)))
        return len(seen)

    calls = [ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "{}")]
    provider = FakeProvider([Turn(tool_calls=calls), "Done."])
    response = await Session(Agent(provider, tools=[look]), store, "chat").run("Go")
    response.raise_if_failed()
    assert seen == [["user", "assistant"], ["user", "assistant", "tool"]]


async def tool_outputs(store: SQLiteStore) -> list[str]:
    """The results that are stored."""
    return [m.tool_output for m in await stored_or_none(store) if m.role == "tool"]


async def test_results_of_parallel_tools_are_stored_in_call_order(
    store: SQLiteStore,
) -> None:
    """Each as soon as those before it are there; a later one waits for them."""
    finished = [asyncio.Event() for _ in range(3)]
    seen: list[list[str]] = []

    @tool
    async def wait(number: int) -> int:
        """Wait for a turn."""
        await finished[number].wait()
        return number

    calls = [ToolCall(f"c{n}", "wait", f'{{"number": {n}}}') for n in range(3)]
    provider = FakeProvider([Turn(tool_calls=calls), "Done."])
    agent = Agent(provider, tools=[wait], parallel_tools=True)
    run = asyncio.create_task(Session(agent, store, "chat").run("Go"))
    for number, wanted in ((1, 0), (0, 2), (2, 3)):
        finished[number].set()
        await asyncio.sleep(0.05)  # for what may come too early
        async with asyncio.timeout(10):
            while len(found := await tool_outputs(store)) < wanted:  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.005)
        seen.append(found)
    (await run).raise_if_failed()
    assert seen == [[], ["0", "1"], ["0", "1", "2"]]
    assert check_history(await stored(store)) == []


async def test_parallel_tools_that_are_cancelled_leave_each_message_once(
    store: SQLiteStore,
) -> None:
    for steps in range(12):
        calls = [ToolCall(f"c{n}", "add", '{"a": 1, "b": 2}') for n in range(4)]
        provider = FakeProvider([Turn(tool_calls=calls), "Done.", "Fine."])
        agent = Agent(provider, tools=[add], parallel_tools=True)
        session = Session(agent, store, f"chat-{steps}")
        task = asyncio.create_task(session.run("Go"))
        await asyncio.sleep(steps * 0.002)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        messages = await session.messages()
        assert messages == (await stored(store, session.id) if messages else [])
        assert check_history(messages) == []


async def stored_or_none(store: SQLiteStore) -> list[Message]:
    try:
        return await stored(store)
    except SessionNotFoundError:
        return []


async def test_the_input_is_stored_before_the_model_is_called(
    store: SQLiteStore,
) -> None:
    seen: list[list[Message]] = []

    class Looking(FakeProvider):
        async def invoke(self, request):
            seen.append(await stored(store))
            return await super().invoke(request)

    agent = Agent(Looking(["Hi."]))
    (await Session(agent, store, "chat").run("Hello")).raise_if_failed()
    assert seen == [[UserMessage("Hello")]]


async def test_input_that_a_hook_refuses_is_not_stored(store: SQLiteStore) -> None:
    """Else the conversation would be refused for ever."""

    class Gate:
        @hookimpl.before_agent
        def before_agent(self, request):
            if "forbidden" in str(request.messages[-1].content):
                raise PermissionError("no")

    agent = Agent(FakeProvider(["Hi."]), hooks=[Gate()])
    session = Session(agent, store, "chat")
    refused = await session.run("forbidden")
    assert isinstance(refused.error, PermissionError)
    with pytest.raises(SessionNotFoundError):
        await store.load("chat")
    (await session.run("Hello")).raise_if_failed()


async def test_what_a_hook_made_of_the_input_is_not_stored(store: SQLiteStore) -> None:
    class Remind:
        @hookimpl.before_agent
        def before_agent(self, request):
            request.messages.insert(0, SystemMessage("You are on the moon."))
            return request

    agent = Agent(FakeProvider(["Hi."]), hooks=[Remind()])
    (await Session(agent, store, "chat").run("Hello")).raise_if_failed()
    assert roles(await stored(store)) == ["user", "assistant"]


async def test_what_hooks_made_of_replies_and_results_is_stored(
    store: SQLiteStore,
) -> None:
    class Redact:
        @hookimpl.after_model
        def after_model(self, message):
            if message.content:
                return AssistantMessage("[reply]")
            return None

        @hookimpl.after_tool
        def after_tool(self, message):
            return ToolMessage(
                call_id=message.call_id, tool_name="add", tool_output="[result]"
            )

    provider = FakeProvider([Turn(tool_calls=[ADD]), "secret"])
    agent = Agent(provider, tools=[add], hooks=[Redact()])
    (await Session(agent, store, "chat").run("Go")).raise_if_failed()
    _, _, result, reply = await stored(store)
    assert (result.tool_output, reply.content) == ("[result]", "[reply]")


async def test_after_agent_changes_the_response_and_not_what_is_stored(
    store: SQLiteStore,
) -> None:
    class Shorten:
        @hookimpl.after_agent
        def after_agent(self, messages):
            return messages[-1:]

    provider = FakeProvider([Turn(tool_calls=[ADD]), "42."])
    agent = Agent(provider, tools=[add], hooks=[Shorten()])
    response = await Session(agent, store, "chat").run("Go")
    assert roles(response.messages) == ["assistant"]
    assert roles(await stored(store)) == ["user", "assistant", "tool", "assistant"]


async def test_a_failed_run_keeps_what_was_completed(store: SQLiteStore) -> None:
    fault = ModelError("gone", "network_error")
    provider = FakeProvider([Turn(tool_calls=[ADD]), fault, "Again: 42."])
    session = Session(Agent(provider, tools=[add]), store, "chat")
    failed = await session.run("Go")
    assert failed.error is fault
    assert await stored(store) == [UserMessage("Go"), *failed.messages]
    again = (await session.run([])).raise_if_failed()
    assert again.text == "Again: 42."
    assert roles(await stored(store)) == ["user", "assistant", "tool", "assistant"]


async def test_calls_that_a_failing_gate_left_open_are_closed(
    store: SQLiteStore,
) -> None:
    class Broken:
        @hookimpl.before_tool
        def before_tool(self, call):
            if call.call_id == "c2":
                raise ValueError("broken")

    provider = FakeProvider([Turn(tool_calls=[ADD, ADD_TOO]), "Fine."])
    session = Session(Agent(provider, tools=[add], hooks=[Broken()]), store, "chat")
    failed = await session.run("Go")
    assert isinstance(failed.error, ValueError)
    messages = await stored(store)
    assert messages == [UserMessage("Go"), *failed.messages]
    assert messages[-1].tool_output == INTERRUPTED
    assert check_history(messages) == []
    (await session.run("And now?")).raise_if_failed()


async def test_a_cancelled_run_keeps_what_was_completed(store: SQLiteStore) -> None:
    started = asyncio.Event()

    @tool
    async def hang() -> int:
        """Never end."""
        started.set()
        await asyncio.sleep(3600)
        return 1

    calls = [ADD, ToolCall("c2", "hang", "{}")]
    provider = FakeProvider([Turn(tool_calls=calls), "Fine."])
    session = Session(Agent(provider, tools=[add, hang]), store, "chat")
    task = asyncio.create_task(session.run("Go"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    messages = await stored(store)
    assert roles(messages) == ["user", "assistant", "tool", "tool"]
    assert [m.tool_output for m in messages[2:]] == ["42", INTERRUPTED]
    (await session.run("And now?")).raise_if_failed()
    assert check_history(await stored(store)) == []


@pytest.mark.parametrize("steps", range(40))
async def test_a_cancellation_anywhere_leaves_a_valid_conversation(
    store: SQLiteStore, steps: int
) -> None:
    """Each message once, in order, whatever write the cancellation meets."""
    provider = FakeProvider([Turn(tool_calls=[ADD, ADD_TOO]), "42.", "Fine.", "Fine."])
    session = Session(Agent(provider, tools=[add]), store, "chat")
    task = asyncio.create_task(session.run("Go"))
    for _ in range(steps):
        await asyncio.sleep(0)
        if steps > 20:
            await asyncio.sleep(0.0004)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    before = await session.messages()
    assert check_history(before) == []
    assert before == (await stored(store) if before else [])
    assert (
        roles(before)
        == ["user", "assistant", "tool", "tool", "assistant"][: len(before)]
    )
    (await session.run("On")).raise_if_failed()
    assert (await stored(store))[: len(before)] == before
    assert check_history(await stored(store)) == []


async def test_a_write_in_progress_ends_before_the_run_does(tmp_path: Path) -> None:
    """What a cancelled run has stored is known when it has ended."""
    entered, go = threading.Event(), threading.Event()

    class Slow(SQLiteStore):
        async def append(self, session_id, messages, /, *, after):
            given = list(messages)
            if given[0].role == "assistant":
                entered.set()
                await asyncio.to_thread(go.wait, 10)
            return await super().append(session_id, given, after=after)

    async with Slow(tmp_path / "x.db") as store:
        executed = []

        @tool
        async def act() -> None:
            """Act."""
            executed.append(1)

        provider = FakeProvider([Turn(tool_calls=[ToolCall("c1", "act", "{}")])])
        session = Session(Agent(provider, tools=[act]), store, "chat")
        task = asyncio.create_task(session.run("Go"))
        await asyncio.to_thread(entered.wait, 10)
        task.cancel()
        await asyncio.sleep(0.02)
        assert not task.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not executed
        messages = await stored(store)
        assert roles(messages) == ["user", "assistant", "tool"]
        assert messages[-1].tool_output == INTERRUPTED


async def test_calls_of_a_killed_run_are_closed_and_not_executed(
    store: SQLiteStore,
) -> None:
    """The store looks so when the process was killed after the first result."""
    head = None
    for message in [
        UserMessage("Go"),
        AssistantMessage("", tool_calls=[ADD, ADD_TOO]),
        ToolMessage(call_id="c1", tool_name="add", tool_output="42"),
    ]:
        (entry,) = await store.append("chat", [message], after=head)
        head = entry.id
    executed: list[int] = []

    @tool(name="add")
    def counted(a: int, b: int) -> int:
        """Calculate a sum."""
        executed.append(a)
        return a + b

    session = Session(Agent(FakeProvider(["So."]), tools=[counted]), store, "chat")
    assert check_history(await session.messages()) == []
    response = (await session.run("What happened?")).raise_if_failed()
    assert not executed
    assert response.notes == ["closed: the call 'c2' had no result"]
    messages = await stored(store)
    assert roles(messages) == [
        "user", "assistant", "tool", "tool", "user", "assistant",
    ]  # fmt: skip
    assert check_history(messages) == []
    assert messages[3].tool_output == INTERRUPTED


async def test_a_result_that_comes_later_answers_its_call(store: SQLiteStore) -> None:
    """An application may answer an open call itself."""
    head = None
    for message in [UserMessage("Go"), AssistantMessage("", tool_calls=[ADD])]:
        (entry,) = await store.append("chat", [message], after=head)
        head = entry.id
    agent = Agent(FakeProvider(["So."]))
    result = ToolMessage(call_id="c1", tool_name="add", tool_output="42")
    (await Session(agent, store, "chat").run([result])).raise_if_failed()
    assert (await stored(store))[2] == result


async def test_a_history_with_faults_inside_is_kept_and_repaired_for_each_run(
    store: SQLiteStore,
) -> None:
    broken = [
        UserMessage("Go"),
        AssistantMessage("", tool_calls=[ADD]),
        UserMessage("Hm?"),
    ]
    await store.append("chat", broken, after=None)
    session = Session(Agent(FakeProvider(["So.", "So."])), store, "chat")
    for _ in range(2):
        (await session.run("On")).raise_if_failed()
    assert (await stored(store))[:3] == broken
    assert roles(await stored(store))[3:] == ["user", "assistant"] * 2
    assert check_history(await session.messages()) == []


async def test_a_stream_stores_as_a_run_does(store: SQLiteStore) -> None:
    provider = FakeProvider([Turn(tool_calls=[ADD]), "42."])
    session = Session(Agent(provider, tools=[add]), store, "chat")
    async with session.stream("Go") as stream:
        async for event in stream:
            if isinstance(event, AgentResponse):
                final = event
    assert await stored(store) == [UserMessage("Go"), *final.messages]


async def test_leaving_a_stream_early_stores_what_was_completed(
    store: SQLiteStore,
) -> None:
    provider = FakeProvider([Turn(tool_calls=[ADD, ADD_TOO]), "Fine."])
    session = Session(Agent(provider, tools=[add]), store, "chat")
    async with session.stream("Go") as stream:
        async for event in stream:
            if isinstance(event, ToolCallStarted) and event.call.call_id == "c2":
                break
    messages = await stored(store)
    assert messages == [UserMessage("Go"), *stream.messages]
    assert [m.tool_output for m in messages[2:]] == ["42", INTERRUPTED]
    (await session.run("On")).raise_if_failed()


async def test_a_stream_that_nobody_reads_stores_nothing(store: SQLiteStore) -> None:
    session = Session(Agent(FakeProvider(["Hi."])), store, "chat")
    async with session.stream("Go"):
        pass
    assert await session.messages() == []


def test_synchronous_runs_and_streams(tmp_path: Path) -> None:
    provider = FakeProvider([Turn(tool_calls=[ADD]), "42.", "Bye."])
    with SQLiteStore(tmp_path / "x.db") as store:
        session = Session(Agent(provider, tools=[add]), store, "chat")
        assert session.run_sync("Go").raise_if_failed().text == "42."
        with session.stream_sync("Bye") as stream:
            events = list(stream)
        assert events[-1].text == "Bye."
        messages = asyncio.run(session.messages())  # another loop, the same store
        assert roles(messages)[-2:] == ["user", "assistant"]
        assert len(messages) == 6


async def test_answers_in_a_form_are_stored_with_their_repair(
    store: SQLiteStore,
) -> None:
    class Sum(BaseModel):
        value: int

    provider = FakeProvider(["nothing", '{"value": 42}'])
    session = Session(Agent(provider), store, "chat")
    response = await session.run("Go", output=Sum)
    assert response.raise_if_failed().output == Sum(value=42)
    assert roles(await stored(store)) == ["user", "assistant", "user", "assistant"]
    assert await stored(store) == [UserMessage("Go"), *response.messages]


async def test_deps_reach_the_tools(store: SQLiteStore) -> None:
    from lighter_core import RunContext

    @tool
    def whose(run: RunContext[str]) -> str:
        """Tell."""
        return run.deps

    calls = [ToolCall("c1", "whose", "{}")]
    provider = FakeProvider([Turn(tool_calls=calls), "So."])
    session = Session(Agent(provider, tools=[whose]), store, "chat")
    (await session.run("Go", deps="Ada")).raise_if_failed()
    assert (await stored(store))[2].tool_output == '"Ada"'


async def test_two_runs_at_once_exclude_each_other_before_the_model(
    store: SQLiteStore,
) -> None:
    """The later one fails and has cost nothing."""
    seen: list[int] = []

    class Waiting(FakeProvider):
        async def invoke(self, request):
            seen.append(len(request.messages))
            await one_is_over.wait()
            return await super().invoke(request)

    one_is_over = asyncio.Event()
    session = Session(Agent(Waiting(["One."])), store, "chat")
    runs = [asyncio.create_task(session.run(each)) for each in "ab"]
    async with asyncio.timeout(20):
        await asyncio.wait(runs, return_when=asyncio.FIRST_COMPLETED)
    one_is_over.set()
    results = await asyncio.gather(*runs)
    failed = [r for r in results if r.status == "failed"]
    assert len(failed) == 1
    assert isinstance(failed[0].error, SessionConflictError)
    assert len(seen) == 1
    assert roles(await stored(store)) == ["user", "assistant"]


async def test_a_writer_in_between_fails_the_run_before_the_tool(
    store: SQLiteStore,
) -> None:
    executed: list[int] = []

    @tool
    def act() -> None:
        """Act."""
        executed.append(1)

    class Interfering(FakeProvider):
        async def invoke(self, request):
            head = (await store.load("chat")).info.head
            await store.append("chat", [UserMessage("Me too!")], after=head)
            return await super().invoke(request)

    provider = Interfering([Turn(tool_calls=[ToolCall("c1", "act", "{}")])])
    response = await Session(Agent(provider, tools=[act]), store, "chat").run("Go")
    assert isinstance(response.error, SessionConflictError)
    assert not executed
    assert roles(response.messages) == ["assistant", "tool"]
    assert roles(await stored(store)) == ["user", "user"]


async def test_a_store_that_fails_fails_the_run_before_the_tool(
    tmp_path: Path,
) -> None:
    executed: list[int] = []

    @tool
    def act() -> None:
        """Act."""
        executed.append(1)

    class Closing(FakeProvider):
        async def invoke(self, request):
            await store.aclose()
            return await super().invoke(request)

    store = SQLiteStore(tmp_path / "x.db")
    provider = Closing([Turn(tool_calls=[ToolCall("c1", "act", "{}")])])
    response = await Session(Agent(provider, tools=[act]), store, "chat").run("Go")
    assert isinstance(response.error, SessionError)
    assert response.error.code == "closed"
    assert not executed
    assert roles(response.messages) == ["assistant", "tool"]


async def test_a_failure_while_calls_are_closed_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The run's own error is what the caller sees."""
    store = SQLiteStore(tmp_path / "x.db")

    class Broken:
        @hookimpl.before_tool
        async def before_tool(self, call):
            await store.aclose()
            raise ValueError("broken")

    provider = FakeProvider([Turn(tool_calls=[ADD])])
    agent = Agent(provider, tools=[add], hooks=[Broken()])
    response = await Session(agent, store, "chat").run("Go")
    assert isinstance(response.error, ValueError)
    assert "were not stored" in caplog.text


async def test_a_message_that_cannot_be_stored_fails_the_run(
    store: SQLiteStore,
) -> None:
    class Odd(FakeProvider):
        async def invoke(self, request):
            message = AssistantMessage("x")
            object.__setattr__(message, "stop_reason", 7)
            return message

    response = await Session(Agent(Odd([])), store, "chat").run("Go")
    assert response.status == "failed"
    assert await stored(store) == [UserMessage("Go")]


async def test_forks_go_their_own_way(store: SQLiteStore) -> None:
    provider = FakeProvider(["One.", "Two.", "Other."])
    session = Session(Agent(provider), store, "chat")
    (await session.run("1")).raise_if_failed()
    entry = (await store.load("chat")).entries[-1]
    (await session.run("2")).raise_if_failed()
    fork = await session.fork("fork", at=entry.id)
    (await fork.run("other")).raise_if_failed()
    assert [m.content for m in await fork.messages()] == [
        "1",
        "One.",
        "other",
        "Other.",
    ]
    assert [m.content for m in await session.messages()] == ["1", "One.", "2", "Two."]
    with pytest.raises(SessionConflictError):
        await session.fork("fork")
    named = await session.fork()
    assert named.id != session.id
    assert await named.messages() == await session.messages()


async def test_a_session_without_an_id_gets_a_new_one(store: SQLiteStore) -> None:
    agent = Agent(FakeProvider([]))
    assert Session(agent, store).id != Session(agent, store).id
    with pytest.raises(SessionError, match="printable"):
        Session(agent, store, "a\nb")
    with pytest.raises(SessionError, match="printable"):
        Session(agent, store, "")
    assert "chat" in repr(Session(agent, store, "chat"))


async def test_pictures_are_stored(store: SQLiteStore) -> None:
    picture = UserMessage(
        [TextPart("Look:"), ImagePart(data=b"\x00\xff", media_type="image/png")]
    )
    session = Session(Agent(FakeProvider(["Nice."])), store, "chat")
    (await session.run(picture)).raise_if_failed()
    assert (await stored(store))[0] == picture


async def test_one_store_serves_many_sessions_at_once(store: SQLiteStore) -> None:
    async def talk(number: int) -> None:
        provider = FakeProvider([Turn(tool_calls=[ADD]), f"Answer {number}."])
        session = Session(Agent(provider, tools=[add]), store, f"chat-{number}")
        response = await session.run(f"Question {number}")
        assert response.raise_if_failed().text == f"Answer {number}."

    await asyncio.gather(*(talk(n) for n in range(50)))
    for number in range(50):
        messages = await stored(store, f"chat-{number}")
        assert messages[0] == UserMessage(f"Question {number}")
        assert messages[-1].content == f"Answer {number}."
