"""Tools of every kind, with every kind of argument, result and exception."""

from __future__ import annotations

import asyncio
import contextvars
import datetime as dt
import decimal
import enum
import functools
import gc
import json
import logging
import pathlib
import sys
import threading
import time
import types
import uuid
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

import jsonschema
import pytest
from pydantic import BaseModel, Field
from support.waiting import until
from typing_extensions import TypedDict

from lighter_core import (
    Agent,
    RunContext,
    Tool,
    ToolCall,
    ToolDefinitionError,
    ToolError,
    ToolMessage,
    tool,
)
from lighter_core.testing import FakeProvider, Turn

_WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

ANY = {"type": "object"}


def raw(func: Callable[..., Any], **options: Any) -> Tool:
    """Return a tool of a function that takes the whole object."""
    return Tool(name="t", description="d", parameters=ANY, func=func, **options)


async def call(each: Tool, arguments: str = "{}") -> ToolMessage:
    return await each.answer(ToolCall("id", each.name, arguments), None)


async def value(each: Tool, arguments: str = "{}") -> Any:
    message = await call(each, arguments)
    assert not message.is_error, message.tool_output
    return json.loads(message.tool_output)


async def error(each: Tool, arguments: str = "{}") -> str:
    message = await call(each, arguments)
    assert message.is_error, message.tool_output
    return message.tool_output


# ruff: noqa: PLW0108
# Callables (KF-036 to KF-040).


def plain(args: dict[str, Any]) -> list[Any]:
    return [args["x"], threading.current_thread().name.startswith("lighter-tool")]


async def coroutine(args: dict[str, Any]) -> list[Any]:
    await asyncio.sleep(0)
    return plain(args)


class Methods:
    def sync(self, args: dict[str, Any]) -> list[Any]:
        return plain(args)

    async def asynchronous(self, args: dict[str, Any]) -> list[Any]:
        return await coroutine(args)

    @staticmethod
    def static(args: dict[str, Any]) -> list[Any]:
        return plain(args)

    @classmethod
    def of_class(cls, args: dict[str, Any]) -> list[Any]:
        return plain(args)


class SyncObject:
    def __call__(self, args: dict[str, Any]) -> list[Any]:
        return plain(args)


class AsyncObject:
    async def __call__(self, args: dict[str, Any]) -> list[Any]:
        return await coroutine(args)


def passing_on(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        return func(*args)

    return wrapper


def async_to_sync(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        return asyncio.run(func(*args))

    return wrapper


def sync_to_async(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    async def wrapper(*args: Any) -> Any:
        return func(*args)

    return wrapper


def bound_to_the_loop(args: dict[str, Any]) -> asyncio.Future[list[Any]]:
    return asyncio.ensure_future(coroutine(args))


def awaitable(args: dict[str, Any]) -> Awaitable[list[Any]]:
    asyncio.get_running_loop()
    return coroutine(args)


CALLABLES: dict[str, tuple[Callable[..., Any], bool]] = {
    "plain": (plain, True),
    "async": (coroutine, False),
    "lambda": (lambda args: plain(args), True),
    "lambda of coroutine": (lambda args: coroutine(args), False),
    "partial": (functools.partial(plain), True),
    "partial of async": (functools.partial(functools.partial(coroutine)), False),
    "bound": (Methods().sync, True),
    "bound async": (Methods().asynchronous, False),
    "static": (Methods.static, True),
    "classmethod": (Methods.of_class, True),
    "object": (SyncObject(), True),
    "async object": (AsyncObject(), False),
    "wrapped": (passing_on(plain), True),
    "wrapped async": (passing_on(coroutine), False),
    "async made sync": (async_to_sync(coroutine), True),
    "sync made async": (sync_to_async(plain), False),
    "returns a future of the loop": (bound_to_the_loop, False),
    "returns an awaitable of the loop": (awaitable, False),
}


@pytest.mark.parametrize("kind", CALLABLES)
async def test_callable_of_every_kind_is_called_where_it_belongs(kind: str) -> None:
    """KF-036, KF-038 to KF-040: sync work leaves the loop, awaitables are awaited on it."""
    func, threaded = CALLABLES[kind]
    assert await value(raw(func), '{"x": 7}') == [7, threaded]


async def test_sync_tool_can_be_kept_on_the_loop() -> None:
    """`thread=False` runs the function inline."""
    each = raw(lambda _: threading.get_ident(), thread=False)
    assert await value(each) == threading.get_ident()


def generator(args: dict[str, Any]) -> Any:
    yield 1


async def async_generator(args: dict[str, Any]) -> Any:
    yield 1


@pytest.mark.parametrize(
    "func", [generator, async_generator, functools.partial(generator), int, 3, None]
)
def test_what_is_no_function_is_refused(func: Any) -> None:
    """Generators, classes and other objects fail at construction, naming the tool."""
    with pytest.raises(ToolDefinitionError, match="'t'"):
        raw(func)


@pytest.mark.parametrize("func", [max, print, len])
def test_builtins_make_tools_or_a_plain_error(func: Any) -> None:
    """A builtin without a signature works with a schema; @tool refuses it in words."""
    assert raw(func).name == "t"
    with pytest.raises(ToolDefinitionError):
        tool(func)


async def test_sync_tool_does_not_stop_the_loop() -> None:
    """KF-036: a heartbeat goes on while a sync tool sleeps."""
    gaps: list[float] = []

    async def heartbeat() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    task = asyncio.create_task(heartbeat())
    await call(raw(lambda _: time.sleep(0.5)))
    task.cancel()
    assert len(gaps) >= 5
    assert max(gaps) < 0.45


async def test_worker_threads_are_reused() -> None:
    """KF-033, KF-062: a hundred sync calls in a row need one thread, also after a crash."""

    def crash(_: object) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        await call(raw(crash))
    each = raw(lambda _: threading.get_ident())
    assert len({await value(each) for _ in range(100)}) <= 2


async def test_context_variables_reach_sync_tools_and_stay_inside() -> None:
    """KF-037: the caller's value is seen, what the tool sets does not leak."""

    def who(_: object) -> str:
        seen = _WHO.get()
        _WHO.set("tool")
        return seen

    _WHO.set("caller")
    assert [await value(raw(who)) for _ in range(3)] == ["caller"] * 3
    assert _WHO.get() == "caller"


async def test_result_and_error_of_a_thread_are_freed_without_the_collector() -> None:
    """KF-106: neither worker nor future keep the last result or exception alive."""

    class Thing:
        pass

    gone: list[weakref.ref[Any]] = []

    def give(_: object) -> str:
        thing = Thing()
        gone.append(weakref.ref(thing))
        return "x"

    class Fault(Exception):
        pass

    def fail(_: object) -> str:
        fault = Fault()
        gone.append(weakref.ref(fault))
        try:
            raise fault
        finally:
            del fault

    gc.collect()
    gc.disable()
    try:
        await call(raw(give))
        await call(raw(fail))
        for _ in range(100):
            if not any(ref() for ref in gone):
                break
            await asyncio.sleep(0.01)
        assert [ref() for ref in gone] == [None, None]
    finally:
        gc.enable()


# Exceptions (KF-031 to KF-034, KF-110, KF-111).


class Custom(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Unusual(BaseException):
    pass


EXCEPTIONS: dict[str, tuple[BaseException, str]] = {
    "ValueError": (ValueError("bad"), "ValueError: bad"),
    "without text": (ValueError(), "ValueError"),
    "KeyError": (KeyError("k"), "KeyError: 'k'"),
    "TimeoutError": (TimeoutError(), "TimeoutError"),
    "OSError": (
        FileNotFoundError(2, "No such file or directory", "/home/me/x"),
        "FileNotFoundError: No such file or directory",
    ),
    "StopIteration": (StopIteration("x"), "RuntimeError"),
    "StopAsyncIteration": (StopAsyncIteration("x"), "StopAsyncIteration: x"),
    "CancelledError": (asyncio.CancelledError("own"), "CancelledError: own"),
    "ExceptionGroup": (ExceptionGroup("g", [ValueError("x")]), "ValueError: x"),
    "RecursionError": (RecursionError("deep"), "RecursionError: deep"),
    "unprintable": (Custom(), "Custom"),
    "ToolError": (ToolError("/verbatim /a/b/c ✓"), "/verbatim /a/b/c ✓"),
}


@pytest.mark.parametrize("threaded", [True, False])
@pytest.mark.parametrize("kind", EXCEPTIONS)
async def test_exception_of_every_kind_becomes_an_error_result(
    kind: str, threaded: bool
) -> None:
    """KF-031, KF-032: the run goes on, the model reads the exception's type and text."""
    raised, text = EXCEPTIONS[kind]

    def fail(_: object) -> None:
        raise raised

    async def afail(_: object) -> None:
        raise raised

    assert (await error(raw(fail, thread=threaded))).startswith(text)
    assert (await error(raw(afail))).startswith(text)


@pytest.mark.parametrize(
    "kind", [SystemExit, KeyboardInterrupt, GeneratorExit, Unusual]
)
@pytest.mark.parametrize("threaded", [True, False])
async def test_base_exceptions_pass_and_later_calls_work(
    kind: type[BaseException], threaded: bool
) -> None:
    """KF-033: they are never turned into text and poison no thread."""

    def fail(_: object) -> None:
        raise kind

    with pytest.raises(kind):
        await call(raw(fail, thread=threaded))
    assert await value(raw(lambda _: 1)) == 1


async def test_inner_cancellations_and_timeouts_are_tool_errors() -> None:
    """KF-034: a tool that cancels a task of its own does not cancel the run."""

    async def cancels(_: object) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await task

    async def times_out(_: object) -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    assert (await error(raw(cancels))).startswith("CancelledError")
    assert await error(raw(times_out)) == "TimeoutError"


async def test_cancelling_the_caller_is_not_a_tool_error() -> None:
    """KF-031: the other side: a real cancellation propagates."""

    begun: list[bool] = []

    async def wait(_: object) -> None:
        begun.append(True)
        await asyncio.sleep(60)

    def sleep(_: object) -> None:
        begun.append(True)
        time.sleep(0.1)

    for number, each in enumerate((raw(wait), raw(sleep)), 1):
        task = asyncio.create_task(call(each))
        await until(lambda number=number: len(begun) == number)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_failing_call_leaves_its_siblings_alone() -> None:
    """KF-032, KF-050: three calls, the second raises: three results in order."""

    @tool
    def maybe(n: int) -> int:
        """Maybe fail."""
        if n == 2:
            raise ValueError("two")
        return n

    calls = [ToolCall(f"c{n}", "maybe", f'{{"n": {n}}}') for n in (1, 2, 3)]
    provider = FakeProvider([Turn(tool_calls=calls), "ok"])
    response = await Agent(provider, tools=[maybe]).run("go")
    results = response.messages[1:4]
    assert [m.call_id for m in results] == ["c1", "c2", "c3"]  # type: ignore[union-attr]
    assert [m.is_error for m in results] == [False, True, False]  # type: ignore[union-attr]
    assert response.text == "ok"


class Renamed(ToolError):
    def __init__(self, code: int) -> None:
        self.code = code


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (Renamed(3), "3"),
        (ToolError(5), "5"),  # type: ignore[arg-type]
        (ToolError("a\udc97b"), "a\ufffdb"),
        (ToolError("x" * 5000), "x" * 5000),
        (ToolError(""), ""),
    ],
)
async def test_tool_error_passes_verbatim_in_every_form(
    raised: ToolError, text: str
) -> None:
    """Its text is the author's choice: not shortened, not redacted, never a crash."""

    def fail(_: object) -> None:
        raise raised

    assert await error(raw(fail)) == text


SECRETS = [
    "cannot open /home/me/secret/data.csv",
    "postgresql://admin:hunter2@db.internal/prod failed",
    "postgresql://admin:hun@ter2@db.internal/prod failed",
    "GET https://api.example/v1?api_key=hunter2&x=1 gave 500",
    "redis://:hunter2@cache:6379/0",
    "C:\\Users\\me\\secret\\data.csv is locked",
    "file:///home/me/secret/data.csv is locked",
    "'/home/me/secret/data.csv'",
]


@pytest.mark.parametrize("text", SECRETS)
async def test_error_text_names_no_path_and_no_credentials(text: str) -> None:
    """KF-110: URLs lose user and query, absolute paths shrink to their last part."""

    def fail(_: object) -> None:
        raise RuntimeError(text)

    shown = await error(raw(fail))
    for hidden in ("hunter2", "ter2", "hun@", "/home", "Users", "/secret", "api_key"):
        assert hidden not in shown


@pytest.mark.parametrize(
    "text", ["x" * 2**20, "/a/" * 30000, "a." * 50000, "://" * 30000, "\\" * 50000]
)
async def test_error_text_is_bounded_and_cut_visibly(text: str) -> None:
    """KF-111: a megabyte of exception text becomes 500 characters, in linear time."""

    def fail(_: object) -> None:
        raise RuntimeError(text)

    async with asyncio.timeout(5):
        shown = await error(raw(fail))
    assert len(shown) <= 500
    if text.startswith("x"):
        assert shown.endswith("[cut]")


async def test_whole_error_goes_to_the_log_at_debug_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """KF-110: full detail stays local, nothing of it above DEBUG."""

    def fail(_: object) -> None:
        raise RuntimeError("/home/me/secret/data.csv")

    with caplog.at_level(logging.DEBUG, "lighter"):
        await error(raw(fail))
    assert "/home/me/secret/data.csv" in caplog.text
    above = [record for record in caplog.records if record.levelno > logging.DEBUG]
    assert [record.getMessage() for record in above] == ["tool t failed: RuntimeError"]
    assert all(record.exc_info is None for record in above)


async def test_validation_errors_show_place_and_rule_never_the_value() -> None:
    """KF-111: no input, no URL of the validation library, bounded."""

    class Cat(BaseModel):
        kind: Literal["cat"]

    class Dog(BaseModel):
        kind: Literal["dog"]

    @tool
    def check(
        n: int,
        color: Literal["red", "green"] = "red",
        pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None,
        when: dt.date | None = None,
    ) -> int:
        """Check."""
        return n

    secret = "hunter2-" + "s" * 2000
    for arguments in (
        {"n": secret},
        {"n": 1, "color": secret},
        {"n": 1, "pet": {"kind": secret}},
        {"n": 1, "when": secret},
    ):
        shown = await error(check, json.dumps(arguments))
        assert shown.startswith("invalid arguments: ")
        assert "hunter2" not in shown
        assert "http" not in shown
        assert "pydantic" not in shown
        assert len(shown) <= 500


async def test_validation_error_inside_a_tool_hides_its_input_too() -> None:
    """KF-111: the library's error raised by the tool's own code is treated alike."""

    class Row(BaseModel):
        n: int

    def fail(_: object) -> None:
        Row.model_validate({"n": "hunter2"})

    shown = await error(raw(fail))
    assert shown.startswith("ValidationError: n: ")
    assert "hunter2" not in shown


async def test_unknown_tool_with_a_long_name_gives_a_bounded_result() -> None:
    """KF-028, KF-111: the name is cut, the known tools are named."""
    each = raw(lambda _: 1)
    provider = FakeProvider([Turn(tool_calls=[ToolCall("c", "n" * 10**6, "")]), "ok"])
    response = await Agent(provider, tools=[each]).run("go")
    result = response.messages[1]
    assert isinstance(result, ToolMessage)
    assert result.is_error
    assert len(result.tool_output) <= 500
    assert "'t'" in result.tool_output or " t" in result.tool_output


@pytest.mark.parametrize("name", ["T", "t ", "functions.t", "tt", ""])
async def test_no_call_is_dispatched_to_a_similar_name(name: str) -> None:
    """KF-030: no fuzzy dispatch; the known call beside it runs."""
    ran: list[int] = []
    each = raw(lambda _: ran.append(1))
    calls = [ToolCall("1", name, ""), ToolCall("2", "t", ""), ToolCall("3", name, "")]
    provider = FakeProvider([Turn(tool_calls=calls), "ok"])
    response = await Agent(provider, tools=[each]).run("go")
    assert [m.is_error for m in response.messages[1:4]] == [True, False, True]  # type: ignore[union-attr]
    assert ran == [1]


# Results (KF-041 to KF-044).


class Color(enum.Enum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


@dataclass
class Point:
    x: int
    y: dt.date


class Shape(BaseModel):
    corners: list[Point]
    other: str = Field(alias="else")


Pair = namedtuple("Pair", "a b")  # noqa: PYI024

_NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
_ID = uuid.UUID(int=5)

RESULTS: list[tuple[Any, Any]] = [
    (None, None),
    ("", ""),
    ("a✓😀", "a✓😀"),
    (0, 0),
    (10**30, 10**30),
    (1.5, 1.5),
    (True, True),
    ([1, (2, 3)], [1, [2, 3]]),
    ({"a": {"b": 1}}, {"a": {"b": 1}}),
    ({1: 2}, {"1": 2}),
    (OrderedDict(z=1, a=2), {"z": 1, "a": 2}),
    (types.MappingProxyType({"a": 1}), {"a": 1}),
    (_NOW, "2026-01-02T03:04:05Z"),
    (_NOW.date(), "2026-01-02"),
    (decimal.Decimal("1.10"), "1.10"),
    (_ID, str(_ID)),
    (pathlib.Path("/a/b"), "/a/b"),
    (b"bytes", "bytes"),
    ({5}, [5]),
    (frozenset({5}), [5]),
    (Color.RED, "red"),
    (Number.ONE, 1),
    (Point(1, _NOW.date()), {"x": 1, "y": "2026-01-02"}),
    (
        Shape.model_validate({"corners": [Point(1, _NOW.date())], "else": "z"}),
        {"corners": [{"x": 1, "y": "2026-01-02"}], "else": "z"},
    ),
    (Pair(1, 2), [1, 2]),
    ([Color.RED, {"when": _NOW}], ["red", {"when": "2026-01-02T03:04:05Z"}]),
]


@pytest.mark.parametrize("number", range(len(RESULTS)))
async def test_result_of_every_kind_has_a_json_form(number: int) -> None:
    """KF-041: documented JSON for each kind of value."""
    given, wanted = RESULTS[number]
    assert await value(raw(lambda _: given)) == wanted


async def test_generator_result_becomes_an_array() -> None:
    """KF-041: a generator that is returned is read to its end."""
    assert await value(raw(lambda _: (n for n in range(3)))) == [0, 1, 2]


def _circle() -> Any:
    circle: list[Any] = []
    circle.append(circle)
    return circle


def _deep() -> Any:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


BAD_RESULTS: dict[str, Callable[[], Any]] = {
    "nan": lambda: float("nan"),
    "inf": lambda: [float("inf")],
    "-inf": lambda: {"x": float("-inf")},
    "nan in a dataclass": lambda: {"p": Point(float("nan"), _NOW.date())},  # type: ignore[arg-type]
    "exception": lambda: ValueError("x"),
    "object": object,
    "bytes": lambda: b"\xff\xfe",
    "circle": _circle,
    "deep": _deep,
    "long integer": lambda: 10**5000,
    "tuple key": lambda: {(1, 2): 3},
    "function": lambda: print,
    "module": lambda: sys,
    "lock": threading.Lock,
}


@pytest.mark.parametrize("kind", BAD_RESULTS)
async def test_result_without_a_json_form_is_an_error_result(kind: str) -> None:
    """KF-041, KF-043: the run never raises and never sends a bare NaN."""
    message = await call(raw(lambda _: BAD_RESULTS[kind]()))
    assert message.is_error
    assert len(message.tool_output) <= 500


@pytest.mark.parametrize("given", ["a\udc97b", {"k\udc97": 1}, ["\ud83d\ude00"]])
async def test_lone_surrogates_of_a_result_are_replaced(given: Any) -> None:
    """KF-042: text, keys and exception messages; a pair becomes its character."""
    message = await call(raw(lambda _: given))
    message.tool_output.encode("utf-8")
    assert "\ufffd" in message.tool_output or "😀" in message.tool_output

    def fail(_: object) -> None:
        raise ValueError("a\udc97b")

    (await error(raw(fail))).encode("utf-8")


async def test_ten_megabytes_of_result_pass_whole() -> None:
    """KF-044: the size of a result is the application's choice; nothing explodes."""
    message = await call(raw(lambda _: "x" * 10_000_000))
    assert len(message.tool_output) == 10_000_002


# Parameters (KF-025, KF-026, KF-076 to KF-081).

NAMES = [
    "config", "context", "cls", "args", "kwargs", "name", "call_id", "request",
    "messages", "tool", "func", "description", "values", "run", "model_config",
    "model_dump", "schema", "json", "copy", "_private", "__x", "self_", "text",
    "title", "type", "properties", "required", "error", "return_", "root",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
async def test_parameter_of_any_name_receives_its_value(name: str) -> None:
    """KF-025, KF-026: no name is taken by the framework or the validation library."""
    scope: dict[str, Any] = {}
    exec(
        f"def f({name}: int, other: str = 'o') -> list:\n return [{name}, other]", scope
    )
    each = tool(scope["f"])
    assert await value(each, json.dumps({name: 7})) == [7, "o"]
    assert each.get_spec().parameters["required"] == [name]


async def test_parameter_may_have_an_alias_that_is_a_keyword() -> None:
    """KF-026: `class` by alias; the function gets it under its own name."""

    @tool
    def pick(class_: Annotated[str, Field(alias="class")]) -> str:
        """Pick."""
        return class_

    assert "class" in pick.get_spec().parameters["properties"]  # type: ignore[operator]
    assert await value(pick, '{"class": "x"}') == "x"


def test_parameters_that_a_model_cannot_give_are_refused_by_name() -> None:
    """KF-025: construction fails with the tool's and the parameter's name."""

    def no_annotation(x) -> None: ...  # type: ignore[no-untyped-def]
    def positional(x: int, /) -> None: ...
    def star(*x: int) -> None: ...
    def twice(x: RunContext[Any], y: RunContext[Any]) -> None: ...
    def unknown(x: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821
    def method(self, x: int) -> None: ...  # type: ignore[no-untyped-def]
    def no_schema(x: Callable[[], int]) -> None: ...
    def bad_default(x: int = object()) -> None: ...  # type: ignore[assignment]

    for func in (no_annotation, positional, star, twice, unknown, method, no_schema,
                 bad_default):  # fmt: skip
        with pytest.raises(ToolDefinitionError, match=f"'{func.__name__}'"):
            tool(func)


class Node(BaseModel):
    value: int
    children: list[Node] = []
    best: Annotated[Node | None, Field(description="The best child.")] = None
    named: dict[str, Node] = {}


class Left(BaseModel):
    right: Right | None = None


class Right(BaseModel):
    left: Left | None = None


T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    content: T


class Options(TypedDict, total=False):
    depth: int


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]

TYPES: list[tuple[Any, Any, Any]] = [  # type, good argument, bad argument
    (int, 3, "3"),
    (int, 3.0, 3.5),
    (int, -(2**60), True),
    (float, 3, "3"),
    (float, 3.5, True),
    (str, "x", 3),
    (bool, True, 1),
    (bool, False, "false"),
    (int | None, None, "3"),
    (int | None, 3.0, True),
    (int | str, 3.0, 3.5),
    (list[int | str], [3.0, "x"], [3.5]),
    (dict[str, int], {"a": 3.0}, {"a": "3"}),
    (list[int], [1, 2.0], [1, "2"]),
    (set[int], [1, 2], ["1"]),
    (tuple[int, str], [1, "x"], [1]),
    (Literal["a", "b", 3], "a", "c"),
    (Color, "red", "blue"),
    (Number, 1, 2),
    (dt.datetime, "2026-01-02T03:04:05Z", "yesterday"),
    (dt.date, "2026-01-02", "2026-13-01"),
    (uuid.UUID, str(_ID), "x"),
    (decimal.Decimal, "1.5", "x"),
    (Any, {"x": [1]}, None),
    (object, 1, None),
    (dict, {"x": 1}, 3),
    (list, [1], 3),
    (dict[str, Any], {"x": {"y": 1}}, [1]),
    (Point, {"x": 1, "y": "2026-01-02"}, {"x": "1", "y": "2026-01-02"}),
    (Node, {"value": 1, "children": [{"value": 2}]}, {"value": 1, "children": [{}]}),
    (Left, {"right": {"left": {"right": None}}}, {"right": {"left": 3}}),
    (list[Node], [{"value": 1.0}], [{"value": "x"}]),
    (dict[str, Node], {"a": {"value": 1}}, {"a": 1}),
    (Box[int], {"content": 1}, {"content": "x"}),
    (Box[Box[str]], {"content": {"content": "x"}}, {"content": "x"}),
    (Pet, {"kind": "cat"}, {"kind": "cow"}),
    (Cat | Dog | None, {"kind": "dog"}, {"kind": "cow"}),
    (Options, {"depth": 1}, {"depth": "1"}),
    (Annotated[int, Field(ge=1, le=9)], 9, 10),
    (Annotated[str, Field(pattern="^a+$")], "aa", "b"),
]


def closed(schema: Any, root: Any) -> None:
    """Every reference resolves inside the schema."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            assert reference.startswith("#/")
            place = root
            for part in reference[2:].split("/"):
                place = place[part]
        for each in schema.values():
            closed(each, root)
    elif isinstance(schema, list):
        for each in schema:
            closed(each, root)


@pytest.mark.parametrize("number", range(len(TYPES)))
async def test_parameter_of_every_type_is_described_and_checked(number: int) -> None:
    """KF-076 to KF-079, KF-081: schema self-contained and valid, validation strict."""
    annotation, good, bad = TYPES[number]

    def take(x: Any) -> str:
        return "taken"

    take.__annotations__["x"] = annotation
    each = tool(take)
    schema: Any = each.get_spec().parameters
    jsonschema.Draft202012Validator.check_schema(schema)
    closed(schema, schema)
    json.dumps(schema, allow_nan=False)
    assert schema["type"] == "object"
    assert not each.get_spec().strict
    jsonschema.validate({"x": good}, schema)
    assert await value(each, json.dumps({"x": good})) == "taken"
    if annotation not in (Any, object):
        await error(each, json.dumps({"x": bad}))
    assert "is required" in await error(each, "{}")
    assert "y: is no known argument" in await error(
        each, json.dumps({"x": good, "y": 1})
    )


async def test_nested_models_keep_their_own_rules() -> None:
    """Design 9.8: what `@tool` checks strictly, a pydantic model checks by its config."""

    class Strict(BaseModel, strict=True, extra="forbid"):
        n: int

    @tool
    def take(node: Node, strict: Strict) -> int:
        """Take."""
        return node.value

    good = {"node": {"value": "1"}, "strict": {"n": 1}}
    assert await value(take, json.dumps(good)) == 1
    assert "strict.n" in await error(
        take, '{"node": {"value": 1}, "strict": {"n": "1"}}'
    )


async def test_recursive_arguments_validate_at_depth() -> None:
    """KF-077: finite schema, deep arguments."""

    @tool
    def depth(tree: Node) -> int:
        """Measure."""
        level = 0
        while tree.children:
            tree, level = tree.children[0], level + 1
        return level

    tree: dict[str, Any] = {"value": 1}
    for _ in range(20):
        tree = {"value": 1, "children": [tree]}
    assert await value(depth, json.dumps({"tree": tree})) == 20


async def test_local_names_resolve_in_postponed_annotations() -> None:
    """KF-079: local classes, closures and names of the caller are found."""

    class Outer(BaseModel):
        n: int

    def make() -> Tool:
        class Inner(BaseModel):
            n: int

        @tool
        def both(a: Outer, b: list[Inner], c: Literal["x"] = "x") -> int:
            """Add."""
            assert isinstance(a, Outer)  # a free variable, so the closure has it
            return a.n + b[0].n

        return both

    assert await value(make(), '{"a": {"n": 1}, "b": [{"n": 2}]}') == 3


async def test_return_type_under_type_checking_does_not_matter() -> None:
    """KF-079: only parameter annotations are read; others name tool and parameter."""

    @tool
    def fine(n: int) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821
        """Return."""
        return n

    assert await value(fine, '{"n": 1}') == 1
    with pytest.raises(ToolDefinitionError, match="parameter 'n' has an annotation"):

        @tool
        def bad(n: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
            """Fail."""
            return 1


async def test_defaults_of_every_kind_are_used_and_never_shared() -> None:
    """KF-080: omitted arguments get the default; mutable ones are fresh each time."""

    @tool
    def defaults(
        s: str = "s",
        n: int | None = None,
        color: Color = Color.RED,
        when: dt.datetime = _NOW,
        items: list[int] = [],  # noqa: B006
        node: Node = Node(value=1),  # noqa: B008
        made: Annotated[list[int], Field(default_factory=list)] = ...,  # type: ignore[assignment]
    ) -> list[Any]:
        """Take defaults."""
        items.append(1)
        node.children.append(Node(value=2))
        return [s, n, color, when, items, len(node.children)]

    schema: Any = defaults.get_spec().parameters
    jsonschema.Draft202012Validator.check_schema(schema)
    for _ in range(2):
        got = await value(defaults, '{"made": []}')
        assert got == ["s", None, "red", "2026-01-02T03:04:05Z", [1], 1]


async def test_free_form_keyword_arguments_work() -> None:
    """KF-078: `**kwargs` takes any further arguments of its type."""

    @tool
    def free(a: int, **rest: int) -> dict[str, int]:
        """Take all."""
        return {"a": a, **rest}

    assert await value(free, '{"a": 1, "b": 2, "values": 3}') == {
        "a": 1,
        "b": 2,
        "values": 3,
    }
    await error(free, '{"a": 1, "b": "2"}')


async def test_callable_objects_and_methods_resolve_their_own_annotations() -> None:
    """KF-038, KF-079: also an object that happens to have an attribute `func`."""

    class Search:
        def __init__(self) -> None:
            self.func = print

        def __call__(self, query: Annotated[str, Field(description="q")]) -> str:
            return query

        def method(self, query: Node) -> int:
            return query.value

    assert await value(tool(name="search")(Search()), '{"query": "x"}') == "x"
    assert await value(tool(Search().method), '{"query": {"value": 4}}') == 4
    part = functools.partial(lambda a, b: [a, b], b=2)
    part.func.__annotations__.update(a=int, b=int)
    assert await value(tool(name="part")(part), '{"a": 1}') == [1, 2]


# Argument texts (KF-021 to KF-023).


@tool
def optional(n: int = 0) -> int:
    """Take a number."""
    return n


class Args(BaseModel):
    n: int = 0


FORMS = {
    "signature": optional,
    "model": Tool(name="m", description="", parameters=Args, func=lambda a: a.n),
    "schema": Tool(
        name="s",
        description="",
        parameters={"properties": {"n": {"type": "integer"}}},
        func=lambda a: a.get("n", 0),
    ),
    "validated": Tool(
        name="v",
        description="",
        parameters={"properties": {"n": {"type": "integer"}}},
        func=lambda a: a.get("n", 0),
        validate=True,
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", ["", " ", "\n\t ", "{}", " {} "])
async def test_blank_arguments_mean_the_empty_object(form: str, text: str) -> None:
    """KF-021, KF-022: the tool runs with its defaults."""
    assert await value(FORMS[form], text) == 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "text",
    [
        "null", "3", "[1]", '"x"', "true", "NaN", '{"n": 1', '{"n": NaN}', "{'n': 1}",
        '{"n": 1}}', '{"n": 1} x', "[" * 100_000, '{"n":' * 100_000, '{"n": Infinity}',
        '{"n": ' + "9" * 5000 + "}", '{"a\udc97": 1', "\ufeff{}", "{" + "\x00" + "}",
    ],
)  # fmt: skip
async def test_bad_argument_text_is_one_bounded_error_result(
    form: str, text: str
) -> None:
    """KF-023: never an exception, never an execution, no echo of the input."""
    if form == "schema" and text.startswith('{"n": 9'):
        text = '{"n": '
    shown = await error(FORMS[form], text)
    assert shown.startswith("invalid arguments: ")
    assert len(shown) <= 500
    assert "9999" not in shown


async def test_duplicate_keys_take_the_last_in_every_form() -> None:
    """KF-069: one rule for all forms of parameters."""
    assert {await value(each, '{"n": 1, "n": 2}') for each in FORMS.values()} == {2}


async def test_lone_surrogates_in_arguments_do_not_raise() -> None:
    """KF-042: as an escape and as a raw half; a result of one kind or the other."""

    @tool
    def echo(text: str) -> str:
        """Echo."""
        return text

    for arguments in ('{"text": "a\\udc97"}', '{"text": "a\udc97"}', '{"a\udc97": 1}'):
        (await call(echo, arguments)).tool_output.encode("utf-8")
        schema = await call(raw(lambda a: a), arguments)
        schema.tool_output.encode("utf-8")


async def test_execute_takes_objects_and_refuses_the_rest_with_a_message() -> None:
    """`execute` is the seed's door: an object or its text, always a ToolMessage."""
    assert (await optional.execute({"n": 3}, call_id="c")).tool_output == "3"
    assert (await optional.execute('{"n": 3}', call_id="c")).tool_output == "3"
    for bad in ({"n": float("nan")}, {"n": object()}, [1], None, 3):
        assert (await optional.execute(bad, call_id="c")).is_error  # type: ignore[arg-type]


# Names and schemas (KF-082, KF-083).


@pytest.mark.parametrize(
    "name",
    ["my tool!", "a.b", "", "n" * 65, "n" * 129, "é", "n\n", " n", "n/m", None, 3],
)
def test_illegal_names_are_refused_with_the_rule(name: Any) -> None:
    """KF-082: the rule that all services share, at construction."""
    with pytest.raises(ToolDefinitionError, match="1 to 64 letters"):
        Tool(name=name, description="", parameters=ANY, func=print)
    if name is not None:
        with pytest.raises(ToolDefinitionError):
            tool(name=name)(optional.func)


def test_two_tools_of_one_name_are_refused() -> None:
    """KF-083: the error names the tool; a clash by case is a warning."""
    with pytest.raises(ToolDefinitionError, match="two tools have the name 't'"):
        Agent(FakeProvider(), tools=[raw(print), raw(len)])


def test_names_that_differ_by_case_are_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """KF-083: allowed, with a warning in the log."""
    upper = Tool(name="T", description="", parameters=ANY, func=print)
    Agent(FakeProvider(), tools=[raw(print), upper])
    assert "differ by case" in caplog.text


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"x": float("nan")},
        {"x": object()},
        {1: {}, (2,): {}},
        3,
        None,
    ],
)
def test_bad_schemas_are_refused(schema: Any) -> None:
    """A schema that is no JSON or no object schema fails at construction."""
    with pytest.raises(ToolDefinitionError, match="'t'"):
        Tool(name="t", description="", parameters=schema, func=print)


async def test_schema_dict_is_copied_and_its_owner_validates() -> None:
    """Design 9.8: the caller's dict is unchanged and later changes have no effect."""
    given: dict[str, Any] = {"properties": {"n": {"type": "integer"}}}
    before = json.dumps(given)
    each = Tool(name="t", description="", parameters=given, func=lambda a: a)
    assert json.dumps(given) == before
    given["properties"]["m"] = {}
    assert "m" not in each.get_spec().parameters["properties"]  # type: ignore[operator]
    assert await value(each, '{"n": "3"}') == {"n": "3"}
    strict = Tool(name="t", description="", parameters=given, func=print, validate=True)
    assert "'type'" in await error(strict, '{"n": "hunter2"}')
    assert "hunter2" not in await error(strict, '{"n": "hunter2"}')


def test_tool_built_from_a_local_scope_frees_it() -> None:
    """KF-106: the names of the place where `@tool` stands are not kept alive."""

    class Thing:
        pass

    def build() -> tuple[Tool, weakref.ref[Thing]]:
        thing = Thing()

        @tool
        def use(n: int) -> int:
            """Use."""
            return n

        return use, weakref.ref(thing)

    each, gone = build()
    gc.collect()
    assert gone() is None
    assert each.name == "use"
