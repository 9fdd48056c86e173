"""T16, T17: tools of every form with every outcome; schemas of many parameters."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import itertools
import json
import pathlib
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field
from support.leak_guard import LeakGuard
from support.torture import Results, sample
from typing_extensions import TypedDict

from lighter_core import (
    Agent,
    FunctionTool,
    Tool,
    ToolCall,
    ToolError,
    ToolMessage,
    tool,
)
from lighter_core.testing import FakeProvider, Turn


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int


VALUES: dict[str, tuple[Callable[[], Any], Any]] = {  # "!": an error result
    "none": (lambda: None, None),
    "text": (lambda: "a✓🦊", "a✓🦊"),
    "empty": (lambda: "", ""),
    "int": (lambda: 3, 3),
    "float": (lambda: 1.5, 1.5),
    "bool": (lambda: True, True),
    "list": (lambda: [1, (2,)], [1, [2]]),
    "dict": (lambda: {"a": {"b": 1}}, {"a": {"b": 1}}),
    "int keys": (lambda: {1: 2}, {"1": 2}),
    "date": (lambda: dt.date(2026, 1, 2), "2026-01-02"),
    "time": (
        lambda: dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        "2026-01-02T00:00:00Z",
    ),
    "decimal": (lambda: decimal.Decimal("1.10"), "1.10"),
    "uuid": (lambda: uuid.UUID(int=5), str(uuid.UUID(int=5))),
    "path": (lambda: pathlib.Path("/a"), "/a"),
    "bytes": (lambda: b"ab", "ab"),
    "set": (lambda: {5}, [5]),
    "enum": (lambda: Colour.RED, "red"),
    "dataclass": (lambda: Point(1), {"x": 1}),
    "surrogate": (lambda: "a\ud83eb", "a\ufffdb"),
    "nan": (lambda: float("nan"), "!"),
    "infinity": (lambda: [float("inf")], "!"),
    "object": (object, "!"),
    "exception": (lambda: ValueError("x"), "!"),
    "bad bytes": (lambda: b"\xff", "!"),
    "long integer": (lambda: 10**5000, "!"),
}
ERRORS: dict[str, Callable[[], BaseException]] = {
    "value": lambda: ValueError("no"),
    "no text": ValueError,
    "key": lambda: KeyError("k"),
    "timeout": TimeoutError,
    "file": lambda: FileNotFoundError(2, "No such file", "/srv/me/x"),
    "stop": StopIteration,
    "stop async": StopAsyncIteration,
    "cancelled": asyncio.CancelledError,
    "group": lambda: ExceptionGroup("g", [ValueError("x")]),
    "recursion": RecursionError,
    "tool": lambda: ToolError("say this"),
    "assertion": AssertionError,
}


def forms(work: Callable[[], Any]) -> dict[str, Callable[..., Any]]:
    """The same work as tools of every form; `x` is there to be filled."""

    def plain(x: int = 0) -> Any:
        """Work."""
        return work()

    async def coroutine(x: int = 0) -> Any:
        """Work."""
        await asyncio.sleep(0)
        return work()

    @functools.wraps(plain)
    def wrapped(*args: Any, **options: Any) -> Any:
        return plain(*args, **options)

    class Holder:
        def bound(self, x: int = 0) -> Any:
            """Work."""
            return work()

        async def bound_async(self, x: int = 0) -> Any:
            """Work."""
            return work()

        @staticmethod
        def static(x: int = 0) -> Any:
            """Work."""
            return work()

        def __call__(self, x: int = 0) -> Any:
            """Work."""
            return work()

    def awaitable(x: int = 0) -> Any:
        """Work."""
        return coroutine(x)

    holder = Holder()
    return {
        "plain": plain,
        "async": coroutine,
        "wrapped": wrapped,
        "partial": functools.partial(plain, x=1),
        "partial of async": functools.partial(coroutine, x=1),
        "bound": holder.bound,
        "bound async": holder.bound_async,
        "static": holder.static,
        "object": holder,
        "returns an awaitable": awaitable,
    }


async def answer(function: Callable[..., Any]) -> ToolMessage:
    each = tool(function, name="work", description="Work.")
    turns = [Turn(tool_calls=[ToolCall("1", "work", "{}")]), "done"]
    response = await Agent(FakeProvider(turns), tools=[each]).run("go")
    assert response.status == "completed", response.error
    [result] = [m for m in response.messages if isinstance(m, ToolMessage)]
    return result


async def outcome_of_value(form: str, kind: str) -> None:
    make, wanted = VALUES[kind]
    result = await answer(forms(make)[form])
    assert result.is_error == (wanted == "!"), (form, kind, result)
    if wanted != "!":
        assert json.loads(result.tool_output) == wanted, (form, kind)


async def outcome_of_error(form: str, kind: str) -> None:
    def fail() -> Any:
        raise ERRORS[kind]()  # noqa: RSE102 - a function

    result = await answer(forms(fail)[form])
    assert result.is_error, (form, kind)
    assert "Traceback" not in result.tool_output
    assert "/srv/me" not in result.tool_output
    assert len(result.tool_output) <= 500


async def test_T16_every_form_with_every_outcome(results: Results) -> None:
    """Values have their JSON, exceptions are error results, nothing is left."""
    names = list(forms(lambda: None))
    cases = [(form, kind, True) for form in names for kind in VALUES]
    cases += [(form, kind, False) for form in names for kind in ERRORS]
    chosen = sample(cases, 50)
    async with LeakGuard(fds=False):
        for form, kind, good in chosen:
            await (outcome_of_value if good else outcome_of_error)(form, kind)
    results.add("T16", "forms of tools with outcomes", len(chosen), "as documented")


async def test_T16_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that are written without care; errors with all that they say."""
    from lighter_core import _tool_text as texts

    assert texts.MAX_ERROR_TEXT == 500

    async def careless(self: Any, call: ToolCall, *_: Any, **__: Any) -> ToolMessage:
        text = json.dumps(float("nan"))
        return ToolMessage(call_id=call.call_id, tool_name="work", tool_output=text)

    monkeypatch.setattr(FunctionTool, "answer", careless)
    for case in ("nan", "text"):
        with pytest.raises((AssertionError, ValueError)):
            await outcome_of_value("plain", case)
    with pytest.raises(AssertionError):
        await outcome_of_error("plain", "value")


class Item(BaseModel):
    name: str
    count: Annotated[int, Field(ge=0)] = 0


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Options(TypedDict, total=False):
    depth: int


BASES: dict[str, tuple[Any, Any, Any]] = {  # type, good, bad
    "int": (int, 3, "3"),
    "float": (float, 3.5, "3"),
    "str": (str, "x", 3),
    "bool": (bool, True, "true"),
    "literal": (Literal["a", "b"], "a", "c"),
    "enum": (Colour, "red", "blue"),
    "date": (dt.date, "2026-01-02", "soon"),
    "uuid": (uuid.UUID, str(uuid.UUID(int=5)), "x"),
    "bounded": (Annotated[int, Field(ge=1, le=9)], 9, 10),
    "pattern": (Annotated[str, Field(pattern="^a+$")], "aa", "b"),
    "dataclass": (Point, {"x": 1}, {"x": "1"}),
    "model": (Item, {"name": "n"}, {"count": -1}),
    "recursive": (Tree, {"value": 1, "children": [{"value": 2}]}, {"value": "x"}),
    "typed dict": (Options, {"depth": 1}, {"depth": "x"}),
    "tuple": (tuple[int, str], [1, "x"], [1]),
}
WRAPS: dict[str, Callable[[Any, Any, Any], tuple[Any, Any, Any]]] = {
    "alone": lambda t, good, bad: (t, good, bad),
    "optional": lambda t, good, bad: (t | None, None, bad),
    "list": lambda t, good, bad: (list[t], [good, good], [good, bad]),
    "mapping": lambda t, good, bad: (dict[str, t], {"a": good}, {"a": bad}),
    "described": lambda t, good, bad: (
        Annotated[t, Field(description="What it is.")],
        good,
        bad,
    ),
}


def references(schema: Any, root: Any) -> None:
    """Every reference leads somewhere inside."""
    if isinstance(schema, dict):
        if isinstance(place := schema.get("$ref"), str):
            found = root
            for part in place.removeprefix("#/").split("/"):
                found = found[part]
        for value in schema.values():
            references(value, root)
    elif isinstance(schema, list):
        for value in schema:
            references(value, root)


async def schema_case(base: str, wrap: str, make: Any = tool) -> None:
    kind, good, bad = WRAPS[wrap](*BASES[base])

    def take(x: Any) -> str:
        """Take it."""
        return "taken"

    take.__annotations__["x"] = kind
    each = make(take)
    schema: Any = each.get_spec().parameters
    jsonschema.Draft202012Validator.check_schema(schema)
    references(schema, schema)
    text = json.dumps(schema, allow_nan=False)
    assert len(text) < 5_000, "expanded"
    if wrap == "described":
        assert "What it is." in text
    jsonschema.validate({"x": good}, schema)
    for value, taken in ((good, True), (bad, False)):
        arguments = json.dumps({"x": value})
        turns = [Turn(tool_calls=[ToolCall("1", "take", arguments)]), "done"]
        response = await Agent(FakeProvider(turns), tools=[each]).run("go")
        [result] = [m for m in response.messages if isinstance(m, ToolMessage)]
        assert result.is_error != taken, (base, wrap, value, result.tool_output)


async def test_T17_schemas(results: Results) -> None:
    """Valid, closed, finite; good arguments pass, bad ones are error results."""
    cases = sample(itertools.product(BASES, WRAPS), 20)
    for base, wrap in cases:
        await schema_case(base, wrap)
    results.add("T17", "parameters, both ways", len(cases), "100 %")


async def test_T17_finds_it() -> None:
    """A reference that leads nowhere; a check that is no check."""

    def broken(function: Any) -> Any:
        whole = tool(function)
        schema = json.loads(json.dumps(whole.get_spec().parameters))
        schema.pop("$defs", None)
        return Tool(
            name="take", description="Take.", parameters=schema, func=lambda _: "taken"
        )

    for base, wrap in (("recursive", "list"), ("int", "alone")):
        with pytest.raises((AssertionError, KeyError)):
            await schema_case(base, wrap, broken)
