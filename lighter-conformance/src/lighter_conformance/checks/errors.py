"""What goes wrong, as one of eight codes, by `invoke` and by `stream`."""

from __future__ import annotations

import pickle
import socket
import time

from lighter_core import ModelError, ModelErrorCode

from .._bench import (
    HELLO,
    WAYS,
    Bench,
    Either,
    ask,
    failing,
    failures,
    need_code,
    streaming,
)
from .._registry import check, declare, expect
from ..server import Answer

__all__: list[str] = []

_CODES: dict[int, ModelErrorCode] = {
    400: "invalid_request",
    401: "auth_error",
    402: "auth_error",
    403: "auth_error",
    404: "invalid_request",
    408: "network_error",
    409: "invalid_request",
    413: "invalid_request",
    422: "invalid_request",
    429: "rate_limit",
    500: "server_error",
    503: "server_error",
    529: "server_error",
}
_HTML = b"<!doctype html><html><body><h1>It works!</h1></body></html>"


def _declare(status: int, code: ModelErrorCode) -> None:
    async def run(bench: Bench) -> None:
        body = bench.wire.failure(status, "words-of-the-service")
        provider = bench.provider(Answer(status=status, pieces=[body]))
        for way, error in await failures(provider, ask("Hi.")):
            need_code(way, error, code)
            expect(error.http_status == status, f"{way}: status {error.http_status}")
            seen = f"{way}: provider {error.provider!r}"
            expect(error.provider == provider.name, seen)

    contract = (
        f"HTTP status {status} raises `ModelError` with the code `{code}`, with"
        f" `http_status` {status} and the provider's name."
    )
    run.__name__ = f"http_{status}"
    declare(f"http-{status}", "errors", contract, ("http",), run)


for _status, _code in _CODES.items():
    _declare(_status, _code)


@check("errors", "http")
async def retry_after_is_kept(bench: Bench) -> None:
    """A `Retry-After` header in seconds becomes `retry_after`."""
    body = bench.wire.failure(429, "slow down")
    headers = {"content-type": "application/json", "retry-after": "7"}
    provider = bench.provider(Answer(status=429, headers=headers, pieces=[body]))
    for way, error in await failures(provider, ask("Hi.")):
        expect(error.retry_after == 7, f"{way}: retry_after {error.retry_after}")  # noqa: PLR2004


@check("errors", "http")
async def words_of_the_service_are_told(bench: Bench) -> None:
    """The message of a refused request has the service's own words: they say what is
    wrong with it.
    """
    body = bench.wire.failure(400, "words-of-the-service")
    provider = bench.provider(Answer(status=400, pieces=[body]))
    for way, error in await failures(provider, ask("Hi.")):
        expect("words-of-the-service" in error.message, f"{way}: {error.message!r}")


@check("errors", "http")
async def page_with_an_error_status(bench: Bench) -> None:
    """An error status decides, also with a page of HTML as its body; the message stays
    a sentence and does not hold the page.
    """
    headers = {"content-type": "text/html"}
    provider = bench.provider(Answer(status=502, headers=headers, pieces=[_HTML]))
    for way, error in await failures(provider, ask("Hi.")):
        need_code(way, error, "server_error")
        good = "<html" not in error.message and len(error.message) < 1000  # noqa: PLR2004
        expect(good, f"{way}: {error.message!r}")


@check("errors", "http")
async def page_with_status_200(bench: Bench) -> None:
    """A page of HTML with status 200, as a proxy sends it, is a `bad_response`."""
    page = Answer(headers={"content-type": "text/html"}, pieces=[_HTML])
    for way, error in await failures(bench.provider(page), ask("Hi.")):
        need_code(way, error, "bad_response")


@check("errors", "http")
async def broken_json(bench: Bench) -> None:
    """A reply that is no JSON is a `bad_response`, no `JSONDecodeError`."""
    stream = streaming([*bench.wire.stream(HELLO)[:2], b'data: {"broken": \n\n'])
    provider = bench.provider(Either(stream, Answer(pieces=[b'{"broken": '])))
    for way, error in await failures(provider, ask("Hi.")):
        need_code(way, error, "bad_response")


@check("errors", "http")
async def json_of_another_shape(bench: Bench) -> None:
    """A reply that is JSON of another shape is a `bad_response`, no `KeyError` or
    `TypeError`.
    """
    for value in (b"[]", b"{}", b"null", b'"text"', b'{"choices": 7, "output": {}}'):
        stream = streaming([b"data: " + value + b"\n\n"])
        provider = bench.same_provider(Either(stream, Answer(pieces=[value])))
        for way, error in await failures(provider, ask("Hi.")):
            need_code(f"{way}, {value.decode()}", error, "bad_response")


@check("errors", "http")
async def empty_body(bench: Bench) -> None:
    """An empty body with status 200 is a `bad_response`."""
    for way, error in await failures(bench.provider(Answer()), ask("Hi.")):
        need_code(way, error, "bad_response")


@check("errors", "http")
async def connection_refused(bench: Bench) -> None:
    """When nobody listens, it is a `network_error`."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    url = f"http://127.0.0.1:{port}{bench.wire.base_path}"
    provider = bench.keep(bench.case.make(base_url=url))
    for way, error in await failures(provider, ask("Hi.")):
        need_code(way, error, "network_error")
        expect(error.http_status is None, f"{way}: status {error.http_status}")


@check("errors", "http")
async def connection_reset(bench: Bench) -> None:
    """A connection that is reset before the reply is a `network_error`."""
    provider = bench.provider(Answer(end="reset", silent=True))
    for way, error in await failures(provider, ask("Hi.")):
        need_code(way, error, "network_error")


@check("errors", "http", "timeout")
async def service_that_says_nothing(bench: Bench) -> None:
    """With `timeout=…`, a service that says nothing is a `network_error` after about
    that time.
    """
    provider = bench.provider(Answer(end="stall", silent=True), timeout=0.2)
    for way, work in WAYS:
        started = time.monotonic()
        error = await failing(way, work(provider, ask("Hi.")))
        need_code(way, error, "network_error")
        seconds = time.monotonic() - started
        expect(seconds < 10, f"{way}: after {seconds:.1f} s")  # noqa: PLR2004


@check("errors", "http", "timeout")
async def stream_that_stalls(bench: Bench) -> None:
    """With `timeout=…`, a stream that stops in the middle is a `network_error`."""
    begin = streaming(bench.wire.stream(HELLO)[:3])
    stalled = Answer(pieces=begin.pieces, headers=begin.headers, end="stall")
    whole = Answer(pieces=[b"{"], end="stall")
    provider = bench.provider(Either(stalled, whole), timeout=0.3)
    for way, error in await failures(provider, ask("Hi.")):
        need_code(way, error, "network_error")


@check("errors", "http")
async def errors_survive_pickle(bench: Bench) -> None:
    """A `ModelError` keeps its fields through `pickle`."""
    body = bench.wire.failure(503, "busy")
    provider = bench.provider(Answer(status=503, pieces=[body]))
    for way, error in await failures(provider, ask("Hi.")):
        other: object = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
        good = isinstance(other, ModelError) and other.code == error.code
        good = good and getattr(other, "http_status", None) == error.http_status
        expect(good, f"{way}: {other!r}")


@check("errors", "http")
async def works_again_after_an_error(bench: Bench) -> None:
    """An error breaks one request and not the provider: the next one works."""
    failed = Answer(status=500, pieces=[bench.wire.failure(500, "oops")])
    for way, work in WAYS:
        provider = bench.provider(failed)
        await failing(way, work(provider, ask("Hi.")))
        bench.play(HELLO)
        reply = await work(provider, ask("Hi."))
        expect(reply.content == HELLO.text, f"{way}: {reply.content!r}")
