"""What can be done before the first request, and what it changes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import time

import pytest
from support.interfaces import INTERFACES, ask
from support.threads import ServerThread

from lighter_core import Agent, Model, ModelError, SupportsWarmUp
from lighter_core.fallback import FallbackProvider
from lighter_core.retry import RetryProvider
from lighter_core.testing import FakeProvider


def clients_of(provider) -> list[object]:
    return [client for client, _ in provider._sender._pool._clients.values()]


async def test_it_makes_the_client_that_requests_use(server, interface, make):
    """One for the loop, however often it is called; nothing is sent."""
    provider = make()
    assert isinstance(provider, SupportsWarmUp)
    await asyncio.gather(*(provider.warm_up() for _ in range(5)))
    (client,) = clients_of(provider)
    assert server.connections == 0
    server.script(interface.good(streamed=True))
    assert (await ask(provider, streamed=True)).content == "Hello!"
    await provider.warm_up()
    assert clients_of(provider) == [client]
    await provider.aclose()
    await provider.warm_up()  # as after any request: it can be used again
    assert len(clients_of(provider)) == 1


async def test_a_given_client_is_left_alone(server, interface, make):
    """It is there already."""
    client = interface.make_client(api_key="sk-test", base_url=server.url)
    provider = make(client=client)
    await provider.warm_up()
    assert clients_of(provider) == []
    await client.close()
    assert server.connections == 0


@pytest.mark.parametrize("wrap", [Model, Agent, RetryProvider, None])
async def test_whatever_holds_a_provider_hands_it_on(make, wrap):
    """A provider that has nothing to prepare is no obstacle."""
    provider = make()
    held = FallbackProvider([FakeProvider([]), provider]) if wrap is None else None
    await (held or wrap(provider)).warm_up()
    assert len(clients_of(provider)) == 1
    await (Model if wrap in {None, RetryProvider} else wrap)(FakeProvider([])).warm_up()


async def test_a_request_and_its_warm_up_fail_alike(interface, make, monkeypatch):
    """Without the SDK, and with certificates that are not there."""
    provider = make()

    async def broken(name: str) -> None:
        raise ImportError(f"No module named {name!r}")

    with monkeypatch.context() as patch:
        patch.setattr("lighter_core.adapters._sender.import_sdk", broken)
        await alike(provider, interface, "pip install")
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    await alike(provider, interface, "FileNotFoundError")
    monkeypatch.delenv("SSL_CERT_FILE")
    await provider.warm_up()  # what has failed once may succeed later


async def alike(provider, interface, words: str) -> None:
    found = []
    for step in (provider.warm_up(), ask(provider, streamed=False)):
        with pytest.raises(ModelError, match=words) as caught:
            await step
        assert caught.value.provider == interface.name
        found.append((caught.value.code, caught.value.message))
    assert found[0] == found[1]
    fallback = FallbackProvider([provider, FakeProvider([])])
    await fallback.warm_up()  # another stands in
    with pytest.raises(ModelError, match=words):
        await FallbackProvider([provider, provider]).warm_up()


async def test_who_no_longer_waits_is_let_go(make, monkeypatch):
    """The import goes on by itself; it cannot be stopped, and serves the next."""
    import threading

    from lighter_core.adapters import _transport

    begun, leave = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        leave.wait(10)

    monkeypatch.setattr(_transport, "_contexts", {})
    monkeypatch.setattr(_transport, "tls_context", slow)
    provider = make()
    task = asyncio.create_task(provider.warm_up())
    assert await asyncio.to_thread(begun.wait, 10)
    began = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - began < 5
    leave.set()
    monkeypatch.undo()
    assert clients_of(provider) == []


def test_synchronous_programs_have_a_door(interface):
    """The loop behind `run_sync` gets the client, and its first run finds it."""
    with ServerThread() as server:
        server.script(interface.good(streamed=False))
        agent = Agent(interface.provider("sk-test", "m", base_url=server.url))
        agent.warm_up_sync()
        (client,) = clients_of(agent.model.provider)
        assert agent.run_sync("go").text == "Hello!"
        assert clients_of(agent.model.provider) == [client]

        async def close() -> None:
            await agent.aclose()

        from lighter_core._sync import run_sync

        run_sync(close, instead="")


CODE = """
import asyncio, sys, time
from lighter_core import Agent, Model
options = {{"api_key": "sk-test", "model_id": "m", "base_url": {url!r}}}
agent = Agent(Model.from_name({name!r}, **options))

async def main():
    assert {sdk!r} not in sys.modules
    loop, stood = asyncio.get_running_loop(), [0]

    async def other():
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.005)
            stood[0] = max(stood[0], time.thread_time() - began)

    beside = asyncio.create_task(other())
    await agent.warm_up()
    beside.cancel()
    assert {sdk!r} in sys.modules
    before = set(sys.modules)
    response = await agent.run("go")
    print(response.text, len(set(sys.modules) - before), stood[0])

asyncio.run(main())
"""


@pytest.mark.parametrize("interface", INTERFACES[::3], ids=lambda each: each.id)
def test_the_import_does_not_stop_the_loop(interface):
    """Another task goes on meanwhile; what is left for the first run is little."""
    with ServerThread() as server:
        server.script(interface.good(streamed=False))
        code = CODE.format(name=interface.name, url=server.url, sdk=interface.sdk)
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.stderr == ""
    text, late, stood = done.stdout.split()
    assert text == "Hello!"
    assert int(late) < 100  # of about a thousand
    assert float(stood) < 0.5  # of the loop's own thread; the import takes more
