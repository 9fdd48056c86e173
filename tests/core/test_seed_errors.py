"""Failed runs, model errors, and what stays a tool's own failure."""

from __future__ import annotations

import copy
import pickle
from typing import get_args

import pytest

import lighter_core
from lighter_core import (
    Agent,
    AgentResponse,
    LighterError,
    Message,
    Model,
    ModelError,
    ModelErrorCode,
    ModelRequest,
    PluginNotFoundError,
    ToolCall,
    UserMessage,
    check_history,
    tool,
)
from lighter_core.adapters import code_for_status
from lighter_core.testing import FakeProvider, Turn

CODES = {
    "auth_error",
    "rate_limit",
    "invalid_request",
    "network_error",
    "server_error",
    "bad_response",
    "aborted",
    "unknown",
}


@tool(thread=False)
def ping() -> str:
    """Answer."""
    return "pong"


async def finish(agent: Agent, way: str, messages: object = "x") -> AgentResponse:
    if way == "run":
        return await agent.run(messages)  # type: ignore[arg-type]
    last = [event async for event in agent.stream(messages)][-1]  # type: ignore[arg-type]
    assert isinstance(last, AgentResponse)
    return last


BOTH = pytest.mark.parametrize("way", ["run", "stream"])


def test_codes_are_a_closed_set_of_eight() -> None:
    """The categories are the same for all providers."""
    assert set(get_args(ModelErrorCode)) == CODES


@pytest.mark.parametrize("code", sorted(CODES))
def test_model_error_takes_each_code(code: ModelErrorCode) -> None:
    """And keeps it."""
    assert ModelError("m", code).code == code


def test_model_error_refuses_another_code() -> None:
    """A typing mistake in a provider shows at once."""
    with pytest.raises(ValueError, match="not a ModelErrorCode"):
        ModelError("m", "timeout")  # type: ignore[arg-type]


def test_model_error_fields_are_optional_and_independent() -> None:
    """Status of the answer and status of the generation need not both be there."""
    plain = ModelError("no connection", "network_error")
    assert plain.http_status is None
    assert plain.response_status is None
    incomplete = ModelError("cut", "bad_response", response_status="incomplete")
    assert (incomplete.http_status, incomplete.response_status) == (None, "incomplete")
    limited = ModelError("slow down", "rate_limit", http_status=429, retry_after=2.5)
    assert (limited.http_status, limited.response_status) == (429, None)
    assert limited.retry_after == 2.5


def test_model_error_is_an_exception_with_message_and_name() -> None:
    """It can be raised, caught as `LighterError`, and printed."""
    error = ModelError("the text", "unknown")
    assert isinstance(error, LighterError)
    assert isinstance(error, Exception)
    assert str(error) == error.message == "the text"
    assert type(error).__name__ == "ModelError"


def test_errors_survive_pickle_and_copy_with_their_fields() -> None:
    """They may cross a process border."""
    error = ModelError(
        "m", "rate_limit", http_status=429, response_status="r", provider="p"
    )
    error.add_note("seen")
    for each in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(each) is ModelError
        assert vars(each) | {"__notes__": ["seen"]} == vars(error)
        assert each.__notes__ == ["seen"]


def test_all_errors_share_one_base() -> None:
    """`except LighterError` catches everything that is raised on purpose."""
    for name in lighter_core.__all__:
        value = getattr(lighter_core, name)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, LighterError), name


@BOTH
@pytest.mark.parametrize(
    "error",
    [
        ModelError("down", "server_error", http_status=503),
        ValueError("not an error of Lighter"),
        StopAsyncIteration("odd"),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_failed_run_has_the_very_exception(way: str, error: Exception) -> None:
    """Nothing is wrapped or converted."""

    class Failing(FakeProvider):
        async def invoke(self, request: ModelRequest) -> object:  # type: ignore[override]
            raise error

        def stream(self, request: ModelRequest) -> object:  # type: ignore[override]
            raise error

    response = await finish(Agent(Failing([])), way)
    assert response.status == "failed"
    assert response.error is error
    assert response.messages == []


@BOTH
async def test_tool_failures_do_not_fail_the_run(way: str) -> None:
    """`completed` says that the loop ended, not that each tool succeeded."""

    @tool
    def fail() -> None:
        """Fail."""
        raise ValueError("no")

    calls = [
        ToolCall("1", "fail"),
        ToolCall("2", "unknown"),
        ToolCall("3", "ping", "{"),
    ]
    agent = Agent(FakeProvider([Turn(tool_calls=calls), "sorry"]), tools=[fail, ping])
    response = await finish(agent, way)
    assert response.status == "completed"
    assert response.error is None
    assert [m.is_error for m in response.messages if m.role == "tool"] == [True] * 3


@BOTH
async def test_failure_in_a_later_round_keeps_the_completed_rounds(way: str) -> None:
    """Calls and results of the run so far are in the response, in pairs."""
    error = ModelError("down", "server_error")
    calls = [ToolCall("1", "ping"), ToolCall("2", "ping")]
    agent = Agent(FakeProvider([Turn(tool_calls=calls), error]), tools=[ping])
    response = await finish(agent, way)
    assert response.status == "failed"
    assert [m.role for m in response.messages] == ["assistant", "tool", "tool"]
    assert check_history(response.messages) == []


@BOTH
async def test_a_failed_run_can_be_continued_without_repeating_tools(way: str) -> None:
    """The kept messages are a history to go on from."""
    ran: list[str] = []

    @tool(thread=False)
    def pay() -> str:
        """Have an effect."""
        ran.append("paid")
        return "ok"

    error = ModelError("down", "server_error")
    provider = FakeProvider(
        [Turn(tool_calls=[ToolCall("1", "pay")]), error, "All paid."]
    )
    agent = Agent(provider, tools=[pay])
    history: list[Message] = [UserMessage("Pay.")]
    first = await finish(agent, way, history)
    history += first.messages
    second = await finish(agent, way, history)
    assert second.status == "completed"
    assert second.notes == []
    assert second.text == "All paid."
    assert ran == ["paid"]


async def test_model_and_provider_raise_instead_of_returning_a_status() -> None:
    """Errors propagate from direct calls."""
    error = ModelError("down", "server_error")
    provider = FakeProvider([error] * 4)
    request = ModelRequest([UserMessage("x")])
    with pytest.raises(ModelError) as caught:
        await Model(provider).invoke(request)
    assert caught.value is error
    with pytest.raises(ModelError) as caught:
        _ = [event async for event in Model(provider).stream(request)]
    assert caught.value is error
    with pytest.raises(ModelError) as caught:
        await provider.invoke(request)
    assert caught.value is error


async def test_failed_response_is_narrowed_by_the_errors_type() -> None:
    """`error` may be any exception: its fields are read after `isinstance`."""
    codes: list[str] = []
    for error in (ModelError("x", "rate_limit"), KeyError("x")):
        response = await Agent(FakeProvider([error])).run("x")
        if isinstance(response.error, ModelError):
            codes.append(response.error.code)
        else:
            codes.append(type(response.error).__name__)
    assert codes == ["rate_limit", "KeyError"]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_request"),
        (401, "auth_error"),
        (402, "auth_error"),
        (403, "auth_error"),
        (404, "invalid_request"),
        (408, "network_error"),
        (429, "rate_limit"),
        (500, "server_error"),
        (529, "server_error"),
        (302, "bad_response"),
    ],
)
def test_http_statuses_have_one_code_for_all_providers(status: int, code: str) -> None:
    """The categories mean the same everywhere."""
    assert code_for_status(status) == code


def test_an_unknown_provider_name_says_what_there_is_and_what_to_install() -> None:
    """Choosing what is not installed is explained before any import."""
    with pytest.raises(PluginNotFoundError, match="installed: ") as caught:
        Model.from_name("nope")
    assert "pip install" in str(caught.value)
    assert caught.value.name == "nope"
