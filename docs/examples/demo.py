"""An agent with one tool: `make demo`, or `make demo PROVIDER=openai`.

With the provider `local` it runs on a small model inside this process, with no key and
no service. With another one, set its key and model id in the environment first.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

# [the agent]
from lighter_core import (
    Agent,
    AgentResponse,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    tool,
)


@tool
def add(a: int, b: int) -> int:
    """Calculate the sum of two numbers."""
    return a + b


async def ask(provider: str, question: str) -> None:
    agent = Agent(provider, tools=[add])
    async with agent, agent.stream(question) as stream:
        async for event in stream:
            match event:
                case ToolCallStarted(call=call):
                    print(f"  call    {call.tool_name}({call.arguments})")
                case ToolCallFinished(message=message):
                    print(f"  result  {message.tool_output}")
                case TextDelta(text=text):
                    print(text, end="", flush=True)
                case AgentResponse() as response:
                    response.raise_if_failed()
                    print()
                case _:
                    pass


# [the end]


def main() -> int:
    provider = sys.argv[1] if len(sys.argv) > 1 else "local"
    question = " ".join(sys.argv[2:]) or "What is 19 + 23?"
    print(f"An agent on {provider!r} with the tool `add` is asked: {question}\n")
    try:
        asyncio.run(ask(provider, question))
    except Exception as error:  # noqa: BLE001 - a demo says what went wrong, and stops
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    source = Path(__file__).read_text(encoding="utf-8")
    code = source.split("# [the agent]\n")[1].split("\n\n# [the end]")[0]
    print(f"\nThis is the whole agent (docs/examples/demo.py):\n\n{code}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
