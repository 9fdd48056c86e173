"""What a `before_model` hook may not do to a request, and how it may take the run."""

from __future__ import annotations

import pytest

from lighter_core import (
    Agent,
    AssistantMessage,
    BeforeModelHook,
    ModelError,
    ModelRequest,
    RunContext,
    ToolCall,
)
from lighter_core.testing import FakeProvider


def hooked(function) -> tuple[FakeProvider, Agent]:
    provider = FakeProvider(["hi"])
    hook = BeforeModelHook(hook_name="h", hook_function=function)
    return provider, Agent(provider, hooks=[hook])


async def test_a_call_without_a_result_is_refused_before_anything_is_sent() -> None:
    """Every service would refuse it; the error names the call."""

    def cut(request: ModelRequest) -> ModelRequest:
        call = ToolCall("c9", "add", "{}")
        return ModelRequest([*request.messages, AssistantMessage(tool_calls=[call])])

    provider, agent = hooked(cut)
    response = await agent.run("x")
    assert isinstance(response.error, ModelError)
    assert response.error.code == "invalid_request"
    assert "'c9'" in response.error.message
    assert provider.requests == []


async def test_what_is_no_message_is_refused_when_it_was_put_in_in_place() -> None:
    """The type is named, nothing is sent."""

    def append(request: ModelRequest) -> None:
        request.messages.append({"role": "user"})  # type: ignore[arg-type]

    provider, agent = hooked(append)
    response = await agent.run("x")
    assert isinstance(response.error, TypeError)
    assert "got dict" in str(response.error)
    assert provider.requests == []


@pytest.mark.parametrize("form", ["needed", "defaulted", "open"])
async def test_a_hook_function_gets_the_run_however_it_takes_it(form: str) -> None:
    """A default never hides the real run."""
    seen: list[RunContext | None] = []

    def needed(request, run):
        seen.append(run)

    def defaulted(request, run=None):
        seen.append(run)

    def open_ended(*args):
        seen.append(args[1])

    functions = {"needed": needed, "defaulted": defaulted, "open": open_ended}
    _, agent = hooked(functions[form])
    await agent.run("x")
    assert seen[0] is not None
    assert seen[0].run_id


async def test_another_argument_with_a_default_is_left_alone() -> None:
    """It belongs to the function's author."""
    seen: list[object] = []

    def counting(request, times=3):
        seen.append(times)

    _, agent = hooked(counting)
    await agent.run("x")
    assert seen == [3]
