"""The provider, found by its name as applications find it."""

from __future__ import annotations

import pytest
from lighter_core import (
    Agent,
    AgentResponse,
    ImagePart,
    Model,
    ModelError,
    TextDelta,
    TextPart,
    UserMessage,
    tool,
)

from lighter_echo import EchoProvider

NAME = "echo"


def test_an_agent_finds_the_provider_by_its_name() -> None:
    """The model id comes after the colon, options by keyword."""
    assert Agent(f"{NAME}:any").run_sync("Hello!").text == "Received: Hello!"
    model = Model.from_name(NAME, model_id="any", prefix="")
    assert isinstance(model.provider, EchoProvider)
    assert Agent(model).run_sync("Hello!").text == "Hello!"


@pytest.mark.parametrize("text", ["", " ", "Hello!", " two  words ", "line\nline\n"])
def test_the_deltas_make_up_the_message(text: str) -> None:
    """Joined they are the text of the reply, to the last blank."""
    with Agent(NAME).stream_sync(text) as stream:
        events = list(stream)
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    response = events[-1]
    assert isinstance(response, AgentResponse)
    assert "".join(deltas) == response.text == "Received: " + text


def test_unknown_options_are_refused() -> None:
    """With the names of those that there are."""
    with pytest.raises(TypeError, match="did you mean 'prefix'"):
        Model.from_name(NAME, prefx="")


def test_what_is_not_supported_is_refused() -> None:
    """With the documented code, before anything else happens."""

    @tool
    def add(a: int, b: int) -> int:
        """Calculate a sum."""
        return a + b

    image = ImagePart(data=b"\x89PNG", media_type="image/png")
    for agent, message in (
        (Agent(NAME, tools=[add]), UserMessage("1 + 2?")),
        (Agent(NAME), UserMessage([TextPart("What is this?"), image])),
    ):
        error = agent.run_sync(message).error
        assert isinstance(error, ModelError)
        assert error.code == "invalid_request"
        assert error.provider == NAME
