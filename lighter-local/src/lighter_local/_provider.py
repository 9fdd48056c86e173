"""The provider: options, the choice of the model, and one model call."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, get_args

from lighter_core.adapters import (
    ReplayNotes,
    need_integer,
    note,
    require_valid_history,
)
from lighter_core.errors import ModelError
from lighter_core.events import MessageEvent, ProviderStreamEvent
from lighter_core.messages import AssistantMessage, Message
from lighter_core.provider import ReplayFinding
from lighter_core.requests import ModelRequest

from ._chat import Plan, Sampling, check_json, plan_guided, plan_native
from ._decode import Reply
from ._engine import Engine
from ._models import SMOLLM2, find_model
from ._native import Settings
from ._prompt import check_messages
from ._registry import acquire, loaded, release
from ._threads import run_in_thread

__all__ = ["LocalProvider"]

logger = logging.getLogger("lighter.local")

ToolMode = Literal["auto", "native", "grammar"]


class LocalProvider:
    """A language model inside the process, on llama.cpp.

    Making one loads nothing: the model is found and loaded at the first request, once
    for the process, and shared by all providers with the same settings.

    Args:
        model_path: The path of a GGUF file, or `hf:owner/repo/file.gguf`. Without it:
            `LIGHTER_LOCAL_MODEL`, then the fetched default model.
        model_id: The same under the name that `Model.from_name` uses; also
            `"smollm2"`, the default model whatever the variable says.
        context_size: Tokens of a conversation and its reply together.
        max_output_tokens: Tokens of a reply; a longer one is a `ModelError`.
        temperature: 0 takes the likeliest token each time.
        threads: Threads that compute; as many as there are cores, at most 8, unless
            given.
        parallel: Requests that run at once; others wait. Each has `context_size`
            tokens of memory of its own.
        tools: `"native"` leaves tool calls to the model's chat template, `"grammar"`
            forces them by a grammar, `"auto"` takes the first where the template knows
            tools.
        chat_template: A Jinja template instead of the model's own, as text or as the
            `Path` of a file.
        call_threshold: How likely a call must be for it to be made, with `"grammar"`.

    Example:
        ```python
        model = Model(LocalProvider("qwen2.5-3b-instruct-q4_k_m.gguf"))
        ```
    """

    capabilities: Final = frozenset({"output", "tool_choice"})

    def __init__(
        self,
        model_path: str | Path | None = None,
        *,
        model_id: str | Path | None = None,
        context_size: int = 4096,
        max_output_tokens: int = 1024,
        temperature: float = 0.0,
        threads: int | None = None,
        parallel: int = 2,
        tools: ToolMode = "auto",
        chat_template: str | Path | None = None,
        call_threshold: float = 0.12,
    ) -> None:
        self._asked = _asked_model(model_path, model_id)
        if tools not in get_args(ToolMode):
            raise _refused(
                f"tools must be 'auto', 'native' or 'grammar', got {tools!r}"
            )
        if chat_template is not None and not isinstance(chat_template, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _refused("chat_template must be a str or a Path")
        self._tools: ToolMode = tools
        self._chat_template = chat_template
        self._context_size = _integer("context_size", context_size)
        self._parallel = _integer("parallel", parallel, high=64)
        self._threads = need_integer("threads", threads, provider="local", high=512)
        self._sampling = Sampling(
            max_output_tokens=_integer("max_output_tokens", max_output_tokens),
            temperature=_number("temperature", temperature, high=10.0),
            call_threshold=_number("call_threshold", call_threshold, high=1.0),
        )

    @property
    def name(self) -> str:
        """The provider's name, `"local"`."""
        return "local"

    def __repr__(self) -> str:
        model = "default" if self._asked is None else Path(self._asked).name
        return f"LocalProvider(model={model!r})"

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        """Return the complete reply: the message that `stream` ends with.

        Raises:
            ModelError: As described in the provider's documentation.
        """
        message: AssistantMessage | None = None
        async with aclosing(self.stream(request)) as events:
            async for event in events:
                if isinstance(event, MessageEvent):
                    message = event.message
        if message is None:  # stream() raises instead
            raise ModelError("no reply", "bad_response", provider="local")
        return message

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        """Yield the text as it is generated, then one `MessageEvent`.

        Leaving the stream ends the generation and waits for its thread.

        Raises:
            ModelError: As described in the provider's documentation.
        """
        require_valid_history(request.messages, provider="local")
        check_messages(request.messages, ReplayNotes())
        engine = await self._engine()
        native, notes = self._is_native(engine), ReplayNotes()
        check_messages(request.messages, notes, native=native)
        for text in notes.texts:
            note(text, provider="local")
        plan = await self._plan(engine, request)
        message = plan.message
        if message is None:
            reply = Reply(plan.spent)
            async with engine.chat(plan.body) as chunks:
                async for chunk in chunks:
                    for delta in reply.feed(chunk):
                        yield delta
            message = reply.message(request.messages)
            if request.output is not None and not message.tool_calls:
                check_json(message.content)
        _log(message)
        yield MessageEvent(message)

    def replay_report(self, messages: Sequence[Message]) -> list[ReplayFinding]:
        """Return what a request with these messages would drop, rewrite or refuse.

        Whether calls are rewritten depends on the model's chat template. With
        `tools="auto"` that is known when the model is loaded, and not told before.
        """
        native: bool | None = None if self._tools == "auto" else self._tools == "native"
        engine = loaded(self)
        if native is None and engine is not None:
            native = engine.knows_tools
        request, notes = ModelRequest(messages), ReplayNotes(report=True)
        with notes.needed():
            check_messages(request.messages, notes, native=native)
        return notes.findings

    async def _plan(self, engine: Engine, request: ModelRequest) -> Plan:
        if self._is_native(engine):
            return await plan_native(engine, request, self._sampling)
        return await plan_guided(engine, request, self._sampling)

    async def _engine(self) -> Engine:
        template = self._chat_template
        if isinstance(template, Path):
            template = _template_text(template)
        # On a thread: a reference to a hub may download for minutes.
        model = await run_in_thread(lambda: find_model(self._asked))
        settings = Settings(
            path=model.path.resolve(),
            context_size=self._context_size,
            parallel=self._parallel,
            threads=self._threads,
            chat_template=template,
        )
        return await acquire(settings, self)

    def _is_native(self, engine: Engine) -> bool:
        if self._tools == "native" and not engine.knows_tools:
            raise _refused(
                "the model's chat template knows no tools: use tools='grammar' or"
                " 'auto', or pass a chat_template=… that knows them"
            )
        return engine.knows_tools and self._tools != "grammar"

    async def aclose(self) -> None:
        """Unload the model, unless other providers use it. A new request loads it again.

        Requests that still run in a model that is unloaded fail with `aborted`.
        """
        await release(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def _refused(text: str) -> ModelError:
    return ModelError(text, "invalid_request", provider="local")


def _template_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise _refused(f"the chat template {path.name!r} cannot be read") from error


def _asked_model(path: str | Path | None, model_id: str | Path | None) -> str | None:
    if path is not None and model_id is not None:
        raise _refused("pass model_path or model_id, not both: they mean the same")
    parameter = "model_path" if model_id is None else "model_id"
    asked: object = path if model_id is None else model_id
    if asked is None:
        return None
    if not isinstance(asked, str | Path) or not str(asked).strip():
        raise _refused(f"{parameter} must be the path of a GGUF file, got {asked!r}")
    text = str(asked)
    if text.startswith("hf:"):
        from ._huggingface import split_reference

        split_reference(text)
    elif text != SMOLLM2.alias and not text.endswith(".gguf") and not _is_path(text):
        raise _refused(
            f"unknown local model {text!r}: pass the path of a GGUF file,"
            f" hf:owner/repo/file.gguf, or {SMOLLM2.alias!r}"
        )
    return text


def _is_path(text: str) -> bool:
    return "/" in text or "\\" in text


def _integer(name: str, value: int, *, high: int = 2**31 - 1) -> int:
    checked = need_integer(name, value, provider="local", high=high)
    if checked is None:
        raise _refused(f"{name} must be an int, got NoneType")
    return checked


def _number(name: str, value: float, *, high: float) -> float:
    given: object = value
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise _refused(f"{name} must be a number, got {type(given).__name__}")
    if not 0 <= given <= high:
        raise _refused(f"{name} must be between 0 and {high}, got {given}")
    return float(given)


def _log(message: AssistantMessage) -> None:
    usage = message.usage
    logger.debug(
        "local reply",
        extra={
            "lighter_stop_reason": message.stop_reason,
            "lighter_tool_calls": len(message.tool_calls),
            "lighter_input_tokens": usage.input_tokens if usage else None,
            "lighter_output_tokens": usage.output_tokens if usage else None,
        },
    )
