"""Values, helpers of adapters, and the pool of clients, under odd input."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import hashlib
import json
import pickle
import re
import threading
import time
from contextlib import suppress
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.torture import examples

from lighter_core import (
    Agent,
    AgentRequest,
    AgentResponse,
    AssistantMessage,
    FilePart,
    HistoryError,
    HookError,
    ImagePart,
    IncompatiblePluginError,
    LimitExceededError,
    MessageEvent,
    Model,
    ModelError,
    ModelRequest,
    NativeContext,
    PluginConflictError,
    PluginError,
    PluginLoadError,
    PluginNotFoundError,
    ProviderContractError,
    ReasoningDelta,
    RunLimits,
    SystemMessage,
    TextDelta,
    TextPart,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    ToolDefinitionError,
    ToolError,
    ToolMessage,
    Usage,
    UserMessage,
    tool,
)
from lighter_core.adapters import (
    ClientPool,
    EventStreamSplitter,
    TextJoiner,
    clean_text,
    code_for_status,
    dump_json,
    encode_json,
    encode_text,
    endpoint_of,
    import_sdk,
    load_json,
    need_integer,
    need_key,
    need_model_id,
    normal_call_id,
    redact,
    retry_after_seconds,
    seal_native,
)
from lighter_core.testing import FakeProvider

# Copies (KF-104, KF-105).

CALL = ToolCall("c", "t", '{"a": 1.0}')
REPLY = seal_native(
    AssistantMessage(
        "hé",
        reasoning="r",
        tool_calls=[CALL],
        usage=Usage(1, 2, 3, 4, 5),
        stop_reason="s",
    ),
    provider="p",
    endpoint="https://h/v1",
    api="responses",
    model="m",
    items='[{"x": 1e2}]',
)
RESULT = ToolMessage(call_id="c", tool_name="t", tool_output="1", is_error=True)
VALUES: list[Any] = [
    SystemMessage("s"),
    UserMessage("u"),
    UserMessage([TextPart("t"), ImagePart(b"x", None, "image/png"), FilePart(url="u")]),
    REPLY,
    RESULT,
    CALL,
    Usage(1, 2),
    REPLY.native,
    TextDelta("x"),
    ReasoningDelta("x"),
    MessageEvent(REPLY),
    ToolCallStarted(CALL),
    ToolCallFinished(CALL, RESULT),
    AgentResponse(status="completed", messages=[REPLY, RESULT], usage=Usage(1)),
    RunLimits(model_calls=3),
]
COPIES = [
    copy.copy,
    copy.deepcopy,
    *(
        lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    ),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_values_survive_every_kind_of_copy(value: Any) -> None:
    """KF-104: messages, parts, events and results, native context included."""
    for duplicate in COPIES:
        other = duplicate(value)
        assert type(other) is type(value)
        assert other == value
        assert repr(other) == repr(value)
    for field in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field.name, None)
    if not isinstance(value, AgentResponse):
        assert hash(value) == hash(copy.deepcopy(value))


def test_native_context_knows_edits_and_its_check_leaks_into_no_copy() -> None:
    """KF-067: the seal fits copies and refuses edits; the memo stays private."""
    assert REPLY.native_intact()
    for duplicate in COPIES:
        other = duplicate(REPLY)
        assert other.native_intact()
        assert dataclasses.replace(other, stop_reason="z").native_intact()
        for change in ({"content": "x"}, {"reasoning": None}, {"tool_calls": ()}):
            assert not dataclasses.replace(other, **change).native_intact()
    assert not AssistantMessage("x").native_intact()
    assert b"_memo" not in pickle.dumps(REPLY)
    assert "responses" not in repr(REPLY)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.text(st.characters(exclude_categories=())),
    st.none() | st.text(),
    st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1), st.text())),
)
def test_seals_in_stored_documents_stay_the_same(
    content: str, reasoning: str | None, calls: list[tuple[str, str, str]]
) -> None:
    """KF-067: how a seal is made is part of every document that is stored."""
    message = AssistantMessage(
        content, reasoning=reasoning, tool_calls=[ToolCall(*call) for call in calls]
    )
    sealed = seal_native(
        message, provider="p", endpoint="e", api="a", model="m", items="[]"
    )
    public = json.dumps([content, reasoning, [list(call) for call in calls]])
    digest = hashlib.blake2b(public.encode("ascii"), digest_size=16).hexdigest()
    assert sealed.native is not None
    assert sealed.native.seal == digest
    assert dataclasses.replace(sealed, native=None) == message
    assert message.native is None
    for each in (sealed, copy.deepcopy(sealed)):
        assert each.native_intact()


def test_a_message_of_a_class_of_its_own_is_sealed_as_one() -> None:
    @dataclasses.dataclass(frozen=True, init=False)
    class Mine(AssistantMessage):
        """A message of an application."""

    sealed = seal_native(
        Mine("x"), provider="p", endpoint="e", api="a", model="m", items="[]"
    )
    assert type(sealed) is Mine
    assert sealed.native_intact()


PLUGIN: dict[str, str] = {"kind": "providers", "name": "n", "dist": "d"}
ERRORS: list[Any] = [
    *(
        ModelError("m", code, http_status=429, response_status="r", provider="p",
                   retry_after=1.5, request_id="q", vendor_code="v")
        for code in ("auth_error", "rate_limit", "invalid_request", "network_error",
                     "server_error", "bad_response", "aborted", "unknown")
    ),
    ProviderContractError("m", event_number=3, provider="p"),
    LimitExceededError("m", limit="model_calls", value=3),
    HookError("m", hook="h", event="e", plugin="p"),
    ToolDefinitionError("m", tool="t", parameter="p"),
    ToolError("m"),
    HistoryError("m", path="messages[3]"),
    PluginError("m", **PLUGIN),
    PluginNotFoundError("m", **PLUGIN),
    PluginConflictError("m", **PLUGIN),
    PluginLoadError("m", **PLUGIN),
    IncompatiblePluginError("m", **PLUGIN),
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_errors_survive_copies_without_their_cause(error: Any) -> None:
    """KF-105: all fields and notes; never the cause, which may hold a key."""
    error = copy.copy(error)
    error.add_note("a note")
    error.__cause__ = RuntimeError("sk-secret")
    for duplicate in COPIES:
        other = duplicate(error)
        assert type(other) is type(error)
        assert (str(other), other.message) == ("m", "m")
        assert {f: getattr(other, f) for f in error._fields} == {
            f: getattr(error, f) for f in error._fields
        }
        assert other.__notes__ == ["a note"]
        assert other.__cause__ is None
    assert b"sk-secret" not in pickle.dumps(error)
    response = AgentResponse(status="failed", messages=[REPLY], error=error)
    assert str(pickle.loads(pickle.dumps(response)).error) == "m"


def test_live_objects_copy_or_refuse_in_words() -> None:
    """KF-104: an agent, a model and a tool copy shallowly; never a crash in the middle."""

    @tool
    def add(a: int) -> int:
        """Add."""
        return a

    agent = Agent(FakeProvider(["x"] * 9), tools=[add])
    for value in (agent, agent.model, add):
        assert type(copy.copy(value)) is type(value)
        with suppress(TypeError):
            assert type(copy.deepcopy(value)) is type(value)
    assert copy.copy(agent).run_sync("go").text == "x"


# Types of fields.

WRONG: list[tuple[Any, str]] = [
    (lambda: SystemMessage(None), "SystemMessage.content"),  # type: ignore[arg-type]
    (lambda: SystemMessage(b"x"), "SystemMessage.content"),  # type: ignore[arg-type]
    (lambda: UserMessage(3), "UserMessage.content"),  # type: ignore[arg-type]
    (lambda: UserMessage(b"x"), "UserMessage.content"),  # type: ignore[arg-type]
    (lambda: UserMessage(["x"]), "UserMessage.content"),  # type: ignore[list-item]
    (lambda: ModelRequest("x"), "ModelRequest.messages"),  # type: ignore[arg-type]
    (lambda: ModelRequest([3]), "ModelRequest.messages"),  # type: ignore[list-item]
    (lambda: AgentRequest("x"), "AgentRequest.messages"),  # type: ignore[arg-type]
    (lambda: Agent(FakeProvider(), tools="x"), "Agent(tools=…)"),
    (lambda: Agent(FakeProvider(), tools=3), "Agent(tools=…)"),  # type: ignore[arg-type]
    (lambda: Agent(FakeProvider(), hooks="x"), "Agent(hooks=…)"),
    (lambda: Agent(FakeProvider(), system_prompt=3), "Agent(system_prompt=…)"),  # type: ignore[arg-type]
    (lambda: Agent(3), "Provider"),  # type: ignore[arg-type]
    (lambda: Agent(FakeProvider), "Provider"),  # type: ignore[arg-type]
    (lambda: TextPart(None), "TextPart.text"),  # type: ignore[arg-type]
    (lambda: ToolCall(1, "t"), "ToolCall.call_id"),  # type: ignore[arg-type]
    (lambda: ToolCall("c", None), "ToolCall.tool_name"),  # type: ignore[arg-type]
    (lambda: ToolCall("c", "t", {}), "ToolCall.arguments"),  # type: ignore[arg-type]
    (lambda: AssistantMessage(None), "AssistantMessage.content"),  # type: ignore[arg-type]
    (lambda: AssistantMessage(reasoning=3), "AssistantMessage.reasoning"),  # type: ignore[arg-type]
    (lambda: AssistantMessage(tool_calls=["x"]), "AssistantMessage.tool_calls"),  # type: ignore[list-item]
    (
        lambda: ToolMessage(call_id="c", tool_name="t", tool_output=3),
        "ToolMessage.tool_output",
    ),  # type: ignore[arg-type]
    (
        lambda: ToolMessage(call_id=None, tool_name="t", tool_output=""),
        "ToolMessage.call_id",
    ),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_types_are_type_errors_that_name_the_field(number: int) -> None:
    """A message that would fail at the service fails where it is made."""
    make, field = WRONG[number]
    with pytest.raises(TypeError, match=re.escape(field)):
        make()


def test_lists_are_taken_as_tuples_and_copied() -> None:
    """The caller's lists may change afterwards."""
    calls, parts = [CALL], [TextPart("t")]
    reply, user = AssistantMessage(tool_calls=calls), UserMessage(parts)
    calls.clear()
    parts.clear()
    assert reply.tool_calls == (CALL,)
    assert user.content == (TextPart("t"),)
    assert AssistantMessage(tool_calls=iter([CALL])).tool_calls == (CALL,)


@pytest.mark.parametrize("messages", [3, None, b"x", [3], ["x"], {"a": 1}, iter(())])
def test_agents_refuse_odd_input_at_the_call(messages: Any) -> None:
    """A TypeError at `run`, `stream` and `start`, before anything runs."""
    agent = Agent(FakeProvider(["x"]))
    for door in (agent.run, agent.stream, agent.run_sync, agent.stream_sync):
        with pytest.raises(TypeError):
            door(messages)


# Keys, options and texts of adapters.


@pytest.mark.parametrize("given_key", [b"sk-secret", 3, ["sk-secret"], object()])
def test_key_of_a_wrong_type_is_refused_without_its_value(given_key: Any) -> None:
    """KF-112: the error names the parameter, not the value."""
    with pytest.raises(ModelError, match="api_key must be a str") as caught:
        need_key(given_key, variable="ACME_KEY", provider="acme")
    assert caught.value.code == "invalid_request"
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("where", ["argument", "environment"])
@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", "auth_error"),
        ("  \t", "auth_error"),
        ("sk-secret\n", "invalid_request"),
        (" sk-secret", "invalid_request"),
        ("sk-secret\r\nX: y", "invalid_request"),
        ("sk-secrét", "invalid_request"),
        ("sk-secret\x00", "invalid_request"),
        ("sk-secret\x7f", "invalid_request"),
    ],
)
def test_key_that_cannot_stand_in_a_header_is_refused(
    where: str, key: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KF-112: at construction, naming variable or parameter, never showing the key."""
    monkeypatch.delenv("ACME_KEY", raising=False)
    if where == "environment":
        if "\x00" in key:
            return
        monkeypatch.setenv("ACME_KEY", key)
    with pytest.raises(ModelError) as caught:
        need_key(
            None if where == "environment" else key,
            variable="ACME_KEY",
            provider="acme",
        )
    assert caught.value.code == code
    assert "ACME_KEY" in str(caught.value) or "api_key" in str(caught.value)
    assert "sk-secr" not in repr(caught.value)


def test_key_and_model_come_from_argument_or_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The argument goes first; an empty argument does not fall back."""
    monkeypatch.setenv("ACME", "from-env")
    for need in (need_key, need_model_id):
        assert need(None, variable="ACME", provider="acme") == "from-env"
        assert need("mine", variable="ACME", provider="acme") == "mine"
        with pytest.raises(ModelError):
            need("", variable="ACME", provider="acme")
    monkeypatch.delenv("ACME")
    with pytest.raises(ModelError, match="set ACME or pass model_id") as caught:
        need_model_id(None, variable="ACME", provider="acme")
    assert caught.value.code == "invalid_request"
    with pytest.raises(ModelError):
        need_model_id(3, variable="ACME", provider="acme")  # type: ignore[arg-type]


def test_integers_of_options_are_checked() -> None:
    """Design 9.12: int, no bool, within bounds; None means unset."""
    assert need_integer("n", None, provider="p") is None
    assert need_integer("n", 1, provider="p") == 1
    assert need_integer("n", 2**53 - 1, provider="p") == 2**53 - 1
    for bad in (0, -1, 2**53, True, 1.0, "1"):
        with pytest.raises(ModelError, match=r"^n must be") as caught:
            need_integer("n", bad, provider="p")  # type: ignore[arg-type]
        assert caught.value.code == "invalid_request"


def test_error_codes_follow_the_status_alone() -> None:
    """KF-122: the body is never needed."""
    table = {
        200: "bad_response", 301: "bad_response", 400: "invalid_request",
        401: "auth_error", 402: "auth_error", 403: "auth_error", 404: "invalid_request",
        408: "network_error", 409: "invalid_request", 413: "invalid_request",
        422: "invalid_request", 429: "rate_limit", 500: "server_error",
        502: "server_error", 503: "server_error", 504: "server_error",
        529: "server_error",
    }  # fmt: skip
    assert {status: code_for_status(status) for status in table} == table
    with pytest.raises(ValueError, match="ModelErrorCode"):
        ModelError("m", "other")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("https://h", "https://h"),
        ("https://h/v1/", "https://h/v1"),
        (
            "https://user:sk-secret@h:8080/v1?key=sk-secret#sk-secret",
            "https://h:8080/v1",
        ),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
        ("HTTPS://Host.Example/V1", "https://host.example/V1"),
    ],
)
def test_endpoint_has_no_user_and_no_query(url: str, endpoint: str) -> None:
    """KF-108: what goes into native context names the place only."""
    assert endpoint_of(url) == endpoint


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("GET https://h/v1?key=sk-secret failed", "GET https://h/v1 failed"),
        ("https://u:sk-secret@h/x", "https://h/x"),
        ("https://u:sk-@sk-secret@h/x", "https://h/x"),
        ("key sk-secret and sk-secret", "key [redacted] and [redacted]"),
        ("<https://a:b@h>,'https://c@i#sk-secret'", "<https://h>,'https://i'"),
        ("nothing here", "nothing here"),
        ("mail a@b.c", "mail a@b.c"),
    ],
)
def test_redact_takes_keys_and_url_parts_out(text: str, clean: str) -> None:
    """KF-108: no key, no user, no query."""
    assert redact(text, "sk-secret", None, "") == clean


def test_redact_is_linear() -> None:
    """KF-107: a megabyte of anything is no trap."""
    for text in ("a." * 500_000, "a://" * 250_000, "x" * 10**6, "https://h/?" * 90_000):
        redact(text)


def test_call_ids_become_acceptable_and_stay_together() -> None:
    """KF-093: a good id is itself; a bad one always the same digest."""
    for good in ("call_1", "toolu_01AbC", "x" * 64):
        assert normal_call_id(good) == good
    bad = ["", "a b", "x" * 65, "é", "a|b", "a\n", "\udc97"]
    made = [normal_call_id(each) for each in bad]
    assert made == [normal_call_id(each) for each in bad]
    assert len(set(made)) == len(bad)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", each) for each in made)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "1"}, 1),
        ({"retry-after": "121"}, 121),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 99 Oct 999999999 07:28:00 GMT"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9),
        ({"retry-after-ms": "-5", "retry-after": "9"}, 9),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date(
    headers: dict[str, str], seconds: float | None
) -> None:
    """KF-092: anything else is ignored."""
    assert retry_after_seconds(headers) == seconds


def test_retry_after_counts_from_now_to_a_date() -> None:
    """RFC 9110 allows both; a service of either kind is waited for as long."""
    date = formatdate(time.time() + 90, usegmt=True)
    seconds = retry_after_seconds({"retry-after": date})
    assert seconds is not None
    assert 85 < seconds <= 90


# JSON and text (KF-017, KF-042, KF-043).


@given(st.text(st.characters(), max_size=30))
def test_any_text_can_be_encoded(text: str) -> None:
    """KF-042: lone surrogates become U+FFFD, pairs their character, the rest stays."""
    clean = clean_text(text)
    assert clean.encode("utf-8") == encode_text(text)
    assert json.loads(encode_json({"x": text})) == {"x": clean}
    if not re.search("[\ud800-\udfff]", text):
        assert clean is text


SURROGATES = st.text(
    st.sampled_from(["a", "é", "😀", "\ud83d", "\ude00", "\udc97", "\ufffd"]),
    max_size=12,
)


@given(SURROGATES, st.lists(st.integers(0, 12)))
def test_joined_text_does_not_depend_on_the_cuts(text: str, cuts: list[int]) -> None:
    """KF-017: halves of a pair meet again; what is handed out is always encodable."""
    joiner, out, last = TextJoiner(), "", 0
    for cut in sorted({min(each, len(text)) for each in cuts} | {len(text)}):
        piece = joiner.feed(text[last:cut])
        piece.encode("utf-8")
        out, last = out + piece, cut
    out += joiner.finish()
    assert out == clean_text(text)
    assert joiner.finish() == ""


def test_json_is_strict_both_ways() -> None:
    """KF-043: no NaN out, none in; deep and long input are ValueErrors."""
    for bad in (float("nan"), [float("inf")], {"x": -float("inf")}):
        with pytest.raises(ValueError, match="JSON"):
            dump_json(bad)
    for text in ("NaN", "[Infinity]", "[" * 200_000, "9" * 5000, "", "{", b"\xff"):
        with pytest.raises(ValueError):
            load_json(text)
    assert encode_json({"é": [1, None]}) == '{"é":[1,null]}'.encode()


# The event-stream splitter (KF-001 to KF-005).


def reference(text: str) -> list[str]:
    """Parse a whole event stream the obvious way."""
    events: list[str] = []
    data: list[str] = []
    text = text.removeprefix("\ufeff")
    for line in re.split("\r\n|\n|\r", text + "\n\n"):
        if not line:
            if data:
                events.append("\n".join(data))
            data = []
            continue
        field, _, rest = line.partition(":")
        if field == "data":
            data.append(rest.removeprefix(" "))
    return events


LINES = st.one_of(
    st.sampled_from(
        ["data: {}", "data:x", "data", "data:", "data:  y", ": ping", "event: e", "id: 1",
         "retry: 3", "", "", "database: z", "data: \u2028\u2029\x85\x0b\x0c", "data: 😀é",
         " data: no", "DATA: no"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=5).map(
        "data: {}".format
    ),
)  # fmt: skip


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=8),
    st.booleans(),
    st.lists(st.integers(0, 200), max_size=12),
    st.booleans(),
)
def test_events_do_not_depend_on_cuts_and_line_ends(
    lines: list[tuple[str, str]], bom: bool, cuts: list[int], single: bool
) -> None:
    """KF-001 to KF-005: the splitter equals a simple reference over any chunking."""
    text = ("\ufeff" if bom else "") + "".join(line + end for line, end in lines)
    raw = text.encode("utf-8")
    places = range(len(raw)) if single else sorted({min(c, len(raw)) for c in cuts})
    splitter, got, last = EventStreamSplitter(), [], 0
    for place in [*places, len(raw)]:
        got += splitter.feed(raw[last:place])
        last = place
    got += splitter.finish()
    assert [each.decode("utf-8") for each in got] == reference(text)


@given(st.lists(LINES, max_size=6), st.sampled_from(["\r\n", "\r"]))
def test_events_are_the_same_for_the_three_line_ends(
    lines: list[str], end: str
) -> None:
    """KF-004: LF, CRLF and CR are one stream."""

    def events(mark: str) -> list[bytes]:
        splitter = EventStreamSplitter()
        return splitter.feed(mark.join(lines).encode()) + splitter.finish()

    assert events(end) == events("\n")


def test_splitter_is_linear_in_chunks_of_one_byte() -> None:
    """KF-107: a long line in small pieces is joined once."""
    splitter = EventStreamSplitter()
    for _ in range(300_000):
        assert splitter.feed(b"x") == []
    assert splitter.feed(b"\n\n") == []
    assert splitter.feed(b"data: " + b"y" * 10**6 + b"\n\n")[0] == b"y" * 10**6


# Clients per loop (recipe C; KF-059, KF-060).


class Client:
    """A client bound to the loop that made it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed_on: list[object] = []

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed_on.append(asyncio.get_running_loop())


class Pool:
    """A pool and all the clients that it ever made."""

    def __init__(self) -> None:
        self.made: list[Client] = []
        self.pool = ClientPool(self._make, Client.aclose)

    def _make(self) -> Client:
        self.made.append(Client())
        return self.made[-1]

    async def use(self) -> Client:
        client = await self.pool.get()
        assert client.loop is asyncio.get_running_loop()
        await asyncio.sleep(0)
        assert await self.pool.get() is client
        return client

    def all_closed_at_home(self) -> bool:
        return all(client.closed_on == [client.loop] for client in self.made)


def test_each_asyncio_run_has_a_client_and_closes_it() -> None:
    """KF-059: three runs, three clients, each closed by its own loop's shutdown."""
    pool = Pool()
    for _ in range(3):
        asyncio.run(pool.use())
    assert len(pool.made) == 3
    assert pool.all_closed_at_home()
    assert pool.pool._clients == {}


def test_threads_with_loops_of_their_own_share_a_pool() -> None:
    """KF-060: six threads, five loops each."""
    pool = Pool()

    def work() -> None:
        for _ in range(5):
            asyncio.run(pool.use())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pool.made) == 30
    assert pool.all_closed_at_home()
    assert pool.pool._clients == {}


def test_client_of_a_loop_closed_without_shutdown_is_dropped() -> None:
    """KF-060: the entry of a dead loop goes at the next look-up and keeps nothing."""
    pool = Pool()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(pool.use())
    loop.close()
    asyncio.run(pool.use())
    assert pool.pool._clients == {}
    assert not pool.made[0].closed_on
    assert pool.made[1].closed_on
    gc.collect()


async def test_closing_the_pool_is_idempotent_and_it_can_be_used_again() -> None:
    """KF-056: close twice, at once, then ask again."""
    pool = Pool()
    await pool.pool.aclose()
    first = await pool.use()
    await asyncio.gather(pool.pool.aclose(), pool.pool.aclose())
    await pool.pool.aclose()
    second = await pool.use()
    assert second is not first
    await pool.pool.aclose()
    assert pool.all_closed_at_home()


async def test_many_tasks_of_one_loop_share_one_client() -> None:
    """The first request makes it; the others find it."""
    pool = Pool()
    clients = await asyncio.gather(*(pool.use() for _ in range(50)))
    assert len(set(map(id, clients))) == 1
    await pool.pool.aclose()


async def test_closing_reaches_clients_of_other_running_loops() -> None:
    """KF-060: a client is closed on its own loop only, also when another asks."""
    pool, ready, stop = Pool(), threading.Event(), threading.Event()

    async def serve() -> None:
        await pool.use()
        ready.set()
        while not stop.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.002)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    await asyncio.to_thread(ready.wait)
    await pool.use()
    await pool.pool.aclose()
    for _ in range(500):
        if all(client.closed_on for client in pool.made):
            break
        await asyncio.sleep(0.002)
    stop.set()
    await asyncio.to_thread(thread.join)
    assert len(pool.made) == 2
    assert pool.all_closed_at_home()


@pytest.mark.parametrize("shut_down", [True, False])
def test_closing_leaves_a_loop_alone_that_does_not_run(shut_down: bool) -> None:
    """KF-060: no coroutine is left un-awaited for a loop that stands still."""
    pool = Pool()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(pool.use())
    asyncio.run(pool.pool.aclose())
    if shut_down:
        loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    gc.collect()
    assert pool.all_closed_at_home() is shut_down


def test_client_that_cannot_be_made_leaves_no_entry() -> None:
    """A failing constructor is raised, and tried again the next time."""

    def fail() -> Client:
        raise ValueError("no")

    pool: ClientPool[Client] = ClientPool(fail, Client.aclose)

    async def main() -> None:
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                await pool.get()

    asyncio.run(main())
    assert pool._clients == {}


async def test_sdk_import_is_shared_and_failures_are_raised() -> None:
    """An SDK is imported on a worker thread; a missing one is an ImportError each time."""
    await asyncio.gather(*(import_sdk("json") for _ in range(5)))
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            await import_sdk("no_such_module_at_all")


async def test_model_and_agent_close_what_their_provider_holds() -> None:
    """KF-056: `async with` closes; a provider without aclose is left alone."""
    closed: list[int] = []

    class Closing(FakeProvider):
        async def aclose(self) -> None:
            closed.append(1)

    async with Agent(Closing(["x"])) as agent:
        assert (await agent.run("go")).text == "x"
    async with Model(Closing()):
        pass
    await agent.aclose()
    assert len(closed) == 3
    async with Agent(FakeProvider()):
        pass


def test_native_context_is_plain_text() -> None:
    """KF-070: marker-like content in a message is data and stays data."""
    marker = '{"lc": 1, "type": "constructor", "__class__": "os.system"}'
    message = AssistantMessage(marker, tool_calls=[ToolCall("c", "t", marker)])
    assert pickle.loads(pickle.dumps(message)) == message
    assert {type(getattr(REPLY.native, f.name)) for f in dataclasses.fields(NativeContext)} == {
        str, int,
    }  # fmt: skip
