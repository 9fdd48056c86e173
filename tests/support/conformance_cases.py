"""Providers without a service, as cases of the conformance suite."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path

from lighter_conformance import Case
from lighter_core import (
    AssistantMessage,
    Model,
    ModelError,
    ModelRequest,
    Provider,
    ProviderStreamEvent,
    UserMessage,
)
from lighter_core.recording import record
from lighter_core.testing import FakeProvider, Turn

ECHO_SOURCES = Path(__file__).parents[2] / "docs" / "examples" / "lighter-echo" / "src"


class FakeCase(Case):
    """The scripted provider of lighter-core, or something around it.

    Args:
        make: Makes the provider from a scripted one.
        kind: The scripted provider's class.
        fields: As in `Case`.
    """

    def __init__(
        self,
        make: Callable[[FakeProvider], Provider] = lambda provider: provider,
        *,
        name: str = "fake",
        kind: type[FakeProvider] = FakeProvider,
        lacks: Iterable[str] = (),
    ) -> None:
        super().__init__(name, lacks=lacks)
        self._make = make
        self._kind = kind

    def make(self, **options: object) -> Provider:
        return self._make(self._kind(["Hello!"] * 50))

    def scripted(self, turns: Sequence[object]) -> Provider:
        def answer(turn):
            if isinstance(turn, Turn):
                return turn
            return lambda request: turn(request.messages[-1].text)

        replies = [answer(turn) for turn in turns]
        return self._make(self._kind([*replies, *[replies[-1]] * 100]))


class Replayed:
    """Records each request with a scripted provider, and answers from the recording.

    What a check will ask is not known before, so there is a file for each request.
    """

    def __init__(self, provider: FakeProvider, folder: Path) -> None:
        self._provider = provider
        self._folder = folder
        self._numbers = itertools.count()
        self.name = provider.name
        self.capabilities = provider.capabilities

    async def _served(self, request: ModelRequest, *, streamed: bool) -> Provider:
        path = self._folder / f"{id(self)}-{next(self._numbers)}.jsonl"
        recorder = record(self._provider, path)
        with suppress(ModelError):  # it is recorded, and raised when it is served
            if streamed:
                async with aclosing(recorder.stream(request)) as events:
                    async for _ in events:
                        pass
            else:
                await recorder.invoke(request)
        return Model.from_name("replay", path=path).provider

    async def invoke(self, request: ModelRequest) -> AssistantMessage:
        return await (await self._served(request, streamed=False)).invoke(request)

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[ProviderStreamEvent, None]:
        served = await self._served(request, streamed=True)
        async with aclosing(served.stream(request)) as events:
            async for event in events:
                yield event

    def __repr__(self) -> str:
        return f"Replayed({self._provider!r})"


class ReplayCase(FakeCase):
    """The provider `replay` on recordings of a scripted one, made when they are needed."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        super().__init__(lambda provider: Replayed(provider, folder), name="replay")
        self.plugin = "replay"
        self._path = folder / "run.jsonl"
        recorder = record(FakeProvider(["Hello!"]), self._path)
        request = ModelRequest([UserMessage(self.prompt)])
        asyncio.run(recorder.invoke(request))

    def options_by_name(self) -> dict[str, object]:
        return {"path": str(self._path)}

    def make(self, **options: object) -> Provider:
        return Model.from_name("replay", **self.options_by_name(), **options).provider  # type: ignore[arg-type]


def echo_class() -> Callable[..., Provider]:
    """The example provider of the documentation, from its sources."""
    if str(ECHO_SOURCES) not in sys.path:
        sys.path.append(str(ECHO_SOURCES))
    from lighter_echo import EchoProvider

    return EchoProvider
