"""Every check can fail: for each one there is a provider with the fault it looks for."""

from __future__ import annotations

import itertools
import json
import re
from contextlib import aclosing, suppress
from dataclasses import replace

import pytest
from support import broken_providers as b
from support.broken_providers import asking, broken, failing, requesting, saying
from support.conformance_cases import FakeCase

from lighter_conformance import (
    ChatWire,
    ClassCase,
    ContractViolation,
    NotApplicable,
    all_checks,
    run_check,
)
from lighter_core import (
    MessageEvent,
    ModelError,
    ReasoningDelta,
    SystemMessage,
    TextDelta,
    ToolCallDelta,
    Usage,
    UserMessage,
    repair_history,
)
from lighter_core.testing import FakeProvider
from lighter_openai import OpenAIChatProvider

COUNTER = itertools.count()
CHECKS = {check.id: check for check in all_checks()}


def _drop_first(kind):
    def shown(self, event):
        if isinstance(event, kind) and not getattr(self, "dropped", False):
            self.dropped = True
            return []
        return [event]

    return broken(shown=shown)


def _made(make, **fields) -> ClassCase:
    return ClassCase(make, name="broken", wire=ChatWire(), **fields)


def _shows_its_key(**options):
    try:
        return OpenAIChatProvider(**options)
    except ModelError as error:
        key = options["api_key"]
        raise ModelError(f"bad key {key}", "invalid_request") from error


def _elsewhere(**options):
    """Every endpoint but OpenAI's does without a key."""
    options.setdefault("base_url", "http://127.0.0.1:1/v1")
    return OpenAIChatProvider(**options)


def _ignores_options(**options):
    options.pop("colour_of_sky", None)
    return OpenAIChatProvider(**options)


def _only_known_ids(self, messages):
    for message in messages:
        for call in getattr(message, "tool_calls", ()):
            if not call.call_id.startswith("call_"):
                raise ValueError("not my id")
    return messages


def _needs_text(self, messages):
    if any(not m.content for m in messages if hasattr(m, "content")):
        raise ValueError("empty content")
    return messages


def _needs_json(self, messages):
    for message in messages:
        for call in getattr(message, "tool_calls", ()):
            json.loads(call.arguments)
    return messages


def _encodes(self, messages):
    for message in messages:
        message.content.encode()
    return messages


def _appends(self, request):
    request.messages.append(UserMessage("Be nice."))
    return request


def _leaks_native(self, messages):
    added = [
        UserMessage(m.native.items)
        for m in messages
        if getattr(m, "native", None) and m.native.provider != self.name
    ]
    return [*messages, *added]


def _from_key(message):
    if message.native is None:
        return message
    endpoint = f"{message.native.endpoint}?key=sk-canary-6f1d2c9b"
    return replace(message, native=replace(message.native, endpoint=endpoint))


def _noisy(error):
    return ModelError("it failed", error.code, provider=error.provider)


def _with_page(error):
    error.message = f"{error.message} <html>"
    return error


def _stubborn(error):
    return b.Stubborn(error.message, error.code, http_status=error.http_status)


def _strip(self, messages):
    return [replace(m, native=None) if hasattr(m, "native") else m for m in messages]


def _ascii(text: str) -> str:
    return text.encode("ascii", "replace").decode()


def _without(kind, *, late: bool = False):
    def change(self, messages):
        return [
            m
            for number, m in enumerate(messages)
            if not isinstance(m, kind) or (late and not number)
        ]

    return asking(change)


def _other(error):
    raise KeyError("choices") from error


PLAIN = b.case_of(b.Wrapper)
UNKNOWN = failing(b.as_code("unknown"))
FORGIVING = b.case_of(b.Forgiving)
NAIVE = b.case_of(b.Naive)
LEAKY = b.case_of(b.Leaky)
LEAVING = b.case_of(b.Leaving)
BOUND = b.case_of(b.Bound)
NO_MEDIA = asking(
    lambda self, messages: [
        b.text_only(m) if isinstance(m, UserMessage) else m for m in messages
    ]
)

BROKEN: dict[str, ClassCase] = {
    "is-a-provider": _made(lambda **_: type("Odd", (), {"name": "odd"})()),
    "name-is-stable": broken(name=property(lambda self: f"name{next(COUNTER)}")),
    "capabilities-are-known-words": broken(capabilities=frozenset({"vision"})),
    "model-id-is-shown": broken(model_id="another"),
    "stream-is-an-async-generator": broken(stream=b.Wrapper.invoke),
    "repr-is-one-short-line": broken(__repr__=lambda self: "two\nlines"),
    "from-name-finds-it": b.case_of(
        type("Other", (b.Wrapper,), {"model_id": "another"}), plugin="acme"
    ),
    "unknown-option-is-refused": _made(_ignores_options, plugin="acme"),
    "missing-key-is-an-auth-error": _made(_elsewhere),
    "blank-key-is-an-auth-error": _made(_elsewhere),
    "unsendable-key-is-refused": _made(_shows_its_key),
    "reply-is-a-message": saying(lambda message: message.content),
    "plain-reply": saying(lambda m: b.with_(m, content=m.content.upper())),
    "events-are-of-the-union": broken(shown=lambda self, event: [{"type": "x"}, event]),
    "one-message-comes-last": broken(shown=lambda self, event: [event, event]),
    "text-deltas-equal-content": _drop_first(TextDelta),
    "reasoning-is-read": saying(lambda m: b.with_(m, reasoning=None)),
    "reasoning-deltas-equal-reasoning": _drop_first(ReasoningDelta),
    "invoke-equals-stream": broken(
        shown=lambda self, e: (
            [MessageEvent(replace(e.message, usage=None))]
            if isinstance(e, MessageEvent)
            else [e]
        )
    ),
    "empty-content-is-empty": saying(lambda m: b.with_(m, content=m.content or "-")),
    "unicode-arrives-whole": saying(lambda m: b.with_(m, content=_ascii(m.content))),
    "lone-surrogates-are-replaced": saying(
        lambda m: b.with_(m, content=m.content.replace("\ufffd", "\ud83d"))
    ),
    "usage-is-counted": saying(lambda m: b.with_(m, usage=Usage(12, 10))),
    "usage-is-sane": saying(
        lambda m: b.with_(m, usage=Usage(20, 10, reasoning_tokens=11))
    ),
    "usage-may-be-missing": saying(lambda m: b.with_(m, usage=Usage(1, 1))),
    "stop-reason-is-a-text": saying(lambda m: b.with_(m, stop_reason=" ")),
    "tool-call-is-read": saying(
        lambda m: b.with_calls(m, lambda c: replace(c, call_id=c.call_id + "x"))
    ),
    "several-calls-keep-their-order": saying(
        lambda m: b.with_(m, tool_calls=m.tool_calls[::-1])
    ),
    "text-beside-calls-is-kept": saying(
        lambda m: b.with_(m, content="") if m.tool_calls else m
    ),
    "empty-arguments-are-an-object": saying(
        lambda m: b.with_calls(m, lambda c: replace(c, arguments="null"))
    ),
    "unicode-arguments-arrive-whole": saying(
        lambda m: b.with_calls(m, lambda c: replace(c, arguments=_ascii(c.arguments)))
    ),
    "call-deltas-equal-the-arguments": _drop_first(ToolCallDelta),
    "tool-round-trip": asking(b.results(lambda m: replace(m, tool_output="?"))),
    "tools-are-offered": requesting(tool_specs=()),
    "results-are-sent-with-their-calls": asking(
        lambda self, messages: b.without_rounds(
            messages, lambda m: m.call_id == "call_3"
        )
    ),
    "error-results-are-sent": asking(
        b.results(lambda m: replace(m, tool_output="") if m.is_error else m)
    ),
    "empty-results-are-sent": asking(
        lambda self, messages: b.without_rounds(messages, lambda m: not m.tool_output)
    ),
    "foreign-ids-are-normalised": b.rewriting(
        lambda body: re.sub(rb'"call_[0-9a-f]+"', b'"fc|1"', body)
    ),
    "broken-arguments-can-be-sent": asking(_needs_json),
    "orphan-call-is-refused": asking(lambda self, ms: repair_history(ms).messages),
    "orphan-result-is-refused": asking(lambda self, ms: repair_history(ms).messages),
    "input-is-unchanged": broken(asked=_appends),
    "the-whole-conversation-is-sent": _without(SystemMessage),
    "a-late-system-message-is-sent": _without(SystemMessage, late=True),
    "the-same-request-gives-the-same-bytes": b.rewriting(
        lambda body: body[:-1] + b',"user":"%d"}' % next(COUNTER)
    ),
    "a-longer-conversation-adds-to-the-request": asking(
        lambda self, ms: [SystemMessage(f"There are {len(ms)} messages."), *ms]
    ),
    "surrogates-in-the-history-do-no-harm": asking(_encodes),
    "empty-texts-can-be-sent": asking(_needs_text),
    "tool-choice-is-sent": requesting(tool_choice=None),
    "output-is-sent": requesting(output=None),
    "images-are-sent-or-refused": NO_MEDIA,
    "files-are-sent-or-refused": NO_MEDIA,
    "native-says-where-it-is-from": saying(_from_key),
    "native-survives-copies": b.case_of(b.Forgetful),
    "native-survives-json": b.case_of(b.Forgetful),
    "native-is-sent-back": asking(_strip),
    "edited-reply-is-sent-as-edited": b.case_of(b.Remembering),
    "foreign-native-is-never-sent": asking(_leaks_native),
    "native-of-another-endpoint-is-not-sent": b.claiming(endpoint="own"),
    "native-of-another-interface-is-not-sent": b.claiming(api="chat"),
    "a-foreign-history-can-be-sent": asking(_only_known_ids),
    **{id_: UNKNOWN for id_ in CHECKS if re.fullmatch(r"http-\d+", id_)},
    "retry-after-is-kept": failing(_noisy),
    "words-of-the-service-are-told": failing(_noisy),
    "page-with-an-error-status": failing(_with_page),
    "page-with-status-200": UNKNOWN,
    "broken-json": UNKNOWN,
    "json-of-another-shape": failing(_other),
    "empty-body": UNKNOWN,
    "connection-refused": UNKNOWN,
    "connection-reset": UNKNOWN,
    "service-that-says-nothing": UNKNOWN,
    "stream-that-stalls": FORGIVING,
    "errors-survive-pickle": failing(_stubborn),
    "works-again-after-an-error": b.case_of(b.Sulking),
    "pieces-of-one-byte": NAIVE,
    "pieces-of-any-size": NAIVE,
    "line-ends-of-either-kind": NAIVE,
    "comments-are-ignored": NAIVE,
    "unknown-events-are-ignored": NAIVE,
    "stream-that-ends-early": FORGIVING,
    "stream-cut-inside-an-event": FORGIVING,
    "connection-that-breaks": FORGIVING,
    "error-inside-a-stream": FORGIVING,
    "unfinished-generation": FORGIVING,
    "deltas-come-at-once": b.case_of(b.Hoarding),
    "runs-do-not-mix": b.case_of(b.Mixing),
    "one-provider-on-three-loops": BOUND,
    "one-provider-in-four-threads": BOUND,
    "run-sync-works-twice": b.case_of(b.Once),
    "nothing-is-sent-before-iteration": b.case_of(b.Eager),
    "leaving-a-stream-closes-the-connection": LEAVING,
    "cancelling-a-stream-closes-the-connection": LEAVING,
    "cancelling-invoke-closes-the-connection": b.case_of(b.Swallowing),
    "aclose-may-be-called-twice": b.case_of(b.ClosedOnce),
    "aclose-closes-connections": b.case_of(b.Open),
    "key-reaches-the-service": _made(
        lambda api_key, **options: OpenAIChatProvider(**options)
    ),
    "key-is-not-in-texts": LEAKY,
    "key-is-not-in-errors": LEAKY,
    "key-is-not-in-logs": LEAKY,
    "key-is-not-in-pickles": LEAKY,
}

NEED_A_DISTRIBUTION = {"import-is-light", "construction-sends-nothing"}
"""Tried in test_plugin.py, with a distribution that is found on the path."""


@pytest.mark.parametrize("id_", BROKEN)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_provider_fails_its_check(id_: str) -> None:
    """The failure says what the contract is, where it is documented, what was seen."""
    check = CHECKS[id_]
    with pytest.raises(ContractViolation) as caught:
        run_check(check, BROKEN[id_], patience=0.5)
    assert caught.value.check is check
    text = str(caught.value)
    assert text.startswith(f"{id_} does not hold for broken\n")
    assert check.contract in text
    assert f"docs/conformance.md#{check.number}-{id_}, section {check.number}" in text
    assert re.search(r"seen {8}\S", text)


@pytest.mark.parametrize("id_", BROKEN)
def test_without_the_fault_it_passes(id_: str) -> None:
    """What fails above is the fault, not the wrapper around the provider."""
    if "plugin" in CHECKS[id_].needs:
        pytest.skip("the wrapper is no plugin")
    run_check(CHECKS[id_], PLAIN)


def test_every_check_has_a_broken_provider() -> None:
    """None is left out of the table."""
    assert BROKEN.keys() | NEED_A_DISTRIBUTION == CHECKS.keys()


class Fake(FakeProvider):
    """The scripted provider, whose every message and event passes through here."""

    def said(self, message):
        return message

    def shown(self, event):
        return [event]

    async def invoke(self, request):
        return self.said(await super().invoke(request))

    async def stream(self, request):
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                last = isinstance(event, MessageEvent)
                seen = MessageEvent(self.said(event.message)) if last else event
                for each in self.shown(seen):
                    yield each


def _fake(**parts) -> FakeCase:
    return FakeCase(kind=type("Broken", (Fake,), parts))


def _said(change):
    return {"said": lambda self, message: change(message)}


EXACTLY: dict[str, tuple[FakeCase, set[str]]] = {
    "no fault": (_fake(), set()),
    "a vague capability": (
        _fake(capabilities=frozenset({"vision"})),
        {"capabilities-are-known-words"},
    ),
    "a long repr": (
        _fake(__repr__=lambda self: "x" * 301),
        {"repr-is-one-short-line"},
    ),
    "calls in reverse": (
        _fake(**_said(lambda m: replace(m, tool_calls=m.tool_calls[::-1]))),
        {"several-calls-keep-their-order"},
    ),
    "text lost beside calls": (
        _fake(**_said(lambda m: replace(m, content="") if m.tool_calls else m)),
        {"text-beside-calls-is-kept"},
    ),
    "text for nothing": (
        _fake(**_said(lambda m: replace(m, content=m.content or "(none)"))),
        {"empty-content-is-empty"},
    ),
    "null for no arguments": (
        _fake(
            **_said(
                lambda m: b.with_calls(
                    m,
                    lambda c: replace(c, arguments=c.arguments.replace("{}", "null")),
                )
            )
        ),
        {"empty-arguments-are-an-object"},
    ),
    "more cached than read": (
        _fake(
            **_said(lambda m: replace(m, usage=Usage(20, 10, cache_write_tokens=21)))
        ),
        {"usage-is-sane"},
    ),
    "usage of the text alone": (
        _fake(**_said(lambda m: replace(m, usage=Usage(12, 10)))),
        {"usage-is-counted"},
    ),
    "an event of its own": (
        _fake(shown=lambda self, event: ["ping", event]),
        {"events-are-of-the-union", "tool-round-trip"},
    ),
    "the message twice": (
        _fake(
            shown=lambda self, event: (
                [event, event] if isinstance(event, MessageEvent) else [event]
            )
        ),
        {"one-message-comes-last", "tool-round-trip"},
    ),
    "no reasoning deltas": (
        _fake(
            shown=lambda self, event: (
                [] if isinstance(event, ReasoningDelta) else [event]
            )
        ),
        {"reasoning-deltas-equal-reasoning"},
    ),
}


@pytest.mark.parametrize("fault", EXACTLY)
def test_a_fault_fails_the_checks_that_look_for_it_and_no_other(fault: str) -> None:
    """The whole suite runs on each."""
    case, expected = EXACTLY[fault]
    failed = set()
    for check in all_checks():
        with suppress(NotApplicable):
            try:
                run_check(check, case)
            except ContractViolation:
                failed.add(check.id)
    assert failed == expected


async def test_a_check_is_not_run_inside_a_loop() -> None:
    """The error says so, instead of blaming the provider."""
    with pytest.raises(TypeError, match="call it from a plain def"):
        run_check(CHECKS["plain-reply"], PLAIN)
