"""The agent: a model, tools, a system prompt and hooks, run in a loop."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar, overload

from ._chain import HookChain
from ._handle import RunHandle
from ._inputs import (
    hook_objects,
    need,
    need_list,
    need_running_loop,
    tools_by_name,
)
from ._loop import run_loop
from ._setup import LoopSetup, new_run
from ._stream import AgentStream, SyncAgentStream
from ._sync import run_sync
from .limits import RunLimits
from .messages import Message, SystemMessage
from .model import Model
from .pausing import Decision, PausedRun, Resumption
from .provider import Provider
from .requests import JSONObject, JSONValue
from .results import AgentResponse
from .tools import Tool

__all__ = ["Agent", "Input", "setup_of"]

_DEFAULT_PROMPT = "You are a helpful assistant."
_DEFAULT_LIMITS = RunLimits()
OutputT = TypeVar("OutputT")
Input = str | Message | Sequence[Message] | Resumption
_Paused = AgentResponse[Any] | PausedRun
_Decisions = Mapping[str, Decision]


class Agent:
    """Runs the loop between a model and tools until the model asks for no more.

    An agent keeps nothing of a run: pass the history in, append what comes back. One
    agent serves many runs at once, from several event loops and threads.

    Args:
        model: A `Model`, a `Provider`, or a name such as `"openai:model-id"`.
        tools: `Tool` objects, and names of installed tools plugins.
        system_prompt: Put before the messages of every model call; not part of the
            response. `None` sends none.
        hooks: Hook objects, plugin objects, and names of installed hooks plugins.
        limits: What one run may use up; `None` lifts all limits.
        parallel_tools: Run the tools of one reply at once, those that allow it.

    Raises:
        ToolDefinitionError: When two tools have one name.
        HookError: When a hook would silently not run.
        PluginError: When a named plugin cannot be found or loaded.

    Example:
        ```python
        agent = Agent("openai:model-id", tools=[add])
        response = agent.run_sync("What is 19 + 23?")
        print(response.raise_if_failed().text)
        ```
    """

    def __init__(
        self,
        model: Model | Provider | str,
        *,
        tools: Iterable[Tool | str] = (),
        system_prompt: str | SystemMessage | None = _DEFAULT_PROMPT,
        hooks: Iterable[object] = (),
        limits: RunLimits | None = _DEFAULT_LIMITS,
        parallel_tools: bool = False,
    ) -> None:
        if isinstance(model, str):
            model = Model.from_name(model)
        elif not isinstance(model, Model):
            model = Model(model)
        if isinstance(system_prompt, str):
            system_prompt = SystemMessage(system_prompt)
        need_list("tools", tools)
        need_list("hooks", hooks)
        need("system_prompt", system_prompt, SystemMessage, "a str, a SystemMessage")
        need("limits", limits, RunLimits, "a RunLimits")
        self._model = model
        self._tools = tools_by_name(tools)
        self._setup = LoopSetup(
            provider=model.provider,
            tools=self._tools,
            specs=tuple(tool.get_spec() for tool in self._tools.values()),
            system=system_prompt,
            chain=HookChain(hook_objects(hooks)),
            limits=RunLimits.none() if limits is None else limits,
            parallel=parallel_tools,
        )

    @property
    def model(self) -> Model:
        """The model."""
        return self._model

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model may call."""
        return tuple(self._tools.values())

    @overload
    def run(
        self, messages: Input, /, *, deps: object = None
    ) -> Coroutine[Any, Any, AgentResponse]: ...

    @overload
    def run(
        self, messages: Input, /, *, output: type[OutputT], deps: object = None
    ) -> Coroutine[Any, Any, AgentResponse[OutputT]]: ...

    @overload
    def run(
        self, messages: Input, /, *, output: JSONObject, deps: object = None
    ) -> Coroutine[Any, Any, AgentResponse[JSONValue]]: ...

    def run(
        self, messages: Input, /, *, output: object = None, deps: object = None
    ) -> Coroutine[Any, Any, Any]:
        """Run to the end and return the response.

        A failing model call or hook gives a response with status `"failed"`; only
        cancellation, KeyboardInterrupt and SystemExit are raised. The input is copied
        when `run` is called and never changed.

        Args:
            messages: A user's text, one message, or the whole history; or a paused run
                with decisions, from `PausedRun.decide`.
            output: The form of the final answer: a pydantic model, another type that
                pydantic can validate, or a JSON Schema (with the extra
                `lighter-core[jsonschema]`). The value is the response's `output`. An
                answer that does not fit is sent back to the model once.
            deps: Anything that tools and hooks shall find in their `RunContext`.
        """
        run = run_loop(self._setup, new_run(messages, output, deps), None)
        # This is the name that the warning about a forgotten `await` shows.
        run.__qualname__ = "Agent.run"  # type: ignore[attr-defined]
        return run

    @overload
    def run_sync(self, messages: Input, /, *, deps: object = None) -> AgentResponse: ...

    @overload
    def run_sync(
        self, messages: Input, /, *, output: type[OutputT], deps: object = None
    ) -> AgentResponse[OutputT]: ...

    @overload
    def run_sync(
        self, messages: Input, /, *, output: JSONObject, deps: object = None
    ) -> AgentResponse[JSONValue]: ...

    def run_sync(
        self, messages: Input, /, *, output: object = None, deps: object = None
    ) -> AgentResponse[Any]:
        """Run from synchronous code; as `run`.

        The run takes place on a private event loop, with the caller's context
        variables; this thread waits. It works inside a running loop too, a notebook's
        for one, which it blocks. Ctrl-C cancels the run.

        Raises:
            RuntimeError: When called inside a run that `run_sync` started, on its loop.
        """
        run = partial(run_loop, self._setup, new_run(messages, output, deps), None)
        return run_sync(run, instead="await agent.run(…)")

    @overload
    def stream(
        self, messages: Input, /, *, deps: object = None, all_events: bool = False
    ) -> AgentStream: ...

    @overload
    def stream(
        self,
        messages: Input,
        /,
        *,
        output: type[OutputT],
        deps: object = None,
        all_events: bool = False,
    ) -> AgentStream[OutputT]: ...

    @overload
    def stream(
        self,
        messages: Input,
        /,
        *,
        output: JSONObject,
        deps: object = None,
        all_events: bool = False,
    ) -> AgentStream[JSONValue]: ...

    def stream(
        self,
        messages: Input,
        /,
        *,
        output: object = None,
        deps: object = None,
        all_events: bool = False,
    ) -> AgentStream[Any]:
        """Return the stream of a run, which starts when its first event is asked for.

        Args:
            messages: As in `run`.
            output: As in `run`; the deltas are the answer's JSON text.
            deps: As in `run`.
            all_events: Also tell of turns, tokens and limits, for user interfaces:
                `TurnStarted`, `TurnEnded`, `UsageUpdated`, `LimitNear`.
        """
        setup, state = self._setup, new_run(messages, output, deps)
        state.all_events = all_events
        return AgentStream(lambda sink: run_loop(setup, state, sink), state)

    @overload
    def stream_sync(
        self, messages: Input, /, *, deps: object = None, all_events: bool = False
    ) -> SyncAgentStream: ...

    @overload
    def stream_sync(
        self,
        messages: Input,
        /,
        *,
        output: type[OutputT],
        deps: object = None,
        all_events: bool = False,
    ) -> SyncAgentStream[OutputT]: ...

    @overload
    def stream_sync(
        self,
        messages: Input,
        /,
        *,
        output: JSONObject,
        deps: object = None,
        all_events: bool = False,
    ) -> SyncAgentStream[JSONValue]: ...

    def stream_sync(
        self,
        messages: Input,
        /,
        *,
        output: object = None,
        deps: object = None,
        all_events: bool = False,
    ) -> SyncAgentStream[Any]:
        """Return the stream for synchronous code: `with … as stream: for event in …`."""
        setup, state = self._setup, new_run(messages, output, deps)
        state.all_events = all_events
        return SyncAgentStream(AgentStream(partial(run_loop, setup, state), state))

    @overload
    def start(self, messages: Input, /, *, deps: object = None) -> RunHandle: ...

    @overload
    def start(
        self, messages: Input, /, *, output: type[OutputT], deps: object = None
    ) -> RunHandle[OutputT]: ...

    @overload
    def start(
        self, messages: Input, /, *, output: JSONObject, deps: object = None
    ) -> RunHandle[JSONValue]: ...

    def start(
        self, messages: Input, /, *, output: object = None, deps: object = None
    ) -> RunHandle[Any]:
        """Start a run in a task of its own and return its handle; arguments as in `run`.

        Raises:
            RuntimeError: Without a running event loop.
        """
        setup, state = self._setup, new_run(messages, output, deps)
        need_running_loop("agent.start", instead="agent.run_sync")
        return RunHandle(lambda: run_loop(setup, state, None), state)

    @overload
    def resume(
        self, paused: _Paused, decisions: _Decisions, /, *, deps: object = None
    ) -> Coroutine[Any, Any, AgentResponse]: ...

    @overload
    def resume(
        self,
        paused: _Paused,
        decisions: _Decisions,
        /,
        *,
        output: type[OutputT],
        deps: object = None,
    ) -> Coroutine[Any, Any, AgentResponse[OutputT]]: ...

    @overload
    def resume(
        self,
        paused: _Paused,
        decisions: _Decisions,
        /,
        *,
        output: JSONObject,
        deps: object = None,
    ) -> Coroutine[Any, Any, AgentResponse[JSONValue]]: ...

    def resume(
        self,
        paused: _Paused,
        decisions: _Decisions,
        /,
        *,
        output: object = None,
        deps: object = None,
    ) -> Coroutine[Any, Any, Any]:
        """Go on with a paused run once a person has decided, and return its response.

        The response's messages are all of the run's, those of the paused response
        included: they take the place of those. Nothing that had a result runs again.
        `stream`, `start` and the synchronous ways take `paused.decide(decisions)`.

        Args:
            paused: The paused response, or its `paused`, which travels as JSON.
            decisions: A decision for each pending call, by its call id.
            output: As in `run`; give the same again, and the same `deps`.
            deps: As in `run`.

        Raises:
            ValueError: When the run is not paused, or the decisions do not fit.

        Example:
            ```python
            response = await agent.run("Delete the old backups.")
            if response.status == "paused":
                answers = {each.call.call_id: ask(each) for each in response.pending}
                response = await agent.resume(response, answers)
            ```
        """
        waiting = paused.paused if isinstance(paused, AgentResponse) else paused
        if waiting is None:
            raise ValueError("the run is not paused: there is nothing to resume")
        return self.run(waiting.decide(decisions), output=output, deps=deps)  # type: ignore[call-overload,no-any-return]

    def as_tool(
        self, name: str, description: str, *, timeout: float | None = None
    ) -> Tool:
        """Return a tool with which another agent hands a task to this one.

        Each call is a run of its own, on the task's text alone, with the outer run's
        `deps`. Its last text is the result, its tokens count for the outer run too, and
        whoever streams that sees its events as `NestedEvent`s. When it fails, the tool
        does; a tool that wants a person's approval cannot get it there.

        Args:
            name: The tool's name.
            description: When and why to use it, for the outer model.
            timeout: Seconds that one call may take, as in `Tool`.
        """
        from ._agent_tool import agent_tool

        return agent_tool(self._setup, name, description, timeout)

    async def warm_up(self) -> None:
        """Do what the first request would do beforehand; see `Model.warm_up`."""
        await self._model.warm_up()

    def warm_up_sync(self) -> None:
        """Do the same for `run_sync` and its like, which have a loop of their own."""
        self._model.warm_up_sync()

    async def aclose(self) -> None:
        """Close the provider's connections; the agent can be used again after it."""
        await self._model.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"Agent(model={self._model!r}, tools={list(self._tools)!r})"


def setup_of(agent: Agent) -> LoopSetup:
    """Return the agent's part of a run, for whoever runs the loop in another way."""
    return agent._setup  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
