"""The key goes to the service, and nowhere else."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Generator
from contextlib import contextmanager

from .._bench import HELLO, Bench, ask, failures, say
from .._registry import check, expect
from ..case import KEY
from ..server import Answer

__all__: list[str] = []


@check("secrets", "http", "key")
async def key_reaches_the_service(bench: Bench) -> None:
    """The key is sent in a header, and neither in the body nor in the URL."""
    await bench.provider(HELLO).invoke(ask("Hi."))
    request = bench.requests[-1]
    names = [name for name, value in request.headers.items() if KEY in value]
    expect(names, f"no header holds the key; there are {sorted(request.headers)}")
    expect(KEY not in request.path, f"the key is in the URL {request.path}")
    expect(KEY.encode() not in request.body, "the key is in the body")


@check("secrets", "http", "key")
async def key_is_not_in_texts(bench: Bench) -> None:
    """`repr` and `str` of a provider do not show the key."""
    provider = bench.provider(HELLO)
    for text in (repr(provider), str(provider), f"{provider}"):
        expect(KEY not in text, text)


@check("secrets", "http", "key")
async def key_is_not_in_errors(bench: Bench) -> None:
    """No error shows the key, nor does anything in its chain, also when the service
    repeats it.
    """
    for answer in _failing(bench):
        for way, error in await failures(bench.same_provider(answer), ask("Hi.")):
            text = "".join(traceback.format_exception(error))
            chain, each = f"{error!r}", error.__cause__ or error.__context__
            while each is not None:
                chain += f" {each!r} {each}"
                each = each.__cause__ or each.__context__
            lines = [line for line in f"{text}\n{chain}".splitlines() if KEY in line]
            expect(not lines, f"{way}: {lines}")


@check("secrets", "http", "key")
async def key_is_not_in_logs(bench: Bench) -> None:
    """No log record shows the key at DEBUG, not even those of the SDK: not for replies
    and not for errors.
    """
    with _records() as records:
        await say(bench.provider(HELLO), ask("Hi."))
        for answer in _failing(bench):
            await failures(bench.same_provider(answer), ask("Hi."))
    shown = [each for each in map(_text_of, records) if KEY in each]
    expect(not shown, "\n".join(shown[:3]))


@check("secrets", "http", "key")
async def key_is_not_in_pickles(bench: Bench) -> None:
    """Pickles of messages and errors do not hold the key; a provider that holds one
    refuses to be pickled, or leaves it out.
    """
    provider = bench.provider(HELLO)
    things: list[object] = [provider]
    things += [reply for _, reply in await say(provider, ask("Hi."))]
    for answer in _failing(bench):
        things += [
            error for _, error in await failures(bench.same_provider(answer), ask("."))
        ]
    for thing in things:
        try:
            data = pickle.dumps(thing)
        except Exception:  # noqa: BLE001, S112 - a refusal is as good
            continue
        expect(KEY.encode() not in data, f"the pickle of {type(thing).__name__}")


def _failing(bench: Bench) -> list[Answer]:
    words = f"Incorrect API key provided: {KEY}."
    return [
        Answer(status=status, pieces=[bench.wire.failure(status, words)])
        for status in (401, 400, 500)
    ]


def _text_of(record: logging.LogRecord) -> str:
    text = logging.Formatter().format(record)
    return f"{record.name}: {text} {record.__dict__}"


@contextmanager
def _records() -> Generator[list[logging.LogRecord]]:
    """Collect all records at DEBUG, of every logger."""
    records: list[logging.LogRecord] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Keeper(logging.DEBUG)
    root = logging.getLogger()
    names = [name for name in root.manager.loggerDict if "." not in name]
    loggers = [root, *map(logging.getLogger, names)]
    levels = [each.level for each in loggers]
    root.addHandler(handler)
    for each in loggers:
        each.setLevel(logging.DEBUG)
    try:
        yield records
    finally:
        root.removeHandler(handler)
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
