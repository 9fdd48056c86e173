# ruff: noqa: INP001 - a script
"""How well the local model picks tools: `python local_tools.py [MODEL.gguf]`.

Twenty additions in different words, ten questions for two other tools and ten that need
none, at temperature 0; first with one tool, then with three. A right answer contains
the right sum after the tool's result was fed back. The prompts were chosen on these
questions, so twenty more additions, written afterwards, show what is left on new ones.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time

from lighter_core import (
    AssistantMessage,
    Message,
    ModelError,
    ModelRequest,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from lighter_local import LocalProvider


def _spec(name: str, description: str, **kinds: str) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in kinds.items()},
        "required": list(kinds),
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema)


ADD = _spec("add", "Add two numbers.", a="integer", b="integer")
WEATHER = _spec("get_weather", "Tell the weather in a city.", city="string")
BOOKS = _spec(
    "search_books", "Search the catalogue for books about a topic.", topic="string"
)

ADDITIONS = [
    ("What is 19 + 23?", 19, 23),
    ("What's 7 plus 8?", 7, 8),
    ("Add 12 and 30.", 12, 30),
    ("Please compute 101 + 99.", 101, 99),
    ("How much is 5 + 6?", 5, 6),
    ("Can you add 44 and 55 for me?", 44, 55),
    ("Sum of 250 and 125?", 250, 125),
    ("I have 3 apples and get 9 more. How many apples do I have?", 3, 9),
    ("Calculate 64 + 36", 64, 36),
    ("17 + 4 = ?", 17, 4),
    ("Tell me the total of 81 and 19.", 81, 19),
    ("What do you get if you add 14 to 28?", 14, 28),
    ("If I put 60 and 15 together, what is the result?", 60, 15),
    ("Work out 33 plus 67.", 33, 67),
    ("What is the sum of 2 and 2?", 2, 2),
    ("A book costs 18 and a pen costs 4. What do they cost together?", 18, 4),
    ("Give me 500 + 250.", 500, 250),
    ("Let me know what 75 plus 26 makes.", 75, 26),
    ("There are 11 cats and 13 dogs. How many animals are there?", 11, 13),
    ("Please find the sum: 29 + 71", 29, 71),
]
NEW_ADDITIONS = [
    ("Could you tell me 8 + 91?", 8, 91),
    ("What is 305 added to 42?", 305, 42),
    ("I need the sum of 16 and 47, please.", 16, 47),
    ("Add up 72 and 9", 72, 9),
    ("How many is 38 plus 21?", 38, 21),
    ("53+18", 53, 18),
    ("What does 1200 + 345 come to?", 1200, 345),
    ("My sister is 14 and my brother is 17. How old are they together?", 14, 17),
    ("We sold 120 tickets on Monday and 85 on Tuesday. How many in all?", 120, 85),
    ("Total of 6 and 94?", 6, 94),
    ("If you have 22 coins and find 19, how many coins are there now?", 22, 19),
    ("Compute the sum of 77 and 11.", 77, 11),
    ("What number do I get from 41 plus 58?", 41, 58),
    ("Increase 90 by 35.", 90, 35),
    ("Put 13 and 87 together.", 13, 87),
    ("Hi! Quick question: what's 62 + 24?", 62, 24),
    ("It rained 5 days in May and 12 days in June. How many days altogether?", 5, 12),
    ("Help me add 450 to 50.", 450, 50),
    ("One bag weighs 7 kilos, another 26 kilos. What is the weight of both?", 7, 26),
    ("99 and 1 make what?", 99, 1),
]
OTHERS = [
    ("What is the weather in Paris?", "get_weather", "Paris"),
    ("How is the weather in Tokyo today?", "get_weather", "Tokyo"),
    ("Is it raining in Oslo?", "get_weather", "Oslo"),
    ("Tell me the weather in Lima.", "get_weather", "Lima"),
    ("How warm is it in Cairo?", "get_weather", "Cairo"),
    ("Find books about dragons.", "search_books", "dragons"),
    ("Do you have books on gardening?", "search_books", "gardening"),
    ("Search the catalogue for space travel.", "search_books", "space travel"),
    ("I am looking for a book about whales.", "search_books", "whales"),
    ("Which books about Rome are there?", "search_books", "Rome"),
]
PLAIN = [
    "Hello!",
    "Name a bookstore on the moon.",
    "Who are you?",
    "Write a short poem about the sea.",
    "What colour is the sky?",
    "Thank you very much!",
    "Tell me a joke.",
    "What is the capital of France?",
    "Good morning, how are you?",
    "Why do cats purr?",
]


async def _ask(
    provider: LocalProvider, messages: list[Message], tools: list[ToolSpec]
) -> AssistantMessage | None:
    try:
        return await provider.invoke(ModelRequest(messages, tool_specs=tools))
    except ModelError as error:
        if error.code != "bad_response":
            raise
        _say(f"    {error}")
        return None


async def _addition(
    provider: LocalProvider, tools: list[ToolSpec], question: str, a: int, b: int
) -> tuple[bool, bool, bool]:
    """Return whether `add` was called, with the right arguments, and answered."""
    messages: list[Message] = [UserMessage(question)]
    reply = await _ask(provider, messages, tools)
    if reply is None or not reply.tool_calls or reply.tool_calls[0].tool_name != "add":
        _say(f"    {question} -> {reply}")
        return False, False, False
    call = reply.tool_calls[0]
    arguments = json.loads(call.arguments)
    right = sorted(arguments.values()) == sorted([a, b])
    result = ToolMessage(
        call_id=call.call_id,
        tool_name="add",
        tool_output=str(arguments["a"] + arguments["b"]),
    )
    answer = await _ask(provider, [*messages, reply, result], tools)
    text = answer.content if answer else ""
    good = right and re.search(rf"\b{a + b}\b", text) is not None
    if not good:
        _say(f"    {question} -> {call.arguments} -> {text}")
    return True, right, good


async def _measure(provider: LocalProvider, tools: list[ToolSpec]) -> None:
    start = time.monotonic()
    for title, cases in (("", ADDITIONS), ("new wordings: ", NEW_ADDITIONS)):
        sums = [await _addition(provider, tools, *case) for case in cases]
        called, right, answered = (sum(column) for column in zip(*sums, strict=True))
        _say(f"  {title}called {called}/20, arguments {right}, answered {answered}")
    if len(tools) > 1:
        picked = exact = 0
        for question, name, value in OTHERS:
            reply = await _ask(provider, [UserMessage(question)], tools)
            calls = reply.tool_calls if reply else ()
            good = bool(calls) and calls[0].tool_name == name
            picked += good
            exact += good and value in calls[0].arguments
            if not good or value not in calls[0].arguments:
                _say(f"    {question} -> {calls or reply}")
        _say(f"  other tools {picked}/10, arguments {exact}/10")
    text = 0
    for question in PLAIN:
        reply = await _ask(provider, [UserMessage(question)], tools)
        text += reply is None or not reply.tool_calls
        if reply is not None and reply.tool_calls:
            _say(f"    {question} -> {reply.tool_calls}")
    _say(f"  left as text {text}/10")
    _say(f"  {time.monotonic() - start:.0f} s")


async def _main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else None
    provider = LocalProvider(path)
    for tools in ([ADD], [ADD, WEATHER, BOOKS]):
        _say(", ".join(spec.name for spec in tools))
        await _measure(provider, tools)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main())
