"""Prompts with worked examples, for models whose chat template knows no tools.

Their wording was measured on SmolLM2-135M with `benchmarks/local_tools.py`: such a model
follows examples, not instructions. Change them only with the figures beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lighter_core.adapters import dump_json, load_json
from lighter_core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from lighter_core.requests import ToolSpec

from ._prompt import ChatMessage, last_question, last_user, result_line
from ._values import as_list, as_mapping

__all__ = ["answer_prompt", "call_prompt"]

_NUMBERS = ((58, 6, 240), (27, 314, 9))
_TEXTS = (("Rome", "whales", "Anna"), ("whales", "Anna", "Rome"))
_EARLIER_ROUNDS = 2


def _turn(user: str, assistant: str) -> list[ChatMessage]:
    return [
        {"role": "user", "content": user},
        {"role": "assistant", "content": assistant},
    ]


# The plain example beside the question keeps the model from calling for everything:
# without it, "What is the capital of France?" is as likely a call as a sum is.
_GREETING = _turn("Hello!", "Hello! How can I help you?")
_FACT = _turn("Who wrote Hamlet?", "William Shakespeare wrote Hamlet.")


def call_prompt(
    messages: Sequence[Message], specs: Sequence[ToolSpec]
) -> list[ChatMessage]:
    """Return the prompt under which the model calls a tool, or does not."""
    functions = "\n".join(
        f"{spec.name}({', '.join(_properties(spec))}): {spec.description}"
        for spec in specs
    )
    system = (
        f"You are a helpful assistant. Functions:\n{functions}\nWhen a function fits,"
        " reply with its call as JSON. Otherwise answer in plain English."
    )
    chat: list[ChatMessage] = [{"role": "system", "content": system}, *_GREETING]
    # Two examples make one tool's arguments right. With several tools, more examples
    # blur which one to call.
    for number in range(2 if len(specs) == 1 else 1):
        for spec in specs:
            chat += _example(spec, number)
    return [*chat, *_FACT, *_earlier(messages), _question(messages)]


def _example(spec: ToolSpec, number: int) -> list[ChatMessage]:
    values: dict[str, object] = {}
    for position, (name, schema) in enumerate(_properties(spec).items()):
        values[name] = _value(schema, number, position)
    words = " and ".join(
        value if isinstance(value, str) else dump_json(value)
        for value in values.values()
    )
    if number == 0:
        asked = f"What is {words}, {spec.name.replace('_', ' ')}?"
    else:
        asked = f"{spec.description.strip().rstrip('.')}: {words}"
    return _turn(asked, _call_text(spec.name, values))


def _call_text(name: str, arguments: object) -> str:
    # The spaces are those of the grammar.
    return f'{{"name": {dump_json(name)}, "arguments": {dump_json(arguments)}}}'


def _properties(spec: ToolSpec) -> Mapping[str, object]:
    return as_mapping(spec.parameters.get("properties"))


def _value(schema: object, number: int, position: int) -> object:  # noqa: PLR0911
    fields = as_mapping(schema)
    options = as_list(fields.get("enum"))
    if options:
        return options[number % len(options)]
    if "default" in fields:
        return fields["default"]
    match fields.get("type"):
        case "integer" | "number":
            return _NUMBERS[number][position % 3]
        case "boolean":
            return number == 0
        case "array":
            return [_value(fields.get("items"), number, position)]
        case "object":
            return {}
        case _:
            return _TEXTS[number][position % 3]


def _earlier(messages: Sequence[Message]) -> list[ChatMessage]:
    """Return the last rounds before the question: what was asked, and the reaction."""
    rounds: list[list[ChatMessage]] = []
    asked: str | None = None
    for message in messages[: last_user(messages)]:
        if isinstance(message, UserMessage):
            asked = message.text
        elif isinstance(message, AssistantMessage) and asked is not None:
            if message.tool_calls:
                call = message.tool_calls[0]
                rounds.append(_turn(asked, _call_text(call.tool_name, _parsed(call))))
            elif message.content:
                rounds.append(_turn(asked, message.content))
            asked = None  # the answer after a call is no reaction to learn from
    return [turn for each in rounds[-_EARLIER_ROUNDS:] for turn in each]


def _parsed(call: object) -> object:
    try:
        return load_json(getattr(call, "arguments", "") or "{}")
    except ValueError:
        return {}


def _question(messages: Sequence[Message]) -> ChatMessage:
    lines = [last_question(messages)]
    lines += [
        result_line(message)
        for message in messages[last_user(messages) :]
        if isinstance(message, ToolMessage)
    ]
    return {"role": "user", "content": "\n".join(lines)}


_SYSTEM_ANSWER = "Answer the question in one sentence, using the result."
_NUMBER = _turn("What is 9 times 40?\nResult: 360", "The answer is 360.")
_TEXT = _turn(
    'Which river flows through Rome?\nResult: "Tiber"', "The Tiber flows through Rome."
)
_COUNT = _turn("How many legs have 4 dogs?\nResult: 16", "Four dogs have 16 legs.")


def answer_prompt(messages: Sequence[Message]) -> list[ChatMessage]:
    """Return the short prompt that asks for the answer after tool results."""
    results = [
        message
        for message in messages[last_user(messages) :]
        if isinstance(message, ToolMessage)
    ]
    lines = [last_question(messages)]
    for result in results:
        kind = "Error" if result.is_error else "Result"
        name = f" of {result.tool_name}" if len(results) > 1 else ""
        lines.append(f"{kind}{name}: {result.tool_output}")
    # The example nearest to the question is the one that is followed.
    if all(_is_number(result.tool_output) for result in results):
        examples = [*_TEXT, *_COUNT, *_NUMBER]
    else:
        examples = [*_NUMBER, *_TEXT, *_COUNT]
    return [
        {"role": "system", "content": _SYSTEM_ANSWER},
        *examples,
        {"role": "user", "content": "\n".join(lines)},
    ]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
