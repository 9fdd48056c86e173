"""Where a key must not show: in nothing that is reachable from an error, in no log."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback
from collections.abc import Iterator
from types import FrameType

import pytest
from support.interfaces import ask, failure
from support.loopback import EVENT_STREAM, JSON_TYPE, Answer

from lighter_core import Agent, ModelError
from lighter_core.adapters import Secrets

KEY = "sk-canary-0123456789"
TOKEN = "canary-of-a-gateway-42"
WORDS = f"key {KEY} is wrong at http://u:{TOKEN}@h/x?k={KEY}; token {TOKEN}"
TOLD = json.dumps(
    {"error": {"message": WORDS, "type": KEY, "code": KEY, WORDS: [WORDS]}}
).encode()
REPEATED = {"x-request-id": KEY, "request-id": KEY, "x-told": WORDS}
STATUSES = (400, 401, 402, 403, 404, 408, 409, 422, 429, 500, 529)
both = pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])


def answers() -> list[Answer]:
    """Everything that can go wrong, with the key in it."""
    texts = [Answer(status, JSON_TYPE | REPEATED, TOLD) for status in STATUSES]
    good = [JSON_TYPE, EVENT_STREAM, {"content-type": "text/plain"}]
    event = b"event: error\ndata: " + TOLD + b"\n\n"
    bodies = [TOLD, event, KEY.encode(), TOLD[:-1], b"\xff" + KEY.encode(), b"data: 1"]
    bodies += [f'data: {{"x": {KEY}\n\n'.encode(), f'{{"type": "{KEY}"}}'.encode()]
    return [
        *texts,
        *(Answer(200, kind | REPEATED, body) for kind in good for body in bodies),
        Answer(400, {"content-type": "text/html"}, f"<p>{WORDS}</p>".encode()),
        Answer(400, JSON_TYPE | {"content-encoding": "gzip"}, TOLD),
        Answer(200, JSON_TYPE | {"content-encoding": "gzip"}, TOLD),
        Answer(200, JSON_TYPE | REPEATED, TOLD, end="cut"),
        Answer(end="cut", before_headers=True),
        Answer(end="reset", before_headers=True),
        Answer(99_999, REPEATED, TOLD),
    ]


def shown(error: BaseException) -> Iterator[tuple[str, str]]:
    """Every text that is reachable from an exception by attributes, and where."""
    waiting: list[tuple[str, object, int]] = [("error", error, 7)]
    seen: set[int] = set()
    while waiting:
        where, value, depth = waiting.pop()
        if id(value) in seen or depth == 0 or isinstance(value, type):
            continue
        seen.add(id(value))
        yield where, repr(value)
        if isinstance(value, str | bytes):
            yield where, str(value)
        elif isinstance(value, dict):
            waiting += [(f"{where}[{k!r}]", v, depth - 1) for k, v in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [(f"{where}[]", each, depth - 1) for each in value]
        else:
            names = [n for n in dir(value) if not n.startswith("__")]
            if isinstance(value, BaseException):
                names += ["__cause__", "__context__", "__notes__"]
            for name in names:
                try:
                    found = getattr(value, name)
                except Exception:
                    continue
                if not callable(found):
                    waiting.append((f"{where}.{name}", found, depth - 1))


def frames(error: BaseException) -> Iterator[FrameType]:
    """The frames of the exception and of all that it came from."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield from (frame for frame, _ in traceback.walk_tb(each.__traceback__))
            waiting += [each.__cause__, each.__context__]


@both
async def test_nothing_that_an_error_reaches_shows_a_secret(
    server, interface, make, caplog, streamed
):
    """KF-105, KF-108, KF-109, KF-112: texts, attributes, variables, pickles, logs."""
    caplog.set_level(logging.DEBUG)
    provider = make(
        api_key=KEY,
        base_url=f"{server.url}/?token=xyz",
        extra_headers={"X-Gateway-Token": TOKEN},
    )
    canary = KEY, TOKEN
    assert not [c for c in canary if c in repr(provider) + str(vars(provider))]
    for number, answer in enumerate(answers()):
        server.script(answer)
        error = await failure(provider, streamed=streamed)
        texts = dict(shown(error)) | {
            "traceback": "".join(traceback.format_exception(error)),
            "pickle": repr(pickle.dumps(error)),
            "copy": repr(vars(copy.deepcopy(error))),
        }
        for frame in frames(error):
            if (
                "lighter_" in frame.f_code.co_filename
                or frame.f_code.co_filename.find(interface.sdk) > 0
            ):
                for name, value in frame.f_locals.items():
                    place = f"{frame.f_code.co_qualname}: {name}"
                    texts[place] = repr(value)
        bad = {k: v for k, v in texts.items() if any(c in v for c in canary)}
        assert not bad, (number, answer)
        assert pickle.loads(pickle.dumps(error)).__cause__ is None
    ours = [each for each in caplog.records if each.name.startswith("lighter")]
    assert len(ours) > len(answers())
    assert {each.levelno for each in ours} == {logging.DEBUG}
    assert not [r for r in ours if any(c in repr(vars(r)) for c in canary)]


@both
async def test_no_logger_shows_the_key_of_a_request(
    server, interface, make, caplog, streamed
):
    """At DEBUG; headers of replies are in the logs of the SDKs and the transport."""
    caplog.set_level(logging.DEBUG)
    answers = [Answer(status, JSON_TYPE, TOLD) for status in STATUSES]
    server.script(*answers, interface.good(streamed=streamed))
    provider = make(api_key=KEY, extra_headers={"X-Gateway-Token": TOKEN})
    for _ in answers:
        await failure(provider, streamed=streamed)
    await ask(provider, streamed=streamed)
    below = {"httpx2"} if interface.transport == "aiohttp" else {"httpcore2.http11"}
    assert below <= {r.name for r in caplog.records}
    for record in caplog.records:
        assert KEY not in record.getMessage(), record
        assert TOKEN not in record.getMessage(), record


async def test_what_the_service_said_stays_in_the_cause(server, make):
    """Only the secrets are gone: the rest helps to find out."""
    server.script(Answer(400, JSON_TYPE | {"x-request-id": "r1"}, TOLD))
    error = await failure(make(api_key=KEY), streamed=False)
    cause = error.__cause__
    assert cause.status_code == cause.response.status_code == 400
    assert "is wrong at http://h/x" in cause.response.json()["error"]["message"]
    assert cause.response.headers["x-request-id"] == "r1"
    assert cause.response.request.url.path == cause.request.url.path
    assert dict(cause.request.headers).keys() <= {"host", "content-length"}
    assert "[redacted]" in json.dumps(cause.body)


async def test_a_run_that_fails_shows_no_secret_either(server, make):
    """The frames of the loop are there too."""
    server.script(Answer(500, JSON_TYPE, TOLD))
    agent = Agent(make(api_key=KEY))
    result = await agent.run("x")
    assert isinstance(result.error, ModelError)
    locals_ = [repr(frame.f_locals) for frame in frames(result.error)]
    assert locals_
    assert not [each for each in [repr(result), *locals_] if KEY in each]


async def test_placeholder_keys_are_no_secrets(server, interface, make):
    """Local servers need no key: a word in its place stands in ordinary sentences."""
    told = {"error": {"message": "none of next text"}}
    server.script(Answer(500, JSON_TYPE, json.dumps(told).encode()))
    for key in ("x", "none"):
        error = await failure(make(api_key=key), streamed=False)
        assert "none of next text" in error.message
    server.script(interface.good(streamed=False))
    assert await ask(make(api_key="x"), streamed=False)


def test_secrets_hide_themselves():
    """Where their object stands in a variable, its text says nothing."""
    secrets = Secrets([KEY, None, "", KEY + "-longer"])
    assert repr(secrets) == str(secrets) == "Secrets(2 hidden)"
    assert secrets.text(f"a {KEY}-longer b {KEY}") == "a [redacted] b [redacted]"
    deep: object = KEY
    for _ in range(5_000):
        deep = [deep]
    assert KEY not in repr(secrets.clean({KEY: (KEY, KEY.encode(), [deep])}))


# The SDKs hand a proxy's password to aiohttp in a way that it calls old.
@pytest.mark.filterwarnings("ignore:BasicAuth:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The 'proxy_auth':DeprecationWarning")
async def test_a_proxys_password_shows_nowhere(interface, make, monkeypatch):
    """It stands in the environment, and in what some transports tell about failures."""
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://me:hunter22@127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    error = await failure(make(base_url="http://service.invalid"), streamed=True)
    assert error.code == "network_error"
    assert not [name for name, text in shown(error) if "hunter22" in text]
    assert str(error.__cause__)
    chain: BaseException | None = error
    while chain is not None:
        assert "str() failed" not in "".join(traceback.format_exception_only(chain))
        chain = chain.__cause__
