"""What messages and ids may hold."""

from __future__ import annotations

from lighter_core import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from lighter_core.messages import seal_native

from .._registry import expect
from ._registry import Bench, store_check
from ._steps import ROUND, add, fails, said, texts

__all__: list[str] = []

_ODD = {
    "letters": "Grüße, 你好, مرحبا, é and e\u0301, 👩‍👩‍👧",
    "separators": "a\u2028b\u2029c\u0085d\r\ne\tf\x1fg",
    "nul": "a\x00b\x00",
    "surrogates": "\ud800 alone, \udfff too",
    "quotes": "Robert'); DROP TABLE \"lighter_entries\";-- \\ \\' \\u0000",
    "patterns": "100% of _all_ {these} :names ?1 $1 %s %(x)s",
    "blank": "   \n ",
    "nothing": "",
    "bom": "\ufeffx\ufffe\uffff",
}


async def _keeps(bench: Bench, *messages: Message) -> None:
    store = bench.open()
    await store.append("chat", messages, after=None)
    loaded = (await store.load("chat")).messages
    for given, found in zip(messages, loaded, strict=True):
        if found != given:
            expect(False, f"{str(given)[:200]!r} became {str(found)[:200]!r}")


def _everywhere(text: str) -> list[Message]:
    call = ToolCall(text, text, text)
    return [
        SystemMessage(text),
        UserMessage(text),
        UserMessage([TextPart(text)]),
        AssistantMessage(text, reasoning=text, tool_calls=[call], stop_reason=text),
        ToolMessage(call_id=text, tool_name=text, tool_output=text),
    ]


@store_check
async def letters_of_all_scripts(bench: Bench) -> None:
    """Text of every script comes back as it was, composed or not."""
    await _keeps(bench, *_everywhere(_ODD["letters"]), *_everywhere(_ODD["bom"]))


@store_check
async def separators_and_control_characters(bench: Bench) -> None:
    """So do line separators and control characters."""
    await _keeps(bench, *_everywhere(_ODD["separators"]))


@store_check
async def nul_characters(bench: Bench) -> None:
    """So does the NUL, which not every database can hold as it is."""
    await _keeps(bench, *_everywhere(_ODD["nul"]))


@store_check
async def lone_surrogates(bench: Bench) -> None:
    """So do lone surrogates, which have no form in UTF-8."""
    await _keeps(bench, *_everywhere(_ODD["surrogates"]))


@store_check
async def quotes_and_patterns(bench: Bench) -> None:
    """So does what means something to databases."""
    await _keeps(bench, *_everywhere(_ODD["quotes"]), *_everywhere(_ODD["patterns"]))


@store_check
async def blank_texts(bench: Bench) -> None:
    """So do blank and empty texts."""
    await _keeps(bench, *_everywhere(_ODD["blank"]), *_everywhere(_ODD["nothing"]))


@store_check
async def pictures_and_files(bench: Bench) -> None:
    """So do pictures and files: bytes, addresses, media types."""
    data = bytes(range(256)) * 10
    image = ImagePart(data=data, media_type="image/png")
    file = FilePart(data=data, media_type="application/pdf")
    address = ImagePart(url="https://example.org/a b?c=é#d")
    await _keeps(bench, UserMessage([TextPart("Look:"), image, file, address]))


@store_check
async def native_context_is_the_same_text(bench: Bench) -> None:
    """The provider's own form of a reply is kept byte for byte, and its seal fits."""
    store = bench.open()
    plain = AssistantMessage("Hm.", usage=Usage(1, 2, 3, 4, 5), stop_reason="stop")
    items = '[{"b": 1e2, "a": 1.0, "a": "\\u00e9", "id": 12345678901234567890}]'
    message = seal_native(
        plain, provider="acme", endpoint="https://x/v1", api="a", model="m", items=items
    )
    await store.append("chat", [message], after=None)
    (loaded,) = (await store.load("chat")).messages
    expect(loaded == message, f"{loaded!r}")
    if isinstance(loaded, AssistantMessage) and loaded.native is not None:
        expect(loaded.native.items == items, f"{loaded.native.items!r}")
        expect(loaded.native_intact(), "the seal does not fit any more")
    else:
        expect(False, "the native context is gone")


@store_check
async def big_messages(bench: Bench) -> None:
    """A message of some megabytes is stored, found and loaded like any other."""
    store = bench.open()
    text = "Größe " * 700_000 + "needle"
    await add(store, "chat", text, "small")
    expect(await texts(store, "chat") == [text, "small"], "another text")
    found = await store.search("NEEDLE")
    expect(len(found) == 1, f"{len(found)} found")


@store_check
async def long_sessions(bench: Bench) -> None:
    """Two thousand messages come back in order."""
    store = bench.open()
    for start in range(0, 500, 125):
        many = [
            m for n in range(start, start + 125) for m in (*ROUND[:3], *said(str(n)))
        ]
        session = None
        if start:
            session = (await store.load("chat")).info.head
        await store.append("chat", many, after=session)
    loaded = await store.load("chat")
    numbers = [m.text for m in loaded.messages[3::4] if isinstance(m, UserMessage)]
    expect(loaded.info.revision == 2000, f"revision {loaded.info.revision}")  # noqa: PLR2004
    expect(numbers == [str(n) for n in range(500)], "another order")


@store_check
async def odd_ids_are_distinct(bench: Bench) -> None:
    """Every printable id up to 200 characters is an id of its own: case, accents,
    spaces, quotes and wildcards count.
    """
    store = bench.open()
    ids = ["a", "A", "ä", "a\u0308", "a ", " a", "%", "_", "'", '"', "a/b", "a%b", "\\"]
    ids += ["x" * 200, "x" * 199 + "y", "é" * 200, "😀", ":id", "?"]
    for each in ids:
        await add(store, each, f"text of {each}")
    for each in ids:
        expect(await texts(store, each) == [f"text of {each}"], f"at {each!r}")
        expect((await store.load(each)).info.id == each, f"at {each!r}")
    listed = {info.id for info in (await store.sessions(limit=100)).sessions}
    expect(listed == set(ids), f"missing {set(ids) - listed}")


@store_check
async def impossible_ids_are_refused(bench: Bench) -> None:
    """An id that is empty, too long, or not printable is refused by each operation."""
    store = bench.open()
    await add(store, "chat", "1")
    session = await store.load("chat")
    for bad in ("", "x" * 201, "a\nb", "a\x00b", "\ud800"):
        await fails(store.load(bad), "invalid")
        await fails(store.append(bad, said("1"), after=None), "invalid")
        await fails(store.append(bad, said("1"), after=session.info.head), "invalid")
        await fails(store.fork(bad, "new"), "invalid")
        await fails(store.fork("chat", bad), "invalid")
        await fails(store.delete(bad), "invalid")
    expect(len((await store.sessions()).sessions) == 1, "a session was made")
