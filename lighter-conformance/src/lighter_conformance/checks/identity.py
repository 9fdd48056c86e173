"""What a provider is, before anything is asked of it."""

from __future__ import annotations

import inspect
from typing import cast

from lighter_core import Model, Provider

from .._bench import HELLO, Bench, ask
from .._registry import Seen, check, expect

__all__ = ["WORDS"]

WORDS = frozenset({"output", "tool_choice", "image", "file"})


@check("identity")
async def is_a_provider(bench: Bench) -> None:
    """A provider has `name`, `invoke` and `stream`, and `Model` takes it."""
    provider: object = bench.speaker()
    expect(isinstance(provider, Provider), f"{provider!r} lacks one of them")
    Model(bench.speaker())


@check("identity")
async def name_is_stable(bench: Bench) -> None:
    """`name` is a text that is not blank, and the same for all objects of the class: the
    provenance of messages depends on it.
    """
    first, second = bench.speaker(), bench.speaker()
    names = [first.name, first.name, second.name]
    expect(len(set(names)) == 1, f"the names {names}")
    good: object = names[0]
    expect(isinstance(good, str) and good.strip(), f"the name {good!r}")


@check("identity")
async def capabilities_are_known_words(bench: Bench) -> None:
    """`capabilities`, where there is one, is a frozenset of the words `"output"`,
    `"tool_choice"`, `"image"` and `"file"`.
    """
    found: object = getattr(bench.speaker(), "capabilities", WORDS)
    if not isinstance(found, frozenset):
        raise Seen(f"capabilities is {type(found).__name__}")
    strange = cast("frozenset[object]", found) - WORDS
    expect(not strange, f"the words {sorted(map(repr, strange))}")


@check("identity", "http", "model_id")
async def model_id_is_shown(bench: Bench) -> None:
    """`model_id` is the model that was asked for, as a text."""
    wanted = bench.case.defaults()["model_id"]
    provider = bench.provider(HELLO, model_id=wanted)
    found = getattr(provider, "model_id", None)
    expect(found == wanted, f"model_id={wanted!r} was given, {found!r} is shown")


@check("identity")
async def stream_is_an_async_generator(bench: Bench) -> None:
    """`stream(request)` returns an async generator at once: it can be closed, and it is
    not awaited.
    """
    provider = bench.speaker()
    stream: object = provider.stream(ask(bench.case.prompt))
    if inspect.iscoroutine(stream):
        stream.close()
    expect(hasattr(stream, "__anext__"), f"stream() gave {type(stream).__name__}")
    close = getattr(stream, "aclose", None)
    if close is None:
        raise Seen(f"{type(stream).__name__} has no aclose()")
    await close()


@check("identity")
async def repr_is_one_short_line(bench: Bench) -> None:
    """`repr` of a provider is one line of at most 300 characters."""
    text = repr(bench.speaker())
    expect(len(text) <= 300 and "\n" not in text, f"{len(text)} characters: {text}")  # noqa: PLR2004
