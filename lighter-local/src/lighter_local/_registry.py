"""Which models are loaded, and who uses them."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from concurrent.futures import Future
from weakref import WeakSet

from lighter_core.errors import ModelError

from ._engine import Engine
from ._errors import map_failure
from ._native import Settings, load_server
from ._threads import NativeThread

__all__ = ["acquire", "loaded", "release"]

logger = logging.getLogger("lighter.local")


class _Entry:
    def __init__(self) -> None:
        self.future: Future[Engine] = Future()
        self.future.set_running_or_notify_cancel()  # one waiter cannot cancel it
        self.users: WeakSet[object] = WeakSet()


_lock = threading.Lock()
_entries: dict[Settings, _Entry] = {}
_abandoned: list[_Entry] = []


async def acquire(settings: Settings, user: object) -> Engine:
    """Return the loaded model, loading it on a thread when it is not there yet.

    Raises:
        ModelError: It cannot be loaded; the next call tries again.
    """
    with _lock:
        entry = _entries.get(settings)
        fresh = entry is None
        if entry is None:
            entry = _entries[settings] = _Entry()
        entry.users.add(user)
    if fresh:
        thread = NativeThread(lambda: _load(settings, entry), name="lighter-local-load")
        try:
            thread.start()
        except ModelError as error:
            _give_up(settings, entry, error)
    if entry.future.done():
        return entry.future.result()
    return await asyncio.wrap_future(entry.future)


def loaded(user: object) -> Engine | None:
    """Return the model that the user has loaded, if there is one."""
    with _lock:
        entries = [each for each in _entries.values() if user in each.users]
    for entry in entries:
        if entry.future.done() and entry.future.exception() is None:
            return entry.future.result()
    return None


def _load(settings: Settings, entry: _Entry) -> None:
    start = time.monotonic()
    try:
        server, knows_tools = load_server(settings)
    except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
        _give_up(settings, entry, error)
        return
    seconds = round(time.monotonic() - start, 3)
    logger.info(
        "local model loaded",
        extra={
            "lighter_model": settings.path.name,
            "lighter_seconds": seconds,
            "lighter_native_tools": knows_tools,
        },
    )
    entry.future.set_result(Engine(server, knows_tools=knows_tools, settings=settings))


def _give_up(settings: Settings, entry: _Entry, error: BaseException) -> None:
    with _lock:
        if _entries.get(settings) is entry:
            del _entries[settings]
    entry.future.set_exception(map_failure(error))


async def release(user: object) -> None:
    """Note that a provider is done; models that nobody uses any more are unloaded."""
    unused: list[_Entry] = []
    with _lock:
        for settings, entry in list(_entries.items()):
            if user in entry.users:
                entry.users.discard(user)
                if not entry.users:
                    unused.append(_entries.pop(settings))
    for entry in unused:
        await _unload(entry)


async def _unload(entry: _Entry) -> None:
    try:
        engine = await asyncio.wrap_future(entry.future)
    except ModelError:
        return  # it never loaded
    closed: Future[None] = Future()
    closed.set_running_or_notify_cancel()

    def work() -> None:
        engine.close()
        closed.set_result(None)

    NativeThread(work, name="lighter-local-close").start()
    await asyncio.wrap_future(closed)


def _after_fork() -> None:
    """Forget in a child what it inherited: the models' threads are not there.

    Destroying a model would wait for them for ever, so it is kept alive past the end.
    """
    global _lock, _entries
    if _entries:
        import ctypes

        _abandoned.extend(_entries.values())
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_abandoned))
    _lock, _entries = threading.Lock(), {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
