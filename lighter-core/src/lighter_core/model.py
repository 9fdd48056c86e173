"""A model: a provider, with hooks around each call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

from ._around import stream_around, valid_request
from ._chain import HookChain
from ._closing import Owned, close_stream
from ._sync import run_sync
from .context import RunContext
from .errors import PluginNotFoundError
from .events import MessageEvent, ModelCallRestarted, ProviderStreamEvent
from .messages import AssistantMessage
from .provider import Provider, SupportsAclose, SupportsWarmUp
from .requests import ModelRequest

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Model"]


class Model:
    """Wraps a provider and runs hooks before and after each call.

    Use it directly for single calls; an `Agent` adds the loop and the tools. It adds no
    system prompt, executes no tools and raises errors instead of returning them.

    Args:
        provider: The provider to call.

    Example:
        ```python
        model = Model.from_name("openai", model_id="…")
        reply = await model.invoke(ModelRequest([UserMessage("Hello!")]))
        ```
    """

    def __init__(self, provider: Provider) -> None:
        given: object = provider
        if not isinstance(given, Provider) or isinstance(given, type):
            raise TypeError(
                f"Model needs a Provider object, got {given!r}: it must have `name`,"
                " `invoke` and `stream`; for a provider's name use Model.from_name"
            )
        self._provider = provider

    @classmethod
    def from_name(
        cls,
        name: str,
        /,
        *,
        model_id: str | None = None,
        dist: str | None = None,
        **options: object,
    ) -> Model:
        """Make a model of an installed provider plugin.

        Only the plugin of that name is imported. Nothing is sent.

        Args:
            name: The provider's name, e.g. `"openai"`, or name and model id with a
                colon between, e.g. `"openai:the-model"`.
            model_id: The model id.
            dist: The distribution to take it from, where several serve the name.
            options: The provider's own options, such as `api_key`.

        Raises:
            PluginNotFoundError: When no installed plugin has the name.
            PluginError: When it is ambiguous, broken or incompatible.
            ModelError: When the provider refuses the options.
        """
        from .plugins.registry import default_registry

        given: object = name
        if not isinstance(given, str):
            raise TypeError(
                f"Model.from_name takes a provider's name, got {type(given).__name__}"
            )
        name, separator, tail = name.partition(":")
        if separator:
            if model_id is not None:
                raise ValueError(
                    f"the model id is given twice: {tail!r} in the name and model_id="
                    f"{model_id!r}"
                )
            model_id = tail
        if not name:
            raise PluginNotFoundError(
                "the provider's name is empty", kind="providers", name=name
            )
        if model_id is not None:
            options["model_id"] = model_id
        return cls(default_registry().create_provider(name, options, dist=dist))

    @property
    def provider(self) -> Provider:
        """The provider."""
        return self._provider

    async def invoke(
        self, request: ModelRequest, hooks: Iterable[object] = ()
    ) -> AssistantMessage:
        """Make one call and return the complete reply.

        Args:
            request: The whole context; nothing is added to it.
            hooks: Hooks for this call; only those of model calls run:
                `before_model`, `around_model` and `after_model`.

        Raises:
            ModelError: When the call fails, and `invalid_request` for a history with
                unanswered tool calls, before anything is sent.
            BaseException: Whatever a hook raises.
        """
        chain, run = HookChain(hooks), RunContext[Any]()
        request = await self._prepare(request, chain, run)
        if not chain.has("around_model"):
            message = await self._provider.invoke(request)
            return await chain.run("after_model", message, run)

        async def call_model(request: ModelRequest) -> AssistantMessage:
            return await self._provider.invoke(valid_request(request, self._provider))

        message = await chain.around("around_model", request, run, call_model)
        return await chain.run("after_model", message, run)

    async def stream(
        self, request: ModelRequest, hooks: Iterable[object] = ()
    ) -> AsyncGenerator[ProviderStreamEvent | ModelCallRestarted, None]:
        """Make one call and yield its events; arguments and errors as in `invoke`.

        Events are forwarded as the provider yields them, unchecked. A `ModelCallRestarted`
        says that a hook makes the call again. Close the generator when leaving it early
        (`contextlib.aclosing`): that ends the request.
        """
        chain, run = HookChain(hooks), RunContext[Any]()
        request = await self._prepare(request, chain, run)
        stream: AsyncGenerator[ProviderStreamEvent | ModelCallRestarted, None]
        if chain.has("around_model"):
            stream = stream_around(self._provider, request, chain, run)
        else:
            stream = self._provider.stream(request)
        try:
            async for event in Owned(stream):
                if isinstance(event, MessageEvent) and chain.has("after_model"):
                    message = await chain.run("after_model", event.message, run)
                    yield MessageEvent(message)
                else:
                    yield event
        finally:
            await close_stream(stream)

    async def _prepare(
        self, request: ModelRequest, chain: HookChain, run: RunContext[Any]
    ) -> ModelRequest:
        given: object = request
        if not isinstance(given, ModelRequest):
            raise TypeError(
                f"a Model takes a ModelRequest, got {type(given).__name__}; write"
                " ModelRequest(messages)"
            )
        specs = request.tool_specs
        if chain.has("before_model") or chain.has("around_model"):
            specs = tuple(deepcopy(each) for each in specs)  # hooks may edit them
        own = ModelRequest(
            request.messages,
            tool_specs=specs,
            output=request.output,
            tool_choice=request.tool_choice,
        )
        changed = await chain.run("before_model", own, run)
        return valid_request(changed, self._provider)

    async def warm_up(self) -> None:
        """Let the provider do now what its first request would do; nothing is sent.

        For a provider on a vendor's SDK this imports the SDK, which takes a second or
        more, and makes the running loop's client; others may do nothing. Await it while
        the application starts, on the loop that will run agents.

        Raises:
            ModelError: Where every request would fail in the same way.
        """
        if isinstance(self._provider, SupportsWarmUp):
            await self._provider.warm_up()

    def warm_up_sync(self) -> None:
        """Do the same for `run_sync` and its like, which have a loop of their own."""
        run_sync(self.warm_up, instead="await model.warm_up()")

    async def aclose(self) -> None:
        """Close the provider's connections, if it has any to close."""
        if isinstance(self._provider, SupportsAclose):
            await self._provider.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"Model({self._provider!r})"
