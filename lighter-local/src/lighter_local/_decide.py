"""Whether a model without a tool template calls a tool, and which are in question."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from lighter_core.messages import Message, ToolMessage, UserMessage
from lighter_core.requests import ToolSpec

from ._prompt import last_question
from ._values import as_list, as_mapping

__all__ = ["call_likelihood", "candidates", "threshold_factor"]

_SHARED_WORD = 0.1
_FITTING_NUMBERS = 0.5

# Words that tell nothing about what a tool is for.
_EMPTY_WORDS = frozenset(
    """
    about all and any are ask can could did does find for from get give has have her his
    how into its let list look make may more need not now one our out please return say
    see set show some tell than that the their them then there these this those two use
    used using want was what when where which who why will with would you your
    """.split()  # noqa: SIM905 - lists of words are read and changed as text
)
_NUMBER_WORDS = frozenset(
    """
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy
    eighty ninety hundred thousand million dozen half double twice
    """.split()  # noqa: SIM905
)


def _words(text: str) -> set[str]:
    """Return the content words of a text, plural and singular alike."""
    found = re.findall(r"[^\W\d_]{3,}", text.lower().replace("_", " "))
    return {
        word.removesuffix("s") if len(word) > 3 else word  # noqa: PLR2004
        for word in found
        if word not in _EMPTY_WORDS
    }


def _count_numbers(messages: Sequence[Message]) -> int:
    text = "\n".join(
        message.text if isinstance(message, UserMessage) else message.tool_output
        for message in messages
        if isinstance(message, UserMessage | ToolMessage)
    )
    digits = len(re.findall(r"\d+(?:[.,]\d+)*", text))
    return digits + sum(
        word in _NUMBER_WORDS for word in re.findall(r"[a-z]+", text.lower())
    )


def _needed_numbers(spec: ToolSpec) -> int:
    properties = as_mapping(spec.parameters.get("properties"))
    return sum(
        as_mapping(properties.get(str(name))).get("type") in {"integer", "number"}
        for name in as_list(spec.parameters.get("required"))
    )


def _evidence(messages: Sequence[Message], spec: ToolSpec) -> tuple[int, bool]:
    """Return how many words the question shares, and whether its numbers suffice."""
    question = last_question(messages)
    needed = _needed_numbers(spec)
    return (
        len(_words(question) & _words(f"{spec.name} {spec.description}")),
        0 < needed <= _count_numbers([UserMessage(question)]),
    )


def candidates(
    messages: Sequence[Message], specs: Sequence[ToolSpec]
) -> list[ToolSpec]:
    """Return the tools that are in question; a tiny model confuses what is offered.

    Tools that need more numbers than the conversation holds are out. Of the others,
    those with most evidence stay: shared words, and numbers in the question for a tool
    that needs numbers.
    """
    numbers = _count_numbers(messages)
    scores: list[tuple[int, ToolSpec]] = []
    for spec in specs:
        if _needed_numbers(spec) <= numbers:
            shared, fitting = _evidence(messages, spec)
            scores.append((shared + fitting, spec))
    best = max((score for score, _ in scores), default=0)
    return [spec for score, spec in scores if score == best]


def threshold_factor(messages: Sequence[Message], specs: Sequence[ToolSpec]) -> float:
    """Return by how much the evidence for the tools lowers the threshold of a call."""
    evidence = [_evidence(messages, spec) for spec in specs]
    if any(shared for shared, _ in evidence):
        return _SHARED_WORD
    return _FITTING_NUMBERS if any(fitting for _, fitting in evidence) else 1.0


def call_likelihood(chunk: Mapping[str, object]) -> float | None:
    """Return how likely the first token opens a call, if the chunk holds that token."""
    for item in as_list(chunk.get("choices")):
        logprobs = as_mapping(as_mapping(item).get("logprobs"))
        for token in as_list(logprobs.get("content")):
            total = 0.0
            for option in as_list(as_mapping(token).get("top_logprobs")):
                fields = as_mapping(option)
                logprob = fields.get("logprob")
                text = str(fields.get("token", "")).lstrip()
                if text.startswith("{") and isinstance(logprob, int | float):
                    total += math.exp(logprob)
            return total
    return None
