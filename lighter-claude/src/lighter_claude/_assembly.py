"""What a streamed reply is put together in: a block on its way, and the shown texts."""

from __future__ import annotations

from dataclasses import dataclass, field

from lighter_core.adapters import (
    ShapeError,
    TextJoiner,
    as_object,
    elements,
    load_json,
    member_text,
    members,
)

from ._blocks import Block, quoted, rewritten

__all__ = ["OpenBlock", "Shown"]

_SPACE = " \t\r\n"  # what may stand around a JSON value


class Shown:
    """One public text, handed out while its blocks come in.

    What it hands out, joined, is the text: separators between blocks are handed out too.
    """

    def __init__(self, separator: str = "") -> None:
        self.text: list[str] = []
        self._separator = separator
        self._joiner = TextJoiner()
        self._current: int | None = None

    def add(self, number: int, piece: str) -> str:
        """Take a piece of a block; return the text to show now."""
        if not piece:
            return ""
        shown = self._joiner.feed(piece) if number == self._current else ""
        if number != self._current:
            shown = self._joiner.finish()  # half of a character without its other half
            if self._current is not None:
                shown += self._separator
            self._current = number
            shown += self._joiner.feed(piece)
        if shown:
            self.text.append(shown)
        return shown


@dataclass(eq=False)
class OpenBlock:
    """A content block on its way: how it began, and what was added."""

    number: int
    begin: Block
    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    input: list[str] = field(default_factory=list[str])
    citations: list[str] = field(default_factory=list[str])
    members: dict[str, str] = field(default_factory=dict[str, str])
    block: Block | None = None  # once it is complete
    _joiner: TextJoiner = field(default_factory=TextJoiner)
    _shown: list[str] = field(default_factory=list[str])  # of the input
    _held: str = ""  # white space that may be its end

    def add_text(self, key: str, piece: object) -> str:
        """Take a piece of one of the block's texts; return it."""
        if not isinstance(piece, str):
            raise ShapeError(f"a piece of {key} is {type(piece).__name__}, not text")
        self.texts.setdefault(key, []).append(piece)
        return piece

    def show_input(self, piece: str) -> str:
        """Take a piece of the input; return what of the arguments to show now.

        White space around them is no part of them.
        """
        text = self._held + self._joiner.feed(piece)
        if not self._shown:
            text = text.lstrip(_SPACE)
        shown = text.rstrip(_SPACE)
        self._held = text[len(shown) :]
        if shown:
            self._shown.append(shown)
        return shown

    def rest_of_input(self, arguments: str) -> str:
        """Return what of the complete arguments was not shown yet."""
        return arguments.removeprefix("".join(self._shown))

    def finish(self) -> Block:
        """Return the complete block; what no delta touched stays as it came.

        Raises:
            ShapeError: When the input of a call is not JSON, or no JSON object.
        """
        replaced = dict(self.members)
        for key, pieces in self.texts.items():
            start = self.begin.value.get(key)
            first = start if isinstance(start, str) else ""
            replaced[key] = quoted(first + "".join(pieces))
        if self.citations:
            known = self.begin.value.get("citations")
            old = member_text(self.begin.text, "citations") if known else "[]"
            texts = [text for _, text in elements(old)]
            replaced["citations"] = f"[{','.join([*texts, *self.citations])}]"
        self._finish_input(replaced)
        if not replaced:
            self.block = self.begin
        else:
            text = rewritten(self.begin.text, replaced)
            self.block = Block(as_object(load_json(text)) or {}, text)
        return self.block

    def _finish_input(self, replaced: dict[str, str]) -> None:
        text = "".join(self.input)
        if text.strip():
            try:
                value = as_object(load_json(text))
            except ValueError as err:
                raise ShapeError(
                    f"the input of a tool call is not JSON: {err}"
                ) from err
            if value is None:
                raise ShapeError("the input of a tool call is no JSON object")
            replaced["input"] = text
        elif self.begin.type == "tool_use" and not self.begin.value.get("input"):
            replaced["input"] = "{}"

    def set_members(self, delta: str) -> None:
        """Take a delta whose fields are the block's own, such as a summary."""
        for member in members(delta):
            if member.key != "type":
                self.members[member.key] = member.text
