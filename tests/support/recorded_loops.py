"""Recorded conversations of OpenAI's two interfaces, run anew by an agent.

The agent gets the recorded questions, the recorded replies, and stand-ins for tools that
give the recorded results; what it then sends is compared with what was recorded.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from lighter_core import (
    Agent,
    AssistantMessage,
    Message,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
    hookimpl,
)

from .loopback import Answer, Loopback
from .recordings import REASON, Exchange, conversations

__all__ = ["Chat", "Interface", "Responses", "expect_recorded_requests", "loops"]

_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_ROLES = {
    "system": SystemMessage,
    "developer": SystemMessage,
    "user": UserMessage,
}
Said = tuple[object, ...]
Entry = dict[str, Any]


def text_of(content: Any) -> str:
    """The text of a content; of other parts their type.

    Some recorders wrote plain quotation marks in requests.
    """
    if isinstance(content, list):
        content = "".join(
            part.get("text") or part.get("refusal") or f"<{part['type']}>"
            for part in content
        )
    return (content or "").translate(_QUOTES)


def output_of(content: Any) -> str:
    """A result as text: the tools of an agent give nothing else."""
    return content if isinstance(content, str) else json.dumps(content)


class Interface(ABC):
    """How one interface writes a history."""

    @abstractmethod
    def entries(self, request: Entry) -> list[Entry]:
        """Return the history in a request."""

    @abstractmethod
    def said(self, entry: Entry) -> list[Said]:
        """Return what an entry says, without what may be written in other ways."""

    @abstractmethod
    def results(self, entry: Entry) -> dict[str, str]:
        """Return the results of calls in an entry, by call id or name."""

    @abstractmethod
    def functions(self, request: Entry) -> list[Entry]:
        """Return the definitions of functions in a request."""

    def spoken(self, entry: Entry) -> Message | None:
        """Return an entry of the application or of the user as a message."""
        kind = _ROLES.get(entry.get("role", ""))
        return kind(text_of(entry["content"])) if kind else None

    def all_said(self, request: Entry) -> list[Said]:
        """Return what a history says."""
        return [each for entry in self.entries(request) for each in self.said(entry)]


class Responses(Interface):
    """The Responses interface."""

    def entries(self, request: Entry) -> list[Entry]:
        asked = request["input"]
        if isinstance(asked, str):
            return [{"role": "user", "content": asked}]
        return [*asked]

    def said(self, entry: Entry) -> list[Said]:
        kind = entry.get("type", "message")
        if kind == "message":
            role, text = entry["role"], text_of(entry["content"])
            role = "system" if role == "developer" else role
            return [(role, text)] if text else []
        if kind == "reasoning":
            known = entry.get("encrypted_content") or text_of(entry.get("content"))
            return [("reasoning", known)] if known else []
        if kind == "function_call":
            arguments = json.loads(entry["arguments"] or "{}")
            return [("call", entry["call_id"], entry["name"], arguments)]
        if kind == "function_call_output":
            return [("result", entry["call_id"], output_of(entry["output"]))]
        return [(kind, entry.get("id"))]

    def results(self, entry: Entry) -> dict[str, str]:
        if entry.get("type") != "function_call_output":
            return {}
        return {entry["call_id"]: output_of(entry["output"])}

    def functions(self, request: Entry) -> list[Entry]:
        return [t for t in request.get("tools", []) if t["type"] == "function"]


class Chat(Interface):
    """The Chat Completions interface."""

    def entries(self, request: Entry) -> list[Entry]:
        return [*request["messages"]]

    def said(self, entry: Entry) -> list[Said]:
        role, text = entry["role"], text_of(entry.get("content"))
        if role in {"tool", "function"}:
            return [("result", entry.get("tool_call_id") or entry["name"], text)]
        found: list[Said] = []
        thought = entry.get("reasoning_content")
        if thought:
            found.append(("reasoning", thought))
        if text:
            found.append(("system" if role == "developer" else role, text))
        for call in entry.get("tool_calls") or ():
            function = call["function"]
            arguments = json.loads(function["arguments"] or "{}")
            found.append(("call", call["id"], function["name"], arguments))
        if entry.get("function_call"):
            found.append(("call", entry["function_call"]["name"]))
        return found

    def results(self, entry: Entry) -> dict[str, str]:
        if entry["role"] not in {"tool", "function"}:
            return {}
        key = entry.get("tool_call_id") or entry["name"]
        return {key: text_of(entry["content"])}

    def functions(self, request: Entry) -> list[Entry]:
        return [
            *(tool["function"] for tool in request.get("tools", [])),
            *request.get("functions", []),
        ]


def goes_on(form: Interface, before: Exchange, each: Exchange) -> bool:
    """Tell whether a request brings results of calls of the reply before it."""
    entries = form.entries(each.request["json"])
    if "previous_response_id" in each.request["json"] or before.status != 200:
        return False
    known = {
        key for e in form.entries(before.request["json"]) for key in form.results(e)
    }
    keys = {key for entry in entries for key in form.results(entry)} - known
    return any(f'"{key}"' in before.body.decode() for key in keys)


def runs(form: Interface, exchanges: Sequence[Exchange]) -> list[list[Exchange]]:
    """Cut a conversation where somebody says something new."""
    found: list[list[Exchange]] = []
    for each in exchanges:
        if found and goes_on(form, found[-1][-1], each):
            found[-1].append(each)
        else:
            found.append([each])
    return found


def loops(vendor: str, form: Interface) -> list[Any]:
    """Parameters: the conversations in which results of calls were sent."""
    found = [
        pytest.param(exchanges, id=name)
        for name, exchanges in conversations(vendor).items()
        if any(len(run) > 1 for run in runs(form, exchanges))
        and _begin(form, exchanges[0]) is not None
    ]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=REASON))]


def _begin(form: Interface, first: Exchange) -> list[Message] | None:
    """Return the messages of a first request; `None` when others speak in it."""
    found = [form.spoken(entry) for entry in form.entries(first.request["json"])]
    return None if None in found else [each for each in found if each is not None]


class StandIns:
    """Answers each call with the recorded result."""

    def __init__(self, form: Interface, exchanges: Sequence[Exchange]) -> None:
        self.results: dict[str, str] = {}
        for each in exchanges:
            for entry in form.entries(each.request["json"]):
                self.results.update(form.results(entry))

    @hookimpl
    def before_tool(self, call: ToolCall) -> ToolMessage:
        """Take the place of the tool."""
        known = self.results.get(call.call_id) or self.results.get(call.tool_name)
        return ToolMessage(
            call_id=call.call_id,
            tool_name=call.tool_name,
            tool_output="not recorded" if known is None else known,
        )


def _tools(form: Interface, exchanges: Sequence[Exchange]) -> list[Tool]:
    known = {
        function["name"]: function
        for each in exchanges
        for function in form.functions(each.request["json"])
    }
    return [
        Tool(
            name=name,
            description=function.get("description") or "A tool.",
            parameters=function.get("parameters") or {"type": "object"},
            func=lambda _: None,
            validate=False,
        )
        for name, function in known.items()
    ]


def _next(form: Interface, run: Sequence[Exchange]) -> list[Message]:
    """Return what was said since the last reply."""
    found: list[Message] = []
    for entry in reversed(form.entries(run[0].request["json"])):
        message = form.spoken(entry)
        if message is None:
            break
        found.insert(0, message)
    return found


async def expect_recorded_requests(
    form: Interface,
    make: Callable[..., Any],
    server: Loopback,
    exchanges: Sequence[Exchange],
    last: Mapping[bool, Answer],
    **options: object,
) -> int:
    """Run the conversation; return how many requests were compared.

    Compared are all texts, calls, results and their order. Reasoning is compared where
    the recorder sent any back. Left out are calls that the recorder made up, and what a
    user said behind a result, such as the file that a tool returned. `last` ends runs
    whose recording ends too early: with a stream, and with a whole reply.
    """
    provider = make(model_id=exchanges[0].request["json"]["model"], **options)
    tools, stand_ins = _tools(form, exchanges), StandIns(form, exchanges)
    agent = Agent(provider, tools=tools, system_prompt=None, hooks=[stand_ins])
    history: list[Any] = []
    compared = 0
    for run in runs(form, exchanges):
        begin = _begin(form, run[0])
        history = begin if begin is not None else [*history, *_next(form, run)]
        server.requests.clear()
        server.script(*(each.answer() for each in run), last[run[0].streamed])
        if run[0].streamed:
            async with agent.stream(history) as stream:
                response = [event async for event in stream][-1]
        else:
            response = await agent.run(history)
        if all(each.status == 200 for each in run):
            response.raise_if_failed()
        assert not response.notes
        history = [*history, *response.messages]
        assert len(server.requests) >= len(run)
        for sent, each in zip(server.requests, run, strict=False):
            recorded = _issued(form.all_said(each.request["json"]), exchanges)
            mine = form.all_said(sent.json)
            expect_same(mine, recorded)
            compared += 1
    assert isinstance(history[-1], AssistantMessage | ToolMessage)
    return compared


def _issued(said: list[Said], exchanges: Sequence[Exchange]) -> list[Said]:
    """Leave out calls that the recorded client made up itself, and their results."""
    bodies = "".join(each.body.decode() for each in exchanges)
    return [
        each
        for each in said
        if each[0] not in {"call", "result"} or f'"{each[1]}"' in bodies
    ]


def expect_same(mine: list[Said], recorded: list[Said]) -> None:
    """Compare two histories."""
    if not any(each[0] == "reasoning" for each in recorded):
        mine = [each for each in mine if each[0] != "reasoning"]
    while len(recorded) > len(mine) and recorded[-1][0] == "user":
        del recorded[-1]
    assert mine == recorded
