"""What applications give to an agent, checked and brought into one form."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence

from .errors import ToolDefinitionError
from .messages import (
    MESSAGE_CLASSES,
    Message,
    UserMessage,
)
from .tools import Tool

__all__ = [
    "history_of",
    "hook_objects",
    "need",
    "need_list",
    "need_running_loop",
    "tools_by_name",
]

logger: logging.Logger = logging.getLogger("lighter.agent")


def history_of(messages: object) -> list[Message]:
    """Return the input as a list of its own."""
    if isinstance(messages, str):
        return [UserMessage(messages)]
    if isinstance(messages, MESSAGE_CLASSES):
        return [messages]
    if not isinstance(messages, Sequence):
        raise TypeError(
            "an agent runs on a str, a message or a sequence of messages, got"
            f" {type(messages).__name__}"
        )
    history: list[Message] = []
    for number, each in enumerate(messages):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if not isinstance(each, MESSAGE_CLASSES):
            kind = type(each).__name__  # pyright: ignore[reportUnknownArgumentType]
            raise TypeError(
                f"messages[{number}] must be a SystemMessage, UserMessage,"
                f" AssistantMessage or ToolMessage, got {kind}"
            )
        history.append(each)
    return history


def need_list(name: str, given: object) -> None:
    """Refuse what is one thing, or looks like many and would be taken apart."""
    kind = type(given).__name__
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"Agent({name}=…) takes a list, got {kind}: write {name}=[…]")


def need_running_loop(name: str, *, instead: str) -> None:
    """Refuse what needs a running event loop where there is none.

    Raises:
        RuntimeError: Naming the way for synchronous code.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            f"{name} needs a running event loop: call it inside `async def`, or use"
            f" {instead} in synchronous code"
        ) from None


def need(name: str, value: object, kind: type, wanted: str) -> None:
    """Refuse an option of the wrong type; `None` always passes."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(
            f"Agent({name}=…) takes {wanted} or None, got {type(value).__name__}"
        )


def tools_by_name(tools: Iterable[Tool | str]) -> dict[str, Tool]:
    """Return the tools, those of named plugins among them, each under its own name."""
    found: dict[str, Tool] = {}
    sources: dict[str, str] = {}
    for each in tools:
        for tool, source in _tools_of(each):
            if tool.name in found:
                raise ToolDefinitionError(
                    f"two tools have the name {tool.name!r} ({sources[tool.name]} and"
                    f" {source}); rename one",
                    tool=tool.name,
                )
            near = next((n for n in found if n.lower() == tool.name.lower()), None)
            if near is not None:
                logger.warning(
                    "the tools %s and %s differ by case only: models mix them up",
                    near,
                    tool.name,
                )
            found[tool.name], sources[tool.name] = tool, source
    return found


def _tools_of(given: object) -> list[tuple[Tool, str]]:
    if isinstance(given, Tool):
        return [(given, "given here")]
    if isinstance(given, str):
        from .plugins.registry import default_registry

        registry = default_registry()
        tools = registry.load_tools(given)
        dist = registry.resolve("tools", given).dist or "the application"
        return [(tool, f"from the plugin {given!r} of {dist}") for tool in tools]
    raise ToolDefinitionError(
        f"tools must hold Tool objects and names of tools plugins, got {given!r}; make a"
        " tool of a function with @tool"
    )


def hook_objects(hooks: Iterable[object]) -> list[object]:
    """Return the hooks, names of plugins replaced by their plugin objects."""
    objects: list[object] = []
    for each in hooks:
        if isinstance(each, str):
            from .plugins.registry import default_registry

            objects.append(default_registry().load_hooks(each))
        else:
            objects.append(each)
    return objects
