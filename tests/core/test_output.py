"""Answers of a given form: asked for, read, and sent back once when they do not fit."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from lighter_core import (
    Agent,
    AgentResponse,
    OutputError,
    RunLimits,
    SystemMessage,
    ToolCall,
    UserMessage,
    check_history,
    tool,
)
from lighter_core.testing import FakeProvider, Turn


class Book(BaseModel):
    title: str
    pages: int


@dataclass
class Shelf:
    books: list[str]


class Native(FakeProvider):
    """A provider that can hold the model to a form by itself."""

    capabilities = frozenset({"output"})


GOOD = '{"title":"Moon","pages":42}'


async def test_the_answer_becomes_an_object_of_the_model() -> None:
    """The text stays in the message, the value is in `output`."""
    response = await Agent(FakeProvider([GOOD])).run("A book?", output=Book)
    assert response.status == "completed"
    assert response.output == Book(title="Moon", pages=42)
    assert response.text == GOOD


async def test_a_provider_that_knows_forms_gets_the_schema_and_no_instruction() -> None:
    """The system prompt stays as it is, the request has the form."""
    provider = Native([GOOD])
    await Agent(provider, system_prompt="Be brief.").run("A book?", output=Book)
    request = provider.requests[0]
    assert request.messages[0] == SystemMessage("Be brief.")
    assert request.output is not None
    assert request.output.name == "Book"
    assert set(request.output.schema["properties"]) == {"title", "pages"}


async def test_another_provider_is_told_in_the_system_prompt() -> None:
    """The same prompt in each call of the run, so that prefixes stay stable."""
    call = Turn(tool_calls=[ToolCall("c1", "count", "{}")])
    provider = FakeProvider([call, GOOD])

    @tool
    def count() -> int:
        """Count."""
        return 42

    agent = Agent(provider, tools=[count], system_prompt="Be brief.")
    response = await agent.run("A book?", output=Book)
    assert response.output == Book(title="Moon", pages=42)
    prompts = [request.messages[0].content for request in provider.requests]
    assert len(set(prompts)) == 1
    assert prompts[0].startswith("Be brief.\n\n")
    assert '"pages"' in prompts[0]
    assert [request.output for request in provider.requests] == [None, None]


async def test_without_a_system_prompt_the_instruction_stands_alone() -> None:
    """`system_prompt=None` sends nothing else."""
    provider = FakeProvider([GOOD])
    await Agent(provider, system_prompt=None).run("A book?", output=Book)
    assert isinstance(provider.requests[0].messages[0], SystemMessage)
    assert provider.requests[0].messages[1] == UserMessage("A book?")


@pytest.mark.parametrize(
    "bad",
    [
        "Moon, 42 pages",
        '{"title":"Moon"}',
        '{"title":"Moon","pages":"many"}',
        "",
        "null",
        "[1]",
        '{"title":"Moon","pages":NaN}',
    ],
)
async def test_an_answer_that_does_not_fit_is_sent_back_once(bad: str) -> None:
    """The model reads what is wrong; both answers are in the messages."""
    provider = FakeProvider([bad, GOOD])
    response = await Agent(provider).run("A book?", output=Book)
    assert response.output == Book(title="Moon", pages=42)
    roles = [message.role for message in response.messages]
    assert roles == ["assistant", "user", "assistant"]
    assert provider.requests[1].messages[-1] == response.messages[1]
    assert check_history(response.messages) == []


async def test_a_second_answer_that_does_not_fit_fails_the_run() -> None:
    """Nothing is asked a third time, and everything said is kept."""
    provider = FakeProvider(["no", "never", GOOD])
    response = await Agent(provider).run("A book?", output=Book)
    assert response.status == "failed"
    assert isinstance(response.error, OutputError)
    assert response.output is None
    assert len(provider.requests) == 2
    assert len(response.messages) == 3


async def test_the_repair_counts_as_a_model_call() -> None:
    """A limit of one call leaves no room for it."""
    agent = Agent(FakeProvider(["no", GOOD]), limits=RunLimits(model_calls=1))
    response = await agent.run("A book?", output=Book)
    assert response.status == "failed"
    assert getattr(response.error, "limit", None) == "model_calls"


@pytest.mark.parametrize(
    "fence", ["```json\n{}\n```", "```\n{}\n```", "\n```json\n{}\n```\n"]
)
async def test_a_code_fence_around_the_answer_is_taken_off(fence: str) -> None:
    """Small models like to add one."""
    text = fence.replace("{}", GOOD)
    response = await Agent(FakeProvider([text])).run("A book?", output=Book)
    assert response.output == Book(title="Moon", pages=42)


async def test_dataclasses_and_other_types_work() -> None:
    """What is no object by itself travels inside one."""
    provider = Native(['{"books":["a"]}', '{"result":[1,2]}', '{"result":7}'])
    agent = Agent(provider)
    assert (await agent.run("?", output=Shelf)).output == Shelf(["a"])
    assert (await agent.run("?", output=list[int])).output == [1, 2]
    assert (await agent.run("?", output=int)).output == 7
    for request in provider.requests:
        assert request.output.schema["type"] == "object"


async def test_a_json_schema_gives_plain_values() -> None:
    """It is validated, and the value is what JSON says."""
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    provider = FakeProvider(['{"n":"x"}', '{"n":3}'])
    response = await Agent(provider).run("?", output=schema)
    assert response.output == {"n": 3}
    assert "n: breaks the rule 'type'" in provider.requests[1].messages[-1].content


async def test_stream_start_and_sync_know_it_too() -> None:
    """The same loop behind every door."""
    async with Agent(FakeProvider([GOOD])).stream("?", output=Book) as stream:
        events = [event async for event in stream]
    assert isinstance(events[-1], AgentResponse)
    assert events[-1].output == Book(title="Moon", pages=42)
    response = await Agent(FakeProvider([GOOD])).start("?", output=Book)
    assert response.output == Book(title="Moon", pages=42)
    response = Agent(FakeProvider([GOOD])).run_sync("?", output=Book)
    assert response.output == Book(title="Moon", pages=42)


@pytest.mark.parametrize("odd", [7, "Book", object(), [Book]])
def test_what_is_no_form_is_refused_at_the_call(odd: object) -> None:
    """Before anything is sent."""
    provider = FakeProvider([GOOD])
    with pytest.raises(TypeError, match="output must be"):
        Agent(provider).run_sync("?", output=odd)
    assert provider.requests == []


def test_a_schema_that_is_none_is_refused() -> None:
    """The validator's own words say what is wrong."""
    with pytest.raises(ValueError, match="no valid JSON Schema"):
        Agent(FakeProvider([])).run_sync("?", output={"type": "nonsense"})


async def test_without_output_nothing_changes() -> None:
    """Free text is never read as anything else."""
    response = await Agent(FakeProvider([GOOD])).run("?")
    assert response.output is None
    assert json.loads(response.text)["pages"] == 42
