"""Lighter: the loop between a language model and tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import (
    HistoryError,
    HookError,
    IncompatiblePluginError,
    LighterError,
    LimitExceededError,
    ModelError,
    ModelErrorCode,
    PluginConflictError,
    PluginError,
    PluginLoadError,
    PluginNotFoundError,
    ProviderContractError,
    ToolDefinitionError,
    ToolError,
)
from .events import (
    MessageEvent,
    ProviderStreamEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from .history import (
    HistoryProblem,
    RepairedHistory,
    check_history,
    repair_history,
)
from .messages import (
    AssistantMessage,
    ContentPart,
    FilePart,
    ImagePart,
    Message,
    NativeContext,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from .provider import Provider, SupportsAclose
from .requests import (
    AgentRequest,
    JSONObject,
    JSONValue,
    ModelRequest,
    OutputSpec,
    ProviderRequest,
    ToolChoice,
    ToolSpec,
)

if TYPE_CHECKING:
    from .plugins.hookspecs import hookimpl as hookimpl


def __getattr__(name: str) -> object:
    if name == "hookimpl":
        from .plugins.hookspecs import hookimpl

        return hookimpl
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
