"""Lighter: the loop between a language model and tools.

```python
from lighter_core import Agent, tool

@tool
def add(a: int, b: int) -> int:
    "Calculate the sum of two numbers."
    return a + b

agent = Agent("openai:model-id", tools=[add])
print(agent.run_sync("What is 19 + 23?").raise_if_failed().text)
```

Importing this package loads the standard library only. pluggy, pydantic and
importlib-metadata follow when something first needs them.
"""

from __future__ import annotations

import logging
from dataclasses import is_dataclass
from typing import TYPE_CHECKING

from ._handle import RunHandle
from ._state import Receipt
from ._stream import AgentStream, SyncAgentStream
from .agent import Agent
from .context import RunContext
from .errors import (
    HistoryError,
    HookError,
    IncompatiblePluginError,
    LighterError,
    LimitExceededError,
    ModelError,
    ModelErrorCode,
    OutputError,
    PluginConflictError,
    PluginError,
    PluginLoadError,
    PluginNotFoundError,
    ProviderContractError,
    RecordingError,
    SessionConflictError,
    SessionError,
    SessionErrorCode,
    SessionNotFoundError,
    ToolDefinitionError,
    ToolError,
)
from .events import (
    HostedToolItem,
    LimitNear,
    MessageAdded,
    MessageEvent,
    ModelCallRestarted,
    ProviderStreamEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallFinished,
    ToolCallStarted,
    ToolProgress,
    TurnEnded,
    TurnStarted,
    UsageUpdated,
)
from .history import (
    HistoryProblem,
    RepairedHistory,
    check_history,
    repair_history,
)
from .hooks import (
    AfterAgentHook,
    AfterModelHook,
    BeforeAgentHook,
    BeforeModelHook,
    CallModel,
    CallTool,
)
from .limits import RunLimits
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
from .model import Model
from .pausing import (
    ApprovalRequest,
    Decision,
    PausedRun,
    PendingCall,
    Resumption,
)
from .provider import (
    Provider,
    ReplayFinding,
    SupportsAclose,
    SupportsReplayReport,
    SupportsWarmUp,
)
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
from .results import AgentResponse, AgentStreamEvent, NestedEvent, RunStatus
from .tools import FunctionTool, Tool, tool

if TYPE_CHECKING:
    from ._explain import explain_replay as explain_replay
    from .documents import messages_from_json as messages_from_json
    from .documents import messages_to_json as messages_to_json
    from .plugins.marks import hookimpl as hookimpl
    from .plugins.registry import PLUGIN_API as PLUGIN_API
    from .plugins.registry import MetadataNote as MetadataNote
    from .plugins.registry import PluginEntry as PluginEntry
    from .plugins.registry import PluginState as PluginState
    from .plugins.registry import Registry as Registry
    from .plugins.registry import default_registry as default_registry
    from .plugins.registry import load_hooks as load_hooks
    from .plugins.registry import load_tools as load_tools

__all__ = [
    "PLUGIN_API",
    "AfterAgentHook",
    "AfterModelHook",
    "Agent",
    "AgentRequest",
    "AgentResponse",
    "AgentStream",
    "AgentStreamEvent",
    "ApprovalRequest",
    "AssistantMessage",
    "BeforeAgentHook",
    "BeforeModelHook",
    "CallModel",
    "CallTool",
    "ContentPart",
    "Decision",
    "FilePart",
    "FunctionTool",
    "HistoryError",
    "HistoryProblem",
    "HookError",
    "HostedToolItem",
    "ImagePart",
    "IncompatiblePluginError",
    "JSONObject",
    "JSONValue",
    "LighterError",
    "LimitExceededError",
    "LimitNear",
    "Message",
    "MessageAdded",
    "MessageEvent",
    "MetadataNote",
    "Model",
    "ModelCallRestarted",
    "ModelError",
    "ModelErrorCode",
    "ModelRequest",
    "NativeContext",
    "NestedEvent",
    "OutputError",
    "OutputSpec",
    "PausedRun",
    "PendingCall",
    "PluginConflictError",
    "PluginEntry",
    "PluginError",
    "PluginLoadError",
    "PluginNotFoundError",
    "PluginState",
    "Provider",
    "ProviderContractError",
    "ProviderRequest",
    "ProviderStreamEvent",
    "ReasoningDelta",
    "Receipt",
    "RecordingError",
    "Registry",
    "RepairedHistory",
    "ReplayFinding",
    "Resumption",
    "RunContext",
    "RunHandle",
    "RunLimits",
    "RunStatus",
    "SessionConflictError",
    "SessionError",
    "SessionErrorCode",
    "SessionNotFoundError",
    "SupportsAclose",
    "SupportsReplayReport",
    "SupportsWarmUp",
    "SyncAgentStream",
    "SystemMessage",
    "TextDelta",
    "TextPart",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallFinished",
    "ToolCallStarted",
    "ToolChoice",
    "ToolDefinitionError",
    "ToolError",
    "ToolMessage",
    "ToolProgress",
    "ToolSpec",
    "TurnEnded",
    "TurnStarted",
    "Usage",
    "UsageUpdated",
    "UserMessage",
    "check_history",
    "default_registry",
    "explain_replay",
    "hookimpl",
    "load_hooks",
    "load_tools",
    "messages_from_json",
    "messages_to_json",
    "repair_history",
    "tool",
]

_LATE = {
    "MetadataNote": "plugins.registry",
    "PLUGIN_API": "plugins.registry",
    "PluginEntry": "plugins.registry",
    "PluginState": "plugins.registry",
    "Registry": "plugins.registry",
    "default_registry": "plugins.registry",
    "explain_replay": "_explain",
    "hookimpl": "plugins.marks",
    "load_hooks": "plugins.registry",
    "load_tools": "plugins.registry",
    "messages_from_json": "documents",
    "messages_to_json": "documents",
}

# A library is silent unless its application asks: without a handler of its own the
# logging module would print warnings to stderr.
logging.getLogger("lighter").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    if name in _LATE:
        from importlib import import_module

        module = import_module(f".{_LATE[name]}", __name__)
        return getattr(module, name)
    if name == "__version__":
        from importlib.metadata import version

        return version("lighter-core")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})


def _show_here() -> None:
    """Let tracebacks and documentation name the public place of each class.

    Data classes keep theirs: their annotations are resolved through it.
    """
    for name in __all__:
        value = globals().get(name)
        if isinstance(value, type) and not is_dataclass(value):
            value.__module__ = __name__


_show_here()
