"""CPU from a bare interpreter to the first reply: Lighter beside the SDK alone.

`python -m benchmarks.cold_start` starts the mock service, then each program several times
in turn, each in an interpreter of its own, and prints a table. What counts is the CPU of
the whole process, its start and its end included; ratios are those of neighbours.

The default transport is measured as if aiohttp were not installed: where it is, both SDKs
import it, whichever transport is used.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

KINDS = ("sdk", "lighter")
QUESTION = "What is the answer?"
TOOL = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


async def sdk_responses(url: str, transport: str) -> str:
    """The SDK of OpenAI with a loop, as its own pages show it."""
    import openai

    own = openai.DefaultAioHttpClient() if transport == "aiohttp" else None
    async with openai.AsyncOpenAI(
        api_key="key", base_url=f"{url}/v1", http_client=own
    ) as client:
        tool: Any = {"type": "function", "name": "add", "parameters": TOOL}
        items: list[Any] = [{"role": "user", "content": QUESTION}]
        while True:
            response = await client.responses.create(
                model="text-1", input=items, tools=[tool], store=False
            )
            items += response.output
            calls = [each for each in response.output if each.type == "function_call"]
            if not calls:
                return response.output_text
            for call in calls:
                text = json.dumps(json.loads(call.arguments)["a"])
                result = {"type": "function_call_output", "call_id": call.call_id}
                items.append({**result, "output": text})


async def sdk_messages(url: str, transport: str) -> str:
    """The SDK of Anthropic with a loop."""
    import anthropic

    own = anthropic.DefaultAioHttpClient() if transport == "aiohttp" else None
    async with anthropic.AsyncAnthropic(
        api_key="key", base_url=url, http_client=own
    ) as client:
        tool: Any = {"name": "add", "input_schema": TOOL}
        items: list[Any] = [{"role": "user", "content": QUESTION}]
        while True:
            message = await client.messages.create(
                model="text-1", messages=items, tools=[tool], max_tokens=4096
            )
            items.append({"role": "assistant", "content": message.content})
            results = [
                {"type": "tool_result", "tool_use_id": b.id, "content": str(b.input)}
                for b in message.content
                if b.type == "tool_use"
            ]
            if not results:
                texts = [b.text for b in message.content if b.type == "text"]
                return "".join(texts)
            items.append({"role": "user", "content": results})


async def _lighter(provider: Any) -> str:
    from lighter_core import Agent, tool

    @tool
    async def add(a: int) -> int:
        """Add."""
        return a

    async with Agent(provider, tools=[add]) as agent:
        await agent.warm_up()
        return (await agent.run(QUESTION)).raise_if_failed().text


async def lighter_responses(url: str, transport: Any) -> str:
    """An agent with a tool, warmed up first."""
    from lighter_openai import OpenAIProvider

    return await _lighter(
        OpenAIProvider("key", "text-1", base_url=f"{url}/v1", transport=transport)
    )


async def lighter_messages(url: str, transport: Any) -> str:
    """The same for Claude."""
    from lighter_claude import ClaudeProvider

    return await _lighter(
        ClaudeProvider("key", "text-1", base_url=url, transport=transport)
    )


PROGRAMS: dict[str, Callable[[str, str], Awaitable[str]]] = {
    each.__name__: each
    for each in (
        sdk_responses,
        lighter_responses,
        sdk_messages,
        lighter_messages,
    )
}


def child(name: str, url: str, transport: str) -> None:
    """Run one program in this process."""
    if transport != "aiohttp":
        sys.modules["aiohttp"] = None  # type: ignore[assignment]
    print(asyncio.run(PROGRAMS[name](url, transport)))  # type: ignore[arg-type]


def measure(name: str, url: str, transport: str) -> float:
    """Return the CPU milliseconds of an interpreter that runs one program."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, "--child", name, url, transport],
        capture_output=True,
        text=True,
        check=False,
    )
    after = os.times()
    if done.returncode or not done.stdout.strip() or done.stderr:
        raise SystemExit(f"{name} over {transport} failed:\n{done.stderr}")
    used = after.children_user + after.children_system
    return 1000 * (used - before.children_user - before.children_system)


def table(times: dict[tuple[str, str, str], list[float]]) -> str:
    """Return the table: medians, and the medians of the ratios of each turn."""
    lines = [
        "| interface | transport | the SDK alone | Lighter | ratio |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for protocol, interface in (("responses", "Responses"), ("messages", "Messages")):
        for transport in ("httpx2", "aiohttp"):
            sdk, ours = (times[each, protocol, transport] for each in KINDS)
            ratio = statistics.median(x / y for x, y in zip(ours, sdk, strict=True))
            lines.append(
                f"| {interface} | {transport} | {statistics.median(sdk):,.0f} ms"
                f" | {statistics.median(ours):,.0f} ms | {ratio:.2f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(*given.child)
        return
    service = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.compare.service"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert service.stdin is not None
    assert service.stdout is not None
    try:
        url = f"http://127.0.0.1:{service.stdout.readline().strip()}"
        times: dict[tuple[str, str, str], list[float]] = {}
        began = time.monotonic()
        for _ in range(given.turns):
            for protocol in ("responses", "messages"):
                for transport in ("httpx2", "aiohttp"):
                    for kind in KINDS:
                        found = measure(f"{kind}_{protocol}", url, transport)
                        times.setdefault((kind, protocol, transport), []).append(found)
        print(table(times))
        print(f"\n{given.turns} turns in {time.monotonic() - began:.0f} s", flush=True)
    finally:
        service.stdin.close()
        service.wait()


if __name__ == "__main__":
    main()
