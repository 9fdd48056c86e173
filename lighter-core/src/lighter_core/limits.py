"""What a run may use up, and how long its parts may take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, fields
from types import MappingProxyType

from ._dataclass import dataclass
from .errors import LimitExceededError

__all__ = ["RunLimits"]

_COUNTS = ("model_calls", "tool_calls", "total_tokens", "tool_threads")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits of one run. `None` lifts a limit.

    Reaching one fails the run with a `LimitExceededError` that says which, before the
    next model call or tool; the response keeps all that was completed. A tool that takes
    too long fails alone: the model reads that it timed out.

    Attributes:
        model_calls: How many times the model may be called.
        tool_calls: How many tool calls may start.
        tool_calls_by_name: The same for single tools, by name.
        total_tokens: Input and output tokens of all model calls; checked before the next
            call, so the last one may go beyond it.
        seconds: Wall clock of the run. What is in flight is cancelled.
        model_call_seconds: Of one model call, from the request to the whole reply.
        idle_seconds: Without anything from the model while it replies. With it `run`
            asks for a stream too.
        tool_seconds: Of one tool call, for tools without a `timeout` of their own.
        tool_threads: How many synchronous tools of one reply run at once, where tools
            run in parallel.
    """

    model_calls: int | None = 100
    tool_calls: int | None = None
    tool_calls_by_name: Mapping[str, int] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    total_tokens: int | None = None
    seconds: float | None = None
    model_call_seconds: float | None = None
    idle_seconds: float | None = None
    tool_seconds: float | None = None
    tool_threads: int | None = 16

    def __post_init__(self) -> None:
        for each in fields(self):
            value: object = getattr(self, each.name)
            if each.name == "tool_calls_by_name":
                named = dict(self.tool_calls_by_name)
                for name, most in named.items():
                    _need_count(f"{each.name}[{name!r}]", most)
                object.__setattr__(self, each.name, MappingProxyType(named))
            elif value is not None and each.name in _COUNTS:
                _need_count(each.name, value)
            elif value is not None:
                need_seconds(f"RunLimits.{each.name}", value)

    @classmethod
    def none(cls) -> RunLimits:
        """Return limits that limit nothing."""
        return cls(model_calls=None, tool_threads=None)

    def check_model_calls(self, made: int) -> None:
        """Refuse one more model call after `made` calls.

        Raises:
            LimitExceededError: When the limit is reached.
        """
        if self.model_calls is not None and made >= self.model_calls:
            raise reached("model_calls", self.model_calls, "model calls")

    def check_tool_calls(
        self, made: int, by_name: Mapping[str, int], name: str
    ) -> None:
        """Refuse one more call of a tool.

        Raises:
            LimitExceededError: When a limit is reached.
        """
        if self.tool_calls is not None and made >= self.tool_calls:
            raise reached("tool_calls", self.tool_calls, "tool calls")
        most = self.tool_calls_by_name.get(name)
        if most is not None and by_name.get(name, 0) >= most:
            raise reached(
                f"tool_calls_by_name[{name!r}]", most, f"calls of the tool {name!r}"
            )

    def check_tokens(self, used: int) -> None:
        """Refuse anything more after `used` tokens.

        Raises:
            LimitExceededError: When the limit is reached.
        """
        if self.total_tokens is not None and used >= self.total_tokens:
            raise reached("total_tokens", self.total_tokens, "tokens")

    def __reduce__(self) -> tuple[object, ...]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["tool_calls_by_name"] = dict(self.tool_calls_by_name)
        return _restore, (values,)


def _restore(values: Mapping[str, object]) -> RunLimits:
    return RunLimits(**values)  # type: ignore[arg-type]


def reached(limit: str, value: float, what: str) -> LimitExceededError:
    """Return the error about a limit that is reached."""
    shown = limit.partition("[")[0]
    return LimitExceededError(
        f"the run reached its limit of {value:g} {what}; raise it with"
        f" Agent(limits=RunLimits({shown}=…)), or lift it with None",
        limit=limit,
        value=value,
    )


def need_seconds(name: str, value: object) -> None:
    """Refuse what is no time.

    Raises:
        ValueError: Naming the option.
    """
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not math.isfinite(value) or value <= 0:  # type: ignore[arg-type,operator]
        raise ValueError(f"{name} must be seconds above 0, got {value!r}")


def _need_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(
            f"RunLimits.{name} must be a positive int or None, got {value!r}"
        )
