"""The official SDKs with a hand-written loop, as their own pages show it."""

from __future__ import annotations

import json
from typing import Any

from ..replies import Protocol
from ..work import QUESTION, Item, Outcome
from . import wire


class _Loop:
    """The loop; a subclass makes the calls."""

    protocol: Protocol

    def __init__(self, url: str) -> None:
        self._client: Any = self._make(url)

    def _make(self, url: str) -> object:
        from openai import AsyncOpenAI

        return AsyncOpenAI(api_key="key", base_url=f"{url}/v1")

    def prepare(self, model: str, items: list[Item]) -> wire.Prepared:
        """Render the history."""
        return wire.Prepared(model, wire.wire_items(self.protocol, items))

    async def run(self, prepared: wire.Prepared) -> Outcome:
        """Ask until no tool is asked for."""
        out = Outcome()
        items: list[Any] = [*prepared.items, wire.question(QUESTION)]
        while await self._turn(prepared.model, items, out):
            pass
        return out

    async def stream(self, prepared: wire.Prepared) -> Outcome:
        """Take the reply event by event."""
        out = Outcome()
        items: list[Any] = [*prepared.items, wire.question(QUESTION)]
        async for event in await self._create(prepared.model, items, stream=True):
            text = self._delta(event)
            if text is not None:
                out.deltas.append(text)
        out.text = "".join(out.deltas)
        return out

    async def _turn(self, model: str, items: list[Any], out: Outcome) -> bool:
        raise NotImplementedError

    async def _create(self, model: str, items: list[Any], **more: Any) -> Any:
        raise NotImplementedError

    def _delta(self, event: Any) -> str | None:
        raise NotImplementedError


class _Responses(_Loop):
    protocol = "responses"

    async def _create(self, model: str, items: list[Any], **more: Any) -> Any:
        return await self._client.responses.create(
            model=model, input=items, tools=wire.tools("responses"), store=False, **more
        )

    async def _turn(self, model: str, items: list[Any], out: Outcome) -> bool:
        response = await self._create(model, items)
        items += response.output
        out.text = response.output_text
        calls = [each for each in response.output if each.type == "function_call"]
        for call in calls:
            text = wire.use_tool(out, json.loads(call.arguments))
            result = {"type": "function_call_output", "call_id": call.call_id}
            items.append({**result, "output": text})
        return bool(calls)

    def _delta(self, event: Any) -> str | None:
        return event.delta if event.type == "response.output_text.delta" else None


class _Chat(_Loop):
    protocol = "chat"

    async def _create(self, model: str, items: list[Any], **more: Any) -> Any:
        return await self._client.chat.completions.create(
            model=model, messages=items, tools=wire.tools("chat"), **more
        )

    async def _turn(self, model: str, items: list[Any], out: Outcome) -> bool:
        message = (await self._create(model, items)).choices[0].message
        items.append(message)
        out.text = message.content or ""
        for call in message.tool_calls or ():
            text = wire.use_tool(out, json.loads(call.function.arguments))
            items.append({"role": "tool", "tool_call_id": call.id, "content": text})
        return bool(message.tool_calls)

    def _delta(self, event: Any) -> str | None:
        return event.choices[0].delta.content or None if event.choices else None


class _Messages(_Loop):
    protocol = "messages"

    def _make(self, url: str) -> object:
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(api_key="key", base_url=url)

    async def _create(self, model: str, items: list[Any], **more: Any) -> Any:
        return await self._client.messages.create(
            model=model,
            messages=items,
            tools=wire.tools("messages"),
            max_tokens=4096,
            **more,
        )

    async def _turn(self, model: str, items: list[Any], out: Outcome) -> bool:
        message = await self._create(model, items)
        items.append({"role": "assistant", "content": message.content})
        out.text = "".join(each.text for each in message.content if each.type == "text")
        results = [
            wire.claude_result(each.id, wire.use_tool(out, each.input))
            for each in message.content
            if each.type == "tool_use"
        ]
        if results:
            items.append({"role": "user", "content": results})
        return bool(results)

    def _delta(self, event: Any) -> str | None:
        if event.type != "content_block_delta" or event.delta.type != "text_delta":
            return None
        text: str = event.delta.text
        return text


def make(protocol: Protocol, url: str) -> _Loop:
    """Return the runner."""
    found = {"responses": _Responses, "chat": _Chat, "messages": _Messages}
    return found[protocol](url)
