"""Every error that Lighter raises on purpose.

```
LighterError
├── ModelError                 a model call failed; `code` says how
│   └── ProviderContractError  a provider broke the stream grammar
├── LimitExceededError         a run reached one of its limits
├── HookError                  a hook is malformed or returned a wrong type
├── ToolDefinitionError        (ValueError) a tool cannot be built as written
├── OutputError                the final answer does not fit the form asked for
├── ToolError                  raise it in a tool: its text goes to the model verbatim
├── HistoryError               a message history cannot be accepted
├── RecordingError             a recorded run cannot be read, or differs from this one
├── SessionError               a stored session cannot be read or written; `code` says why
│   ├── SessionNotFoundError   (LookupError)
│   └── SessionConflictError   another writer was first
└── PluginError                something about an installed plugin
    ├── PluginNotFoundError    (LookupError)
    ├── PluginConflictError    several distributions claim one name
    ├── PluginLoadError        (ImportError)
    └── IncompatiblePluginError  written for another plugin interface
```

Every class survives `pickle` and `copy` with its fields. A pickle never holds
`__cause__`: SDK errors keep the request, and with it the key in its headers.
"""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

__all__ = [
    "HistoryError",
    "HookError",
    "IncompatiblePluginError",
    "LighterError",
    "LimitExceededError",
    "ModelError",
    "ModelErrorCode",
    "OutputError",
    "PluginConflictError",
    "PluginError",
    "PluginLoadError",
    "PluginNotFoundError",
    "ProviderContractError",
    "RecordingError",
    "SessionConflictError",
    "SessionError",
    "SessionErrorCode",
    "SessionNotFoundError",
    "ToolDefinitionError",
    "ToolError",
]

ModelErrorCode = Literal[
    "auth_error",
    "rate_limit",
    "invalid_request",
    "network_error",
    "server_error",
    "bad_response",
    "aborted",
    "unknown",
]
"""The closed set of failure categories of a model call."""

_CODES: frozenset[str] = frozenset(get_args(ModelErrorCode))

SessionErrorCode = Literal[
    "not_found",
    "conflict",
    "invalid",
    "locked",
    "full",
    "readonly",
    "corrupt",
    "version",
    "unavailable",
    "closed",
]
"""Why a session could not be read or written."""


def _rebuild(
    cls: type[LighterError],
    message: str,
    fields: dict[str, object],
    notes: list[str],
) -> LighterError:
    error = cls(message, **fields)
    for note in notes:
        error.add_note(note)
    return error


class LighterError(Exception):
    """Base of all errors that Lighter raises on purpose.

    Attributes:
        message: What happened and what to do next, without the class name.
    """

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        fields = {name: getattr(self, name) for name in self._fields}
        notes = list(getattr(self, "__notes__", ()))
        return _rebuild, (type(self), self.message, fields, notes)


class ModelError(LighterError):
    """A model call failed.

    Attributes:
        code: The category, one of the eight `ModelErrorCode` strings.
        http_status: The HTTP error status of the service, where there was one.
        response_status: The service's own word for how the generation ended,
            such as `"incomplete"` or `"max_tokens"`.
        provider: The name of the provider that failed, e.g. `"openai"`.
        retry_after: Seconds the service asked to wait, where it did.
        request_id: The service's id of the request, for its support.
        vendor_code: The service's own error code, e.g. `"invalid_api_key"`.
    """

    _fields: ClassVar[tuple[str, ...]] = (
        "code",
        "http_status",
        "response_status",
        "provider",
        "retry_after",
        "request_id",
        "vendor_code",
    )

    def __init__(
        self,
        message: str,
        code: ModelErrorCode,
        *,
        http_status: int | None = None,
        response_status: str | None = None,
        provider: str | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
        vendor_code: str | None = None,
    ) -> None:
        if code not in _CODES:
            allowed = ", ".join(sorted(_CODES))
            raise ValueError(f"{code!r} is not a ModelErrorCode; use one of: {allowed}")
        super().__init__(message)
        self.code: ModelErrorCode = code
        self.http_status = http_status
        self.response_status = response_status
        self.provider = provider
        self.retry_after = retry_after
        self.request_id = request_id
        self.vendor_code = vendor_code


class ProviderContractError(ModelError):
    """A provider's stream broke the grammar: deltas, then exactly one message.

    Its `code` is always `"bad_response"`.

    Attributes:
        event_number: The position of the offending event in the provider's
            stream, counted from 1; for a missing message, of the stream's end.
    """

    _fields = ("event_number", "provider")

    def __init__(
        self, message: str, *, event_number: int, provider: str | None = None
    ) -> None:
        super().__init__(message, "bad_response", provider=provider)
        self.event_number = event_number


class LimitExceededError(LighterError):
    """A run reached one of its limits.

    Attributes:
        limit: The name of the field of `RunLimits`, e.g. `"model_calls"`.
        value: The value of that limit.
    """

    _fields = ("limit", "value")

    def __init__(self, message: str, *, limit: str, value: float) -> None:
        super().__init__(message)
        self.limit = limit
        self.value = value


class OutputError(LighterError):
    """The final answer does not fit the form asked for, nor did the one before it."""


class HookError(LighterError):
    """A hook is malformed, or returned a value of the wrong type.

    Attributes:
        hook: The hook's name.
        event: The lifecycle event, e.g. `"before_model"`, where one is known.
        plugin: The plugin that the hook came from, where it came from one.
    """

    _fields = ("hook", "event", "plugin")

    def __init__(
        self,
        message: str,
        *,
        hook: str | None = None,
        event: str | None = None,
        plugin: str | None = None,
    ) -> None:
        super().__init__(message)
        self.hook = hook
        self.event = event
        self.plugin = plugin


class ToolDefinitionError(LighterError, ValueError):
    """A tool cannot be built as it is written.

    Attributes:
        tool: The tool's name, where it has one.
        parameter: The parameter at fault, where it is one.
    """

    _fields = ("tool", "parameter")

    def __init__(
        self, message: str, *, tool: str | None = None, parameter: str | None = None
    ) -> None:
        super().__init__(message)
        self.tool = tool
        self.parameter = parameter


class ToolError(LighterError):
    """Raise it inside a tool to choose the text that the model reads.

    The text reaches the model verbatim, in a tool message with `is_error=True`.
    Every other exception is shortened and stripped of paths first.
    """


class HistoryError(LighterError):
    """A message history cannot be accepted.

    Attributes:
        path: Where in the history, e.g. `"messages[3].tool_calls[0]"`.
    """

    _fields = ("path",)

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class RecordingError(LighterError):
    """A recorded run cannot be read, or what is asked now differs from it.

    Attributes:
        path: The first place that differs, e.g. `"messages[3].tool_output"`.
    """

    _fields = ("path",)

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class SessionError(LighterError):
    """A stored session cannot be read or written.

    Attributes:
        code: `"invalid"` for what was given: an id, a line of an import. For the store:
            `"locked"` by others for too long, `"full"`, `"readonly"`, `"corrupt"`,
            written by another `"version"`, `"unavailable"`, `"closed"`.
        session_id: The session, where it is about one.
    """

    _fields = ("code", "session_id")

    def __init__(
        self, message: str, *, code: SessionErrorCode, session_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.code: SessionErrorCode = code
        self.session_id = session_id


class SessionNotFoundError(SessionError, LookupError):
    """The store has no such session, or the session no such entry."""


class SessionConflictError(SessionError):
    """Another writer was first: the session has other messages than the caller thought.

    Nothing was stored. Load the session again, look at it, and append to that.
    """


class PluginError(LighterError):
    """Something about an installed plugin is wrong.

    Attributes:
        kind: `"providers"`, `"tools"` or `"hooks"`.
        name: The plugin's name: the name of its entry point.
        dist: The distribution that it came from, where one is known.
    """

    _fields = ("kind", "name", "dist")

    def __init__(
        self, message: str, *, kind: str, name: str, dist: str | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.name = name
        self.dist = dist


class PluginNotFoundError(PluginError, LookupError):
    """No installed plugin has the name."""


class PluginConflictError(PluginError):
    """Several distributions claim the name, or one claims a reserved name."""


class PluginLoadError(PluginError, ImportError):  # type: ignore[misc]  # both have a `name`, always a str here
    """A plugin could not be imported or registered."""


class IncompatiblePluginError(PluginError):
    """A plugin was written for another version of the plugin interface."""
