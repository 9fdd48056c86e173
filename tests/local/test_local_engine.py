"""The engine over a scripted library: turns, cancellation, errors, closing."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from pathlib import Path

import pytest

from lighter_core import ModelError
from lighter_local import _registry as registry
from lighter_local._engine import Engine
from lighter_local._native import Settings

SETTINGS = Settings(
    path=Path("/x.gguf"), context_size=64, parallel=1, threads=1, chat_template=None
)


def chunk(text):
    return {"choices": [{"delta": {"content": text}, "finish_reason": None}]}


class Library:
    """Stands for the native server: it calls back on the thread that called it."""

    listening_address = ""

    def __init__(self):
        self.bodies = []
        self.active = 0
        self.most_active = 0
        self.ended_early = 0
        self.go = threading.Event()
        self.go.set()

    def handle_chat_completions(self, body, callback, /):
        self.bodies.append(body)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            return self.work(body, callback)
        finally:
            self.active -= 1

    def work(self, body, callback):
        for number in range(body.get("count", 3)):
            self.go.wait(10)
            time.sleep(0.002)
            if callback(chunk(str(number))):
                self.ended_early += 1
                return


def make(library=None, **changes):
    from dataclasses import replace

    library = library or Library()
    return library, Engine(
        library, knows_tools=False, settings=replace(SETTINGS, **changes)
    )


async def texts(engine, **body):
    out = []
    async with engine.chat(body) as chunks:
        async for each in chunks:
            out.append(each["choices"][0]["delta"]["content"])
    return out


async def test_chunks_arrive_in_order():
    _, engine = make()
    assert await texts(engine, count=5) == ["0", "1", "2", "3", "4"]


async def test_requests_wait_for_their_turn():
    library, engine = make(parallel=2)
    results = await asyncio.gather(*(texts(engine, count=4) for _ in range(6)))
    assert results == [["0", "1", "2", "3"]] * 6
    assert library.most_active == 2


async def test_leaving_ends_the_request_and_joins_its_thread():
    library, engine = make()
    async with engine.chat({"count": 10_000}) as chunks:
        async for _ in chunks:
            break
        thread = chunks.thread
    assert library.ended_early == 1
    assert library.active == 0
    thread.join(1)
    assert not thread.is_alive()
    assert await texts(engine) == ["0", "1", "2"]


async def test_a_waiting_request_can_be_cancelled():
    library, engine = make()
    library.go.clear()
    first = asyncio.create_task(texts(engine))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(texts(engine, name="second"))
    await asyncio.sleep(0.01)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    library.go.set()
    assert await first == ["0", "1", "2"]
    assert [body.get("name") for body in library.bodies] == [None]


async def test_an_error_chunk_is_raised():
    class Refusing(Library):
        def work(self, body, callback):
            error = {"type": "exceed_context_size_error", "message": "too long"}
            error |= {"n_prompt_tokens": 900, "n_ctx": 64}
            callback({"error": error})

    _, engine = make(Refusing())
    with pytest.raises(ModelError, match=r"900 tokens.*64.*context_size") as caught:
        await texts(engine)
    assert caught.value.code == "invalid_request"
    assert caught.value.vendor_code == "exceed_context_size_error"


@pytest.mark.parametrize(
    ("error", "code"),
    [(ValueError("bad schema"), "invalid_request"), (RuntimeError("x"), "unknown")],
)
async def test_an_exception_of_the_library_is_mapped(error, code):
    class Raising(Library):
        def work(self, body, callback):
            raise error

    _, engine = make(Raising())
    with pytest.raises(ModelError) as caught:
        await texts(engine)
    assert caught.value.code == code
    assert caught.value.__cause__ is error
    assert await_free(engine)


def await_free(engine):
    return not engine._running and not engine._waiting


async def test_text_that_utf8_cannot_hold_reaches_the_library_replaced():
    library, engine = make()
    await texts(engine, messages=[{"content": "a\ud800b"}])
    assert library.bodies[0]["messages"] == [{"content": "a\ufffdb"}]


async def test_progress_chunks_are_not_handed_on():
    class Progress(Library):
        def work(self, body, callback):
            assert not callback({**chunk(None), "prompt_progress": {"processed": 1}})
            assert not callback("noise")
            callback(chunk("text"))

    _, engine = make(Progress())
    assert await texts(engine) == ["text"]


async def test_closing_ends_running_and_waiting_requests():
    library, engine = make()
    running = asyncio.create_task(texts(engine, count=10_000))
    await asyncio.sleep(0.02)
    waiting = asyncio.create_task(texts(engine))
    await asyncio.sleep(0.01)
    await asyncio.to_thread(engine.close)
    for task in (running, waiting):
        with pytest.raises(ModelError) as caught:
            await task
        assert caught.value.code == "aborted"
    with pytest.raises(ModelError, match="closed"):
        await texts(engine)
    assert library.ended_early == 1


def test_a_loop_that_was_closed_ends_the_request():
    library, engine = make()
    loop = asyncio.new_event_loop()

    async def start():
        chunks = engine.chat({"count": 10_000})
        await chunks.__aenter__()
        await chunks.__anext__()
        return chunks.thread

    thread = loop.run_until_complete(start())
    loop.close()
    thread.join(5)
    assert not thread.is_alive()
    assert library.ended_early == 1


async def test_a_dropped_request_frees_the_engine():
    library, engine = make()
    for _ in range(5):
        task = asyncio.create_task(texts(engine, count=10_000))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    del task
    gc.collect()
    assert await_free(engine)
    assert library.active == 0


class User:
    """Stands for a provider in the registry of loaded models."""


@pytest.fixture
def loads(monkeypatch):
    """Count loads; the first `fail` of them fail."""
    state = {"count": 0, "fail": 0, "delay": 0.05}

    def load(settings):
        state["count"] += 1
        time.sleep(state["delay"])
        if state["fail"]:
            state["fail"] -= 1
            raise ModelError("damaged", "invalid_request", provider="local")
        return Library(), False

    monkeypatch.setattr(registry, "load_server", load)
    monkeypatch.setattr(registry, "_entries", {})
    return state


async def test_a_model_is_loaded_once_for_all(loads):
    users = [User() for _ in range(5)]
    found = await asyncio.gather(*(registry.acquire(SETTINGS, user) for user in users))
    assert loads["count"] == 1
    assert len({id(each) for each in found}) == 1


def test_a_model_is_shared_between_loops_and_threads(loads):
    found = []
    users = [User() for _ in range(4)]

    def work(user):
        found.append(asyncio.run(registry.acquire(SETTINGS, user)))

    threads = [threading.Thread(target=work, args=(user,)) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads["count"] == 1
    assert len({id(each) for each in found}) == 1


async def test_a_load_that_failed_is_tried_again(loads):
    loads["fail"] = 1
    user = User()
    with pytest.raises(ModelError, match="damaged"):
        await registry.acquire(SETTINGS, user)
    assert isinstance(await registry.acquire(SETTINGS, user), Engine)
    assert loads["count"] == 2


async def test_cancelling_one_who_waits_for_the_load_harms_no_other(loads):
    one, two = User(), User()
    first = asyncio.create_task(registry.acquire(SETTINGS, one))
    second = asyncio.create_task(registry.acquire(SETTINGS, two))
    await asyncio.sleep(0.01)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert isinstance(await second, Engine)
    assert loads["count"] == 1


async def test_the_last_user_unloads_the_model(loads):
    one, two = User(), User()
    engine = await registry.acquire(SETTINGS, one)
    await registry.acquire(SETTINGS, two)
    await registry.release(one)
    await registry.release(one)
    assert await texts(engine) == ["0", "1", "2"]
    await registry.release(two)
    with pytest.raises(ModelError, match="closed"):
        await texts(engine)
    assert await registry.acquire(SETTINGS, one) is not engine
    assert loads["count"] == 2


async def test_a_model_stays_when_its_provider_was_only_forgotten(loads):
    engine = await registry.acquire(SETTINGS, User())
    gc.collect()
    assert await registry.acquire(SETTINGS, User()) is engine


@pytest.mark.parametrize("terminal", [True, False])
def test_the_progress_line_is_for_terminals_only(terminal, monkeypatch):
    import io

    from lighter_local import _native

    out = io.StringIO()
    out.isatty = lambda: terminal
    monkeypatch.setattr(_native.sys, "stderr", out)
    line = _native._ProgressLine("loading x.gguf …")
    shown = out.getvalue()
    line.clear()
    assert shown == ("loading x.gguf …" if terminal else "")
    assert out.getvalue().strip("\r ") == shown.strip("\r ")
    monkeypatch.setattr(_native.sys, "stderr", None)
    _native._ProgressLine("nothing").clear()
