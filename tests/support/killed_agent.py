"""An agent with a session, in a process that is killed and begins again.

Run as a program it waits for lines of JSON on its input, and for each forks a child that
lives that life: the imports are made once. It answers with the child's process id, then
with how the child ended.

The agent does items of work, in order. Each turn its model asks for two items and then for
one; which ones come next it reads from the conversation: the first that have no result
there. A tool writes each item, with the id of its call, into a ledger.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import signal
import sys
from pathlib import Path

from lighter_conformance.stores._registry import make_store
from lighter_core import (
    Agent,
    AssistantMessage,
    Message,
    ModelRequest,
    RunContext,
    SessionNotFoundError,
    ToolCall,
    ToolMessage,
    UserMessage,
    messages_from_json,
    messages_to_json,
    repair_history,
    tool,
)
from lighter_core.sessions import Session, Store
from lighter_core.testing import FakeProvider, Turn

CHAT = "chat"


class Clock:
    """Counts the moments at which a life may end; ends it at one of them."""

    def __init__(self, last: int | None) -> None:
        self._left = last

    def tick(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Ticking:
    """A store whose appends are moments: before and after each."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def append(self, session_id, messages, /, *, after):
        self._clock.tick()
        entries = await self._store.append(session_id, messages, after=after)
        self._clock.tick()
        return entries


def done_items(messages: list[Message]) -> set[int]:
    """Return the items whose result is in the conversation."""
    asked: dict[str, int] = {}
    done = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                asked[call.call_id] = json.loads(call.arguments)["item"]
        elif isinstance(message, ToolMessage) and not message.is_error:
            done.add(asked[message.call_id])
    return done


def _reply(request: ModelRequest) -> Turn:
    messages = list(request.messages)
    done = done_items(messages)
    last = max(i for i, m in enumerate(messages) if isinstance(m, UserMessage))
    rounds = sum(isinstance(m, AssistantMessage) for m in messages[last:])
    wanted = {0: 2, 1: 1}.get(rounds, 0)
    items = [n for n in range(len(done) + wanted) if n not in done][:wanted]
    calls = [
        ToolCall(f"call-{os.urandom(6).hex()}", "act", json.dumps({"item": n}))
        for n in items
    ]
    return Turn(tool_calls=calls) if calls else Turn(text="Done.")


def _agent(ledger: int, clock: Clock) -> Agent:
    @tool
    async def act(item: int, run: RunContext[None]) -> str:
        """Do one item."""
        clock.tick()
        os.write(ledger, f"{item} {run.call_id}\n".encode())
        clock.tick()
        await asyncio.sleep(random.random() * 0.004)
        return "done"

    return Agent(FakeProvider([_reply] * 10_000), tools=[act], system_prompt=None)


async def live(
    factory: str, argument: str, ledger: str, turns: int, last: int | None, late: bool
) -> None:
    """Go on with the conversation for some turns, or until the clock says so."""
    clock = Clock(last)
    file = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    store = make_store(factory, argument)
    agent = _agent(file, clock)
    for number in range(turns):
        text = f"Turn {number} of {os.getpid()}."
        if late:
            await _late(agent, store, text)
        else:
            session = Session(agent, Ticking(store, clock), CHAT)
            (await session.run(text)).raise_if_failed()
    await store.aclose()


async def _late(agent: Agent, store: Store, text: str) -> None:
    """Store only at the end of a run: what the harness must find fault with."""
    try:
        stored = await store.load(CHAT)
        before, head = stored.messages, stored.info.head
    except SessionNotFoundError:
        before, head = [], None
    given = [*repair_history(before).messages, UserMessage(text)]
    response = (await agent.run(given)).raise_if_failed()
    new = [UserMessage(text), *response.messages]
    await store.append(CHAT, new, after=head)


def main() -> None:
    """Fork a child for each line."""
    for module in ("pydantic_core", "sqlalchemy.dialects.postgresql.psycopg"):
        importlib.import_module(module)  # here, and not in each child
    _agent(sys.stdout.fileno(), Clock(None))
    messages_from_json(messages_to_json([UserMessage("")]))
    for line in sys.stdin:
        life = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                asyncio.run(live(**life))
            except BaseException as error:
                Path(f"{life['ledger']}.error").write_text(repr(error))
                os._exit(1)
            os._exit(0)
        _tell(pid)
        _, status = os.waitpid(pid, 0)
        _tell(os.waitstatus_to_exitcode(status))


def _tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
