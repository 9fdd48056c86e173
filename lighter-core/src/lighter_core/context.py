"""What hooks and tools can know about the run that they are part of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar, cast

from .messages import Message, Usage

__all__ = ["RunContext", "RunProgress"]

DepsT_co = TypeVar("DepsT_co", covariant=True)


class RunProgress:
    """The counters of one run. The loop writes them, contexts read them."""

    __slots__ = (
        "calls_by_name",
        "input",
        "model_calls",
        "new",
        "tool_calls",
        "usage",
    )

    def __init__(self) -> None:
        self.model_calls: int = 0
        self.tool_calls: int = 0
        self.calls_by_name: dict[str, int] = {}
        self.usage: Usage | None = None
        self.input: list[Message] = []
        self.new: list[Message] = []


class RunContext(Generic[DepsT_co]):
    """The run, as hooks and tools see it; read-only.

    A tool gets it through a parameter annotated `RunContext[…]`, which the model never
    sees; a hook through an argument named `run` or as its second argument.

    Example:
        ```python
        @tool
        async def stock(book: str, run: RunContext[Database]) -> int:
            "Count the copies of a book."
            return await run.deps.count(book)
        ```
    """

    __slots__ = ("_call_id", "_deps", "_progress", "_run_id")

    def __init__(
        self,
        *,
        deps: DepsT_co = cast("DepsT_co", None),  # noqa: B008 - a constant
        run_id: str | None = None,
        call_id: str | None = None,
        progress: RunProgress | None = None,
    ) -> None:
        self._deps = deps
        self._run_id = run_id
        self._call_id = call_id
        self._progress = progress or RunProgress()

    @property
    def run_id(self) -> str | None:
        """A random id of the run; `None` for a direct call of a `Model`."""
        return self._run_id

    @property
    def deps(self) -> DepsT_co:
        """What the application passed as `deps=`: its database, its user, …."""
        return self._deps

    @property
    def call_id(self) -> str | None:
        """In a tool and in a tool's hooks the id of the call, else `None`.

        The service chooses it, so it is new for each attempt: do not build idempotency
        on it alone.
        """
        return self._call_id

    @property
    def model_calls(self) -> int:
        """How many model calls the run has started."""
        return self._progress.model_calls

    @property
    def tool_calls(self) -> int:
        """How many tool calls the run has started."""
        return self._progress.tool_calls

    @property
    def usage(self) -> Usage | None:
        """The tokens used so far, or `None` while no provider reported any."""
        return self._progress.usage

    @property
    def messages(self) -> Sequence[Message]:
        """The input and the messages completed so far, without the system prompt.

        While a tool runs, the last reply's calls have no results yet.
        """
        return (*self._progress.input, *self._progress.new)

    def for_call(self, call_id: str) -> RunContext[DepsT_co]:
        """Return the same context for one tool call."""
        return RunContext(
            deps=self.deps,
            run_id=self.run_id,
            call_id=call_id,
            progress=self._progress,
        )

    def __repr__(self) -> str:
        return f"RunContext(run_id={self.run_id!r}, call_id={self.call_id!r})"
