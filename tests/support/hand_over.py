"""What becomes of a reply at its own service and at others: the tables of a page.

Each cell is found by writing a request with a reply and looking for the reply's content
in it. Write the tables into the page:

```sh
PYTHONPATH=tests python -m support.hand_over --write
```
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from lighter_claude import ClaudeProvider
from lighter_core import (
    AssistantMessage,
    Message,
    ModelRequest,
    ToolMessage,
    UserMessage,
    explain_replay,
)
from lighter_core.adapters import ReplayNotes, dump_json
from lighter_deepseek import DeepSeekProvider
from lighter_openai import OpenAIChatProvider, OpenAIProvider

from . import chat_streams as chat
from . import claude_streams as claude
from . import openai_streams as openai
from .hook_order import renewed, table

__all__ = ["PAGE", "ROWS", "SOURCES", "renewed", "reply", "tables"]

PAGE = Path(__file__).parents[2] / "docs" / "history.md"
CHAT_URL, DEEPSEEK_CHAT_URL = "https://chat.example/v1", "https://api.deepseek.com"

MARK = "XMARKX"
"""What is looked for."""

SOURCES: dict[str, Callable[[str], Any]] = {
    "openai": lambda model: OpenAIProvider("key", model),
    "claude": lambda model: ClaudeProvider("key", model),
    "deepseek": lambda model: DeepSeekProvider("key", model),
    "openai-chat": lambda model: OpenAIChatProvider(
        "key", model, base_url=CHAT_URL, max_retries=0
    ),
}
"""Providers that a reply can come from."""

TARGETS: dict[str, Callable[[str], Any]] = {
    **SOURCES,
    "DeepSeek through openai-chat": lambda model: OpenAIChatProvider(
        "key", model, base_url=DEEPSEEK_CHAT_URL
    ),
}

CALL = "a call"
ROWS = (
    "text",
    "reasoning in the clear",
    "reasoning in the clear, before a call",
    "reasoning signed or encrypted",
    CALL,
    "a call by an odd name",
    "a call whose arguments are no object",
    "what a hosted tool did",
)
"""What a reply holds."""


def reply(source: str, row: str) -> AssistantMessage | None:
    """Return a reply as the source's decoder makes it; `None` if it has no such thing."""
    parts = {
        "openai": _items,
        "claude": _blocks,
        "deepseek": _clear_items,
        "openai-chat": _fields,
    }[source](row)
    if parts is None:
        return None
    match source:
        case "claude":
            whole: Any = claude.body(*parts)
        case "openai-chat":
            whole = chat.body(parts, "tool_calls" if "tool_calls" in parts else "stop")
        case _:
            whole = openai.response(parts)
    codec = SOURCES[source]("m")._codec(ModelRequest([UserMessage("x")]))
    message: AssistantMessage = codec.decode_body(json.dumps(whole).encode())
    assert message.native is not None
    return message


_ARGUMENTS = json.dumps({"n": MARK})
_CALLS = {
    CALL: ("work", _ARGUMENTS),
    "a call by an odd name": (f"{MARK}.now", "{}"),
    "a call whose arguments are no object": ("work", f"{MARK}{{"),
}


def _items(row: str) -> list[Any] | None:
    said = openai.message("Well.")
    if row in _CALLS:
        return [openai.call(*_CALLS[row])]
    hosted = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    search = {**hosted, "action": {"type": "search", "query": MARK}}
    return {
        "text": [openai.message(MARK)],
        "reasoning signed or encrypted": [openai.reasoning(blob=MARK), said],
        "what a hosted tool did": [search, said],
    }.get(row)


def _clear_items(row: str) -> list[Any] | None:
    thought = openai.thought(MARK)
    if row in _CALLS:
        return [openai.call(*_CALLS[row])]
    return {
        "text": [openai.message(MARK)],
        "reasoning in the clear": [thought, openai.message("Well.")],
        "reasoning in the clear, before a call": [thought, openai.call("work", "{}")],
    }.get(row)


def _blocks(row: str) -> list[Any] | None:
    if row == "a call whose arguments are no object":
        return None  # the service parses them itself
    if row in _CALLS:
        name, arguments = _CALLS[row]
        return [claude.call(name, json.loads(arguments))]
    return {
        "text": [claude.text(MARK)],
        "reasoning signed or encrypted": [claude.redacted(MARK), claude.text("Well.")],
        "what a hosted tool did": [
            claude.search(MARK),
            claude.found(),
            claude.text("Well."),
        ],
    }.get(row)


def _fields(row: str) -> dict[str, Any] | None:
    if row in _CALLS:
        return {"tool_calls": [chat.call(*_CALLS[row])]}
    thought = {"reasoning_content": MARK}
    return {
        "text": {"content": MARK},
        "reasoning in the clear": {**thought, "content": "Well."},
        "reasoning in the clear, before a call": {
            **thought,
            "tool_calls": [chat.call("work", "{}")],
        },
    }.get(row)


def history_of(message: AssistantMessage) -> list[Message]:
    """Return a conversation with the reply, its calls answered."""
    results = [
        ToolMessage(call_id=each.call_id, tool_name=each.tool_name, tool_output="1")
        for each in message.tool_calls
    ]
    return [UserMessage("Go."), message, *results, UserMessage("And?")]


def cell(provider: Any, message: AssistantMessage) -> str:
    """Return what a request makes of a reply, in a few words."""
    history, notes = history_of(message), ReplayNotes()
    body = provider._encode(ModelRequest(history), notes, stream=False).decode()
    assert {each.text for each in explain_replay(history, provider)} == {*notes.texts}
    return _words(body, message, notes, provider.name)


def local_cell(message: AssistantMessage) -> str:
    """The same for a local model whose template knows no tools."""
    from lighter_local._prompt import check_messages, plain_messages

    history, notes = history_of(message), ReplayNotes()
    check_messages(history, notes, native=False)
    body = dump_json({"messages": plain_messages(history)})
    return _words(body, message, notes, "local")


def _words(
    body: str, message: AssistantMessage, notes: ReplayNotes, target: str
) -> str:
    assert message.native is not None
    end = " †" if notes.texts else ""
    if message.native.provider == target and message.native.items.strip()[1:-1] in body:
        return f"as it came{end}"
    found = list(_holders(json.loads(body)))
    if not found:
        return f"left out{end}"
    return f"{', '.join(dict.fromkeys(found))}{end}"


def _holders(value: Any, kind: str = "") -> Iterator[str]:
    """Yield the kind of each object in a request that holds the mark."""
    if isinstance(value, dict):
        kind = value.get("type") or value.get("role") or kind
        if "reasoning_content" in value and MARK in str(value["reasoning_content"]):
            kind = "reasoning_content"
        for key, each in value.items():
            if key == "_raw":
                yield f"new `{kind}` with `_raw`"
            else:
                yield from _holders(each, kind)
    elif isinstance(value, list):
        for each in value:
            yield from _holders(each, kind)
    elif isinstance(value, str) and MARK in value:
        raw = '{"_raw":' in value.replace(" ", "")
        yield f"new `{kind}`" + (" with `_raw`" if raw else "")


def _both(cells: Iterable[str]) -> str:
    """Return what all say; where they differ, all of it."""
    return " / ".join(dict.fromkeys(cells)) or "-"


def own_rows() -> list[tuple[str, ...]]:
    """Rows of the table about a reply that goes back to its own service."""
    rows: list[tuple[str, ...]] = []
    for row in ROWS:
        cells = [f"{row}"]
        for source, make in SOURCES.items():
            message = reply(source, row)
            for model in ("m", "another"):
                cells.append("-" if message is None else cell(make(model), message))
        rows.append(tuple(cells))
    return rows


def other_rows() -> list[tuple[str, ...]]:
    """Rows of the table about a reply that another service wrote."""
    rows: list[tuple[str, ...]] = []
    for row in ROWS:
        replies = {source: reply(source, row) for source in SOURCES}
        cells = [row]
        for make in TARGETS.values():
            to = make("m")
            foreign = [m for s, m in replies.items() if m is not None and s != to.name]
            cells.append(_both(cell(to, each) for each in foreign))
        cells.append(_both(local_cell(each) for each in replies.values() if each))
        rows.append(tuple(cells))
    return rows


def tables() -> dict[str, str]:
    """Return the text for each marker of the page."""
    own = [f"`{s}`, {w} model" for s in SOURCES for w in ("same", "other")]
    others = [f"to `{t}`" if " " not in t else f"to {t}" for t in (*TARGETS, "local")]
    return {
        "own": table(("a reply holds", *own), own_rows()),
        "others": table(("a reply holds", *others), other_rows()),
    }


def main() -> None:
    """Show the tables, or write them into the page."""
    made = tables()
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), made), "utf-8")
    else:
        sys.stdout.write("\n\n".join(made.values()) + "\n")


if __name__ == "__main__":
    main()
