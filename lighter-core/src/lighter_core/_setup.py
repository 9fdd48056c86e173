"""What an agent, and what a caller brings into a run."""

from __future__ import annotations

from collections.abc import Mapping

from ._chain import HookChain
from ._dataclass import dataclass
from ._inputs import history_of
from ._journal import Journal
from ._state import RunState
from .limits import RunLimits
from .messages import SystemMessage
from .pausing import Resumption
from .provider import Provider
from .requests import ToolSpec
from .tools import Tool

__all__ = ["LoopSetup", "new_run"]


@dataclass(frozen=True, slots=True)
class LoopSetup:
    """What an agent brings into every run; shared by its runs, never changed."""

    provider: Provider
    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    system: SystemMessage | None
    chain: HookChain
    limits: RunLimits
    parallel: bool = False


def new_run(
    messages: object, output: object, deps: object, journal: Journal | None = None
) -> RunState:
    """Return the state of a run that is about to begin, from what the caller gave."""
    plan = None
    if output is not None:
        from ._output import plan_output

        plan = plan_output(output)
    if not isinstance(messages, Resumption):
        return RunState(history_of(messages), deps, plan, journal)
    paused = messages.paused
    state = RunState(list(paused.input), deps, plan, journal, paused.run_id)
    state.go_on(messages)
    return state
