"""Searching by text."""

from __future__ import annotations

from lighter_core import (
    AssistantMessage,
    ImagePart,
    SystemMessage,
    TextPart,
    UserMessage,
)
from lighter_core.sessions import Store

from .._registry import expect
from ._registry import Bench, store_check
from ._steps import ROUND, add, texts_of

__all__: list[str] = []


async def _found(
    store: Store, text: str, *, prefix: str = "", limit: int = 50
) -> list[tuple[str, str]]:
    hits = await store.search(text, prefix=prefix, limit=limit)
    return [(hit.session_id, "".join(texts_of([hit.entry.message]))) for hit in hits]


@store_check
async def search_finds_parts_of_texts(bench: Bench) -> None:
    """A search finds every text that contains another one, in the midst of words too,
    and returns the entry as it was stored.
    """
    store = bench.open()
    entries = await add(store, "chat", "The bookstore on the moon", "nothing", "moon")
    hits = await store.search("oo")
    expect([hit.entry for hit in hits] == [entries[2], entries[0]], f"{hits}")
    expect(
        await _found(store, "re on t") == [("chat", "The bookstore on the moon")], ""
    )
    expect(await _found(store, "absent") == [], "something was found")


@store_check
async def search_does_not_mind_case(bench: Bench) -> None:
    """Upper and lower case are alike, in every alphabet that has them."""
    store = bench.open()
    await add(store, "chat", "Straße, ÄPFEL, Σίσυφος, ДОМ, 本屋")
    for text in ("STRASSE", "äpfel", "σίσυφοσ", "дом", "本屋", "straß"):
        expect(len(await _found(store, text)) == 1, f"{text!r} was not found")


@store_check
async def search_takes_text_literally(bench: Bench) -> None:
    """Wildcards, quotes and escapes mean themselves."""
    store = bench.open()
    odd = ["100%", "a_b", "c!d", "e\\f", "g'h", 'i"j', "k*l", "m?n", "[o]", "p:q"]
    for n, text in enumerate(odd):
        await add(store, f"{n}", text)
    await add(store, "plain", "100 axb cd ef gh ij kl mn o pq")
    for n, text in enumerate(odd):
        seen = await _found(store, text)
        expect(seen == [(f"{n}", text)], f"{text!r} found {seen}")
    expect(await _found(store, "%") == [("0", "100%")], "a lone %")
    expect(await _found(store, "_") == [("1", "a_b")], "a lone _")


@store_check
async def search_looks_at_what_was_said(bench: Bench) -> None:
    """Texts of the user, of the model, of the system and results of tools are searched;
    reasoning, arguments and pictures are not.
    """
    store = bench.open()
    picture = ImagePart(data=b"x" * 30, media_type="image/png")
    parts = UserMessage([TextPart("first part"), picture, TextPart("second part")])
    await store.append("chat", [*ROUND, parts, SystemMessage("a rule")], after=None)
    for text, count in {
        "what is there": 1,
        "let me look": 1,
        "a book": 2,
        "second": 1,
        "first part": 1,
        "a rule": 1,
        "thinking": 0,
        "arguments": 0,
        "image/png": 0,
        "end_turn": 0,
        "role": 0,
    }.items():
        seen = await store.search(text)
        expect(len(seen) == count, f"{text!r} was found {len(seen)} times")


@store_check
async def search_begins_with_the_newest(bench: Bench) -> None:
    """Hits in the session that changed last come first, in a session the newest; the
    limit takes the first of them.
    """
    store = bench.open()
    await add(store, "a", "x1", "x2")
    await add(store, "b", "x3")
    await add(store, "a", "y")
    wanted = [("a", "x2"), ("a", "x1"), ("b", "x3")]
    for limit in (3, 2, 1):
        seen = await _found(store, "x", limit=limit)
        expect(seen == wanted[:limit], f"with limit {limit}: {seen}")


@store_check
async def search_keeps_to_its_prefix(bench: Bench) -> None:
    """With a prefix nothing of other sessions is found, not even through a fork."""
    store = bench.open()
    await add(store, "u1/a", "needle")
    await add(store, "u2/a", "needle")
    await store.fork("u2/a", "u3/fork")
    await add(store, "u3/fork", "needle of three")
    expect(await _found(store, "needle", prefix="u1/") == [("u1/a", "needle")], "u1")
    expect(await _found(store, "needle", prefix="u2/") == [("u2/a", "needle")], "u2")
    expect(await _found(store, "needle", prefix="x") == [], "x")


@store_check
async def search_finds_shared_entries_in_each_fork(bench: Bench) -> None:
    """An entry is found in each session that leads to it, and in no other."""
    store = bench.open()
    await add(store, "a", "shared", "later")
    first = (await store.load("a")).entries[0].id
    await store.fork("a", "b", at=first)
    await add(store, "b", "own")
    for text, wanted in {
        "shared": [("b", "shared"), ("a", "shared")],
        "later": [("a", "later")],
        "own": [("b", "own")],
    }.items():
        seen = await _found(store, text)
        expect(seen == wanted, f"{text!r}: {seen}")
    await store.delete("a")
    expect(await _found(store, "shared") == [("b", "shared")], "after a deletion")
    expect(await _found(store, "later") == [], "what only the deleted one had")


@store_check
async def search_takes_1_to_1000_characters(bench: Bench) -> None:
    """An empty or a very long text is refused with a ValueError."""
    store = bench.open()
    text = "ß%" * 500
    await add(store, "chat", text)
    expect(await _found(store, text) == [("chat", text)], "1,000 characters")
    for bad in ("", "x" * 1001):
        try:
            await store.search(bad)
        except ValueError:
            continue
        expect(False, f"a text of {len(bad)} characters was taken")


@store_check
async def search_takes_every_character(bench: Bench) -> None:
    """A text with a NUL or a lone surrogate is no error, in messages or in the search."""
    store = bench.open()
    message = AssistantMessage("before\x00after \ud800 end")
    await store.append("chat", [message], after=None)
    for text in ("before", "after", "end"):
        expect(len(await store.search(text)) == 1, f"{text!r} was not found")
    for text in ("\x00", "\ud800", "a\x00b"):
        await store.search(text)
