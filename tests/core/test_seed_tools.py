"""Tools: definition, arguments, results, failures."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from lighter_core import (
    Agent,
    RunContext,
    Tool,
    ToolCall,
    ToolDefinitionError,
    ToolError,
    ToolMessage,
    ToolSpec,
    tool,
)
from lighter_core.testing import FakeProvider, Turn


class Sum(BaseModel):
    """Two numbers."""

    model_config = ConfigDict(strict=True)

    a: int
    b: int


def explicit_add() -> Tool:
    return Tool(
        name="add",
        description="Calculate the sum of two numbers.",
        parameters=Sum,
        func=lambda args: args.a + args.b,
    )


@tool
def add(a: int, b: int) -> int:
    """Calculate the sum of two numbers."""
    return a + b


def schema_add() -> Tool:
    number = {"type": "integer"}
    return Tool(
        name="add",
        description="Calculate the sum of two numbers.",
        parameters={
            "type": "object",
            "properties": {"a": number, "b": number},
            "required": ["a", "b"],
        },
        func=lambda args: args["a"] + args["b"],
    )


async def answers(
    tools: list[Tool], *calls: ToolCall, run: str = "run"
) -> list[ToolMessage]:
    """Let a model make the calls in one reply and return the tool messages."""
    agent = Agent(FakeProvider([Turn(tool_calls=calls), "done"]), tools=tools)
    if run == "run":
        response = await agent.run("x")
    else:
        response = [e async for e in agent.stream("x")][-1]  # type: ignore[assignment]
    assert response.status == "completed"
    assert response.text == "done"
    return [m for m in response.messages if isinstance(m, ToolMessage)]


ALL_FORMS = pytest.mark.parametrize(
    "each",
    [explicit_add(), add, schema_add()],
    ids=["model", "decorator", "schema"],
)


@ALL_FORMS
async def test_model_request_runs_the_tool_and_its_result_goes_back(each: Tool) -> None:
    """All three forms of definition give the same message."""
    [message] = await answers([each], ToolCall("c1", "add", '{"a":19,"b":23}'))
    assert message == ToolMessage(call_id="c1", tool_name="add", tool_output="42")
    assert message.is_error is False


@ALL_FORMS
def test_tool_has_name_and_description_to_read(each: Tool) -> None:
    """They cannot be written."""
    assert each.name == "add"
    assert each.description == "Calculate the sum of two numbers."
    for field in ("name", "description", "parameters", "func"):
        with pytest.raises(AttributeError):
            setattr(each, field, "other")


def test_tool_has_parameters_and_function_to_read() -> None:
    """What it was built from."""

    def func(args: Sum) -> int:
        return args.a

    explicit = Tool(name="t", description="d", parameters=Sum, func=func)
    assert explicit.parameters is Sum
    assert explicit.func is func


@pytest.mark.parametrize("missing", ["name", "description", "parameters", "func"])
def test_all_four_fields_are_required(missing: str) -> None:
    """A tool without one of them is no tool."""
    fields: dict[str, Any] = {
        "name": "t",
        "description": "d",
        "parameters": Sum,
        "func": lambda args: args,
    }
    Tool(**fields)
    del fields[missing]
    with pytest.raises(TypeError, match=missing):
        Tool(**fields)


def test_decorated_function_stays_callable() -> None:
    """`@tool` does not take the function away."""
    assert add(1, 2) == 3
    assert isinstance(add, Tool)


def test_decorator_takes_texts_from_signature_and_docstring() -> None:
    """Name, description and the text of each parameter."""

    @tool
    def find_book(
        title: str, limit: Annotated[int, Field(description="At most so many.")] = 5
    ) -> list[str]:
        """Find books by title.

        Args:
            title: A part of the title.
            limit: Not used, the annotation goes first.
        """
        return [title] * limit

    spec = find_book.get_spec()
    assert spec.name == "find_book"
    assert spec.description == "Find books by title."
    properties: Any = spec.parameters["properties"]
    assert properties["title"] == {
        "type": "string",
        "description": "A part of the title.",
    }
    assert properties["limit"]["description"] == "At most so many."
    assert properties["limit"]["default"] == 5
    assert spec.parameters["required"] == ["title"]


def test_decorator_takes_other_texts() -> None:
    """Name and description can be given."""

    @tool(name="other", description="Other words.")
    def plain() -> None:
        """Words."""

    assert (plain.name, plain.description) == ("other", "Other words.")


@ALL_FORMS
def test_spec_is_a_definition_without_the_function(each: Tool) -> None:
    """Type, name, description, JSON Schema; `strict` is always false."""
    spec = each.get_spec()
    assert isinstance(spec, ToolSpec)
    assert spec.type == "function"
    assert spec.name == "add"
    assert spec.description == "Calculate the sum of two numbers."
    assert spec.strict is False
    schema = json.loads(json.dumps(spec.parameters))
    assert schema["type"] == "object"
    assert set(schema["properties"]) == {"a", "b"}
    assert set(schema["required"]) == {"a", "b"}
    assert not hasattr(spec, "func")


def test_spec_describes_the_input_not_the_parsed_value() -> None:
    """A field with a default is not required, aliases are the names to send."""

    class Search(BaseModel):
        query: str = Field(alias="q")
        limit: int = 3

    spec = Tool(
        name="s", description="d", parameters=Search, func=lambda args: args
    ).get_spec()
    assert spec.parameters["required"] == ["q"]
    assert set(spec.parameters["properties"]) == {"q", "limit"}  # type: ignore[arg-type]


def test_schemas_that_cannot_be_are_refused_at_construction() -> None:
    """A type without a JSON Schema fails where the tool is written."""
    with pytest.raises(ToolDefinitionError, match="'odd'"):

        @tool
        def odd(value: threading.Lock) -> None:  # type: ignore[valid-type]
            """Odd."""

    with pytest.raises(ToolDefinitionError, match="object schema"):
        Tool(name="t", description="d", parameters={"type": "array"}, func=len)


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 65, "a.b", 7])
def test_names_that_a_service_would_refuse_are_refused(name: object) -> None:
    """1 to 64 letters, digits, `_` and `-`."""
    with pytest.raises(ToolDefinitionError, match="no tool name"):
        Tool(name=name, description="d", parameters=Sum, func=len)  # type: ignore[call-overload]


@ALL_FORMS
async def test_execute_keeps_the_call_id(each: Tool) -> None:
    """A tool can be executed directly; the caller's id is in the result."""
    message = await each.execute({"a": 19, "b": 23}, call_id="call_7")
    assert message.call_id == "call_7"
    assert message.tool_output == "42"
    assert message.is_error is False


async def test_execute_takes_json_text_too() -> None:
    """Arguments as the model wrote them."""
    assert (await add.execute('{"a":1,"b":2}', call_id="c")).tool_output == "3"


async def test_asynchronous_functions_are_awaited() -> None:
    """`async def` works like `def`."""

    @tool
    async def stock(book: str) -> dict[str, object]:
        """Look up stock."""
        await asyncio.sleep(0)
        return {"book": book, "available": 12}

    [message] = await answers([stock], ToolCall("c", "stock", '{"book":"moby"}'))
    assert message.tool_output == '{"book":"moby","available":12}'


async def test_several_calls_run_one_after_another_in_order() -> None:
    """The second starts when the first has ended."""
    log: list[str] = []

    @tool
    async def step(n: int) -> int:
        """Take a step."""
        log.append(f"start {n}")
        for _ in range(3):
            await asyncio.sleep(0)
        log.append(f"end {n}")
        return n

    calls = [ToolCall(f"c{n}", "step", f'{{"n":{n}}}') for n in range(3)]
    messages = await answers([step], *calls)
    assert log == ["start 0", "end 0", "start 1", "end 1", "start 2", "end 2"]
    assert [m.call_id for m in messages] == ["c0", "c1", "c2"]


async def test_sync_tools_run_on_a_worker_thread_unless_told_otherwise() -> None:
    """A slow function does not stop the event loop; `thread=False` runs it inline."""
    here = threading.get_ident()

    @tool
    def away() -> bool:
        """Tell whether this is another thread."""
        return threading.get_ident() != here

    @tool(thread=False)
    def inline() -> bool:
        """Tell whether this is another thread."""
        return threading.get_ident() != here

    messages = await answers(
        [away, inline], ToolCall("1", "away"), ToolCall("2", "inline")
    )
    assert [m.tool_output for m in messages] == ["true", "false"]


# Arguments.


async def test_function_gets_the_parsed_value() -> None:
    """Defaults and conversions of the schema have been applied."""

    class Search(BaseModel):
        words: list[str]
        limit: int = 3

    seen: list[Search] = []
    search = Tool(name="s", description="d", parameters=Search, func=seen.append)
    await search.execute({"words": ["a"]}, call_id="c")
    assert seen == [Search(words=["a"], limit=3)]


async def test_decorated_function_gets_keyword_arguments_of_its_types() -> None:
    """Nested models arrive as objects."""

    class Place(BaseModel):
        city: str

    @tool
    def where(place: Place, count: int = 2) -> str:
        """Say where."""
        assert isinstance(place, Place)
        return place.city * count

    message = await where.execute({"place": {"city": "Ur"}}, call_id="c")
    assert message.tool_output == '"UrUr"'


@pytest.mark.parametrize("each", [add, explicit_add()], ids=["decorator", "model"])
@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":19',
        "nonsense",
        "null",
        "[19,23]",
        '"text"',
        '{"a":19}',
        '{"a":"19","b":23}',
        '{"a":true,"b":23}',
        '{"a":19,"b":23,"c":1}',
        '{"a":NaN,"b":1}',
        '{"a":1.5,"b":1}',
        "",
    ],
)
async def test_arguments_that_do_not_fit_are_an_error_result(
    each: Tool, arguments: str
) -> None:
    """Bad JSON, wrong types, missing and unknown keys: the function is not called."""
    [message] = await answers([each], ToolCall("c", "add", arguments))
    assert message.is_error
    assert message.tool_output.startswith("invalid arguments: ")
    assert message.call_id == "c"


async def test_function_is_not_called_with_arguments_that_do_not_fit() -> None:
    """Validation comes first."""
    called: list[int] = []

    @tool
    def note(n: int) -> None:
        """Note a number."""
        called.append(n)

    await answers(
        [note], ToolCall("1", "note", '{"n":"1"}'), ToolCall("2", "note", "{")
    )
    assert called == []


async def test_blank_arguments_mean_an_empty_object() -> None:
    """Services send nothing for a tool without parameters."""

    @tool
    def ping() -> str:
        """Answer."""
        return "pong"

    for text in ("", "  ", "{}"):
        [message] = await answers([ping], ToolCall("c", "ping", text))
        assert message.tool_output == '"pong"'


async def test_integral_floats_pass_for_integers() -> None:
    """JSON has one number type: 3.0 is an integer."""
    message = await add.execute('{"a":19.0,"b":23}', call_id="c")
    assert message.tool_output == "42"


async def test_validation_errors_do_not_repeat_the_input() -> None:
    """The model reads place and rule; values may be secret."""
    message = await add.execute({"a": "hunter2", "b": 1}, call_id="c")
    assert message.is_error
    assert "a: " in message.tool_output
    assert "hunter2" not in message.tool_output
    assert "http" not in message.tool_output


async def test_json_schema_tools_leave_validation_to_the_schemas_owner() -> None:
    """Only an object is required, unless `validate=True`."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    lax = Tool(name="t", description="d", parameters=schema, func=lambda args: args)
    message = await lax.execute({"n": "x"}, call_id="c")
    assert message.tool_output == '{"n":"x"}'
    assert (await lax.execute("[1]", call_id="c")).is_error
    strict = Tool(name="t", description="d", parameters=schema, func=len, validate=True)
    message = await strict.execute({"n": "x"}, call_id="c")
    assert message.is_error
    assert message.tool_output.startswith("invalid arguments: n:")


async def test_pydantic_config_decides_about_extra_keys() -> None:
    """Unset means forbidden, `ignore` means ignored."""

    class Lax(BaseModel):
        model_config = ConfigDict(extra="ignore")
        a: int = 0

    lax = Tool(name="t", description="d", parameters=Lax, func=lambda args: args.a)
    assert (await lax.execute({"a": 1, "z": 2}, call_id="c")).tool_output == "1"
    assert (
        await explicit_add().execute({"a": 1, "b": 2, "z": 3}, call_id="c")
    ).is_error


# Results.


@dataclass
class Book:
    title: str
    pages: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", '"text"'),
        (42, "42"),
        (4.5, "4.5"),
        (None, "null"),
        (True, "true"),
        ({"a": [1, 2]}, '{"a":[1,2]}'),
        ("é☃", '"é☃"'),
        (10**30, "1" + "0" * 30),
        ((1, 2), "[1,2]"),
        (Book("Emma", 474), '{"title":"Emma","pages":474}'),
        (Sum(a=1, b=2), '{"a":1,"b":2}'),
        ("\ud800", '"\ufffd"'),
    ],
)
async def test_results_are_compact_json_text(value: object, text: str) -> None:
    """A string keeps its JSON quotes; nothing gives `null`."""

    @tool
    def give() -> object:
        """Give."""
        return value

    message = await give.execute({}, call_id="c")
    assert message.tool_output == text
    assert message.is_error is False


def _circular() -> list[object]:
    circle: list[object] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), _circular(), object(), {1, object()}]
)
async def test_results_without_a_json_form_are_an_error_result(value: object) -> None:
    """NaN, circles and arbitrary objects; the run goes on."""

    @tool
    def give() -> object:
        """Give."""
        return value

    [message] = await answers([give], ToolCall("c", "give"))
    assert message.is_error


# Failures.


async def test_unknown_tool_is_an_error_result_that_names_the_tools() -> None:
    """The model may try again."""
    [message] = await answers([add], ToolCall("c", "subtract", "{}"))
    assert message.is_error
    assert message.tool_name == "subtract"
    assert "subtract" in message.tool_output
    assert "add" in message.tool_output


async def test_failing_function_is_an_error_result_and_the_loop_goes_on() -> None:
    """The model reads type and text."""

    @tool
    def fail() -> None:
        """Fail."""
        raise ValueError("out of stock")

    for way in ("run", "stream"):
        [message] = await answers([fail], ToolCall("c", "fail"), run=way)
        assert message.is_error
        assert message.tool_output == "ValueError: out of stock"


async def test_tool_error_chooses_the_text_for_the_model() -> None:
    """`ToolError` passes verbatim, without the class name."""

    @tool
    def fail() -> None:
        """Fail."""
        raise ToolError("Ask the user for the /order/number first.")

    [message] = await answers([fail], ToolCall("c", "fail"))
    assert message.is_error
    assert message.tool_output == "Ask the user for the /order/number first."


async def test_error_texts_are_short_and_without_paths() -> None:
    """A long text is cut visibly, a path shrinks to its last part."""

    @tool
    def long() -> None:
        """Fail."""
        raise ValueError("x" * 5000)

    @tool
    def missing() -> None:
        """Fail."""
        raise ValueError("no file /srv/shop/secret/plan.txt")

    @tool
    def system() -> None:
        """Fail."""
        open("/nowhere/at/all")  # noqa: PTH123, SIM115

    messages = await answers(
        [long, missing, system],
        ToolCall("1", "long"),
        ToolCall("2", "missing"),
        ToolCall("3", "system"),
    )
    outputs = [m.tool_output for m in messages]
    assert len(outputs[0]) <= 500
    assert outputs[0].endswith("[cut]")
    assert outputs[1] == "ValueError: no file plan.txt"
    assert outputs[2] == "FileNotFoundError: No such file or directory"


async def test_one_failing_call_does_not_stop_the_others() -> None:
    """Each call of a reply is answered, in order."""

    @tool
    def fail() -> None:
        """Fail."""
        raise ValueError("no")

    messages = await answers(
        [fail, add],
        ToolCall("1", "fail"),
        ToolCall("2", "add", '{"a":1,"b":1}'),
        ToolCall("3", "gone"),
    )
    assert [m.call_id for m in messages] == ["1", "2", "3"]
    assert [m.is_error for m in messages] == [True, False, True]


async def test_execute_turns_exceptions_into_messages() -> None:
    """A direct call raises nothing for a failing function."""

    @tool
    async def fail() -> None:
        """Fail."""
        raise LookupError("gone")

    message = await fail.execute({}, call_id="c")
    assert message == ToolMessage(
        call_id="c", tool_name="fail", tool_output="LookupError: gone", is_error=True
    )


async def test_tools_check_permissions_themselves_with_what_the_run_carries() -> None:
    """The user of the run reaches the tool through `deps`."""

    @tool
    def delete(book: str, run: RunContext[str]) -> str:
        """Delete a book."""
        if run.deps != "admin":
            raise ToolError("You may not delete books.")
        return f"deleted {book}"

    def script() -> FakeProvider:
        call = ToolCall("c", "delete", '{"book":"emma"}')
        return FakeProvider([Turn(tool_calls=[call]), "done"])

    guest = await Agent(script(), tools=[delete]).run("x", deps="guest")
    admin = await Agent(script(), tools=[delete]).run("x", deps="admin")
    assert guest.messages[1].tool_output == "You may not delete books."  # type: ignore[union-attr]
    assert admin.messages[1].tool_output == '"deleted emma"'  # type: ignore[union-attr]
