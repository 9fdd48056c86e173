"""What hooks and tools can know about the run that they are part of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

from .events import ToolProgress
from .messages import Message, Usage
from .requests import JSONValue

__all__ = ["RunContext", "RunProgress"]

DepsT_co = TypeVar("DepsT_co", covariant=True)


class RunProgress:
    """The counters of one run. The loop writes them, contexts read them."""

    __slots__ = (
        "calls_by_name",
        "input",
        "model_calls",
        "new",
        "parent",
        "sink",
        "tell",
        "tool_calls",
        "usage",
    )

    def __init__(self) -> None:
        self.model_calls: int = 0
        self.tool_calls: int = 0
        self.calls_by_name: dict[str, int] = {}
        self.usage: Usage | None = None
        self.parent: RunProgress | None = None  # of the run whose tool this run is
        self.sink: object = None  # where its events go, if anybody reads them
        self.tell: Callable[[ToolProgress], None] | None = None
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

    __slots__ = ("_call_id", "_deps", "_progress", "_run_id", "_tool_name")

    def __init__(
        self,
        *,
        deps: DepsT_co = cast("DepsT_co", None),  # noqa: B008 - a constant
        run_id: str | None = None,
        call_id: str | None = None,
        tool_name: str | None = None,
        progress: RunProgress | None = None,
    ) -> None:
        self._deps = deps
        self._run_id = run_id
        self._call_id = call_id
        self._tool_name = tool_name
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
    def tool_name(self) -> str | None:
        """In a tool and in a tool's hooks the name of the tool, else `None`."""
        return self._tool_name

    def progress(self, value: JSONValue) -> None:
        """Tell who streams the run how far this tool is, as a `ToolProgress` event.

        Works from worker threads. Nothing happens where nobody streams; when the reader
        is slow, what does not fit is left out.

        Args:
            value: Plain data, e.g. `"3 of 7 pages"` or `{"done": 3, "of": 7}`.

        Raises:
            RuntimeError: Outside a tool call.
        """
        if self._call_id is None or self._tool_name is None:
            raise RuntimeError(
                "only a tool has progress to tell: call it inside a tool"
            )
        if self._progress.tell is not None:
            self._progress.tell(ToolProgress(self._call_id, self._tool_name, value))

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

    def for_call(
        self, call_id: str, tool_name: str | None = None
    ) -> RunContext[DepsT_co]:
        """Return the same context for one tool call."""
        return RunContext(
            deps=self.deps,
            run_id=self.run_id,
            call_id=call_id,
            tool_name=tool_name,
            progress=self._progress,
        )

    def __repr__(self) -> str:
        return f"RunContext(run_id={self.run_id!r}, call_id={self.call_id!r})"
