"""The forms that an implementation of each spec may have, for type checkers.

An implementation takes any subset of the arguments, by name, as a function or as a
method. Types can say this only by naming each subset: a protocol for each, with
arguments by keyword, and unions of them. Nothing here runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from ..context import RunContext
from ..hooks import CallModel, CallTool
from ..messages import AssistantMessage, Message, ToolCall, ToolMessage
from ..pausing import ApprovalRequest
from ..provider import Provider
from ..requests import AgentRequest, ModelRequest
from ..results import AgentResponse
from ..tools import Tool

__all__ = [
    "AfterAgent",
    "AfterModel",
    "AfterTool",
    "AroundModel",
    "AroundTool",
    "BeforeAgent",
    "BeforeModel",
    "BeforeTool",
    "CreateProvider",
    "GetTools",
    "OnRunEnd",
]

_Run: TypeAlias = RunContext[Any]
_Options: TypeAlias = Mapping[str, object]
_V_contra = TypeVar("_V_contra", contravariant=True)
_R_co = TypeVar("_R_co", covariant=True)
_ValueT = TypeVar("_ValueT")
_ResultT = TypeVar("_ResultT")


# Two lines each and no more, to be read as a table.
# ruff: noqa: E501, N805
# fmt: off
class _Method(Protocol[_R_co]):
    def __call__(_p, *, self: Any) -> _R_co: ...
class _Function(Protocol[_R_co]):
    def __call__(self) -> _R_co: ...
class _MethodRun(Protocol[_R_co]):
    def __call__(_p, *, self: Any, run: _Run) -> _R_co: ...
class _FunctionRun(Protocol[_R_co]):
    def __call__(self, *, run: _Run) -> _R_co: ...
class _MethodRequestRun(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, request: _V_contra, run: _Run) -> _R_co: ...
class _FunctionRequestRun(Protocol[_V_contra, _R_co]):
    def __call__(self, *, request: _V_contra, run: _Run) -> _R_co: ...
class _MethodRequest(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, request: _V_contra) -> _R_co: ...
class _FunctionRequest(Protocol[_V_contra, _R_co]):
    def __call__(self, *, request: _V_contra) -> _R_co: ...
class _MethodMessageRun(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, message: _V_contra, run: _Run) -> _R_co: ...
class _FunctionMessageRun(Protocol[_V_contra, _R_co]):
    def __call__(self, *, message: _V_contra, run: _Run) -> _R_co: ...
class _MethodMessage(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, message: _V_contra) -> _R_co: ...
class _FunctionMessage(Protocol[_V_contra, _R_co]):
    def __call__(self, *, message: _V_contra) -> _R_co: ...
class _MethodMessagesRun(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, messages: _V_contra, run: _Run) -> _R_co: ...
class _FunctionMessagesRun(Protocol[_V_contra, _R_co]):
    def __call__(self, *, messages: _V_contra, run: _Run) -> _R_co: ...
class _MethodMessages(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, messages: _V_contra) -> _R_co: ...
class _FunctionMessages(Protocol[_V_contra, _R_co]):
    def __call__(self, *, messages: _V_contra) -> _R_co: ...
class _MethodCallRun(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, call: _V_contra, run: _Run) -> _R_co: ...
class _FunctionCallRun(Protocol[_V_contra, _R_co]):
    def __call__(self, *, call: _V_contra, run: _Run) -> _R_co: ...
class _MethodCall(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, call: _V_contra) -> _R_co: ...
class _FunctionCall(Protocol[_V_contra, _R_co]):
    def __call__(self, *, call: _V_contra) -> _R_co: ...
class _MethodResponseRun(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, response: _V_contra, run: _Run) -> _R_co: ...
class _FunctionResponseRun(Protocol[_V_contra, _R_co]):
    def __call__(self, *, response: _V_contra, run: _Run) -> _R_co: ...
class _MethodResponse(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, response: _V_contra) -> _R_co: ...
class _FunctionResponse(Protocol[_V_contra, _R_co]):
    def __call__(self, *, response: _V_contra) -> _R_co: ...
class _MethodRequestRunCallModel(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, request: _V_contra, run: _Run, call_model: CallModel) -> _R_co: ...
class _FunctionRequestRunCallModel(Protocol[_V_contra, _R_co]):
    def __call__(self, *, request: _V_contra, run: _Run, call_model: CallModel) -> _R_co: ...
class _MethodRequestCallModel(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, request: _V_contra, call_model: CallModel) -> _R_co: ...
class _FunctionRequestCallModel(Protocol[_V_contra, _R_co]):
    def __call__(self, *, request: _V_contra, call_model: CallModel) -> _R_co: ...
class _MethodRunCallModel(Protocol[_R_co]):
    def __call__(_p, *, self: Any, run: _Run, call_model: CallModel) -> _R_co: ...
class _FunctionRunCallModel(Protocol[_R_co]):
    def __call__(self, *, run: _Run, call_model: CallModel) -> _R_co: ...
class _MethodCallModel(Protocol[_R_co]):
    def __call__(_p, *, self: Any, call_model: CallModel) -> _R_co: ...
class _FunctionCallModel(Protocol[_R_co]):
    def __call__(self, *, call_model: CallModel) -> _R_co: ...
class _MethodCallRunCallTool(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, call: _V_contra, run: _Run, call_tool: CallTool) -> _R_co: ...
class _FunctionCallRunCallTool(Protocol[_V_contra, _R_co]):
    def __call__(self, *, call: _V_contra, run: _Run, call_tool: CallTool) -> _R_co: ...
class _MethodCallCallTool(Protocol[_V_contra, _R_co]):
    def __call__(_p, *, self: Any, call: _V_contra, call_tool: CallTool) -> _R_co: ...
class _FunctionCallCallTool(Protocol[_V_contra, _R_co]):
    def __call__(self, *, call: _V_contra, call_tool: CallTool) -> _R_co: ...
class _MethodRunCallTool(Protocol[_R_co]):
    def __call__(_p, *, self: Any, run: _Run, call_tool: CallTool) -> _R_co: ...
class _FunctionRunCallTool(Protocol[_R_co]):
    def __call__(self, *, run: _Run, call_tool: CallTool) -> _R_co: ...
class _MethodCallTool(Protocol[_R_co]):
    def __call__(_p, *, self: Any, call_tool: CallTool) -> _R_co: ...
class _FunctionCallTool(Protocol[_R_co]):
    def __call__(self, *, call_tool: CallTool) -> _R_co: ...
class _MethodNameOptions(Protocol[_R_co]):
    def __call__(_p, *, self: Any, name: str, options: _Options) -> _R_co: ...
class _FunctionNameOptions(Protocol[_R_co]):
    def __call__(self, *, name: str, options: _Options) -> _R_co: ...
class _MethodName(Protocol[_R_co]):
    def __call__(_p, *, self: Any, name: str) -> _R_co: ...
class _FunctionName(Protocol[_R_co]):
    def __call__(self, *, name: str) -> _R_co: ...
class _MethodOptions(Protocol[_R_co]):
    def __call__(_p, *, self: Any, options: _Options) -> _R_co: ...
class _FunctionOptions(Protocol[_R_co]):
    def __call__(self, *, options: _Options) -> _R_co: ...

_OfRequest: TypeAlias = (
    _MethodRequestRun[_ValueT, _ResultT] | _MethodRequest[_ValueT, _ResultT]
    | _MethodRun[_ResultT] | _Method[_ResultT] | _FunctionRequestRun[_ValueT, _ResultT]
    | _FunctionRequest[_ValueT, _ResultT] | _FunctionRun[_ResultT] | _Function[_ResultT]
)
_OfMessage: TypeAlias = (
    _MethodMessageRun[_ValueT, _ResultT] | _MethodMessage[_ValueT, _ResultT]
    | _MethodRun[_ResultT] | _Method[_ResultT] | _FunctionMessageRun[_ValueT, _ResultT]
    | _FunctionMessage[_ValueT, _ResultT] | _FunctionRun[_ResultT] | _Function[_ResultT]
)
_OfMessages: TypeAlias = (
    _MethodMessagesRun[_ValueT, _ResultT] | _MethodMessages[_ValueT, _ResultT]
    | _MethodRun[_ResultT] | _Method[_ResultT] | _FunctionMessagesRun[_ValueT, _ResultT]
    | _FunctionMessages[_ValueT, _ResultT] | _FunctionRun[_ResultT]
    | _Function[_ResultT]
)
_OfCall: TypeAlias = (
    _MethodCallRun[_ValueT, _ResultT] | _MethodCall[_ValueT, _ResultT]
    | _MethodRun[_ResultT] | _Method[_ResultT] | _FunctionCallRun[_ValueT, _ResultT]
    | _FunctionCall[_ValueT, _ResultT] | _FunctionRun[_ResultT] | _Function[_ResultT]
)
_OfResponse: TypeAlias = (
    _MethodResponseRun[_ValueT, _ResultT] | _MethodResponse[_ValueT, _ResultT]
    | _MethodRun[_ResultT] | _Method[_ResultT] | _FunctionResponseRun[_ValueT, _ResultT]
    | _FunctionResponse[_ValueT, _ResultT] | _FunctionRun[_ResultT]
    | _Function[_ResultT]
)
_AroundRequest: TypeAlias = (
    _MethodRequestRunCallModel[_ValueT, _ResultT]
    | _MethodRequestCallModel[_ValueT, _ResultT] | _MethodRequestRun[_ValueT, _ResultT]
    | _MethodRequest[_ValueT, _ResultT] | _MethodRunCallModel[_ResultT]
    | _MethodRun[_ResultT] | _MethodCallModel[_ResultT] | _Method[_ResultT]
    | _FunctionRequestRunCallModel[_ValueT, _ResultT]
    | _FunctionRequestCallModel[_ValueT, _ResultT]
    | _FunctionRequestRun[_ValueT, _ResultT] | _FunctionRequest[_ValueT, _ResultT]
    | _FunctionRunCallModel[_ResultT] | _FunctionRun[_ResultT]
    | _FunctionCallModel[_ResultT] | _Function[_ResultT]
)
_AroundCall: TypeAlias = (
    _MethodCallRunCallTool[_ValueT, _ResultT] | _MethodCallCallTool[_ValueT, _ResultT]
    | _MethodCallRun[_ValueT, _ResultT] | _MethodCall[_ValueT, _ResultT]
    | _MethodRunCallTool[_ResultT] | _MethodRun[_ResultT] | _MethodCallTool[_ResultT]
    | _Method[_ResultT] | _FunctionCallRunCallTool[_ValueT, _ResultT]
    | _FunctionCallCallTool[_ValueT, _ResultT] | _FunctionCallRun[_ValueT, _ResultT]
    | _FunctionCall[_ValueT, _ResultT] | _FunctionRunCallTool[_ResultT]
    | _FunctionRun[_ResultT] | _FunctionCallTool[_ResultT] | _Function[_ResultT]
)
_Making: TypeAlias = (
    _MethodNameOptions[_ResultT] | _MethodName[_ResultT] | _MethodOptions[_ResultT]
    | _Method[_ResultT] | _FunctionNameOptions[_ResultT] | _FunctionName[_ResultT]
    | _FunctionOptions[_ResultT] | _Function[_ResultT]
)
_Nothing: TypeAlias = _Method[_ResultT] | _Function[_ResultT]
# fmt: on

_Now: TypeAlias = _ResultT | Awaitable[_ResultT]

BeforeAgent = TypeVar(
    "BeforeAgent", bound=_OfRequest[AgentRequest, _Now[AgentRequest | None]]
)
BeforeModel = TypeVar(
    "BeforeModel", bound=_OfRequest[ModelRequest, _Now[ModelRequest | None]]
)
AfterModel = TypeVar(
    "AfterModel", bound=_OfMessage[AssistantMessage, _Now[AssistantMessage | None]]
)
AfterAgent = TypeVar(
    "AfterAgent", bound=_OfMessages[list[Message], _Now[Sequence[Message] | None]]
)
BeforeTool = TypeVar(
    "BeforeTool",
    bound=_OfCall[ToolCall, _Now[ToolCall | ToolMessage | ApprovalRequest | None]],
)
AfterTool = TypeVar(
    "AfterTool", bound=_OfMessage[ToolMessage, _Now[ToolMessage | None]]
)
AroundModel = TypeVar(
    "AroundModel", bound=_AroundRequest[ModelRequest, _Now[AssistantMessage]]
)
AroundTool = TypeVar("AroundTool", bound=_AroundCall[ToolCall, _Now[ToolMessage]])
OnRunEnd = TypeVar("OnRunEnd", bound=_OfResponse[AgentResponse[object], _Now[None]])
CreateProvider = TypeVar("CreateProvider", bound=_Making[Provider | None])
GetTools = TypeVar("GetTools", bound=_Nothing[Iterable[Tool]])
