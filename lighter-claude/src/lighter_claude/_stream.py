"""A streamed reply to events. Pure: the data of one event in, values out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from lighter_core import (
    AssistantMessage,
    ModelError,
    ProviderStreamEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from lighter_core.adapters import (
    ShapeError,
    as_object,
    bad_response,
    fast_load,
    is_empty,
    member_text,
)

from ._assembly import OpenBlock, Shown
from ._blocks import hosted_item, need_block, tool_call
from ._decode import build_message
from ._errors import error_in_reply, stopped
from ._target import BLANK_LINE, Target

__all__ = ["StreamDecoder"]

Event = dict[str, object]
Events = list[ProviderStreamEvent]


class StreamDecoder:
    """Turns the events of one reply into Lighter's events and a message.

    Args:
        target: Whom the request was for.
        answer: The tool whose input is the answer, if there is one. Its input is shown
            as text; other text is shown at the end, if the tool was not called.

    Example:
        ```python
        decoder = StreamDecoder(target)
        for data in splitter.feed(chunk):
            for event in decoder.feed(data):
                ...
        if decoder.message is None:
            raise decoder.ended_early()
        ```
    """

    def __init__(self, target: Target, answer: str | None = None) -> None:
        self.message: AssistantMessage | None = None
        self.ignored = 0
        self._target = target
        self._answer = answer  # the tool whose input is the answer
        self._answering: OpenBlock | None = None
        self._load = fast_load()
        self._blocks: dict[int, OpenBlock] = {}
        self._latest: int | None = None
        self._text = Shown()
        self._reasoning = Shown(BLANK_LINE)
        self._ending: dict[str, object] = {}
        self._usage: dict[str, object] = {}

    def feed(self, data: bytes) -> Events:
        """Take the data of one event; return what it brings.

        After the event that ends a good reply, `message` is set.

        Raises:
            ModelError: For an error event, for a reply that stopped before it was
                complete, and for events that are not shaped as documented.
        """
        if is_empty(data):
            return []
        try:
            event = as_object(self._load(data))
        except ValueError as err:
            raise self._unusable("an event is not JSON") from err
        if event is None:
            self.ignored += 1
            return []
        try:
            return self._take(event, data)
        except (ShapeError, ValueError) as err:
            raise self._unusable(str(err)) from err

    def ended_early(self) -> ModelError:
        """Return the error for a stream that ended without saying so."""
        return self._unusable(
            "the stream ended before the reply was complete; try again"
        )

    def _unusable(self, what: str) -> ModelError:
        reason = self._ending.get("stop_reason")
        status = reason if isinstance(reason, str) else None
        return bad_response(self._target, what, response_status=status)

    def _take(self, event: Event, data: bytes) -> Events:
        type_ = event.get("type")
        if type_ is None and as_object(event.get("error")):
            type_ = "error"  # some gateways write no type beside the error
        if type_ == "ping":
            return []
        handler = self._HANDLERS.get(type_) if isinstance(type_, str) else None
        if handler is None:
            self.ignored += 1
            return []
        return handler(self, event, data)

    def _on_error(self, event: Event, _: bytes) -> Events:
        raise error_in_reply(
            self._target,
            as_object(event.get("error")) or event,
            response_status="error",
            request_id=event.get("request_id"),
        )

    def _on_message_start(self, event: Event, _: bytes) -> Events:
        message = as_object(event.get("message")) or {}
        self._take_usage(message.get("usage"))
        return []

    def _take_usage(self, usage: object) -> None:
        """Later numbers are totals: they replace earlier ones, null does not."""
        fields = as_object(usage) or {}
        self._usage.update({k: v for k, v in fields.items() if v is not None})

    def _number(self, event: Event) -> int | None:
        index = event.get("index")
        good = isinstance(index, int) and not isinstance(index, bool)
        return index if good and isinstance(index, int) else None

    def _on_block_start(self, event: Event, data: bytes) -> Events:
        number = self._number(event)
        if number is None:
            number = len(self._blocks)
        if number in self._blocks:
            raise ShapeError(f"content block {number} began twice")
        text = member_text(data.decode("utf-8"), "content_block", event)
        begin = need_block(event.get("content_block"), text)
        block = OpenBlock(number, begin)
        self._blocks[number] = block
        self._latest = number
        for key in ("text", "thinking"):
            known = begin.value.get(key)
            if begin.type == key and isinstance(known, str):
                return self._shown(block, key, known)
        return []

    def _find(self, event: Event) -> OpenBlock:
        index = event.get("index")
        if type(index) is int and index in self._blocks:
            return self._blocks[index]
        number = self._number(event)
        number = self._latest if number is None else number
        block = self._blocks.get(number) if number is not None else None
        if block is None:
            raise ShapeError("an event is about a content block that never began")
        return block

    def _shown(self, block: OpenBlock, key: str, piece: str) -> Events:
        if key == "text":
            if self._answer is not None:
                return []
            shown = self._text.add(block.number, piece)
            return [TextDelta(shown)] if shown else []
        shown = self._reasoning.add(block.number, piece)
        return [ReasoningDelta(shown)] if shown else []

    def _on_block_delta(self, event: Event, data: bytes) -> Events:
        block = self._find(event)
        delta = as_object(event.get("delta"))
        if delta is None:
            raise ShapeError("a delta is no object")
        match delta.get("type"):
            case "text_delta":
                piece = block.add_text("text", delta.get("text"))
                return self._shown(block, "text", piece)
            case "thinking_delta":
                piece = block.add_text("thinking", delta.get("thinking"))
                return self._shown(block, "thinking", piece)
            case "signature_delta":
                block.add_text("signature", delta.get("signature"))
            case "input_json_delta":
                return self._on_input(block, delta.get("partial_json"))
            case "citations_delta":
                text = member_text(data.decode("utf-8"), "delta", event)
                block.citations.append(member_text(text, "citation"))
            case "compaction_delta":
                block.set_members(member_text(data.decode("utf-8"), "delta", event))
            case _:
                self.ignored += 1
        return []

    def _on_input(self, block: OpenBlock, piece: object) -> Events:
        if not isinstance(piece, str):
            raise ShapeError(f"a piece of input is {type(piece).__name__}, not text")
        block.input.append(piece)
        return self._call_delta(block, block.show_input(piece))

    def _call_delta(self, block: OpenBlock, piece: str) -> Events:
        id_, name = block.begin.value.get("id"), block.begin.value.get("name")
        if not piece or block.begin.type != "tool_use":
            return []
        if self._answer is None or name != self._answer:
            return [ToolCallDelta(str(id_), str(name), piece)]
        self._answering = self._answering or block
        if block is not self._answering:
            return []
        return [TextDelta(self._text.add(block.number, piece))]

    def _on_block_stop(self, event: Event, _: bytes) -> Events:
        block = self._find(event)
        return [] if block.block is not None else self._finish(block)

    def _finish(self, block: OpenBlock) -> Events:
        done = block.finish()
        if done.type == "tool_use":
            rest = block.rest_of_input(tool_call(done).arguments)
            return self._call_delta(block, rest)
        item = hosted_item(done)
        return [item] if item is not None else []

    def _on_message_delta(self, event: Event, _: bytes) -> Events:
        self._take_usage(event.get("usage"))
        self._ending.update(as_object(event.get("delta")) or {})
        return []

    def _on_message_stop(self, _: Event, __: bytes) -> Events:
        blocks = [self._blocks[number] for number in sorted(self._blocks)]
        events: Events = []
        for block in blocks:
            if block.block is not None:
                continue
            if block.begin.type == "tool_use":  # it may be cut off
                self._refuse_unfinished()
            events += self._finish(block)
        done = [block.block for block in blocks if block.block is not None]
        message = build_message(
            done, self._ending, self._usage or None, self._target, self._answer
        )
        for shown, whole, kind in (
            (self._reasoning, message.reasoning or "", ReasoningDelta),
            (self._text, message.content, TextDelta),
        ):
            rest = _rest(shown, whole)
            if rest:
                events.append(kind(rest))
        self.message = message
        return events

    def _refuse_unfinished(self) -> None:
        reason = self._ending.get("stop_reason")
        if reason != "tool_use":
            raise stopped(self._target, reason)
        raise ShapeError("the input of a tool call never ended")

    _HANDLERS: ClassVar[Mapping[str, Callable[..., Events]]] = {
        "message_start": _on_message_start,
        "content_block_start": _on_block_start,
        "content_block_delta": _on_block_delta,
        "content_block_stop": _on_block_stop,
        "message_delta": _on_message_delta,
        "message_stop": _on_message_stop,
        "error": _on_error,
    }


def _rest(shown: Shown, whole: str) -> str:
    """Return what of the whole text was not shown yet."""
    known = "".join(shown.text)
    if not whole.startswith(known):
        raise ShapeError("the finished reply differs from the pieces it came in")
    return whole[len(known) :]
